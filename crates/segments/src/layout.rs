//! The division of one device: the offset of each place.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use block::{BLOCK_BYTES, FRAME_BYTES};
use format::geometry::UNITS_PER_BLOCK;
use format::{Geometry, Place};

/// The division of one device, shared by all its users. Until it is set there are no segments.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    part_bytes: AtomicU64,
    segment_count: AtomicU32,
    columns: AtomicU8,
}

impl Layout {
    /// Sets the division. Segments keep their size, so existing places keep their offsets.
    pub(crate) fn set(&self, geometry: Geometry) {
        let Geometry { part_bytes, segment_count, columns } = geometry;
        let before = self.part_bytes.swap(part_bytes, Ordering::AcqRel);
        assert!(before == 0 || before == part_bytes, "segments keep their size");
        let before = self.columns.swap(columns, Ordering::AcqRel);
        assert!(before == 0 || before == columns, "segments keep their columns");
        self.segment_count.store(segment_count, Ordering::Release);
    }

    pub(crate) fn get(&self) -> Geometry {
        let segment_count = self.segment_count.load(Ordering::Acquire);
        let columns = self.columns.load(Ordering::Acquire);
        Geometry { part_bytes: self.part_bytes.load(Ordering::Acquire), segment_count, columns }
    }

    /// Returns the offset of `frame_count` frames from `place` on, in bytes.
    ///
    /// # Panics
    /// If they are not whole blocks within one existing segment: the request would reach other
    /// data.
    pub(crate) fn offset_bytes(&self, place: Place, frame_count: usize) -> u64 {
        let geometry = self.get();
        assert!(
            geometry.contains(place, (frame_count * FRAME_BYTES) as u64)
                && place.offset_units.is_multiple_of(UNITS_PER_BLOCK),
            "{frame_count} blocks at {place:?} are not within one of {} segments",
            geometry.segment_count
        );
        let offset_bytes = geometry.offset_bytes(place);
        debug_assert!(offset_bytes.is_multiple_of(BLOCK_BYTES));
        offset_bytes
    }

    /// The same; if there are no frames, `place` is ignored.
    pub(crate) fn offset_or_start(&self, place: Place, frame_count: usize) -> u64 {
        if frame_count == 0 { 0 } else { self.offset_bytes(place, frame_count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry { part_bytes: 64 << 10, segment_count: 16, columns: 1 };

    fn of(place: Place, frame_count: usize) -> std::thread::Result<u64> {
        std::panic::catch_unwind(|| {
            let layout = Layout::default();
            layout.set(GEOMETRY);
            layout.offset_bytes(place, frame_count)
        })
    }

    #[test]
    fn a_place_is_within_its_segment_on_the_device() {
        let last = Place { segment: 15, offset_units: 15 * 64 };
        assert_eq!(of(Place { segment: 1, offset_units: 0 }, 16).unwrap(), 16 << 20);
        assert_eq!(of(last, 1).unwrap(), (16 << 20) + (14 << 16) + (15 << 12));
        for (place, frame_count) in [
            (last, 2),
            (Place { segment: 16, offset_units: 0 }, 1),
            (Place { segment: 0, offset_units: 0 }, 1),
            (Place { segment: 1, offset_units: 1 }, 1),
        ] {
            assert!(of(place, frame_count).is_err(), "{place:?}");
        }
    }

    #[test]
    fn added_segments_keep_the_size() {
        let layout = Layout::default();
        layout.set(GEOMETRY);
        layout.set(Geometry { segment_count: 17, ..GEOMETRY });
        let place = Place { segment: 16, offset_units: 0 };
        assert_eq!(layout.offset_bytes(place, 16), (16 << 20) + (15 << 16));
        let other = Geometry { part_bytes: 128 << 10, ..GEOMETRY };
        assert!(std::panic::catch_unwind(|| layout.set(other)).is_err());
    }
}
