//! Reports of the lab: measurements on this array, kept with published figures beside them. The
//! array only keeps them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::values::name::LabReportName;
use crate::values::text::{check_text, shown};

/// The most reports of an array.
pub const LAB_REPORTS_MAX: usize = 32;
/// The most scenarios of a report.
pub const LAB_SCENARIOS_MAX: usize = 64;
/// The most cases of a scenario.
pub const LAB_CASES_MAX: usize = 64;
/// The most aims of a scenario.
pub const LAB_AIMS_MAX: usize = 16;
/// The most notes of a scenario.
pub const LAB_NOTES_MAX: usize = 64;
/// The longest text of a report, in characters.
pub const LAB_TEXT_CHARS_MAX: usize = 512;
/// The longest report, in bytes when stored: it must fit one value of the store.
pub const LAB_REPORT_BYTES_MAX: usize = 60 << 10;

/// A report with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct LabReport {
    /// What it was kept as; no other report has this name.
    pub name: LabReportName,
    /// The measurements.
    pub measured: LabMeasured,
}

/// The results of one run of the lab. They are stored in this form, so fields must keep their
/// names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabMeasured {
    /// When the run began, in milliseconds since 1970.
    pub measured_ms: u64,
    /// The version of the lab.
    pub lab_version: String,
    /// Vendor, product and revision of the array, from INQUIRY.
    pub array: String,
    /// The name of the array in the report.
    pub array_name: String,
    /// What survives a loss of power after a write was acknowledged, in words.
    pub durability: String,
    /// How it was measured.
    pub settings: LabSettings,
    /// Where the lab ran.
    pub machine: LabMachine,
    /// The results of the scenarios.
    pub scenarios: Vec<LabScenario>,
}

/// How it was measured. The numbers mean nothing without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabSettings {
    /// The divisor of the papers' sizes, from 1.
    pub scale: u64,
    /// The divisor of the papers' numbers of machines: 1, except in tests.
    pub count_scale: u64,
    /// How long each load ran, in milliseconds; 0 if unknown.
    pub load_ms: u64,
    /// How many hosts there were.
    pub hosts: u32,
    /// How many portals they used.
    pub portals: u32,
}

/// Where the lab ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabMachine {
    /// The model of its processors.
    pub processor: String,
    /// How many there were.
    pub processors: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its operating system and kernel.
    pub system: String,
}

/// The result of a scenario, with the figure that a paper publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabScenario {
    /// Its id in the lab: `P-13`. Unique in a report.
    pub id: String,
    /// What is done; may be empty.
    pub title: String,
    /// The paper and the place in it; `None` if it is not a figure from a paper.
    pub source: Option<String>,
    /// The published figure.
    pub published: Option<LabPublished>,
    /// How it ended.
    pub state: LabState,
    /// Why it failed, or was not run.
    pub reason: Option<String>,
    /// The quantity that the cases measure: `time`.
    pub quantity: String,
    /// The unit of the numbers: `s`; may be empty.
    pub unit: String,
    /// How the ratios are formed.
    pub ratio_of: LabRatio,
    /// The measurements.
    pub cases: Vec<LabCase>,
    /// The aims, and whether they were reached.
    pub aims: Vec<LabAim>,
    /// Other remarks for the reader.
    pub notes: Vec<String>,
}

/// What a paper states, in its words; `None` if it states nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabPublished {
    /// The quantity.
    pub what: String,
    /// Without offload.
    pub off: Option<String>,
    /// With offload.
    pub on: Option<String>,
    /// The improvement.
    pub gain: Option<String>,
}

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabState {
    /// It ran, and the data it wrote is right.
    Done,
    /// The array returned errors, or held wrong data.
    Failed,
    /// It was not run.
    Skipped,
}

/// How a ratio is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabRatio {
    /// Off divided by on, for times.
    OffByOn,
    /// On divided by off, for rates.
    OnByOff,
}

/// A case of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabCase {
    /// Its name: `16 VMs`.
    pub case: String,
    /// Without offload; `None` if it was not measured.
    pub off: Option<f64>,
    /// With offload.
    pub on: Option<f64>,
    /// The ratio; `None` if there is none.
    pub ratio: Option<f64>,
    /// Whether there is no ratio because the run was too short.
    pub too_fast: bool,
    /// Whether hosts did in software what was to be offloaded, all of it or part of it.
    pub in_software: bool,
}

/// An aim, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabAim {
    /// The quantity: `wire bytes, on against off`.
    pub what: String,
    /// The aim: `under 0.1%`.
    pub goal: String,
    /// The measured value: `0.02%`.
    pub measured: String,
    /// Whether it was reached.
    pub met: bool,
    /// Why not, or what else is worth knowing.
    pub reason: Option<String>,
}

impl LabMeasured {
    /// Refuses an invalid report.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { lab_version, array, array_name, durability, settings, machine, .. } = self;
        let texts = [lab_version, array, array_name, durability, &machine.processor];
        texts.into_iter().chain([&machine.system]).try_for_each(|of| text("text", of, 0))?;
        if settings.scale == 0 || settings.count_scale == 0 {
            return invalid("A scale of a lab report is 1 or more.");
        }
        at_most("scenarios", self.scenarios.len(), LAB_SCENARIOS_MAX)?;
        let mut ids = BTreeSet::new();
        for scenario in &self.scenarios {
            scenario.check()?;
            if !ids.insert(&scenario.id) {
                let id = shown(&scenario.id);
                return invalid(format!("The scenario {id} is in the lab report twice."));
            }
        }
        Ok(())
    }
}

impl LabScenario {
    fn check(&self) -> Result<(), Error> {
        text("scenario", &self.id, 1)?;
        text("quantity", &self.quantity, 1)?;
        [&self.title, &self.unit].into_iter().try_for_each(|of| text("text", of, 0))?;
        [&self.source, &self.reason]
            .into_iter()
            .flatten()
            .try_for_each(|of| text("text", of, 0))?;
        if let Some(LabPublished { what, off, on, gain }) = &self.published {
            let all = [off, on, gain].into_iter().flatten().chain([what]);
            all.into_iter().try_for_each(|of| text("published figure", of, 0))?;
        }
        at_most("cases of a scenario", self.cases.len(), LAB_CASES_MAX)?;
        for case in &self.cases {
            text("case", &case.case, 1)?;
            let numbers = [case.off, case.on, case.ratio];
            if numbers.into_iter().flatten().any(|number| !number.is_finite()) {
                return invalid("The numbers of a lab report are finite.");
            }
        }
        at_most("aims of a scenario", self.aims.len(), LAB_AIMS_MAX)?;
        for LabAim { what, goal, measured, reason, .. } in &self.aims {
            let all = [what, goal, measured].into_iter().chain(reason);
            all.into_iter().try_for_each(|of| text("aim", of, 0))?;
        }
        at_most("notes of a scenario", self.notes.len(), LAB_NOTES_MAX)?;
        self.notes.iter().try_for_each(|note| text("note", note, 0))
    }
}

fn text(what: &str, text: &str, least: usize) -> Result<(), Error> {
    let what = format!("{what} of a lab report");
    check_text("invalid_lab_report", &what, text, least, LAB_TEXT_CHARS_MAX)
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), Error> {
    match count <= most {
        true => Ok(()),
        false => invalid(format!("A lab report has up to {most} {what}; not {count}.")),
    }
}

pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T, Error> {
    Err(Error::invalid("invalid_lab_report", text))
}
