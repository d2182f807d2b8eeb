//! Volumes whose rows are lost.
//!
//! An unreadable page of the volume table loses up to 128 volumes, or more if it is a directory.
//! The pool opens without them: what they refer to keeps its references, so that nothing of it is
//! freed; their ids are never reused; and requests for them fail with MEDIUM ERROR.

use block::{Sector, VolumeError, VolumeId, VolumeRequest};

use crate::world::World;

impl World {
    /// Returns whether the row with this assigned id can't be read: whether the volume exists, and
    /// its content, are unknown.
    pub(crate) fn is_lost(&self, id: VolumeId) -> bool {
        self.lost_rows.read().contains(&id.0)
            || self.lost_volumes.read().iter().any(|(_, ids)| ids.contains(&id.0))
    }

    /// Returns why a missing volume can't be used.
    pub(crate) fn missing(&self, id: VolumeId) -> VolumeError {
        match self.is_lost(id) {
            true => VolumeError::Medium { sector: Sector(0) },
            false => VolumeError::NoSuchVolume(id),
        }
    }

    /// Returns the error for a request whose volume's row is lost; `None` if it is not.
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
