//! Who may log in, as the iSCSI machine asks it.

use std::sync::Arc;

use array::{Array, Chap, ChapUser};
use iscsi::{Access, ChapCredentials, InitiatorAccess};

/// What holds for hosts that say nothing else themselves.
#[derive(Clone, Debug, Default)]
pub struct ChapDefaults {
    /// Whether hosts without CHAP are refused.
    pub required: bool,
    /// By what the target proves itself to hosts with CHAP that have no target user of their own.
    pub target: Option<ChapUser>,
}

/// The hosts of an array, as those who may log in.
pub struct HostAccess {
    array: Arc<Array>,
    defaults: ChapDefaults,
}

impl HostAccess {
    /// Only hosts of `array` may log in.
    pub fn new(array: Arc<Array>, defaults: ChapDefaults) -> Self {
        Self { array, defaults }
    }

    fn credentials(&self, chap: Chap) -> ChapCredentials {
        let secret = |user: &ChapUser| user.secret.expose().as_bytes().to_vec();
        // One secret for both directions would let a host be answered with its own challenge.
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
