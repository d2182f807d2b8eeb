//! The verbs of pods.

use clap::Subcommand;

use crate::cli::listing::Listing;

/// `pod …`.
#[derive(Debug, Subcommand)]
pub enum PodVerb {
    /// Make a pod. Volumes are in it that are called POD::NAME.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
    },
    /// List all pods.
    List {
        /// Those that are destroyed, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Give a pod another name, and its volumes with it.
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
        /// Its volumes as well; without it, a pod with volumes is refused.
        #[arg(long)]
        with_volumes: bool,
        /// Eradicate it as well: its volumes are gone for ever, their space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Bring a destroyed pod back, with the volumes that were destroyed with it.
    Recover {
        /// The pod's name.
        name: String,
    },
    /// Eradicate a destroyed pod.
    Eradicate {
        /// The pod's name.
        name: String,
        /// Its volumes as well: they are gone for ever, their space is free.
        #[arg(long)]
        with_volumes: bool,
    },
}
