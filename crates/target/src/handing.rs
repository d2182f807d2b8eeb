//! Sessions that are handed over to another controller in a planned switch. Hosts lose nothing, so
//! the pending notifications of a nexus are handed over too; only the states of paths change, which
//! each unit reports (SPC-4, 5.15.2.3).

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::nexus::{Nexus, NexusId};
use crate::target::Target;

/// The pending notifications of a nexus: volumes, and the events of each in a number
/// ([`Attention::ALL`], four bits each, the next one in the low bits).
pub type Untold = Vec<(u64, u64)>;

impl Target {
    /// Returns what the next owner needs to continue a nexus, besides the persistent state of
    /// volumes, which includes RESERVE.
    pub fn hand_over(&self, nexus: &Nexus) -> Untold {
        let queues = nexus.pending().into_iter();
        queues.map(|(volume, queue)| (volume.0, queue.to_bits())).collect()
    }

    /// Prepares for the session of this nexus, which is handed over. Returns false if its pending
    /// notifications are invalid: then it must not begin.
    #[must_use]
    pub fn expect(&self, nexus: NexusId, untold: &Untold) -> bool {
        let queue = |(volume, bits): &(u64, u64)| Some((VolumeId(*volume), Queue::of_bits(*bits)?));
        let Some(queues) = untold.iter().map(queue).collect::<Option<_>>() else { return false };
        self.nexuses.lock().parked.leave(nexus, Attention::AccessState, queues);
        true
    }
}
