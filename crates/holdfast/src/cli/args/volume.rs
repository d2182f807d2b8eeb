//! The verbs of volumes and snapshots.

use clap::{ArgGroup, Args, Subcommand};

use crate::cli::listing::Listing;
use crate::cli::offload::{self, Switch};
use crate::cli::size;

/// `volume …`.
#[derive(Debug, Subcommand)]
pub enum VolumeVerb {
    /// Create an empty volume.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _; in a volume group GROUP/NAME.
        name: String,
        /// A multiple of 4096 bytes, up to 64T.
        #[arg(long, value_parser = size::parse)]
        size: u64,
        /// The logical block size, in bytes: 512 (on 4 KiB), or 4096.
        #[arg(long, value_name = "512|4096", default_value_t = 512)]
        #[arg(value_parser = parse_block_size)]
        block_size: u64,
        #[command(flatten)]
        reduction: ReductionArgs,
        /// Hosts to connect it to; if one connection is refused, the volume is not created.
        #[arg(long = "host", num_args = 1.., value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<String>,
        /// Host groups to connect it to.
        #[arg(long = "host-group", num_args = 1.., value_delimiter = ',', value_name = "GROUP")]
        host_groups: Vec<String>,
    },
    /// List all volumes.
    List {
        /// Destroyed volumes, instead of the others.
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
    /// Change the size of a volume.
    Resize {
        /// The volume's name.
        name: String,
        /// The new size.
        #[arg(long, value_parser = size::parse)]
        size: u64,
        /// Allow a smaller size to cut off data, permanently.
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
    /// Show or set the limits of a volume.
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
    /// Show how much is stored for volumes, and how far it was reduced.
    Space {
        /// The volume's name. Default: all volumes.
        names: Vec<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Rename a volume.
    Rename {
        /// The volume's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Create a volume with the current content of a volume or a snapshot, instantly and without
    /// using space.
    Clone {
        /// The source: VOLUME, VOLUME.SUFFIX or GROUP.SUFFIX.VOLUME.
        source: String,
        /// The name of the new volume.
        name: String,
    },
    /// Restore a volume to one of its snapshots, in place.
    Restore {
        /// The volume's name.
        name: String,
        /// Its snapshot: VOLUME.SUFFIX or GROUP.SUFFIX.VOLUME.
        snapshot: String,
    },
    /// Replace the content of a volume by that of another volume or a snapshot.
    Overwrite {
        /// The volume's name.
        name: String,
        /// The source.
        #[arg(long, value_name = "VOLUME-OR-SNAPSHOT")]
        from: String,
    },
    /// Destroy a volume and its snapshots; they can be recovered for a time.
    Destroy {
        /// The volume's name.
        name: String,
        /// Also eradicate it: its data is permanently gone, and its space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Recover a destroyed volume, with the snapshots that were destroyed with it.
    Recover {
        /// The volume's name.
        name: String,
    },
    /// Eradicate a destroyed volume: its data is permanently gone, and its space is free.
    Eradicate {
        /// The volume's name.
        name: String,
    },
}

/// How data written to a volume from now on is reduced.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReductionArgs {
    /// Whether newly written blocks that are stored already are shared instead of stored again; on
    /// by default. Copies share stored data in any case.
    #[arg(long, value_name = "on|off", value_parser = parse_on_off)]
    pub deduplication: Option<bool>,
    /// Whether newly written data is compressed; on by default.
    #[arg(long, value_name = "on|off", value_parser = parse_on_off)]
    pub compression: Option<bool>,
}

pub(super) fn parse_on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

/// The value of REST 2.x for no limit.
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
    /// Take snapshots of volumes, or of a group, all at one point in time.
    #[command(group = ArgGroup::new("of").required(true))]
    Create {
        /// The volumes' names.
        #[arg(group = "of", value_name = "VOLUME")]
        volumes: Vec<String>,
        /// All volumes of this group.
        #[arg(long, group = "of")]
        group: Option<String>,
        /// The part of their names after the name of the volume or the group: A-Z a-z 0-9 -, not
        /// digits only. Default: a number.
        #[arg(long)]
        suffix: Option<String>,
    },
    /// List snapshots.
    List {
        /// Snapshots of this volume.
        volume: Option<String>,
        /// Snapshots that were taken with this group.
        #[arg(long)]
        group: Option<String>,
        /// Destroyed snapshots, instead of the others.
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
    /// Change the suffix of a snapshot.
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
        /// Also eradicate them: data that only they held is permanently gone.
        #[arg(long)]
        eradicate: bool,
    },
    /// Recover destroyed snapshots.
    Recover {
        /// The snapshots' names.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Eradicate destroyed snapshots: data that only they held is permanently gone.
    Eradicate {
        /// The snapshots' names.
        #[arg(required = true)]
        names: Vec<String>,
    },
}
