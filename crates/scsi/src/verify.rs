//! VERIFY and WRITE AND VERIFY (SBC-3, 5.38 to 5.42, 5.45 to 5.47).
//!
//! Verifying reads: the store checks each block against the checksum that its parent holds. A long
//! range is read in pieces, one request after the other.

use block::request::limits::TRANSFER_BYTES_MAX;
use block::{
    DataIn, DataOut, FRAME_BYTES, SECTOR_BYTES, Sector, SectorRange, VolumeId, VolumeRequest,
};

use crate::long::LongWrite;
use crate::read_write::{Arrived, Extent, arrived, lay_out, refuse_protection};
use crate::response::{Command, Response, Rest, Step, request};
use crate::sense::{Sense, SenseKey};
use crate::server::Context;
use crate::table::Outcome;

/// What is still to be read, and what it shall be equal to.
#[derive(Debug)]
pub(crate) struct Verification {
    volume: VolumeId,
    range: SectorRange,
    expected: Option<Expected>,
    done_bytes: usize,
}

#[derive(Debug)]
enum Expected {
    /// The bytes of the whole range.
    All(DataOut),
    /// The bytes of each logical block.
    Each(Vec<u8>),
}

impl Verification {
    /// The next piece to read; `None` at the end.
    pub(crate) fn next(&self) -> Option<VolumeRequest> {
        let piece = self.range.count.0.min(TRANSFER_BYTES_MAX / SECTOR_BYTES);
        let range = SectorRange::new(self.range.start.0, piece);
        (piece > 0).then_some(VolumeRequest::Read { volume: self.volume, range })
    }

    /// Takes what was read for [`Verification::next`].
    pub(crate) fn check(&mut self, data: &DataIn) -> Result<(), Sense> {
        for piece in data.slices() {
            self.compare(piece)?;
            self.done_bytes += piece.len();
        }
        let sectors = (data.len() as u64 / SECTOR_BYTES).clamp(1, self.range.count.0.max(1));
        self.range.start = Sector(self.range.start.0 + sectors);
        self.range.count.0 = self.range.count.0.saturating_sub(sectors);
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
                return Err(Sense::INTERNAL_FAILURE); // the volume read more than was asked for
            }
            let got = &piece[at..at + n];
            if let Some(differs) = got.iter().zip(want).position(|(a, b)| a != b) {
                let miscompare = Sense::new(SenseKey::Miscompare, 0x1d, 0);
                return Err(miscompare.with_information((offset + differs) as u64));
            }
            at += n;
        }
        Ok(())
    }
}

pub(crate) fn verify(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let extent = Extent::of(cdb);
    refuse_protection(cdb)?;
    let check = cdb.u8(1) >> 1 & 3;
    let range = if check == 1 { extent.transfer(volume)? } else { extent.sectors(volume)? };
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
    let verification = Verification { volume: volume.id, range, expected, done_bytes: 0 };
    match verification.next() {
        None => answer(Response::good()),
        Some(read) => Ok(request(volume, Some(wanted), Rest::Verify(Box::new(verification)), read)),
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
    let expected = (check == 1).then(|| {
        let mut copy = DataOut::new(data.len(), 0);
        for at in (0..data.len()).step_by(FRAME_BYTES) {
            data.read_at(at, copy.slice_from_mut(at));
        }
        Expected::All(copy)
    });
    let verification = Verification { volume: volume.id, range, expected, done_bytes: 0 };
    let mut write = Box::new(LongWrite::new(context.nexus, volume.id, range, data, true));
    let first = write.next().ok_or(Sense::INTERNAL_FAILURE)?;
    let rest = Rest::Write { write, verify: Some(Box::new(verification)) };
    Ok(request(volume, Some(wanted), rest, first))
}
