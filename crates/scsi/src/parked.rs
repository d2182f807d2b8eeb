//! Nexuses without a session: their pending unit attentions for the next login.
//!
//! A nexus that had a session since the array was started gets its loss reported (29h/07h), with
//! the changes to reservations that it holds or held meanwhile (2Ah/03h to 05h: PREEMPT names
//! nexuses with and without a session). An unknown nexus gets 29h/00h: anything may have
//! happened. So even if bounds make the array forget a nexus, it is never left uninformed.

use std::collections::BTreeMap;

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::reservations::NexusId;

/// Nexuses that are remembered: some times the sessions that an array can have.
const NEXUSES_MAX: usize = 4096;
/// The most units with pending unit attentions, over all nexuses.
const QUEUES_MAX: usize = 65_536;

/// The unit attentions of a nexus for its next login.
#[derive(Debug, Default)]
struct Parked {
    /// Whether it had a session, and neither the start nor a reset is still pending.
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
    /// A session of this nexus has ended, with this still pending.
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

    /// The units were reset: at the next login this is reported, and nothing less.
    pub(crate) fn reset(&mut self) {
        self.nexuses.values_mut().for_each(|parked| parked.lost = false);
    }

    /// The nexus logs in: what it first gets for each unit, and what follows.
    pub(crate) fn take(&mut self, nexus: &NexusId) -> (Attention, BTreeMap<VolumeId, Queue>) {
        let parked = self.nexuses.remove(nexus).unwrap_or_default();
        self.queues -= parked.queues.len();
        let first = if parked.lost { Attention::NexusLoss } else { Attention::PowerOn };
        (first, parked.queues)
    }

    /// Unit attentions for an eradicated volume are dropped.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        for parked in self.nexuses.values_mut() {
            self.queues -= usize::from(parked.queues.remove(&volume).is_some());
        }
    }

    /// Forgets nexuses until this many queues, of one nexus, have room.
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
