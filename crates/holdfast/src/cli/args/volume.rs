//! The verbs of volumes and snapshots.

use clap::{ArgGroup, Args, Subcommand};

use crate::cli::listing::Listing;
use crate::cli::offload::{self, Switch};
use crate::cli::size;

/// `volume …`.
#[derive(Debug, Subcommand)]
pub enum VolumeVerb {
    /// Make an empty volume.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _; in a volume group GROUP/NAME.
        name: String,
        /// A multiple of 4096 bytes, up to 64T.
        #[arg(long, value_parser = size::parse)]
        size: u64,
        /// The logical block, in bytes: 512 (on 4 KiB), or 4096.
        #[arg(long, value_name = "512|4096", default_value_t = 512)]
        #[arg(value_parser = parse_block_size)]
        block_size: u64,
        #[command(flatten)]
        reduction: ReductionArgs,
        /// Hosts that see it from the start; if one can't, it is not made.
        #[arg(long = "host", num_args = 1.., value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<String>,
        /// Host groups, likewise.
        #[arg(long = "host-group", num_args = 1.., value_delimiter = ',', value_name = "GROUP")]
        host_groups: Vec<String>,
    },
    /// List all volumes.
    List {
        /// Those that are destroyed, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a volume and its connections.
    Show {
        /// The volume's name.
        name: String,
    },
    /// Give a volume a new size.
    Resize {
        /// The volume's name.
        name: String,
        /// The new size.
        #[arg(long, value_parser = size::parse)]
        size: u64,
        /// Let a smaller size cut data off, for ever.
        #[arg(long)]
        truncate: bool,
    },
    /// Change a volume's settings.
    #[command(group = ArgGroup::new("what").required(true).multiple(true)
        .args(["offload", "deduplication", "compression"]))]
    Set {
        /// The volume's name.
        name: String,
        /// Switch offloads: ats, full-copy, block-zero, reclaim, odx or all, `=on` or `=off`.
        #[arg(long, value_delimiter = ',', value_name = "OFFLOAD=on|off[,…]")]
        #[arg(value_parser = offload::parse)]
        offload: Vec<Switch>,
        #[command(flatten)]
        reduction: ReductionArgs,
    },
    /// Show or set how much hosts may do with a volume.
    Limit {
        /// The volume's name.
        name: String,
        /// Reads, writes and offloads a second, 100 to 100 million; `none` for no limit.
        #[arg(long, value_name = "COUNT|none", value_parser = parse_iops)]
        iops: Option<u64>,
        /// Bytes a second, 1M to 512G; `none` for no limit.
        #[arg(long, value_name = "SIZE|none", value_parser = parse_bandwidth)]
        bandwidth: Option<u64>,
    },
    /// Show what is stored for volumes, and how far it was reduced.
    Space {
        /// The volume's name. Default: all volumes.
        names: Vec<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Give a volume a new name.
    Rename {
        /// The volume's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Make a volume of what a volume or a snapshot holds now. Takes no time and no space.
    Clone {
        /// The source: VOLUME, VOLUME.SUFFIX or GROUP.SUFFIX.VOLUME.
        source: String,
        /// The new one's name.
        name: String,
    },
    /// Make a volume what one of its snapshots is, in place.
    Restore {
        /// The volume's name.
        name: String,
        /// Its snapshot: VOLUME.SUFFIX or GROUP.SUFFIX.VOLUME.
        snapshot: String,
    },
    /// Make a volume what another volume or a snapshot is. What it held is gone.
    Overwrite {
        /// The volume's name.
        name: String,
        /// What it becomes.
        #[arg(long, value_name = "VOLUME-OR-SNAPSHOT")]
        from: String,
    },
    /// Destroy a volume and its snapshots; they can be recovered for a time.
    Destroy {
        /// The volume's name.
        name: String,
        /// Eradicate it as well: its data is gone for ever, its space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Bring a destroyed volume back, with the snapshots that went with it.
    Recover {
        /// The volume's name.
        name: String,
    },
    /// Eradicate a destroyed volume: its data is gone for ever, its space is free.
    Eradicate {
        /// The volume's name.
        name: String,
    },
}

/// What reduction does with what is written to a volume from now on.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReductionArgs {
    /// Whether blocks that are stored already are named, not stored again, when they are written
    /// from now on; on by default. Copies share what is stored in any case.
    #[arg(long, value_name = "on|off", value_parser = parse_on_off)]
    pub deduplication: Option<bool>,
    /// Whether what is written from now on is compressed; on by default.
    #[arg(long, value_name = "on|off", value_parser = parse_on_off)]
    pub compression: Option<bool>,
}

pub(super) fn parse_on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is on or off".into()),
    }
}

/// The limit that REST 2.x takes for none.
pub(super) fn parse_iops(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(*array::limits::IOPS_LIMIT.end());
    }
    text.parse().map_err(|_| "a limit is a number of commands a second, or none".to_owned())
}

pub(super) fn parse_bandwidth(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(*array::limits::BANDWIDTH_LIMIT.end());
    }
    size::parse(text)
}

fn parse_block_size(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes @ (512 | 4096) => Ok(bytes),
        _ => Err("a logical block has 512 or 4096 bytes".into()),
    }
}

/// `snapshot …`.
#[derive(Debug, Subcommand)]
pub enum SnapshotVerb {
    /// Make snapshots of volumes, or of a group, all of one moment.
    #[command(group = ArgGroup::new("of").required(true))]
    Create {
        /// The volumes' names.
        #[arg(group = "of", value_name = "VOLUME")]
        volumes: Vec<String>,
        /// Of all volumes of this group.
        #[arg(long, group = "of")]
        group: Option<String>,
        /// What they are called behind the name of the volume or the group: A-Z a-z 0-9 -, not
        /// digits only. Default: a number.
        #[arg(long)]
        suffix: Option<String>,
    },
    /// List snapshots.
    List {
        /// Those of this volume.
        volume: Option<String>,
        /// Those that were made with this group.
        #[arg(long)]
        group: Option<String>,
        /// Those that are destroyed, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a snapshot.
    Show {
        /// The snapshot: VOLUME.SUFFIX or GROUP.SUFFIX.VOLUME.
        name: String,
    },
    /// Give a snapshot another suffix.
    Rename {
        /// The snapshot: VOLUME.SUFFIX.
        name: String,
        /// The new suffix.
        suffix: String,
    },
    /// Destroy snapshots; they can be recovered for a time.
    Destroy {
        /// The snapshots' names.
        #[arg(required = true)]
        names: Vec<String>,
        /// Eradicate them as well: what only they held is gone for ever.
        #[arg(long)]
        eradicate: bool,
    },
    /// Bring destroyed snapshots back.
    Recover {
        /// The snapshots' names.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Eradicate destroyed snapshots: what only they held is gone for ever.
    Eradicate {
        /// The snapshots' names.
        #[arg(required = true)]
        names: Vec<String>,
    },
}
