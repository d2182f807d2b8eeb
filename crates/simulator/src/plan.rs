//! The plan of a history, and its results.

use std::ops::AddAssign;

use format::geometry::SEGMENT_BYTES_MIN;
use store::{Durability, Tuning};

use crate::disk::Survival;
use crate::generate::{MIB, Mix, Shape};

/// How many successive recoveries a plan can strike.
pub const OPEN_FUSES: usize = 3;

/// How a pool gets the latest version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// It is created with it.
    Made,
    /// It has an earlier form until the opening with this number, from 0.
    AtOpening(u64),
    /// It has an earlier form until it is upgraded during use.
    WhileUsed,
}

/// The initial form of a pool that does not have the latest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It is of version 2.
    V2,
    /// It is of version 3, and has no features.
    V3,
    /// It is of version 3, and has leaves.
    V3Leaves,
}

/// The plan of a history, which determines everything that happens.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// When writes may be acknowledged.
    pub durability: Durability,
    /// The number of steps: each starts a request, does a device read, does a step of a commit, or
    /// is one of the rare ones.
    pub steps: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// The store's sizes.
    pub tuning: Tuning,
    /// Bytes of log that make a checkpoint due.
    pub checkpoint_log_bytes: u64,
    /// The initial size of the pool in bytes.
    pub pool_bytes: u64,
    /// The size up to which it grows, step by step.
    pub pool_bytes_max: u64,
    /// How many volumes.
    pub volumes: usize,
    /// The number of snapshots of each volume, in as many generations.
    pub generations: usize,
    /// Sectors of each volume.
    pub volume_sectors: u64,
    /// Memory of the store.
    pub memory_bytes: u64,
    /// The probability of each kind of request.
    pub mix: Mix,
    /// Whether the power also fails, and writes also fail, randomly and repeatedly.
    pub random_crashes: bool,
    /// The write or flush at which the power fails, counted from the first step.
    pub fuse: Option<u64>,
    /// And at which it fails again in the recoveries that follow, one for each.
    pub open_fuses: [Option<u64>; OPEN_FUSES],
    /// What survives; random if not given.
    pub survival: Option<Survival>,
    /// The seed only for what survives.
    pub survival_seed: u64,
    /// Steps of requests between two I/Os of a checkpoint or of background work.
    pub steps_beside: usize,
    /// Whether the process is also killed, so that the device keeps its cache until the power
    /// fails, and whether the device writes back some of that by itself.
    pub kills: bool,
    /// Whether a durable write of the device covers only itself (FUA), or there is no FUA, and a
    /// flush follows the write.
    pub fua: bool,
    /// The canary: flushes do nothing.
    pub lying_flush: bool,
    /// Whether locations of the device go bad, so that all writes fail there: this must have no
    /// visible effect.
    pub bad_places: bool,
    /// Whether the device refuses writes temporarily or does them in part, and whether flushes
    /// fail, and lose what they should have kept: this must have no visible effect.
    pub hindered: bool,
    /// Whether requests may be refused because the pool is full.
    pub may_be_full: bool,
    /// How it gets the latest version.
    pub upgrade: Upgrade,
    /// Its form before that.
    pub earlier: Earlier,
    /// Whether free segments are discarded: anything that is read there later is wrong.
    pub discard: bool,
    /// Whether a follower follows the pool while it is used, and takes over after crashes and
    /// kills.
    pub follows: bool,
    /// Whether every I/O and answer is recorded as a line.
    pub log: bool,
}

impl Plan {
    /// Returns a small history with everything in it.
    pub fn new(seed: u64, durability: Durability) -> Self {
        Self {
            seed,
            durability,
            steps: 300,
            segment_bytes: SEGMENT_BYTES_MIN,
            tuning: Tuning::DEFAULT,
            checkpoint_log_bytes: 512 << 20,
            pool_bytes: 256 << 20,
            pool_bytes_max: 512 << 20,
            volumes: 2,
            generations: 1,
            volume_sectors: 3 * MIB,
            memory_bytes: if seed.is_multiple_of(2) { 1 << 20 } else { 0 },
            mix: Mix {
                weights: [4, 8, 3, 1, 1, 2, 4, 1],
                write_sectors_max: 512,
                shape: Shape::Usual,
            },
            random_crashes: true,
            fuse: None,
            open_fuses: [None; OPEN_FUSES],
            survival: None,
            survival_seed: seed,
            steps_beside: 3,
            kills: false,
            fua: !seed.is_multiple_of(3),
            lying_flush: false,
            bad_places: seed % 2 == 1,
            hindered: (seed / 8).is_multiple_of(2),
            may_be_full: false,
            upgrade: match seed / 5 % 3 {
                0 => Upgrade::Made,
                1 => Upgrade::AtOpening(1 + seed / 15 % 4),
                _ => Upgrade::WhileUsed,
            },
            earlier: match seed / 3 % 3 {
                0 => Earlier::V2,
                1 => Earlier::V3,
                _ => Earlier::V3Leaves,
            },
            discard: (seed / 7).is_multiple_of(3),
            follows: false,
            log: false,
        }
    }

    /// Returns one with many small volumes, and several snapshots of each.
    pub fn many_volumes(seed: u64, durability: Durability) -> Self {
        Self { volumes: 8, generations: 3, volume_sectors: MIB / 2, ..Self::new(seed, durability) }
    }

    /// Returns one with a pool that becomes full, and grows a little: large volumes, large writes,
    /// unmaps.
    pub fn full_pool(seed: u64, durability: Durability) -> Self {
        Self {
            volume_sectors: 80 * MIB,
            steps: 900,
            pool_bytes_max: 320 << 20,
            mix: Mix {
                weights: [2, 20, 1, 0, 1, 1, 1, 1],
                write_sectors_max: 4 * MIB,
                shape: Shape::Usual,
            },
            may_be_full: true,
            ..Self::new(seed, durability)
        }
    }

    /// Returns one with segments of 64 KiB, nodes of four entries, small records, and checkpoints
    /// all the time: the log wraps around its pool, and every boundary is reached again and again.
    /// The seed selects one of four pools: with room, with many volumes, with a deep map, and full.
    pub fn small_segments(seed: u64, durability: Durability) -> Self {
        let usual = Self {
            segment_bytes: 64 << 10,
            tuning: Tuning::SMALL,
            checkpoint_log_bytes: 256 << 10,
            memory_bytes: if seed.is_multiple_of(3) { 256 << 10 } else { 0 },
            steps: 600,
            volume_sectors: MIB / 2,
            mix: Mix {
                weights: [3, 8, 2, 1, 1, 2, 6, 1],
                write_sectors_max: 64,
                shape: Shape::Small,
            },
            kills: true,
            ..Self::new(seed, durability)
        };
        let small = match seed / 2 % 4 {
            0 => usual,
            1 => Self { volumes: 5, generations: 2, volume_sectors: MIB / 8, ..usual },
            2 => Self {
                volumes: 1,
                generations: 2,
                volume_sectors: 8 * MIB,
                may_be_full: true,
                ..usual
            },
            _ => Self { volume_sectors: 2 * MIB, may_be_full: true, ..usual },
        };
        let segments = if seed / 2 % 4 == 3 { 48 } else { 112 };
        let pool_bytes = SEGMENT_BYTES_MIN + segments * small.segment_bytes;
        Self { pool_bytes, pool_bytes_max: pool_bytes + 16 * small.segment_bytes, ..small }
    }

    /// Returns the plan of a seed alone: every eighth is longer, for faults that need time, every
    /// fourth has many volumes, and one in 64 fills its pool.
    pub fn of_seed(seed: u64, durability: Durability) -> Self {
        match seed % 64 {
            kind if kind % 8 == 0 => Self { steps: 1500, ..Self::new(seed, durability) },
            kind if kind % 4 == 3 => Self::many_volumes(seed, durability),
            50 => Self::full_pool(seed, durability),
            _ => Self::new(seed, durability),
        }
    }
}

/// The results of a history without an error, or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A hash of every I/O and every answer.
    pub trace: u64,
    /// Completed requests.
    pub answers: u64,
    /// Of them, how many because the pool was full.
    pub refused_full: u64,
    /// Administrative changes that were made: volumes, snapshots, sizes, handling.
    pub changes: u64,
    /// Snapshots and clones that were taken with requests to their sources in flight.
    pub taken_busy: u64,
    /// How often the pool grew.
    pub growths: u64,
    /// How often a pool was upgraded to the latest version.
    pub upgrades: u64,
    /// Completed checkpoints.
    pub checkpoints: u64,
    /// Turns of reclaim, of the background pass, of scrubbing and of freeing.
    pub turns: u64,
    /// Reads of the device since the first step.
    pub read_count: u64,
    /// Writes and flushes since the first step.
    pub io_count: u64,
    /// Crashes.
    pub crashes: u64,
    /// How often the process was killed.
    pub kills: u64,
    /// Crashes during a recovery from another one.
    pub recovery_crashes: u64,
    /// Writes and flushes that failed by themselves.
    pub write_errors: u64,
    /// Writes that failed at bad locations, and went elsewhere.
    pub refused_writes: u64,
    /// Writes that were refused temporarily, or done in part.
    pub hindered_writes: u64,
    /// Flushes that failed.
    pub failed_flushes: u64,
    /// How often everything was checked and read, and compared with the model.
    pub checks: u64,
    /// Records that a follower applied while the pool was used.
    pub followed: u64,
    /// How often its state was taken over; and how often it could not be used.
    pub takeovers: [u64; 2],
}

impl Summary {
    /// Returns the number of all requests to the store that were done or refused.
    pub fn operations(&self) -> u64 {
        self.answers + self.changes + self.growths + self.checkpoints + self.turns
    }
}

impl AddAssign<&Summary> for Summary {
    fn add_assign(&mut self, other: &Summary) {
        self.trace = crate::rng::mix(self.trace ^ other.trace);
        self.answers += other.answers;
        self.refused_full += other.refused_full;
        self.changes += other.changes;
        self.taken_busy += other.taken_busy;
        self.growths += other.growths;
        self.upgrades += other.upgrades;
        self.checkpoints += other.checkpoints;
        self.turns += other.turns;
        self.read_count += other.read_count;
        self.io_count += other.io_count;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.recovery_crashes += other.recovery_crashes;
        self.write_errors += other.write_errors;
        self.refused_writes += other.refused_writes;
        self.hindered_writes += other.hindered_writes;
        self.failed_flushes += other.failed_flushes;
        self.checks += other.checks;
        self.followed += other.followed;
        self.takeovers.iter_mut().zip(other.takeovers).for_each(|(sum, more)| *sum += more);
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, changes, refused_full, taken_busy, growths, upgrades, .. } = self;
        let Self { checkpoints, turns, read_count, io_count, crashes, .. } = self;
        let Self { recovery_crashes, kills, write_errors, .. } = self;
        let Self { refused_writes, hindered_writes, failed_flushes, checks, trace, .. } = self;
        let Self { followed, takeovers: [taken, useless], .. } = self;
        let operations = self.operations();
        writeln!(
            f,
            "{operations} operations: {answers} requests ({refused_full} refused by a full pool), \
             {changes} changes ({taken_busy} of volumes in use), {growths} growths, \
             {upgrades} upgrades, {checkpoints} checkpoints, {turns} turns of background work"
        )?;
        writeln!(
            f,
            "{crashes} crashes ({recovery_crashes} of them in recovery), {kills} kills, \
             {write_errors} write errors, {refused_writes} writes at bad places, \
             {hindered_writes} writes hindered, {failed_flushes} failed flushes, \
             {checks} checks against the model"
        )?;
        writeln!(
            f,
            "{followed} records followed, {taken} takeovers from there, {useless} from a checkpoint"
        )?;
        write!(f, "{io_count} writes and flushes, {read_count} reads, trace {trace:016x}")
    }
}

/// What was wrong.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, step {step}: {reason}")]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The step after which it was found.
    pub step: u64,
    /// What.
    pub reason: String,
    /// Every I/O, request and answer, if the plan records them.
    pub log: Vec<String>,
}
