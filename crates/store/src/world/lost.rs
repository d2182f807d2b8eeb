//! Volumes whose rows are lost.
//!
//! A page of the volume table that can't be read takes up to 128 volumes with it, or more if it is
//! a directory. The pool opens without them: what they name keeps its references, so that nothing
//! of it is freed; their ids are never given again; and a request for one is answered with MEDIUM
//! ERROR.

use block::{Sector, VolumeError, VolumeId, VolumeRequest};

use crate::world::World;

impl World {
    /// Whether the row of a volume that has been given this id can't be read: nobody knows whether
    /// there is such a volume, nor what is in it.
    pub(crate) fn is_lost(&self, id: VolumeId) -> bool {
        self.lost_rows.read().contains(&id.0)
            || self.lost_volumes.read().iter().any(|(_, ids)| ids.contains(&id.0))
    }

    /// Why a volume that is not there can't be used.
    pub(crate) fn missing(&self, id: VolumeId) -> VolumeError {
        match self.is_lost(id) {
            true => VolumeError::Medium { sector: Sector(0) },
            false => VolumeError::NoSuchVolume(id),
        }
    }

    /// What is lost of a request because the row of its volume is; `None` if none is.
    pub(crate) fn lost_target(&self, request: &VolumeRequest) -> Option<VolumeError> {
        if self.lost_volumes.read().is_empty() && self.lost_rows.read().is_empty() {
            return None;
        }
        let at = |id: VolumeId, sector| self.is_lost(id).then_some(sector);
        let lost = match request {
            VolumeRequest::Read { volume, range }
            | VolumeRequest::Write { volume, range, .. }
            | VolumeRequest::CompareAndWrite { volume, range, .. }
            | VolumeRequest::Zero { volume, range, .. }
            | VolumeRequest::Fill { volume, range, .. }
            | VolumeRequest::Extents { volume, range, .. } => at(*volume, range.start),
            VolumeRequest::Unmap { volume, ranges } => {
                at(*volume, ranges.first().map_or(Sector(0), |range| range.start))
            }
            VolumeRequest::Copy { segments } => segments.iter().find_map(|segment| {
                at(segment.source, segment.source_start)
                    .or_else(|| at(segment.destination, segment.destination_start))
            }),
            VolumeRequest::Flush { volume } | VolumeRequest::Space { volume } => {
                at(*volume, Sector(0))
            }
        };
        lost.map(|sector| VolumeError::Medium { sector })
    }
}
