//! Results on disk, one file per scenario, so that an interrupted run can be continued.
//!
//! A result is only meaningful with its parameters. So each file contains the [`Parameters`], and
//! `run.json` those of the latest run: a result with others does not count as done, and is not put
//! into the same report.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{About, Report, ScenarioOutcome, Status};
use crate::figures;

/// The parameters of a scenario. Two runs with equal ones are comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The iSCSI name of the target.
    pub target: String,
    /// Its portals.
    pub portals: Vec<String>,
    /// The number of hosts.
    pub hosts: u32,
    /// The divisor of the papers' sizes.
    pub scale: u64,
    /// The divisor of the papers' numbers of machines: 1, except in tests.
    pub count_scale: u64,
    /// How long each load runs, in milliseconds.
    pub load_ms: u64,
    /// The seed of all randomness.
    pub seed: u64,
    /// The version of the lab: another one may measure differently.
    pub lab_version: String,
}

/// A directory of results.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// Why results can't be stored or shown.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file can't be read or written.
    #[error("{}: {error}; does the directory exist, and is it writable?", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// No run was begun here.
    #[error("{}: no results of a run; make some with `holdfast-lab run`", .0.display())]
    NoRun(PathBuf),
    /// An id that is not valid as a file name.
    #[error("{0:?} is not the id of a scenario")]
    BadId(String),
    /// A number that JSON can't represent: an error of the scenario.
    #[error("the outcome of {0} contains a number that is infinite or undefined")]
    NoNumber(String),
}

/// The content of a [`Store`].
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The results of the latest run.
    pub report: Report,
    /// Files that are not in it, each with the reason.
    pub left_out: Vec<String>,
}

/// The content of `run.json`.
#[derive(Serialize, Deserialize)]
struct Run {
    about: About,
    parameters: Parameters,
}

/// The content of a scenario's file.
#[derive(Serialize, Deserialize)]
struct Kept {
    parameters: Parameters,
    outcome: ScenarioOutcome,
}

const RUN: &str = "run.json";
const PREFIX: &str = "scenario-";
const SUFFIX: &str = ".json";

impl Store {
    /// Opens the results in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(|error| at(directory, error))?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Begins a run, or continues it: what is put from now on belongs to it.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn begin(&self, about: &About, parameters: &Parameters) -> Result<(), StoreError> {
        let run = Run { about: about.clone(), parameters: parameters.clone() };
        self.write(RUN, &run)
    }

    /// Returns the last results of a scenario, if it succeeded and was run with these parameters. A
    /// torn or foreign file counts as missing.
    pub fn done(&self, id: &str, parameters: &Parameters) -> Option<ScenarioOutcome> {
        let kept: Kept = read(&self.directory.join(file_name(id).ok()?))?;
        let is_of_this = kept.outcome.id == id && kept.parameters == *parameters;
        (is_of_this && kept.outcome.status == Status::Done).then_some(kept.outcome)
    }

    /// Stores the results of a scenario, atomically. Replaces previous ones.
    ///
    /// # Errors
    /// If it can't be written, or contains an undefined number.
    pub fn put(
        &self,
        outcome: &ScenarioOutcome,
        parameters: &Parameters,
    ) -> Result<(), StoreError> {
        let name = file_name(&outcome.id)?;
        let kept = Kept { parameters: parameters.clone(), outcome: outcome.clone() };
        let text = serde_json::to_string(&kept);
        // JSON has no infinity: what is written as `null` could not be read again.
        if !text.is_ok_and(|text| serde_json::from_str::<Kept>(&text).is_ok()) {
            return Err(StoreError::NoNumber(outcome.id.clone()));
        }
        self.write(&name, &kept)
    }

    /// Returns the results of the latest run, in the order of the figures. Scenarios that are no
    /// figures come after them.
    ///
    /// # Errors
    /// If no run was begun here, or the directory can't be read.
    pub fn report(&self) -> Result<Assembled, StoreError> {
        let run: Run = read(&self.directory.join(RUN))
            .ok_or_else(|| StoreError::NoRun(self.directory.clone()))?;
        let mut scenarios = Vec::new();
        let mut left_out = Vec::new();
        for name in self.names()? {
            match read::<Kept>(&self.directory.join(&name)) {
                Some(kept) if file_name(&kept.outcome.id).ok().as_ref() != Some(&name) => {
                    left_out.push(format!("{name}: the scenario in it has another name"));
                }
                Some(kept) if kept.parameters != run.parameters => {
                    left_out.push(format!("{name}: it was run with other parameters"));
                }
                Some(kept) => scenarios.push(kept.outcome),
                None => left_out.push(format!("{name}: it is torn, or not a result")),
            }
        }
        scenarios.sort_by_key(|outcome| (figures::position(&outcome.id), outcome.id.clone()));
        Ok(Assembled { report: Report { about: run.about, scenarios }, left_out })
    }

    /// Returns the files of scenarios, sorted.
    fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|error| at(&self.directory, error))? {
            let entry = entry.map_err(|error| at(&self.directory, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Writes a temporary file, and renames it when it is on the medium.
    fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StoreError> {
        let path = self.directory.join(name);
        let beside = self.directory.join(format!(".{name}.{}", std::process::id()));
        let written = (|| {
            let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::from)?;
            text.push(b'\n');
            let mut file = File::create(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            File::open(&self.directory)?.sync_all()
        })();
        written.map_err(|error| {
            // A file that could not be renamed is useless, but harmless.
            let _ = fs::remove_file(&beside);
            at(&path, error)
        })
    }
}

fn at(path: &Path, error: io::Error) -> StoreError {
    StoreError::Io { path: path.to_owned(), error }
}

/// Returns the content of a file; `None` if it is missing, torn or of another kind.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn file_name(id: &str) -> Result<String, StoreError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if id.is_empty() || !id.chars().all(is_plain) {
        return Err(StoreError::BadId(id.to_owned()));
    }
    Ok(format!("{PREFIX}{id}{SUFFIX}"))
}
