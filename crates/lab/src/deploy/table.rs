//! The table at the end of the demonstration.

use std::fmt;

use serde::Serialize;

use super::Way;
use super::paths::Paths;

/// One deployment.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Who made the copies.
    pub way: Way,
    /// The number of copies.
    pub copies: u64,
    /// Seconds for copying.
    pub seconds: f64,
    /// TCP payload between host and array, both ways, while copying.
    pub wire_bytes: u64,
    /// SCSI commands for copying.
    pub commands: u64,
    /// Growth of the stored data, as the array reports it.
    pub data_bytes: i64,
    /// Growth of the allocated segments: data, metadata and the log.
    pub allocated_bytes: i64,
    /// Seconds for reading back and comparing every copy.
    pub verify_seconds: f64,
}

/// All deployments.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Bytes of one EXTENDED COPY.
    pub transfer_bytes: u64,
    /// The deployments.
    pub rows: Vec<Row>,
    /// The longest time without a response to a command of the host, while it filled the template,
    /// deployed, and verified each deployment.
    pub gap_seconds: f64,
    /// Bytes that were compared once more at the end, including the template's; 0 if that was not
    /// requested.
    pub verified_again_bytes: u64,
    /// What happened to paths meanwhile; none if that was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
}

fn mib(bytes: f64) -> String {
    let mib = bytes / f64::from(1 << 20);
    if mib.abs() < 100.0 { format!("{mib:.2}") } else { format!("{mib:.0}") }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| {:<27} | copies | {:>8} | {:>12} | {:>8} | {:>12} | {:>13} | verified |",
            "way", "seconds", "wire MiB", "commands", "data MiB", "allocated MiB"
        )?;
        writeln!(
            f,
            "|{}|-------:|{}:|{}:|{}:|{}:|{}:|---------:|",
            "-".repeat(29),
            "-".repeat(9),
            "-".repeat(13),
            "-".repeat(9),
            "-".repeat(13),
            "-".repeat(14)
        )?;
        for row in &self.rows {
            let way = match row.way {
                Way::Off => "off: host reads and writes",
                Way::On => "on: EXTENDED COPY",
            };
            writeln!(
                f,
                "| {way:<27} | {:>6} | {:>8.3} | {:>12} | {:>8} | {:>12} | {:>13} | {:>6.1} s |",
                row.copies,
                row.seconds,
                mib(row.wire_bytes as f64),
                row.commands,
                mib(row.data_bytes as f64),
                mib(row.allocated_bytes as f64),
                row.verify_seconds
            )?;
        }
        writeln!(f, "The longest time without a response was {:.3} s.", self.gap_seconds)?;
        if self.verified_again_bytes > 0 {
            let bytes = self.verified_again_bytes;
            writeln!(f, "{bytes} bytes were compared once more at the end, without a difference.")?;
        }
        match &self.paths {
            Some(paths) => write!(f, "\n{paths}"),
            None => Ok(()),
        }
    }
}
