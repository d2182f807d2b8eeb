//! The verbs of alerts.

use clap::Subcommand;

use crate::cli::listing::Listing;

/// `alert …`.
#[derive(Debug, Subcommand)]
pub enum AlertVerb {
    /// List the alerts that are not closed.
    List {
        /// Closed ones, too.
        #[arg(long)]
        all: bool,
        /// Only those that are at least as grave: info, warning or critical.
        #[arg(long)]
        severity: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an alert, and what to do about it.
    Show {
        /// Its number.
        number: u64,
    },
    /// Close an alert. It stays closed as long as its condition goes on, unless that becomes
    /// graver.
    Close {
        /// Its number.
        number: u64,
    },
    /// Send a test event to all who are told: in the configuration ([[notify]]) and in the pool.
    Test,
}
