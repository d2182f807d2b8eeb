//! Which parts of a volume are mapped, for GET LBA STATUS.

use block::{
    LbaExtent, LbaState, Sector, SectorCount, SectorRange, VolumeError, VolumeId, VolumeReply,
};
use format::MapEntry;

use crate::store::Store;
use crate::walk::walk;

/// How much one look for extents covers: 1 GiB.
const EXTENTS_SECTORS_MAX: u64 = (1 << 30) / block::SECTOR_BYTES;

impl Store {
    pub(crate) fn extents(
        &self,
        id: VolumeId,
        range: SectorRange,
        limit: usize,
    ) -> Result<VolumeReply, VolumeError> {
        let volume = self.world.volume(id).ok_or(VolumeError::NoSuchVolume(id))?;
        let guard = volume.map.read();
        let map = guard.as_ref().ok_or(VolumeError::NoSuchVolume(id))?;
        if !range.fits(SectorCount(map.size_blocks * block::SECTORS_PER_BLOCK)) {
            return Err(VolumeError::OutOfRange);
        }
        // A walk holds the volume's lock: what is further away is for the next request.
        let range = SectorRange::new(range.start.0, range.count.0.min(EXTENTS_SECTORS_MAX));
        let mut extents: Vec<LbaExtent> = Vec::new();
        let mut next = range.start;
        let walked = walk(&self.world, map, range.covering_blocks(), &mut |run| {
            let state =
                if run.entry == MapEntry::Hole { LbaState::Deallocated } else { LbaState::Mapped };
            let start = block::BlockNumber(run.start).sector();
            push_extent(&mut extents, clip(start, run.count, range), state);
            next = block::BlockNumber(run.start + run.count).sector();
            Ok(())
        });
        walked.map_err(|_| VolumeError::Medium { sector: next })?;
        extents.truncate(limit);
        Ok(VolumeReply::Extents(extents))
    }
}

/// The part of some blocks that is inside `range`.
fn clip(start: Sector, blocks: u64, range: SectorRange) -> SectorRange {
    let first = start.0.max(range.start.0);
    let end = (start.0 + blocks * block::SECTORS_PER_BLOCK).min(range.start.0 + range.count.0);
    SectorRange::new(first, end - first)
}

fn push_extent(extents: &mut Vec<LbaExtent>, range: SectorRange, state: LbaState) {
    if let Some(last) = extents.last_mut()
        && last.state == state
    {
        last.range.count.0 += range.count.0;
        return;
    }
    extents.push(LbaExtent { range, state });
}
