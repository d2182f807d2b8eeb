//! Nexuses without a session: what they will be told when they log in again.
//!
//! A nexus that had a session since the array was started is told of its loss (29h/07h), with what
//! happened to reservations that it holds or held meanwhile (2Ah/03h to 05h: PREEMPT names nexuses
//! with and without a session). One that is not known here is told that everything may have
//! happened (29h/00h). So what is forgotten, as there are bounds, is never a silence.

use std::collections::BTreeMap;

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::reservations::NexusId;

/// Nexuses that are remembered: some times the sessions that an array can have.
const NEXUSES_MAX: usize = 4096;
/// Units with something to tell, of all of them together.
const QUEUES_MAX: usize = 65_536;

/// What a nexus is told when it logs in again.
#[derive(Debug, Default)]
struct Parked {
    /// Whether it had a session, and nothing is left to tell of the start or of a reset.
    lost: bool,
    queues: BTreeMap<VolumeId, Queue>,
}

/// All nexuses without a session of which something is known.
#[derive(Debug, Default)]
pub(crate) struct ParkedNexuses {
    nexuses: BTreeMap<NexusId, Parked>,
    /// How many queues there are in all.
    queues: usize,
}

impl ParkedNexuses {
    /// A session of this nexus has ended, with this left to tell.
    pub(crate) fn leave(
        &mut self,
        nexus: NexusId,
        resets: bool,
        queues: BTreeMap<VolumeId, Queue>,
    ) {
        self.take(&nexus);
        self.make_room(queues.len());
        self.queues += queues.len();
        self.nexuses.insert(nexus, Parked { lost: !resets, queues });
    }

    /// Something has happened to a nexus that has no session.
    pub(crate) fn attend(&mut self, nexus: &NexusId, volume: VolumeId, what: Attention) {
        let known = self.nexuses.get(nexus);
        if !known.is_some_and(|parked| parked.queues.contains_key(&volume)) {
            self.make_room(1);
            self.queues += 1;
        }
        let parked = self.nexuses.entry(nexus.clone()).or_default();
        parked.queues.entry(volume).or_default().push(what);
    }

    /// The units were reset: who logs in again is told of that and not of less.
    pub(crate) fn reset(&mut self) {
        self.nexuses.values_mut().for_each(|parked| parked.lost = false);
    }

    /// The nexus logs in: what it is told first of each unit, and what then.
    pub(crate) fn take(&mut self, nexus: &NexusId) -> (Attention, BTreeMap<VolumeId, Queue>) {
        let parked = self.nexuses.remove(nexus).unwrap_or_default();
        self.queues -= parked.queues.len();
        let first = if parked.lost { Attention::NexusLoss } else { Attention::PowerOn };
        (first, parked.queues)
    }

    /// Nobody needs to be told of a volume that is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        for parked in self.nexuses.values_mut() {
            self.queues -= usize::from(parked.queues.remove(&volume).is_some());
        }
    }

    /// Forgets nexuses until so many queues, of one nexus, have room.
    fn make_room(&mut self, queues: usize) {
        while self.nexuses.len() >= NEXUSES_MAX || self.queues + queues > QUEUES_MAX {
            let Some((_, parked)) = self.nexuses.pop_first() else { break };
            self.queues -= parked.queues.len();
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nexuses.len()
    }
}
