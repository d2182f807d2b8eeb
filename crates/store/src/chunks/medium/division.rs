//! How the medium is divided: into segments that may have several widths.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

use format::geometry::COLUMNS_MAX;
use format::{Geometry, Place};

use super::{Medium, metadata_blocks};

/// What the widths of segments add up to, where they differ.
#[derive(Debug)]
pub(super) struct Widths {
    /// The columns of data of the narrowest segment, or of all when the pool was made.
    least_columns: AtomicU8,
    /// How often segments were laid anew, counted before and after.
    layings: AtomicU16,
    /// Columns of data of all segments together.
    all_columns: AtomicU64,
}

impl Widths {
    pub(super) fn new(columns: u8) -> Self {
        let (layings, all_columns) = Default::default();
        Self { least_columns: AtomicU8::new(columns), layings, all_columns }
    }
}

impl Medium {
    /// Blocks of a segment that a checkpoint can fill: as many as the narrowest has, so that all
    /// count alike.
    pub(crate) fn metadata_blocks(&self) -> u32 {
        let columns = self.widths.least_columns.load(Ordering::Acquire);
        metadata_blocks(Geometry { columns, ..self.geometry() }, self.version())
    }

    /// Segments that hosts' data does not fill: [`Tuning::reserve_segments`].
    pub(crate) fn reserve_segments(&self) -> u32 {
        self.tuning.reserve_segments(self.whole_segments())
    }

    /// How many free segments are so few that some should be emptied: an eighth of the pool, or
    /// what the reserve is short of.
    pub(crate) fn segments_wanted(&self) -> u32 {
        (self.whole_segments() / 8).max(2 * self.reserve_segments())
    }

    /// How many segments there are, with segment 0, if as many as make up a whole one count as one:
    /// see [`SegmentWidths`].
    pub(crate) fn whole_segments(&self) -> u32 {
        let columns = self.widths.all_columns.load(Ordering::Acquire);
        let most = self.segment_count.load(Ordering::Acquire);
        most.min(1 + (columns / u64::from(self.columns)) as u32)
    }

    /// So many units of a segment as if it was a whole one, of which the same part is live.
    pub(crate) fn as_of_whole(&self, segment: u32, units: u32) -> u64 {
        if self.is_uniform() {
            return units.into();
        }
        let columns = u64::from(self.geometry_of(segment).columns.max(1));
        (u64::from(units) * u64::from(self.columns)).div_ceil(columns)
    }

    /// How many rows of the narrowest segment have room for so many of one with so many columns.
    pub(crate) fn rows_in_narrowest(&self, rows: u32, columns: u8) -> u32 {
        let least = self.widths.least_columns.load(Ordering::Acquire);
        (rows * u32::from(columns)).div_ceil(u32::from(least))
    }

    /// The size of all segments that can hold log and metadata.
    pub(crate) fn usable_bytes(&self) -> u64 {
        self.widths.all_columns.load(Ordering::Acquire) * self.part_bytes
    }

    /// Whether all segments are as wide as when the pool was made.
    pub(crate) fn is_uniform(&self) -> bool {
        let all = self.widths.all_columns.load(Ordering::Acquire);
        let segments = u64::from(self.segment_count.load(Ordering::Acquire).saturating_sub(1));
        let least = self.widths.least_columns.load(Ordering::Acquire);
        least == self.columns && all == segments * u64::from(self.columns)
    }

    /// Lays free segments anew, see [`segments::Segments::lay_anew`]. Whether any was.
    pub(crate) fn lay_anew(&self, segments: &[u32]) -> bool {
        self.widths.layings.fetch_add(1, Ordering::AcqRel);
        // What fails leaves them as they were, and its device out.
        let laid = self.disk.lay_anew(segments).is_ok_and(|laid| laid > 0);
        self.widths.layings.fetch_add(1, Ordering::AcqRel);
        if laid {
            self.look_at_widths();
        }
        laid
    }

    /// How often segments were laid anew, modulo 2^16: who finds another number than before may
    /// have read where something else is now.
    pub(crate) fn layings(&self) -> u16 {
        self.widths.layings.load(Ordering::Acquire)
    }

    /// Segments were laid anew, or have come.
    pub(crate) fn look_at_widths(&self) {
        let count = self.segment_count.load(Ordering::Acquire);
        let (mut least, mut all) =
            (self.columns, u64::from(self.columns) * u64::from(count.saturating_sub(1)));
        // All are alike where there is no map that says otherwise.
        if self.features().has_parts() {
            let columns = (1..count).map(|segment| self.geometry_of(segment).columns);
            let add = |(least, all): (u8, u64), it: u8| (least.min(it), all + u64::from(it));
            (least, all) = columns.fold((least, 0), add);
        }
        self.widths.least_columns.store(least, Ordering::Release);
        self.widths.all_columns.store(all, Ordering::Release);
    }

    /// How the pool is divided now, with the columns that it was made with.
    pub(crate) fn geometry(&self) -> Geometry {
        let segment_count = self.segment_count.load(Ordering::Acquire);
        Geometry { part_bytes: self.part_bytes, segment_count, columns: self.columns }
    }

    /// The same, with the columns of a segment: they are what they are as long as something is in
    /// it, or reads it.
    pub(crate) fn geometry_of(&self, segment: u32) -> Geometry {
        let columns = self.disk.columns(segment).unwrap_or(self.columns);
        Geometry { columns, ..self.geometry() }
    }

    /// The same, with as many columns as a segment can have.
    pub(crate) fn widest_geometry(&self) -> Geometry {
        let columns = if self.features().has_parts() { COLUMNS_MAX } else { self.columns };
        Geometry { columns, ..self.geometry() }
    }

    /// Whether `bytes` from a place on are inside of a segment, see [`Geometry::contains`].
    pub(crate) fn contains(&self, place: Place, bytes: u64) -> bool {
        self.geometry_of(place.segment).contains(place, bytes)
    }

    /// The pool has grown.
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
