//! Nexuses without a session: what they are told when they log in.
//!
//! A nexus that had a session since the array was started gets its loss reported, with the changes
//! to reservations that it holds or held meanwhile (PREEMPT names nexuses with and without a
//! session). One that has none yet is told of the start, or, where another controller has taken
//! over, of the loss and of all that it may have missed. Bounds make the array forget nexuses: from
//! then on one that is not known is told that anything may have happened. So none is ever left
//! uninformed.

use std::collections::BTreeMap;

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::nexus::NexusId;

/// Nexuses that are remembered: some times the sessions that an array can have.
const NEXUSES_MAX: usize = 4096;
/// The most units with something pending, over all nexuses.
const QUEUES_MAX: usize = 65_536;

/// What a nexus is told at its next login.
#[derive(Debug)]
struct Parked {
    /// First, by each unit.
    first: Attention,
    queues: BTreeMap<VolumeId, Queue>,
}

/// All nexuses without a session of which something is known.
#[derive(Debug)]
pub(crate) struct ParkedNexuses {
    nexuses: BTreeMap<NexusId, Parked>,
    /// How many queues there are in all.
    queues: usize,
    /// What a nexus is told first of which nothing is known.
    unknown: Attention,
    /// What it may have missed besides, after a takeover.
    missed: BTreeMap<VolumeId, Queue>,
}

impl Default for ParkedNexuses {
    /// Those of an array that was started.
    fn default() -> Self {
        let (nexuses, missed) = Default::default();
        Self { nexuses, queues: 0, unknown: Attention::PowerOn, missed }
    }
}

impl ParkedNexuses {
    /// This array has taken over from another controller: no power was lost, but sessions were.
    pub(crate) fn take_over(&mut self) {
        assert!(self.nexuses.is_empty(), "nobody has logged in before a takeover");
        self.unknown = Attention::NexusLoss;
    }

    /// After that: what any nexus may have missed of a volume.
    pub(crate) fn miss(&mut self, volume: VolumeId, what: impl Iterator<Item = Attention>) {
        what.for_each(|what| self.missed.entry(volume).or_default().push(what));
    }

    /// A session of this nexus has ended: what it is told first by the next, and this besides.
    pub(crate) fn leave(
        &mut self,
        nexus: NexusId,
        first: Attention,
        queues: BTreeMap<VolumeId, Queue>,
    ) {
        self.take(&nexus);
        self.make_room(queues.len());
        self.queues += queues.len();
        self.nexuses.insert(nexus, Parked { first, queues });
    }

    /// Something has happened to a nexus that has no session.
    pub(crate) fn attend(&mut self, nexus: &NexusId, volume: VolumeId, what: Attention) {
        let more = match self.nexuses.get(nexus) {
            Some(parked) => usize::from(!parked.queues.contains_key(&volume)),
            None => self.missed.len() + 1,
        };
        self.make_room(more);
        let (unknown, missed) = (self.unknown, &self.missed);
        let parked = self.nexuses.entry(nexus.clone()).or_insert_with(|| {
            self.queues += missed.len();
            Parked { first: unknown, queues: missed.clone() }
        });
        let before = parked.queues.len();
        parked.queues.entry(volume).or_default().push(what);
        self.queues += parked.queues.len() - before;
    }

    /// The units were reset: at the next login this is reported, and nothing less.
    pub(crate) fn reset(&mut self) {
        self.nexuses.values_mut().for_each(|parked| parked.first = Attention::PowerOn);
        self.unknown = Attention::PowerOn;
    }

    /// The nexus logs in: what it first gets for each unit, and what follows.
    pub(crate) fn take(&mut self, nexus: &NexusId) -> (Attention, BTreeMap<VolumeId, Queue>) {
        let Some(parked) = self.nexuses.remove(nexus) else {
            return (self.unknown, self.missed.clone());
        };
        assert!(self.queues >= parked.queues.len(), "queues are counted as they are parked");
        self.queues -= parked.queues.len();
        (parked.first, parked.queues)
    }

    /// What is pending of an eradicated volume is dropped.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.missed.remove(&volume);
        for parked in self.nexuses.values_mut() {
            self.queues -= usize::from(parked.queues.remove(&volume).is_some());
        }
    }

    /// Forgets nexuses until this many queues, of one nexus, have room.
    fn make_room(&mut self, queues: usize) {
        while self.nexuses.len() >= NEXUSES_MAX || self.queues + queues > QUEUES_MAX {
            let Some((_, parked)) = self.nexuses.pop_first() else { break };
            self.queues -= parked.queues.len();
            self.unknown = Attention::PowerOn;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nexuses.len()
    }
}
