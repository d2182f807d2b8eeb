//! Events in a world, apart from what hosts do.

use block::VolumeLimits;

use crate::disk::Faults;
use crate::rng::Rng;

/// The frequency of events in a world, apart from what hosts do.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// In 10,000 steps, this many times the power fails.
    pub crashes: u64,
    /// … the process is killed.
    pub kills: u64,
    /// … something unrequested is done: a checkpoint, reclaim, a step of a pass.
    pub chores: u64,
    /// … a connection is cut, or stalls.
    pub cuts: u64,
    /// … requests of a front end to the disk stall.
    pub stalls: u64,
    /// … locations of the disk go bad, and others become good again.
    pub bad_places: u64,
    /// … the power fails at one of the next I/Os, or one of them fails.
    pub failures: u64,
    /// … a volume gets other limits.
    pub limits: u64,
    /// … the array leaves the pool to another one, in a planned switch.
    pub switches: u64,
}

/// What goes wrong with the disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trouble {
    /// Its permanent faults.
    pub faults: Faults,
    /// Of a hundred starts of the array, this many are ended by another power loss.
    pub starts_struck_percent: u64,
    /// When a write has failed permanently, the array continues for at most this many steps.
    pub broken_steps: u64,
}

/// Returns limits of a volume, or none.
pub(super) fn any_limits(rng: &mut Rng) -> VolumeLimits {
    let iops = rng.chance(60).then(|| 100 << rng.below(9));
    let bandwidth_bytes_per_s = rng.chance(40).then(|| 1 << rng.between(20, 25));
    VolumeLimits { bandwidth_bytes_per_s, iops }
}
