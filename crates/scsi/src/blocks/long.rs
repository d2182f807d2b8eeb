//! Transfers that are longer than a volume takes at once: one request after the other, each ending
//! between blocks of 4 KiB, so that no block is touched twice and no data is moved.
//!
//! Such a command is not one commit: SBC-3 asks for that only of COMPARE AND WRITE and of the
//! atomic writes. A reader sees each block of 4 KiB as it was or as it will be.

use block::request::limits::TRANSFER_BYTES_MAX;
use block::{DataIn, DataOut, SECTOR_BYTES, SectorRange, VolumeId, VolumeReply, VolumeRequest};
use target::{Access, PreemptionMark};

use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::step::{Continue, Outcome, Response, Resumed, Status, Step};

/// What one step of a command reads and then works on by itself (VERIFY compares, ORWRITE sets
/// bits): so little that a thread is free again at once.
pub(crate) const STEP_BYTES_MAX: u64 = 1 << 20;

/// Takes the next piece off the front of a range, up to `bytes_max` of it, which are whole blocks
/// of 4 KiB; `None` if nothing is left.
pub(crate) fn take_piece(left: &mut SectorRange, bytes_max: u64) -> Option<SectorRange> {
    let room = bytes_max - left.start.offset_in_block_bytes() as u64;
    let piece = left.take_front(room / SECTOR_BYTES);
    (!piece.is_empty()).then_some(piece)
}

/// Whether a range needs more than one request.
pub(crate) fn is_long(range: SectorRange) -> bool {
    range.count.0 > TRANSFER_BYTES_MAX / SECTOR_BYTES
}

/// A read that is not over.
#[derive(Debug)]
pub(crate) struct LongRead {
    volume: VolumeId,
    /// What was not asked for yet.
    left: SectorRange,
    /// How many bytes were asked for.
    asked_bytes: u64,
    data: DataIn,
    mark: PreemptionMark,
}

impl LongRead {
    pub(crate) fn new(nexus: &Nexus, volume: VolumeId, range: SectorRange) -> Self {
        let mark = PreemptionMark::new(nexus, volume);
        Self { volume, left: range, asked_bytes: 0, data: DataIn::empty(), mark }
    }

    /// Whether PREEMPT AND ABORT has named the nexus while there was something left to read.
    fn is_preempted(&self, nexus: &Nexus) -> bool {
        !self.left.is_empty() && self.mark.is_passed(nexus)
    }

    /// The next piece to read; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<VolumeRequest> {
        let range = take_piece(&mut self.left, TRANSFER_BYTES_MAX)?;
        self.asked_bytes += range.count.0 * SECTOR_BYTES;
        Some(VolumeRequest::Read { volume: self.volume, range })
    }

    /// Takes what was read for [`LongRead::next`].
    fn take(&mut self, data: DataIn) -> Result<(), Sense> {
        self.data.append(data);
        if self.data.len() as u64 == self.asked_bytes {
            Ok(())
        } else {
            Err(Sense::INTERNAL_FAILURE) // not what was asked for: later bytes would be shifted
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

/// A write that is not over.
#[derive(Debug)]
pub(crate) struct LongWrite {
    volume: VolumeId,
    left: SectorRange,
    data: DataOut,
    fua: bool,
    mark: PreemptionMark,
}

impl LongWrite {
    /// `data` has the range's length, and the phase of its start.
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

    /// Whether PREEMPT AND ABORT has named the nexus while there was something left to write.
    pub(crate) fn is_preempted(&self, nexus: &Nexus) -> bool {
        !self.left.is_empty() && self.mark.is_passed(nexus)
    }

    /// The next piece to write; `None` at the end.
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
