//! Queries of protocols: the host of an initiator, and the volumes that it sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::LunMap;

use crate::array::Array;
use crate::values::chap::Chap;
use crate::values::name::InitiatorName;

/// An initiator that belongs to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initiator {
    /// The name of its host.
    pub host: String,
    /// The credentials with which it must log in; `None` if its iSCSI name suffices.
    pub chap: Option<Chap>,
}

impl Array {
    /// Returns the host of an initiator; `None` for an unknown initiator, whose login must be
    /// refused.
    pub fn initiator(&self, iscsi_name: &str) -> Option<Initiator> {
        let name = InitiatorName::new(iscsi_name).ok()?;
        let state = self.read();
        let entry = state.hosts().get(state.initiators().get(&name)?)?;
        let host = &entry.host;
        Some(Initiator { host: host.name.to_string(), chap: host.chap.clone() })
    }

    /// Returns the id of an initiator's host: see [`crate::HostInfo::id`].
    pub fn host_id(&self, iscsi_name: &str) -> Option<u64> {
        let name = InitiatorName::new(iscsi_name).ok()?;
        self.read().initiators().get(&name).map(|id| id.0)
    }

    /// Returns the volumes that an initiator may reach: none if it is unknown. The generation
    /// increases with each change while the array runs, and restarts with the array.
    pub fn lun_map(&self, iscsi_name: &str) -> Arc<LunMap> {
        let state = self.read();
        let name = InitiatorName::new(iscsi_name).ok();
        let host = name.and_then(|name| state.initiators().get(&name));
        match host.and_then(|id| state.hosts().get(id)) {
            Some(entry) => state.lun_map(entry),
            None => {
                Arc::new(LunMap { generation: state.removal_generation(), luns: BTreeMap::new() })
            }
        }
    }
}
