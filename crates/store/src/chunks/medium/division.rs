//! The division of the medium into segments, which may have several widths.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

use format::geometry::COLUMNS_MAX;
use format::{Geometry, Place};

use super::{Medium, metadata_blocks};

/// Sums over the widths of segments, if they differ.
#[derive(Debug)]
pub(super) struct Widths {
    /// The data columns of the narrowest segment, or of all when the pool was created.
    least_columns: AtomicU8,
    /// How often segments have changed their layout, counted before and after each change.
    layings: AtomicU16,
    /// The data columns of all segments together.
    all_columns: AtomicU64,
}

impl Widths {
    pub(super) fn new(columns: u8) -> Self {
        let (layings, all_columns) = Default::default();
        Self { least_columns: AtomicU8::new(columns), layings, all_columns }
    }
}

impl Medium {
    /// Returns how many blocks of a segment a checkpoint can fill: as many as the narrowest has, so
    /// that all count alike.
    pub(crate) fn metadata_blocks(&self) -> u32 {
        let columns = self.widths.least_columns.load(Ordering::Acquire);
        metadata_blocks(Geometry { columns, ..self.geometry() }, self.version())
    }

    /// Returns how many segments are kept from hosts' data: [`Tuning::reserve_segments`].
    pub(crate) fn reserve_segments(&self) -> u32 {
        self.tuning.reserve_segments(self.whole_segments())
    }

    /// Returns the number of free segments below which some should be emptied, at most: an eighth
    /// of the pool, or twice the reserve if that is more.
    pub(crate) fn segments_wanted(&self) -> u32 {
        (self.whole_segments() / 8).max(2 * self.reserve_segments())
    }

    /// Returns the number of segments, including segment 0, where several narrow ones that make up
    /// a whole one count as one: see [`SegmentWidths`].
    pub(crate) fn whole_segments(&self) -> u32 {
        let columns = self.widths.all_columns.load(Ordering::Acquire);
        let most = self.segment_count.load(Ordering::Acquire);
        most.min(1 + (columns / u64::from(self.columns)) as u32)
    }

    /// Converts units of a segment to those of a whole segment with the same live fraction.
    pub(crate) fn as_of_whole(&self, segment: u32, units: u32) -> u64 {
        if self.is_uniform() {
            return units.into();
        }
        let columns = u64::from(self.geometry_of(segment).columns.max(1));
        (u64::from(units) * u64::from(self.columns)).div_ceil(columns)
    }

    /// Returns how many rows of the narrowest segment have room for this many rows of a segment
    /// with this many columns.
    pub(crate) fn rows_in_narrowest(&self, rows: u32, columns: u8) -> u32 {
        let least = self.widths.least_columns.load(Ordering::Acquire);
        (rows * u32::from(columns)).div_ceil(u32::from(least))
    }

    /// Returns the total size of all segments that can hold log and metadata.
    pub(crate) fn usable_bytes(&self) -> u64 {
        self.widths.all_columns.load(Ordering::Acquire) * self.part_bytes
    }

    /// Returns whether all segments are as wide as when the pool was created.
    pub(crate) fn is_uniform(&self) -> bool {
        let all = self.widths.all_columns.load(Ordering::Acquire);
        let segments = u64::from(self.segment_count.load(Ordering::Acquire).saturating_sub(1));
        let least = self.widths.least_columns.load(Ordering::Acquire);
        least == self.columns && all == segments * u64::from(self.columns)
    }

    /// Changes the layout of free segments, see [`segments::Segments::lay_anew`]. Returns whether
    /// any was changed.
    pub(crate) fn lay_anew(&self, segments: &[u32]) -> bool {
        self.widths.layings.fetch_add(1, Ordering::AcqRel);
        // A failure leaves them as they were, and its device out.
        let laid = self.disk.lay_anew(segments).is_ok_and(|laid| laid > 0);
        self.widths.layings.fetch_add(1, Ordering::AcqRel);
        if laid {
            self.look_at_widths();
        }
        laid
    }

    /// Returns how often segments have changed their layout, modulo 2^16: if the number has
    /// changed, a reader may have read something else.
    pub(crate) fn layings(&self) -> u16 {
        self.widths.layings.load(Ordering::Acquire)
    }

    /// Updates the widths after segments have changed their layout, or were added.
    pub(crate) fn look_at_widths(&self) {
        let count = self.segment_count.load(Ordering::Acquire);
        let (mut least, mut all) =
            (self.columns, u64::from(self.columns) * u64::from(count.saturating_sub(1)));
        // All segments are alike without a map.
        if self.features().has_parts() {
            let columns = (1..count).map(|segment| self.geometry_of(segment).columns);
            let add = |(least, all): (u8, u64), it: u8| (least.min(it), all + u64::from(it));
            (least, all) = columns.fold((least, 0), add);
        }
        self.widths.least_columns.store(least, Ordering::Release);
        self.widths.all_columns.store(all, Ordering::Release);
    }

    /// Returns the current division of the pool, with the columns with which it was created.
    pub(crate) fn geometry(&self) -> Geometry {
        let segment_count = self.segment_count.load(Ordering::Acquire);
        Geometry { part_bytes: self.part_bytes, segment_count, columns: self.columns }
    }

    /// The same, with the columns of a segment: they don't change as long as it has data or
    /// readers.
    pub(crate) fn geometry_of(&self, segment: u32) -> Geometry {
        let columns = self.disk.columns(segment).unwrap_or(self.columns);
        Geometry { columns, ..self.geometry() }
    }

    /// The same, with the maximum number of columns of a segment.
    pub(crate) fn widest_geometry(&self) -> Geometry {
        let columns = if self.features().has_parts() { COLUMNS_MAX } else { self.columns };
        Geometry { columns, ..self.geometry() }
    }

    /// Returns whether `bytes` from a place on are within a segment, see [`Geometry::contains`].
    pub(crate) fn contains(&self, place: Place, bytes: u64) -> bool {
        self.geometry_of(place.segment).contains(place, bytes)
    }

    /// Records that the pool has grown.
    pub(crate) fn grown(&self, geometry: Geometry) {
        let (before, same) = (self.geometry(), geometry.segment_count);
        assert_eq!(
            geometry,
            Geometry { segment_count: same, ..before },
            "segments keep their size"
        );
        self.disk.lay_out(geometry);
        self.segment_count.store(geometry.segment_count, Ordering::Release);
        self.look_at_widths();
    }
}
