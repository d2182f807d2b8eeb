//! Sessions that go on at another controller, which takes the pool over as planned. To hosts
//! nothing is lost then, so what a nexus has still to be told goes with it; what changes is the
//! state of paths, which each unit tells (SPC-4, 5.15.2.3).

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::nexus::{Nexus, NexusId};
use crate::target::Target;

/// What the units that a nexus sees have still to tell it: volumes, and the events of each in a
/// number ([`Attention::ALL`], four bits each, the next one in the low ones).
pub type Untold = Vec<(u64, u64)>;

impl Target {
    /// What the next owner has to know of a nexus to go on with it, besides what is kept of
    /// volumes: what it holds of these by RESERVE goes on too.
    pub fn hand_over(&self, nexus: &Nexus) -> Untold {
        let queues = nexus.pending().into_iter();
        queues.map(|(volume, queue)| (volume.0, queue.to_bits())).collect()
    }

    /// The session of this nexus goes on here, and is about to begin. False if what it is to be
    /// told makes no sense: then it is not to begin.
    #[must_use]
    pub fn expect(&self, nexus: NexusId, untold: &Untold) -> bool {
        let queue = |(volume, bits): &(u64, u64)| Some((VolumeId(*volume), Queue::of_bits(*bits)?));
        let Some(queues) = untold.iter().map(queue).collect::<Option<_>>() else { return false };
        self.nexuses.lock().parked.leave(nexus, Attention::AccessState, queues);
        true
    }
}
