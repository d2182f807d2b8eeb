//! What scenarios measure: the data that the reports are made of.
//!
//! A [`Report`] is what one run of the lab found out about one array. It is JSON outside, so that
//! reports of two arrays, or of two days, can be compared later.

mod finite;
mod in_software;
mod machine;
mod progress;
mod store;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use in_software::InSoftware;
pub use machine::Machine;
pub use progress::Progress;
pub use store::{Assembled, Parameters, Store, StoreError};

/// All that one run found out about one array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was measured, on what.
    pub about: About,
    /// What was found, in the order of [`crate::figures::ALL`].
    pub scenarios: Vec<ScenarioOutcome>,
}

/// What was measured, on what. Numbers mean nothing without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Vendor, product and revision, from INQUIRY.
    pub array: String,
    /// What the user calls it: "Holdfast", "tgt".
    pub name: String,
    /// What a write that was answered is worth after a loss of power, in words.
    pub durability: String,
    /// Where the lab ran.
    pub machine: Machine,
    /// The version of the lab.
    pub lab_version: String,
    /// When the run began: RFC 3339, UTC.
    pub date: String,
    /// The papers' sizes are divided by it; 1 and up.
    pub scale: u64,
    /// The papers' numbers of machines are divided by it: 1, but for tests.
    #[serde(default = "one")]
    pub count_scale: u64,
    /// How long each load ran, in seconds; 0 in older reports, which do not contain it.
    #[serde(default)]
    pub load_seconds: f64,
    /// `address:port` of every portal that was used.
    pub portals: Vec<String>,
    /// How many hosts there were, each its own initiator.
    pub hosts: u32,
}

impl About {
    /// This moment, as [`About::date`] has it.
    pub fn now() -> String {
        let now = time::OffsetDateTime::now_utc();
        let seconds = now.replace_nanosecond(0).unwrap_or(now);
        // It fails only for years that RFC 3339 can't say.
        seconds.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
    }
}

fn one() -> u64 {
    1
}

/// A shorter time, in seconds, can't be measured: one delay by the scheduler is as long. A ratio to
/// such a time means nothing.
pub const LEAST_SECONDS: f64 = 0.001;

/// What one scenario found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioOutcome {
    /// Its id among the figures: "P-13".
    pub id: String,
    /// How it ended.
    pub status: Status,
    /// How long all of it took, preparation and verification too.
    pub seconds: f64,
    /// Bytes that were read back and compared.
    pub verified_bytes: u64,
    /// Datastores that were checked (`fsck`) when the scenario had done with them; all were sound
    /// where it is done.
    #[serde(default)]
    pub datastores_checked: u64,
    /// What hosts did themselves although it was to be offloaded, in all of the scenario: what was
    /// not measured too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_software: Vec<InSoftware>,
    /// What was measured, case by case.
    pub rows: Vec<Row>,
    /// The charts. If there are none, the seconds of the rows are drawn as bars.
    pub charts: Vec<Chart>,
    /// Whether the aims were reached.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know besides.
    pub notes: Vec<String>,
}

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    /// It ran, and what it wrote is right.
    Done,
    /// It did not: the array erred, or held wrong data.
    Failed {
        /// What went wrong.
        reason: String,
    },
    /// It was not run.
    Skipped {
        /// Why not.
        reason: String,
    },
}

/// One case of a scenario, without offload and with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// "16 VMs".
    pub case: String,
    /// The host does the work, by READ and WRITE (or with reservations for locks).
    pub off: Option<Measure>,
    /// The array does.
    pub on: Option<Measure>,
}

/// What one case cost. The papers have only the seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// From its first command to the last response.
    pub seconds: f64,
    /// TCP payload between hosts and array, both ways.
    pub wire_bytes: u64,
    /// Processor time of the hosts, user and system.
    pub host_cpu_s: f64,
    /// SCSI commands that were sent.
    pub commands: u64,
    /// What else was measured: IOPS, MB/s, p99, physical bytes. The most telling one first: the
    /// summary shows it where the papers' figure is not about seconds.
    pub values: Vec<Value>,
    /// What the hosts did themselves of it although it was to be offloaded: refused, or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_software: Vec<InSoftware>,
    /// Where it was done several times: how often, and how far apart those were. All else is of
    /// the one that took the middle time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// How far apart the times were of what was done several times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How often it was done.
    pub runs: u32,
    /// The least, in seconds.
    pub least_seconds: f64,
    /// The most.
    pub most_seconds: f64,
}

/// A quantity with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// "p99".
    pub name: String,
    /// "ms". "B" is shown with a prefix that fits.
    pub unit: String,
    /// How much.
    pub value: f64,
}

/// Something to be drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Bars in groups, one group a label.
    Bars {
        /// What is shown.
        title: String,
        /// Of the values.
        unit: String,
        /// The groups.
        labels: Vec<String>,
        /// The bars of each group.
        series: Vec<Series>,
    },
    /// Lines over something, mostly over time.
    Lines {
        /// What is shown.
        title: String,
        /// "s".
        x_unit: String,
        /// "IOPS".
        y_unit: String,
        /// The lines.
        lines: Vec<Line>,
    },
}

/// Bars of one kind. "off" and "on" have the same colours everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// "off".
    pub name: String,
    /// One for each label; `None` if nothing was measured.
    pub values: Vec<Option<f64>>,
}

/// A line. "off" and "on" have the same colours everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// "on".
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Whether an aim was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// "wire bytes, on against off".
    pub what: String,
    /// "under 0.1%".
    pub goal: String,
    /// "0.02%".
    pub measured: String,
    /// Whether it was.
    pub is_met: bool,
    /// Where it was not: why, as a profile shows.
    pub reason: Option<String>,
}
