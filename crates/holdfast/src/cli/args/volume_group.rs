//! The verbs of volume groups.

use clap::Subcommand;

use super::volume::{parse_bandwidth, parse_iops};
use crate::cli::listing::Listing;

/// `volume-group …`.
#[derive(Debug, Subcommand)]
pub enum VolumeGroupVerb {
    /// Create a volume group. It contains the volumes named GROUP/NAME.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
    },
    /// List all volume groups.
    List {
        /// Destroyed volume groups, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Rename a volume group, together with its volumes.
    Rename {
        /// The group's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Show or set the limits of all volumes of a group together.
    Limit {
        /// The group's name.
        name: String,
        /// Reads, writes and offloads a second, 100 to 100 million; `none` for no limit.
        #[arg(long, value_name = "COUNT|none", value_parser = parse_iops)]
        iops: Option<u64>,
        /// Bytes a second, 1M to 512G; `none` for no limit.
        #[arg(long, value_name = "SIZE|none", value_parser = parse_bandwidth)]
        bandwidth: Option<u64>,
    },
    /// Destroy a volume group and its volumes; they can be recovered for a time.
    Destroy {
        /// The group's name.
        name: String,
        /// Also eradicate it: its volumes are permanently gone, and their space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Recover a destroyed volume group, with its volumes.
    Recover {
        /// The group's name.
        name: String,
    },
    /// Eradicate a destroyed volume group: its volumes are permanently gone, their space is free.
    Eradicate {
        /// The group's name.
        name: String,
    },
}
