//! The version of a pool, and its features: what it has beyond that ([`crate::superblock`]).

use crate::geometry::{SEGMENTS_IN_STREAM_MAX, SEGMENTS_MAX};
use crate::log::RecordVersion;

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatVersion {
    /// Metadata has one copy.
    V2,
    /// Metadata has two copies; there are feature bits.
    #[default]
    V3,
}

impl FormatVersion {
    /// Returns its number.
    pub fn number(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    pub(crate) fn decode(raw: u32) -> Option<Self> {
        [Self::V2, Self::V3].into_iter().find(|version| version.number() == raw)
    }

    /// Returns whether metadata has two copies.
    pub fn mirrors_metadata(self) -> bool {
        self >= Self::V3
    }

    /// Returns the version of its records.
    pub fn records(self) -> RecordVersion {
        match self {
            Self::V2 => RecordVersion::V2,
            Self::V3 => RecordVersion::V3,
        }
    }
}

/// The features of a pool beyond its version, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Programs that do not know these may use the pool.
    pub compatible: u64,
    /// Programs that do not know these may read the pool, but not change it.
    pub read_compatible: u64,
    /// Programs that do not know these can't read the pool.
    pub incompatible: u64,
}

impl Features {
    /// Compatible: devices have labels.
    pub const LABELS: u64 = 1 << 0;
    /// Incompatible: the key-value space is in leaves.
    pub const LEAVES: u64 = 1 << 0;
    /// Incompatible: the segment table is in pages.
    pub const SEGMENT_TABLE: u64 = 1 << 1;
    /// Incompatible: the pool is mirrored on several devices. Only a pool that was created on
    /// several devices has it. (Bit 2 was planned for segment rows with locations; no pool has it,
    /// and it stays unused.)
    pub const MIRRORS: u64 = 1 << 3;
    /// Incompatible: the pool is striped, with data and parity, on four devices or more. Only a
    /// pool that was created on that many has it.
    pub const STRIPES: u64 = 1 << 4;
    /// Incompatible: a map has the locations of each segment's columns. Only a pool that was
    /// created striped has it.
    pub const PARTS: u64 = 1 << 5;
    /// The features of each new or upgraded pool.
    pub const KNOWN: Self = Self {
        compatible: Self::LABELS,
        read_compatible: 0,
        incompatible: Self::LEAVES | Self::SEGMENT_TABLE,
    };

    /// Returns the features of a new pool of a version.
    pub fn latest_of(version: FormatVersion) -> Self {
        match version {
            FormatVersion::V2 => Self::default(),
            FormatVersion::V3 => Self::KNOWN,
        }
    }

    /// Returns the names of the known features that are set.
    pub fn names(self) -> Vec<&'static str> {
        let named = [
            (self.has_labels(), "labels"),
            (self.has_leaves(), "leaves"),
            (self.has_segment_table(), "segment-table"),
            (self.has_mirrors(), "mirrors"),
            (self.has_stripes(), "stripes"),
            (self.has_parts(), "parts"),
        ];
        named.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
    }

    /// Returns whether devices have labels.
    pub fn has_labels(self) -> bool {
        self.compatible & Self::LABELS != 0
    }

    /// Returns whether the key-value space is in leaves, or will be with the next checkpoint.
    pub fn has_leaves(self) -> bool {
        self.incompatible & Self::LEAVES != 0
    }

    /// Returns whether the segment table is in pages, or will be with the next checkpoint.
    pub fn has_segment_table(self) -> bool {
        self.incompatible & Self::SEGMENT_TABLE != 0
    }

    /// Returns whether the pool is mirrored on several devices.
    pub fn has_mirrors(self) -> bool {
        self.incompatible & Self::MIRRORS != 0
    }

    /// Returns whether the pool is striped, on four devices or more.
    pub fn has_stripes(self) -> bool {
        self.incompatible & Self::STRIPES != 0
    }

    /// Returns whether a map has the locations of each segment's columns.
    pub fn has_parts(self) -> bool {
        self.incompatible & Self::PARTS != 0
    }

    /// Returns the maximum number of segments of a pool with these features.
    pub fn segments_max(self) -> u64 {
        if self.has_segment_table() { SEGMENTS_MAX } else { SEGMENTS_IN_STREAM_MAX }
    }

    /// Adds the known features to these.
    pub fn with_known(self) -> Self {
        let Self { compatible, read_compatible, incompatible } = Self::KNOWN;
        Self {
            compatible: self.compatible | compatible,
            read_compatible: self.read_compatible | read_compatible,
            incompatible: self.incompatible | incompatible,
        }
    }

    /// Returns the unknown features that prevent changing the pool, or reading it at all.
    pub fn unknown(self) -> Self {
        Self {
            compatible: 0,
            read_compatible: self.read_compatible & !Self::KNOWN.read_compatible,
            incompatible: self.incompatible
                & !(Self::KNOWN.incompatible | Self::MIRRORS | Self::STRIPES | Self::PARTS),
        }
    }
}
