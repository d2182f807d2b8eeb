//! Transfers that are longer than one request to a volume: consecutive requests, each ending on a 4
//! KiB boundary, so that no block is touched twice and no data is moved.
//!
//! Such a command is not one commit: SBC-3 requires that only of COMPARE AND WRITE and of the
//! atomic writes. A reader sees the old or the new content of each 4 KiB block.

use block::request::limits::TRANSFER_BYTES_MAX;
use block::{DataIn, DataOut, SECTOR_BYTES, SectorRange, VolumeId, VolumeReply, VolumeRequest};
use target::{Access, PreemptionMark};

use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::step::{Continue, Outcome, Response, Resumed, Status, Step};

/// The most bytes that one step of a command reads and processes itself (VERIFY compares, ORWRITE
/// sets bits): little enough that the thread is soon free again.
pub(crate) const STEP_BYTES_MAX: u64 = 1 << 20;

/// Takes the next piece off the front of a range, up to `bytes_max` of it, in whole 4 KiB blocks;
/// `None` if nothing is left.
pub(crate) fn take_piece(left: &mut SectorRange, bytes_max: u64) -> Option<SectorRange> {
    let room = bytes_max - left.start.offset_in_block_bytes() as u64;
    let piece = left.take_front(room / SECTOR_BYTES);
    (!piece.is_empty()).then_some(piece)
}

/// Returns whether a range needs more than one request.
pub(crate) fn is_long(range: SectorRange) -> bool {
    range.count.0 > TRANSFER_BYTES_MAX / SECTOR_BYTES
}

/// A read in progress.
#[derive(Debug)]
pub(crate) struct LongRead {
    volume: VolumeId,
    /// The range that was not requested yet.
    left: SectorRange,
    /// The number of bytes requested.
    asked_bytes: u64,
    data: DataIn,
    mark: PreemptionMark,
}

impl LongRead {
    pub(crate) fn new(nexus: &Nexus, volume: VolumeId, range: SectorRange) -> Self {
        let mark = PreemptionMark::new(nexus, volume);
        Self { volume, left: range, asked_bytes: 0, data: DataIn::empty(), mark }
    }

    /// Returns whether PREEMPT AND ABORT has named the nexus while something was left to read.
    fn is_preempted(&self, nexus: &Nexus) -> bool {
        !self.left.is_empty() && self.mark.is_passed(nexus)
    }

    /// Returns the next piece to read; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<VolumeRequest> {
        let range = take_piece(&mut self.left, TRANSFER_BYTES_MAX)?;
        self.asked_bytes += range.count.0 * SECTOR_BYTES;
        Some(VolumeRequest::Read { volume: self.volume, range })
    }

    /// Adds the data read for [`LongRead::next`].
    fn take(&mut self, data: DataIn) -> Result<(), Sense> {
        self.data.append(data);
        if self.data.len() as u64 == self.asked_bytes {
            Ok(())
        } else {
            Err(Sense::INTERNAL_FAILURE) // a different length would shift later bytes
        }
    }
}

impl Continue for LongRead {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let VolumeReply::Data(data) = result? else { return Err(Sense::INTERNAL_FAILURE) };
        self.take(data)?;
        if self.is_preempted(at.nexus) {
            return Ok(Step::Done(Response::with_status(Status::TaskAborted)));
        }
        Ok(match self.next() {
            Some(request) => at.request(self, request),
            None => Step::Done(Response::data(self.data)),
        })
    }

    fn gathers(&self) -> bool {
        true
    }
}

/// A write in progress.
#[derive(Debug)]
pub(crate) struct LongWrite {
    volume: VolumeId,
    left: SectorRange,
    data: DataOut,
    fua: bool,
    mark: PreemptionMark,
}

impl LongWrite {
    /// Creates a write. `data` has the range's length, and the phase of its start.
    pub(crate) fn new(
        nexus: &Nexus,
        volume: VolumeId,
        range: SectorRange,
        data: DataOut,
        fua: bool,
    ) -> Self {
        let mark = PreemptionMark::new(nexus, volume);
        Self { volume, left: range, data, fua, mark }
    }

    /// Returns whether PREEMPT AND ABORT has named the nexus while something was left to write.
    pub(crate) fn is_preempted(&self, nexus: &Nexus) -> bool {
        !self.left.is_empty() && self.mark.is_passed(nexus)
    }

    /// Returns the next piece to write; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<VolumeRequest> {
        let range = take_piece(&mut self.left, TRANSFER_BYTES_MAX)?;
        let data = self.data.take_front((range.count.0 * SECTOR_BYTES) as usize);
        Some(VolumeRequest::Write { volume: self.volume, range, data, fua: self.fua })
    }
}

impl Continue for LongWrite {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let VolumeReply::Done = result? else { return Err(Sense::INTERNAL_FAILURE) };
        if self.is_preempted(at.nexus) {
            return Ok(Step::Done(Response::with_status(Status::TaskAborted)));
        }
        let next = self.next();
        Ok(at.next_or_good(self, next))
    }

    fn access(&self) -> Access {
        Access::Write
    }
}
