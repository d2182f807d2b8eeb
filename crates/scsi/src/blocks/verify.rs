//! VERIFY and WRITE AND VERIFY (SBC-3, 5.38 to 5.42, 5.45 to 5.47).
//!
//! Verifying means reading: the store compares each block with the checksum in its parent. One
//! command verifies no more than MAXIMUM TRANSFER LENGTH, which constrains VERIFICATION LENGTH
//! whether or not data is sent (SBC-3, 5.38), and reads in steps of [`STEP_BYTES_MAX`].

use block::{
    DataIn, DataOut, FRAME_BYTES, SECTOR_BYTES, SectorRange, VolumeId, VolumeReply, VolumeRequest,
};
use target::Access;

use crate::blocks::long::{LongWrite, STEP_BYTES_MAX, take_piece};
use crate::blocks::read_write::{Arrived, Extent, arrived, lay_out, refuse_protection};
use crate::cdb::Cdb;
use crate::device::Context;
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Continue, Outcome, Response, Resumed, Status, Step, request};

/// Returns how many logical blocks a command reads without sending them: the length with which a
/// VERIFY counts where commands are counted by what they read and write.
pub fn verified_blocks(cdb: &Cdb) -> Option<u64> {
    matches!(cdb.opcode(), 0x2f | 0x8f | 0xaf).then(|| Extent::of(cdb).blocks)
}

/// The range still to be read, and the data to compare it with.
#[derive(Debug)]
pub(crate) struct Verification {
    volume: VolumeId,
    /// The range that was not requested yet.
    left: SectorRange,
    /// Bytes that were requested and must still be compared.
    asked_bytes: usize,
    expected: Option<Expected>,
    /// Bytes already compared.
    done_bytes: usize,
    /// The offset of the first of them in the host's data.
    base_bytes: usize,
}

#[derive(Debug)]
enum Expected {
    /// The bytes of the whole range.
    All(DataOut),
    /// The bytes of each logical block.
    Each(Vec<u8>),
}

impl Verification {
    fn new(volume: VolumeId, left: SectorRange, expected: Option<Expected>) -> Self {
        Self { volume, left, asked_bytes: 0, expected, done_bytes: 0, base_bytes: 0 }
    }

    /// Returns the next piece to read; `None` at the end.
    fn next(&mut self) -> Option<VolumeRequest> {
        let range = take_piece(&mut self.left, STEP_BYTES_MAX)?;
        self.asked_bytes = (range.count.0 * SECTOR_BYTES) as usize;
        Some(VolumeRequest::Read { volume: self.volume, range })
    }

    /// Compares the data read for [`Verification::next`].
    fn check(&mut self, data: &DataIn) -> Result<(), Sense> {
        if data.len() != self.asked_bytes {
            return Err(Sense::INTERNAL_FAILURE); // not what was requested
        }
        for piece in data.slices() {
            self.compare(piece)?;
            self.done_bytes += piece.len();
        }
        Ok(())
    }

    fn compare(&self, piece: &[u8]) -> Result<(), Sense> {
        let mut at = 0;
        while at < piece.len() {
            let offset = self.done_bytes + at;
            let want = match &self.expected {
                None => return Ok(()),
                Some(Expected::All(data)) => data.slice_from(offset),
                Some(Expected::Each(block)) => &block[offset % block.len().max(1)..],
            };
            let n = want.len().min(piece.len() - at);
            if n == 0 {
                return Err(Sense::INTERNAL_FAILURE); // the volume read more than was requested
            }
            let got = &piece[at..at + n];
            if let Some(differs) = got.iter().zip(want).position(|(a, b)| a != b) {
                let miscompare = Sense::new(SenseKey::Miscompare, 0x1d, 0);
                return Err(
                    miscompare.with_information((self.base_bytes + offset + differs) as u64)
                );
            }
            at += n;
        }
        Ok(())
    }
}

impl Continue for Verification {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let VolumeReply::Data(data) = result? else { return Err(Sense::INTERNAL_FAILURE) };
        self.check(&data)?;
        let next = self.next();
        Ok(at.next_or_good(self, next))
    }
}

pub(crate) fn verify(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let extent = Extent::of(cdb);
    refuse_protection(cdb)?;
    let check = cdb.u8(1) >> 1 & 3;
    let range = extent.transfer(volume)?;
    let block = volume.logical_block.bytes();
    let wanted = match check {
        0 => 0,
        1 => extent.blocks * block,
        3 if extent.blocks == 0 => 0,
        3 => block,
        _ => return Err(Sense::cdb_field(1, 2)),
    };
    let answer = |response: Response| Ok(Step::Done(response.wanting(Some(wanted))));
    if (command.data_out.len() as u64) < wanted {
        return answer(Response::check(Sense::INFORMATION_UNIT));
    }
    let expected = match check {
        0 => None,
        1 => Some(Expected::All(lay_out(command.data_out, wanted as usize, 0))),
        _ => Some(Expected::Each(lay_out(command.data_out, wanted as usize, 0).to_vec())),
    };
    let mut verification = Verification::new(volume.id, range, expected);
    match verification.next() {
        None => answer(Response::good()),
        Some(read) => Ok(request(volume, Some(wanted), verification, read)),
    }
}

/// Writes through to the medium, then reads back; with BYTCHK 1 it also compares.
pub(crate) fn write_and_verify(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let extent = Extent::of(cdb);
    refuse_protection(cdb)?;
    let check = cdb.u8(1) >> 1 & 3;
    if check > 1 {
        return Err(Sense::cdb_field(1, 2));
    }
    let Arrived { data, range, wanted } = match arrived(volume, extent, command.data_out)? {
        Ok(arrived) => arrived,
        Err(step) => return Ok(step),
    };
    let write = LongWrite::new(context.nexus, volume.id, range, data, true);
    let mut rest = WriteVerify::new(volume.id, write, check == 1);
    let first = rest.next().ok_or(Sense::INTERNAL_FAILURE)?;
    Ok(request(volume, Some(wanted), rest, first))
}

/// A WRITE AND VERIFY in progress: each piece is written, and read back before the next one is
/// written, so that no more than one piece is kept for the comparison.
#[derive(Debug)]
pub(crate) struct WriteVerify {
    volume: VolumeId,
    write: LongWrite,
    compares: bool,
    /// The bytes of the pieces before the current one.
    base_bytes: usize,
    /// The verification of the current piece.
    check: Verification,
}

impl WriteVerify {
    fn new(volume: VolumeId, write: LongWrite, compares: bool) -> Self {
        let check = Verification::new(volume, SectorRange::default(), None);
        Self { volume, write, compares, base_bytes: 0, check }
    }

    /// Advances to the next piece and returns its write; `None` at the end.
    fn next(&mut self) -> Option<VolumeRequest> {
        let request = self.write.next()?;
        let VolumeRequest::Write { range, data, .. } = &request else { return None };
        let expected = self.compares.then(|| Expected::All(copy_of(data)));
        let base_bytes = self.base_bytes;
        self.base_bytes += data.len();
        self.check =
            Verification { base_bytes, ..Verification::new(self.volume, *range, expected) };
        Some(request)
    }

    /// Continues after the piece was written, or part of it was read; `None` at the end.
    fn written(&mut self) -> Option<VolumeRequest> {
        self.check.next().or_else(|| self.next())
    }
}

impl Continue for WriteVerify {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let reply = result?;
        if self.write.is_preempted(at.nexus) {
            return Ok(Step::Done(Response::with_status(Status::TaskAborted)));
        }
        match reply {
            VolumeReply::Done => {}
            VolumeReply::Data(data) => self.check.check(&data)?,
            _ => return Err(Sense::INTERNAL_FAILURE),
        }
        let next = self.written();
        Ok(at.next_or_good(self, next))
    }

    fn access(&self) -> Access {
        Access::Write
    }
}

fn copy_of(data: &DataOut) -> DataOut {
    let mut copy = DataOut::new(data.len(), 0);
    for at in (0..data.len()).step_by(FRAME_BYTES) {
        data.read_at(at, copy.slice_from_mut(at));
    }
    copy
}
