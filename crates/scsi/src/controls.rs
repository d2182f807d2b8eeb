//! The settings of a logical unit that MODE SELECT can change, for all nexuses (VPD 87h): the
//! format of sense data, and software write protection. They last until a reset of the unit,
//! because nothing is saved.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::VolumeId;
use parking_lot::RwLock;

/// The changeable bits of the control mode page (SPC-4, 7.5.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Controls {
    /// D_SENSE: sense data returned with a status has descriptor format, otherwise fixed format.
    pub descriptor_sense: bool,
    /// SWP: writes are refused with 07h/27h/02h.
    pub write_protected: bool,
}

/// The controls of all volumes.
#[derive(Debug, Default)]
pub(crate) struct ControlTable {
    /// The number of volumes that differ from the default, so that most commands take no lock.
    changed: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, Controls>>,
}

impl ControlTable {
    /// Returns the controls of a volume.
    #[inline]
    pub(crate) fn of(&self, volume: VolumeId) -> Controls {
        if self.changed.load(Ordering::Acquire) == 0 {
            return Controls::default();
        }
        self.volumes.read().get(&volume).copied().unwrap_or_default()
    }

    /// Sets the controls of a volume. Returns whether they have changed.
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
