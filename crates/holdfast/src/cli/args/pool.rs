//! The verbs of pools.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::size;

/// `pool …`.
#[derive(Debug, Subcommand)]
pub enum PoolVerb {
    /// Make a pool in a directory (a file `pool.data`), or on a block device; or on several of
    /// them. Two or three each have all of it. From four on it is in stripes, and any two may be
    /// lost.
    Create {
        /// The directory or the block device; up to 48.
        #[arg(value_name = "DIR-OR-DEVICE", required = true)]
        places: Vec<PathBuf>,
        /// How much it holds, at least 1G; a file of this size is reserved, or in stripes files
        /// that hold it together. Default: a quarter of the free space, 64G at most; of a device
        /// all of it; of two or three as much of each as the smallest has.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: Option<u64>,
        /// To try out what several devices are: make so many files in the one directory. They share
        /// a disk, and end with it.
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=48))]
        devices: Option<u16>,
        /// Of five and more: keep room free to make what so many lost devices had again on the
        /// others, without a new one.
        #[arg(long, value_name = "COUNT", default_value_t = 0)]
        spares: u16,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Make the pool of a running array bigger, while hosts use it; or, where one is named, a pool
    /// that nobody uses.
    Grow {
        /// A directory or block device with a pool that nobody uses, such as one that is too full
        /// to be started; of a pool on several, all of them. Not given: that of the running array.
        #[arg(value_name = "PLACE")]
        places: Vec<PathBuf>,
        /// What it shall hold, as when it was made. A file is made longer, and its space reserved;
        /// a device must be that long.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: u64,
    },
    /// Make the running array's pool one of the latest format; earlier programs refuse it then.
    Upgrade,
    /// Read every durable byte in the background, and compare it with its checksum.
    Scrub {
        /// What to do.
        #[arg(value_enum)]
        verb: PassVerb,
    },
    /// Find what is stored twice, and pack better what was compressed quickly, in the background.
    Optimize {
        /// What to do.
        #[arg(value_enum, default_value_t = PassVerb::Start)]
        verb: PassVerb,
        /// Wait for the end of the pass that is started.
        #[arg(long)]
        wait: bool,
    },
    /// Show for whom the pool's bytes are stored: what is unique to volumes, shared, of snapshots.
    Space {
        /// Make new figures first.
        #[arg(long)]
        refresh: bool,
    },
    /// List what scrubbing has found damaged, and which blocks of which volumes that are.
    Damage,
}

/// `pool scrub …` and `pool optimize …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PassVerb {
    /// Begin a pass.
    Start,
    /// End the pass that is under way.
    Stop,
    /// Show how far it is.
    Status,
}
