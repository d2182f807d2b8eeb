//! I_T nexuses of SCSI over iSCSI: the target's state of a nexus, and its copies with list
//! identifiers.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use target::HostPort;

use crate::copies::CopyLists;

/// The initiator port: over iSCSI its name and ISID (RFC 7143, 4.4.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// The iSCSI name of the initiator.
    pub name: String,
    /// The initiator's part of the session id.
    pub isid: [u8; 6],
}

impl From<InitiatorPort> for HostPort {
    fn from(port: InitiatorPort) -> Self {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&port.isid);
        Self { name: port.name, id }
    }
}

/// Returns the ISID of a host's port.
pub(crate) fn isid_of(host: &HostPort) -> [u8; 6] {
    let [a, b, c, d, e, f, rest @ ..] = host.id;
    debug_assert_eq!(rest, [0; 10], "an iSCSI nexus has an ISID of six bytes");
    [a, b, c, d, e, f]
}

/// An I_T nexus. Created by [`crate::DeviceServer::new_nexus`].
#[derive(Debug)]
pub struct Nexus {
    known: Arc<target::Nexus>,
    pub(crate) copies: Arc<Mutex<CopyLists>>,
}

impl Nexus {
    pub(crate) fn new(known: Arc<target::Nexus>) -> Self {
        Self { known, copies: Arc::default() }
    }

    /// Returns the initiator port.
    pub fn initiator(&self) -> &HostPort {
        self.known.host()
    }
}

impl Deref for Nexus {
    type Target = target::Nexus;

    fn deref(&self) -> &target::Nexus {
        &self.known
    }
}
