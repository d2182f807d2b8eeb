//! The verbs of pools.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::size;

/// `pool …`.
#[derive(Debug, Subcommand)]
pub enum PoolVerb {
    /// Create a pool in a directory (a file `pool.data`), or on a block device; or on several of
    /// them. Two or three devices each hold the whole pool. From four on it is striped, and any two
    /// may fail.
    Create {
        /// The directory or the block device; up to 48.
        #[arg(value_name = "DIR-OR-DEVICE", required = true)]
        places: Vec<PathBuf>,
        /// The usable capacity, at least 1G. In a directory, a file of this size is preallocated;
        /// in a striped pool, files that have it together. Default: a quarter of the free space,
        /// 64G at most; on a device, all of it; on two or three devices, the size of the smallest.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: Option<u64>,
        /// To try out several devices: create this number of files in the one directory. They share
        /// a disk, and are lost with it.
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=48))]
        devices: Option<u16>,
        /// With five or more devices: keep enough space free to rebuild this number of lost
        /// devices on the others, without new ones.
        #[arg(long, value_name = "COUNT", default_value_t = 0)]
        spares: u16,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Enlarge the pool of a running array, while hosts use it; or, if one is named, a pool that is
    /// not in use.
    Grow {
        /// A directory or block device with a pool that is not in use, such as one that is too full
        /// to start; for a pool on several, all of them. Default: the pool of the running array.
        #[arg(value_name = "PLACE")]
        places: Vec<PathBuf>,
        /// The new capacity, as in `create`. A file is extended, and its space preallocated; a
        /// device must be that long.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: u64,
    },
    /// Upgrade the running array's pool to the latest format; earlier programs then refuse it.
    Upgrade,
    /// Read every durable byte in the background, and verify its checksum.
    Scrub {
        /// What to do.
        #[arg(value_enum)]
        verb: PassVerb,
    },
    /// Find duplicates, and recompress data that was compressed quickly, in the background.
    Optimize {
        /// What to do.
        #[arg(value_enum, default_value_t = PassVerb::Start)]
        verb: PassVerb,
        /// Wait until the started pass has ended.
        #[arg(long)]
        wait: bool,
    },
    /// Show what the pool's space is used for: unique data of volumes, shared data, snapshots.
    Space {
        /// Compute new figures first.
        #[arg(long)]
        refresh: bool,
    },
    /// List the damage that scrubbing has found, and the affected blocks of volumes.
    Damage,
}

/// `pool scrub …` and `pool optimize …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PassVerb {
    /// Start a pass.
    Start,
    /// Stop the current pass.
    Stop,
    /// Show the progress.
    Status,
}
