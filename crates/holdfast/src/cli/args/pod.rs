//! The verbs of pods.

use clap::Subcommand;

use crate::cli::listing::Listing;

/// `pod …`.
#[derive(Debug, Subcommand)]
pub enum PodVerb {
    /// Create a pod. It contains the volumes named POD::NAME.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
    },
    /// List all pods.
    List {
        /// Destroyed pods, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Rename a pod, together with its volumes.
    Rename {
        /// The pod's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Destroy a pod; it can be recovered for a time.
    Destroy {
        /// The pod's name.
        name: String,
        /// Also destroy its volumes; without this option, a pod with volumes is refused.
        #[arg(long)]
        with_volumes: bool,
        /// Also eradicate it: its volumes are permanently gone, and their space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Recover a destroyed pod, with the volumes that were destroyed with it.
    Recover {
        /// The pod's name.
        name: String,
    },
    /// Eradicate a destroyed pod.
    Eradicate {
        /// The pod's name.
        name: String,
        /// Also eradicate its volumes: they are permanently gone, and their space is free.
        #[arg(long)]
        with_volumes: bool,
    },
}
