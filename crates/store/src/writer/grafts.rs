//! Which edits wait for grafts, and which are planned again because of them (`edits::grafts`).

use std::collections::VecDeque;

use block::{BlockRange, VolumeId};
use smallvec::SmallVec;

use crate::edits::edit::{Edit, Step};
use crate::edits::entries::{entry_target, overlap};
use crate::edits::grafts::{Graft, Touch, leaves_around};
use crate::world::World;
use crate::writer::Writer;

/// The number of applied grafts that are remembered: an edit that is slower than that is planned
/// again.
const APPLIED_MAX: usize = 1024;

/// The last applied grafts, oldest first.
#[derive(Default)]
pub(crate) struct Applied(VecDeque<Graft>);

impl Writer {
    /// Records applied grafts.
    pub(crate) fn grafted(&mut self, world: &World, grafts: Vec<Graft>) {
        world.grafted(grafts.len() as u64);
        let applied = &mut self.applied_grafts.0;
        applied.extend(grafts);
        applied.drain(..applied.len().saturating_sub(APPLIED_MAX));
    }

    /// Returns whether an unapplied graft changes nodes that were examined.
    pub(crate) fn awaits_grafts(&self, world: &World, touched: &[Touch]) -> bool {
        let fanout = world.medium.tuning.fanout;
        !self.early() && self.unapplied_grafts().any(|graft| graft.concern_any(touched, fanout))
    }

    /// Returns whether a graft applied after the first `seen` has changed nodes that were examined.
    pub(crate) fn was_grafted(&self, world: &World, touched: &[Touch], seen: u64) -> bool {
        let count = (world.grafts() - seen) as usize;
        let applied = &self.applied_grafts.0;
        let mut since = applied.iter().rev().take(count);
        let fanout = world.medium.tuning.fanout;
        count > applied.len() || since.any(|graft| graft.concern_any(touched, fanout))
    }

    /// Returns whether an unapplied change that is not a graft sets blocks in leaves that a copy
    /// takes from. It may split what is one entry now, and the copy would then set something else
    /// than planned, although its blocks are the same.
    pub(crate) fn awaits_sources(&self, world: &World, edit: &Edit) -> bool {
        if self.early() || !edit.copies() {
            return false;
        }
        let fanout = world.medium.tuning.fanout;
        let taken: SmallVec<[(VolumeId, BlockRange); 2]> = edit
            .steps
            .iter()
            .filter_map(Step::source)
            .map(|(of, range)| (of, leaves_around(range, fanout)))
            .collect();
        let sealed = self.sealed.iter().filter(|commit| !commit.applied);
        let records = sealed.map(|commit| &commit.record).chain([&self.open]);
        let mut set = records.flat_map(|record| &record.entries).filter_map(entry_target);
        set.any(|(volume, range)| {
            taken.iter().any(|(source, taken)| *source == volume && overlap(*taken, range))
        })
    }

    fn unapplied_grafts(&self) -> impl Iterator<Item = &Graft> {
        let sealed = self.sealed.iter().map(|commit| &commit.record);
        sealed.chain([&self.open]).flat_map(|record| &record.grafts)
    }
}
