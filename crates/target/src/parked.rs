//! Nexuses without a session, and their notifications at the next login.
//!
//! A nexus that had a session since the start of the array gets a report of its loss, and of
//! changes to reservations that it holds or held meanwhile (PREEMPT names nexuses with and without
//! a session). A nexus that had none gets a report of the start or, after a takeover by another
//! controller, of the loss and of everything it may have missed. Because memory is bounded, the
//! array forgets nexuses: from then on an unknown nexus gets a report that anything may have
//! happened. So none is ever left uninformed.

use std::collections::BTreeMap;

use block::VolumeId;

use crate::attention::{Attention, Queue};
use crate::nexus::NexusId;

/// The most nexuses that are remembered: a multiple of the most sessions of an array.
const NEXUSES_MAX: usize = 4096;
/// The most units with pending events, over all nexuses.
const QUEUES_MAX: usize = 65_536;

/// The notifications of a nexus at its next login.
#[derive(Debug)]
struct Parked {
    /// What each unit reports first.
    first: Attention,
    queues: BTreeMap<VolumeId, Queue>,
}

/// All remembered nexuses without a session.
#[derive(Debug)]
pub(crate) struct ParkedNexuses {
    nexuses: BTreeMap<NexusId, Parked>,
    /// The total number of queues.
    queues: usize,
    /// The first notification of an unknown nexus.
    unknown: Attention,
    /// What else an unknown nexus may have missed, after a takeover.
    missed: BTreeMap<VolumeId, Queue>,
}

impl Default for ParkedNexuses {
    /// The state of an array that was started.
    fn default() -> Self {
        let (nexuses, missed) = Default::default();
        Self { nexuses, queues: 0, unknown: Attention::PowerOn, missed }
    }
}

impl ParkedNexuses {
    /// Notes that this array has taken over from another controller: no power was lost, but
    /// sessions were.
    pub(crate) fn take_over(&mut self) {
        assert!(self.nexuses.is_empty(), "no nexus has logged in before a takeover");
        self.unknown = Attention::NexusLoss;
    }

    /// Adds what any nexus may have missed of a volume, after a takeover.
    pub(crate) fn miss(&mut self, volume: VolumeId, what: impl Iterator<Item = Attention>) {
        what.for_each(|what| self.missed.entry(volume).or_default().push(what));
    }

    /// Stores the pending notifications of a nexus whose session has ended: what each unit reports
    /// first, and what follows.
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

    /// Queues an event for a nexus without a session.
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

    /// Notes that units were reset: the next login of each nexus reports that, and nothing less.
    pub(crate) fn reset(&mut self) {
        self.nexuses.values_mut().for_each(|parked| parked.first = Attention::PowerOn);
        self.unknown = Attention::PowerOn;
    }

    /// Takes the notifications of a nexus that logs in: what it first gets from each unit, and what
    /// follows.
    pub(crate) fn take(&mut self, nexus: &NexusId) -> (Attention, BTreeMap<VolumeId, Queue>) {
        let Some(parked) = self.nexuses.remove(nexus) else {
            return (self.unknown, self.missed.clone());
        };
        assert!(self.queues >= parked.queues.len(), "queues are counted as they are parked");
        self.queues -= parked.queues.len();
        (parked.first, parked.queues)
    }

    /// Drops the pending events of an eradicated volume.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.missed.remove(&volume);
        for parked in self.nexuses.values_mut() {
            self.queues -= usize::from(parked.queues.remove(&volume).is_some());
        }
    }

    /// Forgets nexuses until this many queues, of one nexus, have space.
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
