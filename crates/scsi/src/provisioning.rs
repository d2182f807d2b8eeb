//! GET LBA STATUS (SBC-3, 5.3).

use block::{LbaExtent, LbaState, SectorRange, VolumeRequest};

use crate::capacity::blocks;
use crate::response::{Command, Rest, request};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

/// The most descriptors in one answer, so that one command costs little memory: 64 KiB.
const DESCRIPTORS_MAX: usize = 4096;

pub(crate) fn get_lba_status(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let (lba, allocation_length) = (cdb.u64(2), cdb.u32(10) as usize);
    if lba >= blocks(volume) {
        return Err(Sense::OUT_OF_RANGE);
    }
    let start = lba * volume.logical_block.sectors();
    let range = SectorRange::new(start, volume.size.0.saturating_sub(start));
    let limit = (allocation_length.saturating_sub(8) / 16).clamp(1, DESCRIPTORS_MAX);
    let extents = VolumeRequest::Extents { volume: volume.id, range, limit };
    Ok(request(volume, None, Rest::LbaStatus { allocation_length }, extents))
}

/// The parameter data (SBC-3, 5.3.2). An extent that a descriptor's 32 bits can't hold takes more.
pub(crate) fn lba_status_data(extents: &[LbaExtent], block_sectors: u64) -> Vec<u8> {
    let mut out = vec![0; 8];
    for extent in extents {
        let status = match extent.state {
            LbaState::Mapped => 0,
            LbaState::Deallocated => 1,
        };
        let mut lba = extent.range.start.0 / block_sectors;
        let mut left = extent.range.count.0 / block_sectors;
        while left > 0 && out.len() < 8 + 16 * DESCRIPTORS_MAX {
            let count = u32::try_from(left).unwrap_or(u32::MAX);
            out.extend(lba.to_be_bytes());
            out.extend(count.to_be_bytes());
            out.extend([status, 0, 0, 0]);
            lba += u64::from(count);
            left -= u64::from(count);
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}
