//! READ, WRITE, PRE-FETCH and SYNCHRONIZE CACHE of all CDB lengths (SBC-3, 5.11 to 5.14, 5.6,
//! 5.30).

use block::request::limits::COMMAND_BYTES_MAX;
use block::{DataOut, SectorRange, VolumeAttributes, VolumeRequest};

use crate::blocks::long::{LongRead, LongWrite, is_long};
use crate::cdb::Cdb;
use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Answer, Command, Outcome, Response, Step, request};

/// The blocks that a CDB addresses, and the position of its length field (for field pointers).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub lba: u64,
    pub blocks: u64,
    pub length_at: u16,
}

impl Extent {
    /// Parses a CDB with the usual layout for its length (SPC-4, 4.2.2), which the group code, the
    /// high bits of the opcode, determines (SAM-5, 5.2).
    #[inline]
    pub(crate) fn of(cdb: &Cdb) -> Self {
        match cdb.opcode() >> 5 {
            // A length of 0 means 256 (SBC-3, 5.11).
            0 => Self {
                lba: u64::from(cdb.u32(0) & 0x1f_ffff),
                blocks: if cdb.u8(4) == 0 { 256 } else { cdb.u8(4).into() },
                length_at: 4,
            },
            1 | 2 => Self { lba: cdb.u32(2).into(), blocks: cdb.u16(7).into(), length_at: 7 },
            5 => Self { lba: cdb.u32(2).into(), blocks: cdb.u32(6).into(), length_at: 6 },
            _ => Self { lba: cdb.u64(2), blocks: cdb.u32(10).into(), length_at: 10 },
        }
    }

    /// Returns it as sectors of the volume, if it is in range.
    pub(crate) fn sectors(self, volume: &VolumeAttributes) -> Result<SectorRange, Sense> {
        sectors(volume, self.lba, self.blocks)
    }

    /// Returns it as sectors, if it is in range and does not exceed the limit of one command.
    pub(crate) fn transfer(self, volume: &VolumeAttributes) -> Result<SectorRange, Sense> {
        let range = self.sectors(volume)?;
        if self.blocks > COMMAND_BYTES_MAX / volume.logical_block.bytes() {
            return Err(Sense::cdb_bytes(self.length_at));
        }
        Ok(range)
    }
}

/// Converts logical blocks to sectors of the volume; LOGICAL BLOCK ADDRESS OUT OF RANGE if they
/// exceed it. A length of zero is in range up to the end of the volume.
pub(crate) fn sectors(
    volume: &VolumeAttributes,
    lba: u64,
    blocks: u64,
) -> Result<SectorRange, Sense> {
    let unit = volume.logical_block.sectors();
    let range = lba.checked_mul(unit).zip(blocks.checked_mul(unit));
    match range.map(|(start, count)| SectorRange::new(start, count)) {
        Some(range) if range.fits(volume.size) => Ok(range),
        _ => Err(Sense::OUT_OF_RANGE),
    }
}

/// Requires RDPROTECT, WRPROTECT or VRPROTECT to be 0, because there is no protection information.
/// A 6-byte CDB has no such field.
pub(crate) fn refuse_protection(cdb: &Cdb) -> Result<(), Sense> {
    let asked = cdb.opcode() >> 5 != 0 && cdb.u8(1) & 0xe0 != 0;
    if asked { Err(Sense::cdb_field(1, 7)) } else { Ok(()) }
}

/// Returns FUA: bit 3 of byte 1, which in a 6-byte CDB is part of the address.
pub(crate) fn fua(cdb: &Cdb) -> bool {
    cdb.opcode() >> 5 != 0 && cdb.bit(1, 3)
}

pub(crate) fn read(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    refuse_protection(&command.cdb)?;
    let range = Extent::of(&command.cdb).transfer(volume)?;
    if range.is_empty() {
        return Ok(Step::Done(Response::good()));
    }
    if is_long(range) {
        let mut long = LongRead::new(context.nexus, volume.id, range);
        let first = long.next().ok_or(Sense::INTERNAL_FAILURE)?;
        return Ok(request(volume, None, long, first));
    }
    let read = VolumeRequest::Read { volume: volume.id, range };
    Ok(request(volume, None, Answer, read))
}

/// The data of a write, and the number of bytes that the CDB requires.
pub(crate) struct Arrived {
    pub data: DataOut,
    pub range: SectorRange,
    pub wanted: u64,
}

/// Adjusts the received data to the CDB. Excess data is cut off. If data is missing, the blocks
/// that arrived are written, and the residual count reports this to the host (RFC 7143, 11.4.5). A
/// partial block is refused, with nothing written.
pub(crate) fn arrived(
    volume: &VolumeAttributes,
    extent: Extent,
    data: DataOut,
) -> Result<Result<Arrived, Step>, Sense> {
    let mut range = extent.transfer(volume)?;
    let block = volume.logical_block.bytes();
    let wanted = extent.blocks * block;
    let have = (data.len() as u64).min(wanted);
    if !have.is_multiple_of(block) {
        let response = Response::check(Sense::INFORMATION_UNIT);
        return Ok(Err(Step::Done(response.wanting(Some(wanted)))));
    }
    range.count.0 = have / block * volume.logical_block.sectors();
    if range.is_empty() {
        return Ok(Err(Step::Done(Response::good().wanting(Some(wanted)))));
    }
    let data = lay_out(data, have as usize, range.start.offset_in_block_bytes());
    Ok(Ok(Arrived { data, range, wanted }))
}

/// Returns the first `len` bytes at `phase`; free of cost if the transport has laid them out so.
pub(crate) fn lay_out(data: DataOut, len: usize, phase: usize) -> DataOut {
    if data.len() == len && data.phase() == phase { data } else { data.split(0, len, phase) }
}

pub(crate) fn write(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    refuse_protection(cdb)?;
    let fua = fua(cdb);
    match arrived(volume, Extent::of(cdb), command.data_out)? {
        Err(step) => Ok(step),
        Ok(Arrived { data, range, wanted }) if is_long(range) => {
            let mut write = LongWrite::new(context.nexus, volume.id, range, data, fua);
            let first = write.next().ok_or(Sense::INTERNAL_FAILURE)?;
            Ok(request(volume, Some(wanted), write, first))
        }
        Ok(Arrived { data, range, wanted }) => {
            let write = VolumeRequest::Write { volume: volume.id, range, data, fua };
            Ok(request(volume, Some(wanted), Answer, write))
        }
    }
}

/// PRE-FETCH returns GOOD, not CONDITION MET: the blocks are not guaranteed to be in the cache
/// (SBC-3, 5.8). A length of 0 means up to the end of the medium.
pub(crate) fn prefetch(context: &Context<'_>, command: Command) -> Outcome {
    Extent::of(&command.cdb).sectors(context.volume()?)?;
    Ok(Step::Done(Response::good()))
}

/// SYNCHRONIZE CACHE (SBC-3, 5.30): makes the whole volume durable for any range. IMMED would allow
/// an earlier response; it is ignored.
pub(crate) fn synchronize(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    Extent::of(&command.cdb).sectors(volume)?;
    let flush = VolumeRequest::Flush { volume: volume.id };
    Ok(request(volume, None, Answer, flush))
}
