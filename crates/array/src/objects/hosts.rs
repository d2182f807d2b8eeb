//! Hosts as they are stored.

use super::host_groups::HostGroupId;
use crate::values::chap::Chap;
use crate::values::name::{HostName, InitiatorName};
use crate::values::personality::Personality;

/// The maximum number of hosts of an array; each costs about 4 KiB of memory.
pub const HOSTS_MAX: usize = 10_000;
/// The maximum number of initiator names of a host: their record must fit one value of the store.
pub const INITIATORS_PER_HOST_MAX: usize = 64;

/// The id of a host. It is stored, so that a renamed host keeps its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) u64);

/// A host as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: HostName,
    pub(crate) initiators: Vec<InitiatorName>,
    pub(crate) chap: Option<Chap>,
    pub(crate) personality: Option<Personality>,
    /// The host group that it is in.
    pub(crate) group: Option<HostGroupId>,
    pub(crate) created_ms: u64,
}
