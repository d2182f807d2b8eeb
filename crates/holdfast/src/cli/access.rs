//! Access control for the iSCSI state machine: which initiators may log in.

use std::sync::Arc;

use array::{Array, Chap, ChapUser};
use iscsi::{Access, ChapCredentials, InitiatorAccess};

/// The CHAP settings of hosts without their own.
#[derive(Clone, Debug, Default)]
pub struct ChapDefaults {
    /// Whether hosts without CHAP are refused.
    pub required: bool,
    /// The target's credentials for hosts with CHAP that have no target user of their own.
    pub target: Option<ChapUser>,
}

/// Access control by the hosts of an array.
pub struct HostAccess {
    array: Arc<Array>,
    defaults: ChapDefaults,
}

impl HostAccess {
    /// Returns access control that admits only hosts of `array`.
    pub fn new(array: Arc<Array>, defaults: ChapDefaults) -> Self {
        Self { array, defaults }
    }

    fn credentials(&self, chap: Chap) -> ChapCredentials {
        let secret = |user: &ChapUser| user.secret.expose().as_bytes().to_vec();
        // With the same secret for both directions, a host could authenticate by reflecting a
        // challenge.
        let default = self.defaults.target.as_ref();
        let default = default.filter(|target| target.secret != chap.initiator.secret);
        let target = chap.target.as_ref().or(default);
        ChapCredentials {
            user: chap.initiator.user.clone(),
            secret: secret(&chap.initiator),
            mutual: target.map(|target| (target.user.clone(), secret(target))),
        }
    }
}

impl Access for HostAccess {
    fn initiator(&self, initiator_name: &str) -> Option<InitiatorAccess> {
        let initiator = self.array.initiator(initiator_name)?;
        match initiator.chap {
            None if self.defaults.required || self.array.is_chap_required() => None,
            chap => Some(InitiatorAccess { chap: chap.map(|chap| self.credentials(chap)) }),
        }
    }
}
