//! The verbs of alerts.

use clap::Subcommand;

use crate::cli::listing::Listing;

/// `alert …`.
#[derive(Debug, Subcommand)]
pub enum AlertVerb {
    /// List the alerts that are not closed.
    List {
        /// Also closed alerts.
        #[arg(long)]
        all: bool,
        /// Only alerts of at least this severity: info, warning or critical.
        #[arg(long, value_parser = ["info", "warning", "critical"])]
        severity: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an alert, and what to do about it.
    Show {
        /// Its number.
        number: u64,
    },
    /// Close an alert. It stays closed as long as its condition lasts, unless its severity rises.
    Close {
        /// Its number.
        number: u64,
    },
    /// Send a test event to all recipients, of the configuration ([[notify]]) and of the pool.
    Test,
}
