//! What protocols ask: who is this initiator, and what does it see?

use std::collections::BTreeMap;
use std::sync::Arc;

use block::LunMap;

use crate::name::InitiatorName;
use crate::{Array, Chap};

/// An initiator that belongs to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initiator {
    /// The name of its host.
    pub host: String,
    /// What it must know to log in; `None` lets it in by its name.
    pub chap: Option<Chap>,
}

impl Array {
    /// Whose initiator this is; `None` for a stranger, who is to be refused.
    pub fn initiator(&self, iscsi_name: &str) -> Option<Initiator> {
        let name = InitiatorName::new(iscsi_name).ok()?;
        let state = self.state.read();
        let entry = state.hosts.get(state.initiators.get(&name)?)?;
        let host = &entry.host;
        Some(Initiator { host: host.name.to_string(), chap: host.chap.clone() })
    }

    /// The id of the host whose initiator this is: see [`crate::HostInfo::id`].
    pub fn host_id(&self, iscsi_name: &str) -> Option<u64> {
        let name = InitiatorName::new(iscsi_name).ok()?;
        self.state.read().initiators.get(&name).map(|id| id.0)
    }

    /// The volumes that an initiator may reach: none for a stranger. Its generation goes up with
    /// each change of it while the array runs, and starts anew with the array.
    pub fn lun_map(&self, iscsi_name: &str) -> Arc<LunMap> {
        let state = self.state.read();
        let name = InitiatorName::new(iscsi_name).ok();
        let host = name.and_then(|name| state.initiators.get(&name));
        match host.and_then(|id| state.hosts.get(id)) {
            Some(entry) => state.lun_map(entry),
            None => {
                Arc::new(LunMap { generation: state.removal_generation, luns: BTreeMap::new() })
            }
        }
    }
}
