//! The verbs of the lab's reports.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::listing::Listing;

/// `lab …`.
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List the reports that are kept.
    List(Listing),
    /// Show a report: what was measured, beside what papers publish.
    Show {
        /// The report's name.
        name: String,
    },
    /// Keep a report, in place of one with the same name. There can be 32.
    Keep {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// What `holdfast-lab run --json FILE` or `holdfast-lab report --json FILE` wrote.
        file: PathBuf,
    },
    /// Delete a report.
    Delete {
        /// The report's name.
        name: String,
    },
}
