//! Scenarios: what the papers measured, done again on any array, and verified.

mod bench;
mod copies;
mod deploy;
mod first_writes;
mod locks;
mod moving;
mod reclaiming;
mod sampler;
mod template;
mod verb;
mod zeroing;

use std::rc::Rc;

pub use bench::{Bench, BenchPlan, Side, Traffic};
pub use sampler::Sampler;
pub use template::{Template, verify_disk};
pub use verb::{RunArgs, run as run_verb};

use crate::datastore::DatastoreError;
use crate::disk::DiskError;
use crate::engine::LocalFuture;
use crate::host::HostError;
use crate::outcome::{Chart, Line, Measure, Row, ScenarioOutcome, Status, Value, Verdict};

/// Why a scenario could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// What it was to run on is not there.
    #[error("{0}")]
    Plan(String),
    /// A disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A datastore.
    #[error(transparent)]
    Datastore(#[from] DatastoreError),
    /// A host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The array's own command line.
    #[error("{0}")]
    Array(String),
    /// The array holds what was not written, or the datastore is damaged.
    #[error("{0}")]
    Wrong(String),
}

/// How a scenario is run.
pub type Run = fn(Rc<Bench>) -> LocalFuture<'static, Result<Found, ScenarioError>>;

/// A scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its id among the figures.
    pub id: &'static str,
    /// Runs it.
    pub run: Run,
}

/// All of them, in the order of the figures.
pub const ALL: &[Scenario] = &[
    Scenario { id: "P-9", run: |bench| Box::pin(deploy::one(bench)) },
    Scenario { id: "P-13", run: |bench| Box::pin(deploy::many(bench)) },
    Scenario { id: "B-scale", run: |bench| Box::pin(deploy::scale(bench)) },
    Scenario { id: "P-14", run: |bench| Box::pin(moving::pure(bench)) },
    Scenario { id: "P-15", run: |bench| Box::pin(copies::kinds(bench)) },
    Scenario { id: "P-16", run: |bench| Box::pin(zeroing::four_sizes(bench)) },
    Scenario { id: "P-17", run: |bench| Box::pin(zeroing::four_at_once(bench)) },
    Scenario { id: "P-18", run: |bench| Box::pin(first_writes::kinds(bench)) },
    Scenario { id: "P-6", run: |bench| Box::pin(locks::boot_storm(bench)) },
    Scenario { id: "P-19", run: |bench| Box::pin(reclaiming::block_counts(bench)) },
    Scenario { id: "V-25", run: |bench| Box::pin(copies::extents(bench)) },
    Scenario { id: "V-30", run: |bench| Box::pin(copies::transfer_sizes(bench)) },
    Scenario { id: "V-31", run: |bench| Box::pin(copies::hot(bench)) },
    Scenario { id: "V-34", run: |bench| Box::pin(copies::four_at_once(bench)) },
    Scenario { id: "V-35", run: |bench| Box::pin(moving::vmax(bench)) },
    Scenario { id: "V-36", run: |bench| Box::pin(zeroing::six_sizes(bench)) },
    Scenario { id: "V-37", run: |bench| Box::pin(zeroing::write_rate(bench)) },
    Scenario { id: "V-38", run: |bench| Box::pin(first_writes::mixed(bench)) },
    Scenario { id: "V-48", run: |bench| Box::pin(reclaiming::default_and_percent(bench)) },
    Scenario { id: "V-51", run: |bench| Box::pin(reclaiming::baseline(bench)) },
    Scenario { id: "V-52", run: |bench| Box::pin(reclaiming::replicated(bench)) },
    Scenario { id: "V-53", run: |bench| Box::pin(reclaiming::snapshotted(bench)) },
    Scenario { id: "V-55", run: |bench| Box::pin(reclaiming::loaded(bench)) },
    Scenario { id: "I-zero", run: |bench| Box::pin(zeroing::ibm(bench)) },
    Scenario { id: "I-copy", run: |bench| Box::pin(copies::ibm(bench)) },
    Scenario { id: "I-lock", run: |bench| Box::pin(locks::snapshots(bench)) },
];

/// What a scenario has found, besides what every outcome has.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What was measured.
    pub rows: Vec<Row>,
    /// What is to be drawn.
    pub charts: Vec<Chart>,
    /// Whether the aims were reached.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know besides.
    pub notes: Vec<String>,
    /// Bytes that were read back and compared.
    pub verified_bytes: u64,
    /// It was not run, because of this.
    pub skipped: Option<String>,
}

impl Found {
    /// The row of a case; made if it is not there yet.
    pub fn row(&mut self, case: &str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.case == case).unwrap_or(self.rows.len());
        if at == self.rows.len() {
            self.rows.push(Row { case: case.to_owned(), off: None, on: None });
        }
        &mut self.rows[at]
    }

    /// Notes what one side of a case has cost.
    pub fn put(&mut self, case: &str, side: Side, measure: Measure) {
        let row = self.row(case);
        match side {
            Side::Off => row.off = Some(measure),
            Side::On => row.on = Some(measure),
        }
    }

    /// Notes whether an aim was reached.
    pub fn judge(&mut self, what: &str, goal: &str, measured: String, is_met: bool) {
        let (what, goal) = (what.to_owned(), goal.to_owned());
        self.verdicts.push(Verdict { what, goal, measured, is_met, reason: None });
    }
}

/// A named quantity.
pub fn value(name: &str, unit: &str, value: f64) -> Value {
    Value { name: name.to_owned(), unit: unit.to_owned(), value }
}

/// The one that took the middle time; at least one is given.
fn middle(mut measures: Vec<Measure>) -> Measure {
    measures.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    measures.swap_remove(measures.len() / 2)
}

/// How many of what, in words.
fn cases(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Lines over time.
fn lines(title: &str, y_unit: &str, lines: Vec<Line>) -> Chart {
    let (title, y_unit) = (title.to_owned(), y_unit.to_owned());
    Chart::Lines { title, x_unit: String::from("s"), y_unit, lines }
}

/// Runs a scenario, and says how it ended.
pub async fn run(bench: Rc<Bench>, scenario: &Scenario) -> ScenarioOutcome {
    let started = std::time::Instant::now();
    let (status, found) = match (scenario.run)(bench).await {
        Ok(mut found) => match found.skipped.take() {
            Some(reason) => (Status::Skipped { reason }, found),
            None => (Status::Done, found),
        },
        Err(error) => (Status::Failed { reason: error.to_string() }, Found::default()),
    };
    ScenarioOutcome {
        id: scenario.id.to_owned(),
        status,
        seconds: started.elapsed().as_secs_f64(),
        verified_bytes: found.verified_bytes,
        rows: found.rows,
        charts: found.charts,
        verdicts: found.verdicts,
        notes: found.notes,
    }
}
