//! What the front end asks of the array: what hosts see of it, and where it keeps what it knows of
//! them.

use std::sync::Arc;

use array::{Array, Kind as ErrorKind};
use block::{LunMap, VolumeId, VolumeLimits};
use target::{Kept, KeptState, SaveError, Start, UnsavedRods};

use super::kept::{LoadError, TargetRecords, all_kept, keep_tokens, to_stored};
use super::throttle::Limited;

/// Which volumes an initiator may reach: asked once a session, and again after each change.
pub trait LunMaps: Send + Sync {
    /// What the initiator with this iSCSI name sees; an empty map for a stranger.
    fn lun_map(&self, initiator_name: &str) -> Arc<LunMap>;

    /// Goes up, after the change is visible, with every change of any map or of a volume in one.
    /// Called for each command: must be cheap.
    fn generation(&self) -> u64;

    /// How much hosts may do with a volume, or with all volumes of a group: no limits if it does
    /// not exist.
    fn limits(&self, of: Limited) -> VolumeLimits;

    /// Which volumes are gone for ever since the last call, whoever eradicated them. Cheap.
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
    /// Each start is a power on, but for a takeover from another controller.
    fn load(&self) -> Result<(Start, KeptState), LoadError> {
        let begun = self.begin_incarnation();
        let takes_over = begun.map_err(|error| LoadError::Start(error.to_string()))?;
        let start = if takes_over { Start::Takeover } else { Start::PowerOn };
        Ok((start, all_kept(self)?))
    }

    fn save(&self, volume: VolumeId, kept: Option<&Kept>) -> Result<(), SaveError> {
        self.keep_host_state(volume, kept.map(to_stored)).map_err(|error| {
            tracing::error!("what hosts have set on volume {volume} can't be kept: {error}");
            save_error(&error)
        })
    }

    fn save_tokens(&self, unsaved: &UnsavedRods) -> Result<(), SaveError> {
        keep_tokens(self, unsaved).map_err(|error| {
            tracing::error!("ROD tokens can't be kept: {error}");
            save_error(&error)
        })
    }
}

fn save_error(error: &array::Error) -> SaveError {
    if error.kind() == ErrorKind::Full { SaveError::NoRoom } else { SaveError::Failed }
}
