//! ORWRITE (16) (SBC-3, 5.7): sets bits of what is stored.
//!
//! A piece is read, and written only if it still holds what was read, by
//! [`VolumeRequest::CompareAndWrite`]; else it is read again. Each such turn means that another
//! command has succeeded meanwhile, so no two of them hold each other up.

use block::{DataIn, DataOut, SECTOR_BYTES, SectorRange, VolumeId, VolumeRequest};
use target::PreemptionMark;

use crate::long::{STEP_BYTES_MAX, take_piece};
use crate::nexus::Nexus;
use crate::read_write::{Arrived, Extent, arrived, fua, refuse_protection};
use crate::response::{Command, Rest, request};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

/// An ORWRITE that is not over.
#[derive(Debug)]
pub(crate) struct OrWrite {
    volume: VolumeId,
    /// What comes after the piece under way.
    left: SectorRange,
    /// The bits of `left`.
    mask: DataOut,
    /// The piece under way, and its bits.
    piece: SectorRange,
    bits: Vec<u8>,
    fua: bool,
    mark: PreemptionMark,
}

impl OrWrite {
    /// Turns to the next piece: its first read; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<VolumeRequest> {
        self.piece = take_piece(&mut self.left, STEP_BYTES_MAX)?;
        let bytes = (self.piece.count.0 * SECTOR_BYTES) as usize;
        self.bits = self.mask.take_front(bytes).to_vec();
        Some(self.read())
    }

    /// Reads the piece under way, for the first time or again.
    pub(crate) fn read(&self) -> VolumeRequest {
        VolumeRequest::Read { volume: self.volume, range: self.piece }
    }

    /// Writes the piece with its bits, if it still holds `held`.
    pub(crate) fn write(&self, held: &DataIn) -> Result<VolumeRequest, Sense> {
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

    /// Whether the piece under way is the last.
    pub(crate) fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether PREEMPT AND ABORT has named the nexus meanwhile.
    pub(crate) fn is_preempted(&self, nexus: &Nexus) -> bool {
        self.mark.is_passed(nexus)
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
    let mut rest = Box::new(OrWrite {
        volume: volume.id,
        left: range,
        mask: data,
        piece: SectorRange::default(),
        bits: Vec::new(),
        fua,
        mark: PreemptionMark::new(context.nexus, volume.id),
    });
    let first = rest.next().ok_or(Sense::INTERNAL_FAILURE)?;
    Ok(request(volume, Some(wanted), Rest::OrWrite(rest), first))
}
