//! Blocking work of the array, apart from its front ends.

use std::sync::Arc;

use array::{Array, LimitsChange, VolumeUpdate};
use block::VolumeLimits;
use store::Store;

use crate::disk::SimDisk;

/// The maximum number of blocks that a scrubbing pass reads in a step.
const SCRUB_BLOCKS: u64 = 64;

/// Blocking work that a thread does in parallel with the front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Due maintenance of the store.
    Maintain,
    /// Saving state that hosts have set.
    Save,
    /// A checkpoint.
    Checkpoint,
    /// A step of reclaim.
    Reclaim,
    /// A step of scrubbing.
    Scrub,
    /// A step of the background pass of reduction.
    Optimize,
    /// Ending expired tokens.
    Sweep,
    /// Changing the limits of a volume, counted from 0.
    Limit(usize, VolumeLimits),
}

/// Does chores, apart from the front ends.
pub struct Chores {
    pub(super) disk: Arc<SimDisk>,
    pub(super) store: Arc<Store>,
    pub(super) array: Arc<Array>,
    pub(super) shared: Arc<front::Shared>,
}

/// Returns the name of a volume, counted from 0.
pub(super) fn volume_name(number: usize) -> String {
    format!("volume-{number}")
}

impl Chores {
    /// Does a chore. A failure because the disk has failed is no error.
    ///
    /// # Errors
    /// What went wrong, if the disk has not failed.
    pub fn run(&self, chore: Chore, now_s: u64) -> Result<(), String> {
        let done = match chore {
            Chore::Maintain => self.store.maintain().map(drop),
            Chore::Checkpoint => self.store.checkpoint().map(drop),
            Chore::Reclaim => self.store.reclaim_segment().map(drop),
            Chore::Optimize => {
                self.store.optimize();
                self.store.optimize_step().map(drop)
            }
            Chore::Scrub => {
                self.store.scrub_start(now_s);
                self.store.scrub_step(SCRUB_BLOCKS, now_s).map(drop)
            }
            Chore::Save => {
                while self.shared.save_next(&*self.array) {}
                Ok(())
            }
            Chore::Sweep => {
                self.shared.sweep_tokens();
                Ok(())
            }
            Chore::Limit(volume, limits) => return self.limit(volume, limits),
        };
        match done {
            Err(error) if !self.disk.has_failed() => Err(format!("{chore:?}: {error}")),
            _ => Ok(()),
        }
    }

    fn limit(&self, volume: usize, limits: VolumeLimits) -> Result<(), String> {
        let VolumeLimits { bandwidth_bytes_per_s, iops } = limits;
        let limits =
            LimitsChange { bandwidth_bytes_per_s: Some(bandwidth_bytes_per_s), iops: Some(iops) };
        let update = VolumeUpdate { limits, ..VolumeUpdate::default() };
        match self.array.update_volume(&volume_name(volume), update) {
            Err(error) if !self.disk.has_failed() => Err(format!("limits: {error}")),
            _ => Ok(()),
        }
    }
}
