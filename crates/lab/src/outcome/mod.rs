//! What scenarios measure: the data of the reports.
//!
//! A [`Report`] is what one run of the lab found out about one array. It is stored as JSON, so that
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

/// Everything that one run found out about one array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What was measured, and how.
    pub about: About,
    /// The results, in the order of [`crate::figures::ALL`].
    pub scenarios: Vec<ScenarioOutcome>,
}

/// What was measured, and how. Numbers are meaningless without it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Vendor, product and revision, from INQUIRY.
    pub array: String,
    /// The user's name for it: "Holdfast", "tgt".
    pub name: String,
    /// What an acknowledged write is worth after a power loss, in words.
    pub durability: String,
    /// The machine of the lab.
    pub machine: Machine,
    /// The version of the lab.
    pub lab_version: String,
    /// When the run began: RFC 3339, UTC.
    pub date: String,
    /// The divisor of the papers' sizes; 1 and up.
    pub scale: u64,
    /// The divisor of the papers' numbers of machines: 1, except in tests.
    #[serde(default = "one")]
    pub count_scale: u64,
    /// How long each load ran, in seconds; 0 in older reports, which do not contain it.
    #[serde(default)]
    pub load_seconds: f64,
    /// `address:port` of every portal that was used.
    pub portals: Vec<String>,
    /// The number of hosts, each with its own initiator name.
    pub hosts: u32,
}

impl About {
    /// Returns the current time, in the form of [`About::date`].
    pub fn now() -> String {
        let now = time::OffsetDateTime::now_utc();
        let seconds = now.replace_nanosecond(0).unwrap_or(now);
        // It fails only for years that RFC 3339 can't represent.
        seconds.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
    }
}

fn one() -> u64 {
    1
}

/// A shorter time, in seconds, can't be measured: one delay by the scheduler is as long. A ratio to
/// such a time is meaningless.
pub const LEAST_SECONDS: f64 = 0.001;

/// The results of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioOutcome {
    /// Its id among the figures: "P-13".
    pub id: String,
    /// How it ended.
    pub status: Status,
    /// The duration of all of it, including preparation and verification.
    pub seconds: f64,
    /// Bytes that were read back and compared.
    pub verified_bytes: u64,
    /// Datastores that were checked (`fsck`) at the end of the scenario; if it is done, all were
    /// sound.
    #[serde(default)]
    pub datastores_checked: u64,
    /// What hosts did themselves although it was to be offloaded, in the whole scenario, including
    /// what was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_software: Vec<InSoftware>,
    /// What was measured, case by case.
    pub rows: Vec<Row>,
    /// The charts. If there are none, the seconds of the rows are drawn as bars.
    pub charts: Vec<Chart>,
    /// Whether the goals were reached.
    pub verdicts: Vec<Verdict>,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    /// It ran, and what it wrote is right.
    Done,
    /// It did not: the array failed, or had wrong data.
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

/// The cost of one case. The papers have only the seconds.
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
    /// What else was measured: IOPS, MB/s, p99, physical bytes. The most significant first: the
    /// summary shows it if the papers' figure is not about seconds.
    pub values: Vec<Value>,
    /// What the hosts did themselves of it although it was to be offloaded: refused, or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_software: Vec<InSoftware>,
    /// The spread, if it was done several times. Everything else is from the run with the median
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// The spread of the times of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of runs.
    pub runs: u32,
    /// The minimum, in seconds.
    pub least_seconds: f64,
    /// The maximum, in seconds.
    pub most_seconds: f64,
}

/// A quantity with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// "p99".
    pub name: String,
    /// "ms". "B" is shown with a prefix that fits.
    pub unit: String,
    /// The value.
    pub value: f64,
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Bars in groups, one group per label.
    Bars {
        /// What is shown.
        title: String,
        /// The unit of the values.
        unit: String,
        /// The groups.
        labels: Vec<String>,
        /// The bars of each group.
        series: Vec<Series>,
    },
    /// Lines over something, usually over time.
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

/// Bars of one kind. "off" and "on" have the same colors everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// "off".
    pub name: String,
    /// One for each label; `None` if nothing was measured.
    pub values: Vec<Option<f64>>,
}

/// A line. "off" and "on" have the same colors everywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// "on".
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// Whether a goal was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// "wire bytes, on against off".
    pub what: String,
    /// "under 0.1%".
    pub goal: String,
    /// "0.02%".
    pub measured: String,
    /// Whether it was reached.
    pub is_met: bool,
    /// If it was not: why, as a profile shows.
    pub reason: Option<String>,
}
