//! Destroyed volumes and snapshots, and when they are eradicated.

use block::VolumeId;

use super::State;
use crate::error::Error;
use crate::objects::time::BEGUN_MS;
use crate::objects::volumes::VolumeRecord;

impl State {
    pub(crate) fn doom(&self, now_ms: u64) -> Option<u64> {
        let now_ms = self.time.beginning(now_ms);
        Some(now_ms.saturating_add(self.settings.eradication_delay_s * 1000).max(BEGUN_MS + 1))
    }

    /// Returns a volume that is destroyed.
    pub(crate) fn doomed_volume(&self, name: &str) -> Result<&VolumeRecord, Error> {
        let record = &self.any_volume(name)?.record;
        let object = || format!("Volume {}", record.name);
        record.eradicate_ms.map(|_| record).ok_or_else(|| Error::NotDestroyed(object()))
    }

    /// Returns a snapshot that is destroyed, by itself or with its volume.
    pub(crate) fn doomed_snapshot(&self, name: &str) -> Result<VolumeId, Error> {
        let (id, ..) = self.any_snapshot(name)?;
        match self.snapshot(name) {
            Ok(_) => Err(Error::NotDestroyed(format!("Snapshot {name}"))),
            Err(_) => Ok(id),
        }
    }

    /// Returns the names, for the audit log, of the due objects whose eradication has not begun.
    pub(crate) fn names_of_due(&self, due: &[(u64, VolumeId)]) -> Vec<String> {
        let new = due.iter().filter(|(when, _)| *when > BEGUN_MS);
        let name = |id: &VolumeId| match self.snapshots.get(id) {
            Some(snapshot) if snapshot.retained => None,
            Some(snapshot) => {
                Some(self.snapshot_name(snapshot, self.volumes.get(&snapshot.source)?))
            }
            None => Some(self.volumes.get(id)?.record.name.to_string()),
        };
        new.filter_map(|(_, id)| name(id)).collect()
    }

    /// Returns the eradication time of an object as a time of the wall clock, in milliseconds since
    /// 1970.
    pub(crate) fn shown_doom(&self, eradicate_ms: Option<u64>) -> Option<u64> {
        eradicate_ms.map(|due| if due == BEGUN_MS { due } else { self.time.shown(due) })
    }
}
