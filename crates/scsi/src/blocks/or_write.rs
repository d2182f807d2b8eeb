//! ORWRITE (16) (SBC-3, 5.7): sets bits of the stored data.
//!
//! A piece is read, and written by [`VolumeRequest::CompareAndWrite`] only if it is unchanged;
//! otherwise it is read again. Each retry means that another command has succeeded meanwhile, so no
//! two of them can block each other.

use block::{DataIn, DataOut, SECTOR_BYTES, SectorRange, VolumeId, VolumeReply, VolumeRequest};
use target::{Access, PreemptionMark};

use crate::blocks::long::{STEP_BYTES_MAX, take_piece};
use crate::blocks::read_write::{Arrived, Extent, arrived, fua, refuse_protection};
use crate::device::Context;
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Continue, Outcome, Response, Resumed, Status, Step, request};

/// An ORWRITE in progress.
#[derive(Debug)]
pub(crate) struct OrWrite {
    volume: VolumeId,
    /// The range after the current piece.
    left: SectorRange,
    /// The bits of `left`.
    mask: DataOut,
    /// The current piece, and its bits.
    piece: SectorRange,
    bits: Vec<u8>,
    fua: bool,
    mark: PreemptionMark,
}

impl OrWrite {
    /// Advances to the next piece and returns its first read; `None` at the end.
    fn next(&mut self) -> Option<VolumeRequest> {
        self.piece = take_piece(&mut self.left, STEP_BYTES_MAX)?;
        let bytes = (self.piece.count.0 * SECTOR_BYTES) as usize;
        self.bits = self.mask.take_front(bytes).to_vec();
        Some(self.read())
    }

    /// Reads the current piece, for the first time or again.
    fn read(&self) -> VolumeRequest {
        VolumeRequest::Read { volume: self.volume, range: self.piece }
    }

    /// Writes the piece with its bits, if it still contains `held`.
    fn write(&self, held: &DataIn) -> Result<VolumeRequest, Sense> {
        if held.len() != self.bits.len() {
            return Err(Sense::INTERNAL_FAILURE);
        }
        let held = held.to_vec();
        let set: Vec<u8> = held.iter().zip(&self.bits).map(|(held, bits)| held | bits).collect();
        let phase = self.piece.start.offset_in_block_bytes();
        Ok(VolumeRequest::CompareAndWrite {
            volume: self.volume,
            range: self.piece,
            expected: DataOut::from_bytes(&held, phase),
            data: DataOut::from_bytes(&set, phase),
            fua: self.fua,
            sender: None,
        })
    }
}

impl Continue for OrWrite {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let next = match result {
            // Another command has changed the piece meanwhile.
            Err(sense) if sense.key == SenseKey::Miscompare => Some(self.read()),
            Err(sense) => return Err(sense),
            Ok(VolumeReply::Done) if self.left.is_empty() => None,
            Ok(_) if self.mark.is_passed(at.nexus) => {
                return Ok(Step::Done(Response::with_status(Status::TaskAborted)));
            }
            Ok(VolumeReply::Data(held)) => Some(self.write(&held)?),
            Ok(VolumeReply::Done) => self.next(),
            Ok(_) => return Err(Sense::INTERNAL_FAILURE),
        };
        Ok(at.next_or_good(self, next))
    }

    fn access(&self) -> Access {
        Access::Write
    }
}

pub(crate) fn or_write(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    refuse_protection(cdb)?;
    let fua = fua(cdb);
    let Arrived { data, range, wanted } = match arrived(volume, Extent::of(cdb), command.data_out)?
    {
        Ok(arrived) => arrived,
        Err(step) => return Ok(step),
    };
    let mut rest = OrWrite {
        volume: volume.id,
        left: range,
        mask: data,
        piece: SectorRange::default(),
        bits: Vec::new(),
        fua,
        mark: PreemptionMark::new(context.nexus, volume.id),
    };
    let first = rest.next().ok_or(Sense::INTERNAL_FAILURE)?;
    Ok(request(volume, Some(wanted), rest, first))
}
