//! An administrative change in progress, and concurrent requests.

use block::{VolumeError, VolumeReply};
use store::Store;

use super::{Desk, Op};
use crate::generate::{Generated, Region, touch};
use crate::model::Racing;

/// An administrative change in progress, and concurrent requests.
pub(super) struct Underway {
    /// Slots whose volumes are replaced: no other request touches them meanwhile.
    replaced: Vec<usize>,
    /// Requests that change something, by their ids.
    racing: Vec<(u64, Racing)>,
    /// What those change: it is not changed again before the change has ended.
    writes: Vec<Region>,
}

impl Underway {
    pub(super) fn add(&mut self, op: &Op) {
        if let Some(change) = op.changing() {
            self.racing.push((op.id, Racing { change, answered: u64::MAX }));
            self.writes.extend(&op.writes);
        }
    }

    pub(super) fn clashes(&self, made: &Generated) -> bool {
        let replaced = |region: &Region| self.replaced.contains(&region.slot);
        made.reads.iter().chain(&made.writes).any(replaced) || any_touch(&self.writes, &made.writes)
    }
}

/// Returns whether any two of them share a sector.
pub(super) fn any_touch(a: &[Region], b: &[Region]) -> bool {
    a.iter().any(|a| b.iter().any(|b| touch(a, b)))
}

impl Desk {
    /// Does one random step that takes no commit: for callers that wait for their own commit.
    pub(crate) fn step_beside(&mut self, store: &Store) -> Result<(), String> {
        // Requests acknowledged before precede those that begin now.
        self.collect()?;
        if self.ops.len() < self.in_flight_max && self.rng.chance(60) {
            self.start(store)
        } else {
            self.read_one(store)
        }
    }

    /// Begins an administrative change that replaces what is in these slots.
    pub(crate) fn begin_change(&mut self, replaced: Vec<usize>) {
        let (racing, writes) = (Vec::new(), Vec::new());
        let mut underway = Underway { replaced, racing, writes };
        self.ops.iter().for_each(|op| underway.add(op));
        self.change = Some(underway);
    }

    /// Ends it; returns the requests that it raced with.
    pub(crate) fn end_change(&mut self) -> Vec<Racing> {
        let racing = self.change.take().map(|underway| underway.racing);
        racing.into_iter().flatten().map(|(_, racing)| racing).collect()
    }

    /// Records for the change in progress how a request has ended.
    pub(super) fn tell_change(&mut self, op: &Op, reply: &Result<VolumeReply, VolumeError>) {
        let Some(underway) = &mut self.change else { return };
        match reply {
            Ok(_) => {
                let racing = underway.racing.iter_mut().find(|(of, _)| *of == op.id);
                racing.into_iter().for_each(|(_, racing)| racing.answered = self.time);
            }
            // It has changed nothing.
            Err(VolumeError::NoSpace) if !op.splits => {
                underway.racing.retain(|(of, _)| *of != op.id);
            }
            Err(_) => {}
        }
    }
}
