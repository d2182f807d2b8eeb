//! What MODE SELECT can change of a logical unit, for all nexuses (VPD 87h): the format of sense
//! data, and software write protection. Until a reset of the unit, as nothing is saved.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::VolumeId;
use parking_lot::RwLock;

/// The changeable bits of the control mode page (SPC-4, 7.5.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controls {
    /// D_SENSE: sense data that goes with a status has the descriptor format, else the fixed one.
    pub descriptor_sense: bool,
    /// SWP: nothing is written; 07h/27h/02h.
    pub write_protected: bool,
}

/// The controls of all volumes.
#[derive(Debug, Default)]
pub(crate) struct ControlTable {
    /// How many volumes differ from the default, so that the usual command takes no lock.
    changed: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, Controls>>,
}

impl ControlTable {
    /// Those of a volume.
    #[inline]
    pub(crate) fn of(&self, volume: VolumeId) -> Controls {
        if self.changed.load(Ordering::Acquire) == 0 {
            return Controls::default();
        }
        self.volumes.read().get(&volume).copied().unwrap_or_default()
    }

    /// Sets those of a volume; whether they were different.
    pub(crate) fn set(&self, volume: VolumeId, controls: Controls) -> bool {
        let mut volumes = self.volumes.write();
        let before = if controls == Controls::default() {
            volumes.remove(&volume)
        } else {
            volumes.insert(volume, controls)
        };
        self.changed.store(volumes.len(), Ordering::Release);
        before.unwrap_or_default() != controls
    }
}
