//! The array as seen by the front end: what hosts see, and where the state of hosts is stored.

use std::sync::Arc;

use array::{Array, Kind as ErrorKind};
use block::{LunMap, VolumeId, VolumeLimits};
use target::{Kept, KeptState, SaveError, Start, UnsavedRods};

use super::kept::{LoadError, TargetRecords, all_kept, keep_tokens, to_stored};
use super::throttle::Limited;

/// The LUN maps of initiators, read once per session, and again after each change.
pub trait LunMaps: Send + Sync {
    /// Returns the LUN map of the initiator with this iSCSI name; empty if it is unknown.
    fn lun_map(&self, initiator_name: &str) -> Arc<LunMap>;

    /// Returns a number that increases with every change of any map or of a volume in one, after
    /// the change is visible. Called for each command, so it must be cheap.
    fn generation(&self) -> u64;

    /// Returns the limits of a volume, or of a volume group; none if it does not exist.
    fn limits(&self, of: Limited) -> VolumeLimits;

    /// Returns the volumes that were eradicated since the last call. Cheap.
    fn take_gone(&self) -> Vec<VolumeId>;
}

impl LunMaps for Array {
    fn lun_map(&self, initiator_name: &str) -> Arc<LunMap> {
        Array::lun_map(self, initiator_name)
    }

    fn generation(&self) -> u64 {
        Array::generation(self)
    }

    fn limits(&self, of: Limited) -> VolumeLimits {
        match of {
            Limited::Volume(volume) => self.volume_limits(volume),
            Limited::Group(number) => self.volume_group_limits(number),
        }
    }

    fn take_gone(&self) -> Vec<VolumeId> {
        Array::take_gone(self)
    }
}

impl TargetRecords for Array {
    /// Each start is a power on, except a takeover from another controller.
    fn load(&self) -> Result<(Start, KeptState), LoadError> {
        let begun = self.begin_incarnation();
        let takes_over = begun.map_err(|error| LoadError::Start(error.to_string()))?;
        let start = if takes_over { Start::Takeover } else { Start::PowerOn };
        Ok((start, all_kept(self)?))
    }

    fn save(&self, volume: VolumeId, kept: Option<&Kept>) -> Result<(), SaveError> {
        self.keep_host_state(volume, kept.map(to_stored)).map_err(|error| {
            tracing::error!("the host state of volume {volume} can't be stored: {error}");
            save_error(&error)
        })
    }

    fn save_tokens(&self, unsaved: &UnsavedRods) -> Result<(), SaveError> {
        keep_tokens(self, unsaved).map_err(|error| {
            tracing::error!("ROD tokens can't be stored: {error}");
            save_error(&error)
        })
    }
}

fn save_error(error: &array::Error) -> SaveError {
    if error.kind() == ErrorKind::Full { SaveError::NoRoom } else { SaveError::Failed }
}
