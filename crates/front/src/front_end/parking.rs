//! Parks requests for a later turn ([`crate::turn`]), and determines their cost.

use block::{SectorRange, VolumeRequest};
use store::ReadOperation;

use super::FrontEnd;
use crate::command_set::{Pending, Step};
use crate::turn::Parked;

/// The cost of finding extents: some nodes of the map, which may have to be read.
const EXTENTS_BYTES: u64 = 512 << 10;
/// The cost of a range of any length: the nodes on the way to both of its ends.
const RANGE_BYTES: u64 = 16 << 10;

/// Returns the cost of starting a request, in bytes that it reads, compares or packs.
fn cost_bytes(request: &VolumeRequest) -> u64 {
    let bytes = |range: &SectorRange| range.bytes().unwrap_or(u64::MAX);
    match request {
        VolumeRequest::Read { range, .. }
        | VolumeRequest::Write { range, .. }
        | VolumeRequest::CompareAndWrite { range, .. } => bytes(range),
        VolumeRequest::Zero { .. } | VolumeRequest::Fill { .. } => RANGE_BYTES,
        VolumeRequest::Unmap { ranges, .. } => ranges.len() as u64 * RANGE_BYTES,
        VolumeRequest::Copy { segments } => 2 * segments.len() as u64 * RANGE_BYTES,
        VolumeRequest::Extents { .. } => EXTENTS_BYTES,
        VolumeRequest::Flush { .. } | VolumeRequest::Space { .. } => 0,
    }
}

impl FrontEnd {
    /// Returns the request if it may start in this turn; otherwise parks it with its task.
    pub(super) fn start_or_park(
        &mut self,
        index: usize,
        request: VolumeRequest,
        pending: Pending,
        is_next: bool,
    ) -> Option<(VolumeRequest, Pending)> {
        if self.turn.takes(cost_bytes(&request), is_next) {
            return Some((request, pending));
        }
        let name = self.tasks.name(index);
        let task = self.tasks.get_mut(index)?;
        self.turn.park(task.connection, name, task.bytes > 0);
        task.parked = Some(Parked::Request(request, pending));
        None
    }

    /// Continues a request after a commit, or parks it.
    pub(super) fn go_on_or_park(&mut self, index: usize, operation: Box<ReadOperation>) {
        let cost_bytes = operation.cost_bytes(&self.shared.store.tuning());
        if self.turn.takes(cost_bytes, false) {
            return self.go_on_behind_commit(index, operation);
        }
        let name = self.tasks.name(index);
        let Some(task) = self.tasks.get_mut(index) else { return };
        self.turn.park(task.connection, name, true);
        task.parked = Some(Parked::Again(operation));
    }

    /// Continues parked tasks, as far as the turn's budget allows.
    pub(super) fn work_off_parked(&mut self) {
        while let Some(name) = self.turn.next() {
            let Some(index) = self.tasks.find(name) else { continue };
            let Some(task) = self.tasks.get_mut(index) else { continue };
            let (slot, parked) = (task.connection, task.parked.take());
            match parked {
                None => continue,
                Some(Parked::Request(request, pending)) => {
                    self.go_on(index, Step::Request { request, pending }, true);
                }
                Some(Parked::Again(operation)) => {
                    self.turn.spend(operation.cost_bytes(&self.shared.store.tuning()));
                    self.go_on_behind_commit(index, operation);
                }
            }
            self.touch(slot);
        }
    }
}
