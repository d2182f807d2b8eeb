//! The space of all volumes in one accounting pass, for those who keep it.

use std::sync::Arc;

use block::VolumeId;
use store::{SpaceFigures, VolumeSpace};

use crate::array::{Array, LOOKED_AT_ONCE};
use crate::tables::volumes::VolumeEntry;

/// The last accounting pass.
#[derive(Clone, Debug)]
pub struct AccountingPass {
    /// The time of its figures, in seconds since 1970.
    pub as_of_s: u64,
    /// Whether nothing has changed since.
    pub is_current: bool,
    figures: Arc<SpaceFigures>,
}

/// The space of a volume in a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountedVolume {
    /// Its figures.
    pub space: VolumeSpace,
    /// Stored bytes that only one of its snapshots refers to.
    pub snapshots_bytes: u64,
}

impl AccountingPass {
    /// Returns whether the figures are those of another pass.
    pub fn differs_from(&self, other: &Self) -> bool {
        !Arc::ptr_eq(&self.figures, &other.figures)
    }
}

impl Array {
    /// Returns the last accounting pass; `None` until the first one since the start ends.
    pub fn accounting_pass(&self) -> Option<AccountingPass> {
        let status = self.backing().space_status();
        let figures = status.figures?;
        Some(AccountingPass { as_of_s: figures.as_of_s, is_current: status.current, figures })
    }

    /// Returns the volumes that a pass covers, destroyed ones too, in the order of their ids.
    pub fn accounted_volumes(&self, pass: &AccountingPass) -> Vec<(VolumeId, AccountedVolume)> {
        let figures = &pass.figures;
        let ids: Vec<VolumeId> = self.read().volumes().keys().copied().collect();
        let mut found = Vec::with_capacity(ids.len());
        for piece in ids.chunks(LOOKED_AT_ONCE) {
            let state = self.read();
            found.extend(piece.iter().filter_map(|id| {
                let (entry, space) = (state.volumes().get(id)?, *figures.volume(*id)?);
                let snapshots_bytes = snapshots_bytes(entry, figures);
                Some((*id, AccountedVolume { space, snapshots_bytes }))
            }));
        }
        found.sort_unstable_by_key(|(id, _)| *id);
        found
    }
}

/// Returns the stored bytes that only one of a volume's snapshots refers to.
pub(super) fn snapshots_bytes(entry: &VolumeEntry, figures: &SpaceFigures) -> u64 {
    let known = entry.snapshots.values().filter_map(|id| figures.volume(*id));
    known.map(|space| space.unique_bytes).sum()
}
