//! Which objects the pool's bytes are stored for, without the array's own volume.

use block::VolumeId;
use store::{SpaceFigures, SpaceStatus};

use crate::array::Array;

/// The stored data of a volume or a snapshot at the time of the last pass: see
/// [`store::VolumeSpace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectSpace {
    /// The time of the figures, in seconds since 1970.
    pub as_of_s: u64,
    /// Its figures.
    pub space: store::VolumeSpace,
}

/// Which objects the pool's bytes are stored for. Data that only the array's own volume keeps
/// counts as the system's.
#[derive(Clone, Debug, Default)]
pub struct PoolSpace {
    /// The figures of the last pass; `None` until the first pass since the start ends.
    pub figures: Option<PoolFigures>,
    /// Whether the figures are current: nothing has changed since.
    pub current: bool,
    /// Whether a pass is running or requested.
    pub pending: bool,
}

/// The figures of a pass: see [`store::SpaceFigures`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFigures {
    /// The time of the figures, in seconds since 1970.
    pub as_of_s: u64,
    /// Bytes that volumes were provisioned with.
    pub provisioned_bytes: u64,
    /// Bytes that hosts had written to volumes and not unmapped.
    pub mapped_bytes: u64,
    /// The part of those that is data: neither zeros nor a pattern.
    pub mapped_data_bytes: u64,
    /// Stored bytes that are unique to volumes.
    pub unique_bytes: u64,
    /// Stored bytes that only snapshots refer to.
    pub snapshots_bytes: u64,
    /// Stored bytes that a volume shares with another volume or a snapshot.
    pub shared_bytes: u64,
    /// Stored bytes of the array itself: metadata, and data that is about to be freed.
    pub system_bytes: u64,
    /// All stored bytes that were live: the sum of the four.
    pub live_bytes: u64,
}

impl PoolFigures {
    /// Returns the stored bytes of data to which volumes and snapshots refer.
    pub fn named_bytes(&self) -> u64 {
        self.unique_bytes + self.snapshots_bytes + self.shared_bytes
    }
}

impl Array {
    /// Returns which objects the pool's bytes are stored for.
    pub fn pool_space(&self) -> PoolSpace {
        let SpaceStatus { figures, current, pending } = self.backing().space_status();
        PoolSpace { figures: figures.map(|figures| self.without_own(&figures)), current, pending }
    }

    /// Requests new figures, and returns the state of accounting: see [`PoolSpace::pending`].
    pub fn refresh_space(&self) -> PoolSpace {
        self.backing().ask_for_space_figures();
        self.pool_space()
    }

    /// Returns the stored data of a volume or a snapshot; `None` if it was made after the last
    /// pass.
    pub(crate) fn object_space(&self, id: VolumeId) -> Option<ObjectSpace> {
        let figures = self.backing().space_figures()?;
        Some(ObjectSpace { as_of_s: figures.as_of_s, space: *figures.volume(id)? })
    }

    /// Returns the sum of the stored bytes that only one of these volumes and snapshots refers to,
    /// as far as the last pass covers them.
    pub fn unique_bytes_of(&self, ids: impl IntoIterator<Item = VolumeId>) -> u64 {
        let Some(figures) = self.backing().space_figures() else { return 0 };
        let found = ids.into_iter().filter_map(|id| figures.volume(id));
        found.map(|space| space.unique_bytes).sum()
    }

    fn without_own(&self, figures: &SpaceFigures) -> PoolFigures {
        let own = figures.volume(self.token_volume().0).copied().unwrap_or_default();
        PoolFigures {
            as_of_s: figures.as_of_s,
            provisioned_bytes: figures.provisioned_bytes - own.size_bytes,
            mapped_bytes: figures.mapped_bytes - own.mapped_bytes,
            mapped_data_bytes: figures.mapped_data_bytes - own.mapped_data_bytes,
            unique_bytes: figures.unique_bytes - own.unique_bytes,
            snapshots_bytes: figures.snapshots_bytes,
            shared_bytes: figures.shared_bytes,
            system_bytes: figures.system_bytes() + own.unique_bytes,
            live_bytes: figures.live_bytes,
        }
    }
}
