//! Scenarios: what the papers measured, repeated on any array, and verified.

mod bench;
mod block_counts;
mod checked;
mod copies;
mod deploy;
mod first_writes;
mod judge;
mod locks;
mod moving;
mod reclaiming;
mod rounds;
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
use crate::outcome::{
    Chart, InSoftware, Line, Measure, Row, ScenarioOutcome, Status, Value, Verdict,
};

/// Why a scenario could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario's target does not exist.
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
    /// The array contains what was not written, or the datastore is damaged.
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
    Scenario { id: "V-48", run: |bench| Box::pin(block_counts::default_and_percent(bench)) },
    Scenario { id: "V-51", run: |bench| Box::pin(reclaiming::baseline(bench)) },
    Scenario { id: "V-52", run: |bench| Box::pin(reclaiming::replicated(bench)) },
    Scenario { id: "V-53", run: |bench| Box::pin(reclaiming::snapshotted(bench)) },
    Scenario { id: "V-55", run: |bench| Box::pin(reclaiming::loaded(bench)) },
    Scenario { id: "I-zero", run: |bench| Box::pin(zeroing::ibm(bench)) },
    Scenario { id: "I-copy", run: |bench| Box::pin(copies::ibm(bench)) },
    Scenario { id: "I-lock", run: |bench| Box::pin(locks::snapshots(bench)) },
];

/// The results of a scenario, apart from what every outcome has.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What was measured.
    pub rows: Vec<Row>,
    /// The charts.
    pub charts: Vec<Chart>,
    /// Whether the goals were reached.
    pub verdicts: Vec<Verdict>,
    /// What else a reader must know.
    pub notes: Vec<String>,
    /// Bytes that were read back and compared.
    pub verified_bytes: u64,
    /// Why it was not run, if it was not.
    pub skipped: Option<String>,
}

impl Found {
    /// Returns the row of a case, created if necessary.
    pub fn row(&mut self, case: &str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.case == case).unwrap_or(self.rows.len());
        if at == self.rows.len() {
            self.rows.push(Row { case: case.to_owned(), off: None, on: None });
        }
        &mut self.rows[at]
    }

    /// Records the cost of one side of a case.
    pub fn put(&mut self, case: &str, side: Side, measure: Measure) {
        let row = self.row(case);
        match side {
            Side::Off => row.off = Some(measure),
            Side::On => row.on = Some(measure),
        }
    }
}

/// Returns a named quantity.
pub fn value(name: &str, unit: &str, value: f64) -> Value {
    Value { name: name.to_owned(), unit: unit.to_owned(), value }
}

/// Returns lines over time.
fn lines(title: &str, y_unit: &str, lines: Vec<Line>) -> Chart {
    let (title, y_unit) = (title.to_owned(), y_unit.to_owned());
    Chart::Lines { title, x_unit: String::from("s"), y_unit, lines }
}

/// Runs a scenario, checks each datastore that it has used, and returns how it ended.
pub async fn run(bench: Rc<Bench>, scenario: &Scenario) -> ScenarioOutcome {
    let started = std::time::Instant::now();
    let (checks, offloads) = (bench.checks(), bench.offloads());
    let end = (scenario.run)(bench.clone()).await;
    let checked = bench.retire_all().await;
    let (status, mut found) = ended(end, checked);
    found.explain_software();
    let outcome = ScenarioOutcome {
        id: scenario.id.to_owned(),
        status,
        seconds: started.elapsed().as_secs_f64(),
        verified_bytes: found.verified_bytes,
        datastores_checked: bench.checks() - checks,
        in_software: InSoftware::of(&bench.offloads().since(&offloads)),
        rows: found.rows,
        charts: found.charts,
        verdicts: found.verdicts,
        notes: found.notes,
    };
    outcome.finite()
}

/// Returns how a scenario ended, by its own result and by the check of its datastores.
fn ended(end: Result<Found, ScenarioError>, checked: Result<(), ScenarioError>) -> (Status, Found) {
    match (end, checked) {
        (Ok(mut found), Ok(())) => match found.skipped.take() {
            Some(reason) => (Status::Skipped { reason }, found),
            None => (Status::Done, found),
        },
        // What was measured is shown nevertheless.
        (Ok(found), Err(error)) => (Status::Failed { reason: error.to_string() }, found),
        (Err(error), Ok(())) => (Status::Failed { reason: error.to_string() }, Found::default()),
        (Err(first), Err(second)) => {
            let reason = format!("{first}; and then: {second}");
            (Status::Failed { reason }, Found::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_the_check_is_a_failure() {
        let wrong = |what: &str| ScenarioError::Wrong(what.to_owned());
        let failed = |reason: &str| Status::Failed { reason: reason.to_owned() };
        let found = Found { verified_bytes: 7, ..Found::default() };
        let (status, kept) = ended(Ok(found.clone()), Ok(()));
        assert_eq!((status, kept.verified_bytes), (Status::Done, 7));
        let (status, kept) = ended(Ok(found.clone()), Err(wrong("a leak")));
        assert_eq!((status, kept.verified_bytes), (failed("a leak"), 7));
        let skipped = Found { skipped: Some(String::from("no array")), ..found };
        assert_eq!(ended(Ok(skipped.clone()), Err(wrong("a leak"))).0, failed("a leak"));
        let reason = String::from("no array");
        assert_eq!(ended(Ok(skipped), Ok(())).0, Status::Skipped { reason });
        assert_eq!(ended(Err(wrong("no answer")), Ok(())).0, failed("no answer"));
        let both = ended(Err(wrong("no answer")), Err(wrong("a leak"))).0;
        assert_eq!(both, failed("no answer; and then: a leak"));
    }
}
