//! The version of a pool, and its features: what it has beyond that ([`crate::superblock`]).

use crate::geometry::{SEGMENTS_IN_STREAM_MAX, SEGMENTS_MAX};
use crate::log::RecordVersion;

/// A version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatVersion {
    /// Metadata stands once.
    V2,
    /// Metadata stands twice; there are feature bits.
    #[default]
    V3,
}

impl FormatVersion {
    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    pub(crate) fn decode(raw: u32) -> Option<Self> {
        [Self::V2, Self::V3].into_iter().find(|version| version.number() == raw)
    }

    /// Whether metadata stands twice.
    pub fn mirrors_metadata(self) -> bool {
        self >= Self::V3
    }

    /// How its records are written.
    pub fn records(self) -> RecordVersion {
        match self {
            Self::V2 => RecordVersion::V2,
            Self::V3 => RecordVersion::V3,
        }
    }
}

/// What a pool has beyond its version, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A program that does not know these uses the pool.
    pub compatible: u64,
    /// A program that does not know these may read the pool, but not change it.
    pub read_compatible: u64,
    /// A program that does not know these can't read the pool.
    pub incompatible: u64,
}

impl Features {
    /// Compatible: devices have labels.
    pub const LABELS: u64 = 1 << 0;
    /// Incompatible: the key-value space is in leaves.
    pub const LEAVES: u64 = 1 << 0;
    /// Incompatible: the segment table is in pages.
    pub const SEGMENT_TABLE: u64 = 1 << 1;
    /// Incompatible: the pool is on several devices, each of which has all of it. Only a pool that
    /// was made on several has it. (Bit 2 was drawn for rows of segments that say where they are;
    /// no pool has it, and it stays unused.)
    pub const MIRRORS: u64 = 1 << 3;
    /// Incompatible: the pool is on four devices or more, in stripes of data and parity. Only a
    /// pool that was made on so many has it.
    pub const STRIPES: u64 = 1 << 4;
    /// Incompatible: a map says where the columns of each segment are. Only a pool that was made in
    /// stripes has it.
    pub const PARTS: u64 = 1 << 5;
    /// Those that each new pool has, and each pool that is upgraded.
    pub const KNOWN: Self = Self {
        compatible: Self::LABELS,
        read_compatible: 0,
        incompatible: Self::LEAVES | Self::SEGMENT_TABLE,
    };

    /// Those of a new pool of a version.
    pub fn latest_of(version: FormatVersion) -> Self {
        match version {
            FormatVersion::V2 => Self::default(),
            FormatVersion::V3 => Self::KNOWN,
        }
    }

    /// Those that are known and set, by name.
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

    /// Whether devices have labels.
    pub fn has_labels(self) -> bool {
        self.compatible & Self::LABELS != 0
    }

    /// Whether the key-value space is in leaves, or becomes that with the next checkpoint.
    pub fn has_leaves(self) -> bool {
        self.incompatible & Self::LEAVES != 0
    }

    /// Whether the segment table is in pages, or becomes that with the next checkpoint.
    pub fn has_segment_table(self) -> bool {
        self.incompatible & Self::SEGMENT_TABLE != 0
    }

    /// Whether the pool is on several devices, each of which has all of it.
    pub fn has_mirrors(self) -> bool {
        self.incompatible & Self::MIRRORS != 0
    }

    /// Whether the pool is on four devices or more, in stripes.
    pub fn has_stripes(self) -> bool {
        self.incompatible & Self::STRIPES != 0
    }

    /// Whether a map says where the columns of each segment are.
    pub fn has_parts(self) -> bool {
        self.incompatible & Self::PARTS != 0
    }

    /// The most segments that a pool with these can have.
    pub fn segments_max(self) -> u64 {
        if self.has_segment_table() { SEGMENTS_MAX } else { SEGMENTS_IN_STREAM_MAX }
    }

    /// With those that are known as well.
    pub fn with_known(self) -> Self {
        let Self { compatible, read_compatible, incompatible } = Self::KNOWN;
        Self {
            compatible: self.compatible | compatible,
            read_compatible: self.read_compatible | read_compatible,
            incompatible: self.incompatible | incompatible,
        }
    }

    /// Those that are not known and keep the pool from being changed, or from being read at all.
    pub fn unknown(self) -> Self {
        Self {
            compatible: 0,
            read_compatible: self.read_compatible & !Self::KNOWN.read_compatible,
            incompatible: self.incompatible
                & !(Self::KNOWN.incompatible | Self::MIRRORS | Self::STRIPES | Self::PARTS),
        }
    }
}
