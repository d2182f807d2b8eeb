//! The volumes of the device server: they execute requests, and check that these are allowed.

use std::collections::BTreeMap;

use block::request::limits;
use block::{
    CopySegment, DataIn, DataOut, FRAME_BYTES, Frame, FrameMut, LbaExtent, LbaState, LunMap,
    SECTOR_BYTES, Sector, SectorCount, SectorRange, SpaceUse, VolumeAttributes, VolumeError,
    VolumeId, VolumeReply, VolumeRequest,
};

const SECTOR: usize = SECTOR_BYTES as usize;
/// Data written at or beyond this offset is discarded, because no test reads it.
const KEPT_SECTORS: u64 = 4096;

/// Nonzero sectors.
type Sectors = BTreeMap<(VolumeId, u64), [u8; SECTOR]>;

/// All volumes.
#[derive(Default)]
pub struct Volumes {
    sectors: Sectors,
    mapped: BTreeMap<(VolumeId, u64), ()>,
}

/// The array's own volume for RODs: the only one in requests that no host can access.
pub const OWN_VOLUME: VolumeId = VolumeId(99);
/// Its size: space for a few of the largest RODs.
pub const OWN_SIZE: SectorCount = SectorCount((64 << 30) / SECTOR_BYTES);

/// Returns the initiator's view of a volume. A request for any other volume is a defect.
fn seen(luns: &LunMap, id: VolumeId) -> &VolumeAttributes {
    let volume = luns.luns.values().find(|volume| volume.id == id);
    volume.unwrap_or_else(|| panic!("volume {id} is not the initiator's"))
}

/// Checks that this initiator may access a range.
fn check_range(luns: &LunMap, id: VolumeId, range: SectorRange) {
    if id == OWN_VOLUME {
        assert!(!range.is_empty() && range.fits(OWN_SIZE), "{range:?} of the array's own volume");
        return;
    }
    let volume = seen(luns, id);
    assert!(!range.is_empty(), "an empty range of volume {id}");
    assert!(range.fits(volume.size), "{range:?} exceeds volume {id}");
    let block = volume.logical_block.sectors();
    let aligned = range.start.0.is_multiple_of(block) && range.count.0.is_multiple_of(block);
    assert!(aligned, "{range:?} is not in whole logical blocks of volume {id}");
}

/// Checks that the data has the length of the range, and does not exceed the maximum transfer.
fn check_data(range: SectorRange, data: &DataOut) {
    assert_eq!(Some(data.len() as u64), range.bytes());
    assert!(data.len() as u64 <= limits::TRANSFER_BYTES_MAX);
    assert_eq!(data.phase(), range.start.offset_in_block_bytes());
}

/// Returns the part of a range whose data is kept.
fn kept(range: SectorRange) -> std::ops::Range<u64> {
    let end = (range.start.0 + range.count.0).min(KEPT_SECTORS);
    range.start.0.min(end)..end
}

impl Volumes {
    /// Executes a request of an initiator with access to `luns`.
    ///
    /// # Panics
    /// If the request is not allowed.
    pub fn serve(
        &mut self,
        luns: &LunMap,
        request: VolumeRequest,
    ) -> Result<VolumeReply, VolumeError> {
        use VolumeRequest as R;
        match request {
            R::Read { volume, range } => {
                check_range(luns, volume, range);
                return Ok(VolumeReply::Data(self.read(volume, range)));
            }
            R::Write { volume, range, data, .. } => {
                check_range(luns, volume, range);
                check_data(range, &data);
                self.write(volume, range, &data);
            }
            R::CompareAndWrite { volume, range, expected, data, .. } => {
                check_range(luns, volume, range);
                check_data(range, &data);
                check_data(range, &expected);
                let held = self.read(volume, range).to_vec();
                let wanted = expected.to_vec();
                if let Some(offset_bytes) = (0..held.len()).find(|at| held[*at] != wanted[*at]) {
                    return Err(VolumeError::Miscompare { offset_bytes });
                }
                self.write(volume, range, &data);
            }
            R::Zero { volume, range, .. } => {
                check_range(luns, volume, range);
                self.clear(volume, range, true);
            }
            R::Fill { volume, range, pattern, .. } => {
                check_range(luns, volume, range);
                self.fill(volume, range, &pattern);
            }
            R::Unmap { volume, ranges } => {
                assert!(!ranges.is_empty() && ranges.len() <= limits::UNMAP_RANGES_MAX);
                for range in ranges {
                    check_range(luns, volume, range);
                    self.clear(volume, range, false);
                }
            }
            R::Copy { segments } => self.copy(luns, &segments),
            R::Flush { volume } => drop(seen(luns, volume)),
            R::Extents { volume, range, limit } => {
                check_range(luns, volume, range);
                assert!(limit > 0 && limit <= limits::EXTENTS_MAX);
                return Ok(VolumeReply::Extents(self.extents(volume, range, limit)));
            }
            R::Space { volume } => {
                seen(luns, volume);
                let space = SpaceUse { pool_capacity_bytes: 10 << 20, ..SpaceUse::default() };
                return Ok(VolumeReply::Space(space));
            }
        }
        Ok(VolumeReply::Done)
    }

    fn read(&self, volume: VolumeId, range: SectorRange) -> DataIn {
        let bytes = range.bytes().expect("checked") as usize;
        assert!(bytes as u64 <= limits::TRANSFER_BYTES_MAX, "a read of {bytes} bytes");
        let phase = range.start.offset_in_block_bytes();
        let kept = kept(range);
        if self
            .sectors
            .range((volume, kept.start)..(volume, kept.end.max(kept.start)))
            .next()
            .is_none()
        {
            let frames = (phase + bytes).div_ceil(FRAME_BYTES);
            return DataIn::from_frames((0..frames).map(|_| Frame::zeros()), phase, bytes);
        }
        let mut out = vec![0; bytes];
        for (at, sector) in out.chunks_exact_mut(SECTOR).enumerate() {
            if let Some(held) = self.sectors.get(&(volume, range.start.0 + at as u64)) {
                sector.copy_from_slice(held);
            }
        }
        DataIn::from_bytes(&out)
    }

    fn write(&mut self, volume: VolumeId, range: SectorRange, data: &DataOut) {
        for sector in kept(range) {
            let mut held = [0; SECTOR];
            data.read_at((sector - range.start.0) as usize * SECTOR, &mut held);
            self.put(volume, sector, held);
        }
    }

    fn put(&mut self, volume: VolumeId, sector: u64, held: [u8; SECTOR]) {
        self.mapped.insert((volume, sector), ());
        if held == [0; SECTOR] {
            self.sectors.remove(&(volume, sector));
        } else {
            self.sectors.insert((volume, sector), held);
        }
    }

    fn fill(&mut self, volume: VolumeId, range: SectorRange, pattern: &Frame) {
        for sector in kept(range) {
            let at = Sector(sector).offset_in_block_bytes();
            let mut held = [0; SECTOR];
            held.copy_from_slice(&pattern[at..at + SECTOR]);
            self.put(volume, sector, held);
        }
    }

    fn clear(&mut self, volume: VolumeId, range: SectorRange, mapped: bool) {
        for sector in kept(range) {
            self.put(volume, sector, [0; SECTOR]);
            if !mapped {
                self.mapped.remove(&(volume, sector));
            }
        }
    }

    fn copy(&mut self, luns: &LunMap, segments: &[CopySegment]) {
        assert!(!segments.is_empty() && segments.len() <= limits::COPY_SEGMENTS_MAX);
        for segment in segments {
            let from = SectorRange { start: segment.source_start, count: segment.count };
            let to = SectorRange { start: segment.destination_start, count: segment.count };
            check_range(luns, segment.source, from);
            check_range(luns, segment.destination, to);
            let held: Vec<[u8; SECTOR]> = kept(to)
                .map(|sector| segment.source_start.0 + (sector - to.start.0))
                .map(|sector| self.sectors.get(&(segment.source, sector)).copied())
                .map(|held| held.unwrap_or([0; SECTOR]))
                .collect();
            for (sector, held) in kept(to).zip(held) {
                self.put(segment.destination, sector, held);
            }
        }
    }

    fn extents(&self, volume: VolumeId, range: SectorRange, limit: usize) -> Vec<LbaExtent> {
        let mut out: Vec<LbaExtent> = Vec::new();
        let mut add = |range: SectorRange, state| match out.last_mut() {
            Some(last) if last.state == state => last.range.count.0 += range.count.0,
            _ => out.push(LbaExtent { range, state }),
        };
        let kept = kept(range);
        for sector in kept.clone() {
            let mapped = self.mapped.contains_key(&(volume, sector));
            let state = if mapped { LbaState::Mapped } else { LbaState::Deallocated };
            add(SectorRange::new(sector, 1), state);
        }
        let end = range.start.0 + range.count.0;
        if end > kept.end.max(range.start.0) {
            let start = kept.end.max(range.start.0);
            add(SectorRange::new(start, end - start), LbaState::Deallocated);
        }
        out.truncate(limit);
        out
    }
}

/// Returns data like a transport for this CDB.
pub fn data_out(cdb: &[u8], bytes: &[u8]) -> DataOut {
    DataOut::from_bytes(bytes, scsi::data_out_phase(cdb))
}

/// Returns a frame with these bytes.
pub fn frame(bytes: &[u8]) -> Frame {
    FrameMut::from_bytes(bytes).freeze()
}
