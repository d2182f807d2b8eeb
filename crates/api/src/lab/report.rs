//! A report of the lab, as it comes and goes.

use array::lab_reports as kept;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one run of the lab has measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabMeasured {
    /// When the run began, in milliseconds since 1970.
    pub measured_ms: u64,
    /// The version of the lab.
    #[schema(max_length = 512)]
    pub lab_version: String,
    /// Vendor, product and revision of the array, as INQUIRY told.
    #[schema(max_length = 512)]
    pub array: String,
    /// What it was called in the report.
    #[schema(max_length = 512)]
    pub array_name: String,
    /// What a write that was answered is worth after a loss of power, in words.
    #[schema(max_length = 512)]
    pub durability: String,
    /// How it was measured.
    pub settings: LabSettings,
    /// Where the lab ran.
    pub machine: LabMachine,
    /// What was found.
    #[schema(max_items = 64)]
    pub scenarios: Vec<LabScenario>,
}

/// How it was measured. Numbers mean nothing without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabSettings {
    /// The papers' sizes were divided by it; 1 and up.
    #[schema(minimum = 1)]
    pub scale: u64,
    /// The papers' numbers of machines were divided by it: 1, but for tests.
    #[schema(minimum = 1)]
    pub count_scale: u64,
    /// How long each load ran, in milliseconds; 0 where it is not told.
    pub load_ms: u64,
    /// How many hosts there were.
    pub hosts: u32,
    /// Over how many portals.
    pub portals: u32,
}

/// Where the lab ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabMachine {
    /// The model of its processors.
    #[schema(max_length = 512)]
    pub processor: String,
    /// How many there were.
    pub processors: u32,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// Its operating system and kernel.
    #[schema(max_length = 512)]
    pub system: String,
}

/// What a scenario found, beside what a paper publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabScenario {
    /// What the lab calls it: `P-13`. Unique in a report.
    #[schema(min_length = 1, max_length = 512)]
    pub id: String,
    /// What is done; may be empty.
    #[schema(max_length = 512)]
    pub title: String,
    /// The paper and the place in it; none where it is no figure of one.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<LabPublished>,
    /// How it ended.
    pub state: LabState,
    /// Why it failed, or was not run.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the numbers of the cases are: `time`.
    #[schema(min_length = 1, max_length = 512)]
    pub quantity: String,
    /// Of the numbers: `s`; may be empty.
    #[schema(max_length = 512)]
    pub unit: String,
    /// What the ratios are of.
    pub ratio_of: LabRatio,
    /// What was measured.
    #[schema(max_items = 64)]
    pub cases: Vec<LabCase>,
    /// Whether aims were reached.
    #[schema(max_items = 16)]
    pub aims: Vec<LabAim>,
    /// What a reader must know besides.
    #[schema(max_items = 64)]
    pub notes: Vec<String>,
}

/// What a paper states, in its words. None where it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabPublished {
    /// Of what.
    #[schema(max_length = 512)]
    pub what: String,
    /// Without offload.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// With it.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// How much better.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
}

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabState {
    /// It ran, and what it wrote was right.
    Done,
    /// The array erred, or held wrong data.
    Failed,
    /// It was not run.
    Skipped,
}

/// What is divided by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabRatio {
    /// Off by on, as of times.
    OffByOn,
    /// On by off, as of rates.
    OnByOff,
}

/// A case of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabCase {
    /// `16 VMs`.
    #[schema(min_length = 1, max_length = 512)]
    pub case: String,
    /// Without offload; none where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<f64>,
    /// With it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<f64>,
    /// How many times one is the other; none where that can't be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Whether it can't be told because it was over too soon.
    pub too_fast: bool,
    /// Whether hosts did themselves what was to be offloaded, all of it or in part.
    pub in_software: bool,
}

/// An aim, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabAim {
    /// `wire bytes, on against off`.
    #[schema(max_length = 512)]
    pub what: String,
    /// `under 0.1%`.
    #[schema(max_length = 512)]
    pub goal: String,
    /// `0.02%`.
    #[schema(max_length = 512)]
    pub measured: String,
    /// Whether it was.
    pub met: bool,
    /// Why not, or what else is to be known of it.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Turns a type into the one of the array that has the same fields, and back: as they are, each
/// turned (`into`), turned if it is there (`some`), and turned one by one (`all`).
macro_rules! same {
    (
        struct $name:ident: $($field:ident),*;
        into: $($into:ident),*; some: $($some:ident),*; all: $($all:ident),*
    ) => {
        same!(@one $name, kept::$name, [$($field)*] [$($into)*] [$($some)*] [$($all)*]);
        same!(@one kept::$name, $name, [$($field)*] [$($into)*] [$($some)*] [$($all)*]);
    };
    (struct $name:ident: $($field:ident),*) => {
        same!(struct $name: $($field),*; into:; some:; all:);
    };
    (
        @one $from:path, $to:path,
        [$($field:ident)*] [$($into:ident)*] [$($some:ident)*] [$($all:ident)*]
    ) => {
        impl From<$from> for $to {
            fn from(from: $from) -> Self {
                Self {
                    $($field: from.$field,)*
                    $($into: from.$into.into(),)*
                    $($some: from.$some.map(Into::into),)*
                    $($all: from.$all.into_iter().map(Into::into).collect(),)*
                }
            }
        }
    };
    (enum $name:ident: $($variant:ident),*) => {
        impl From<$name> for kept::$name {
            fn from(from: $name) -> Self {
                match from { $($name::$variant => Self::$variant,)* }
            }
        }
        impl From<kept::$name> for $name {
            fn from(from: kept::$name) -> Self {
                match from { $(kept::$name::$variant => Self::$variant,)* }
            }
        }
    };
}

same!(
    struct LabMeasured: measured_ms, lab_version, array, array_name, durability;
    into: settings, machine; some:; all: scenarios
);
same!(struct LabSettings: scale, count_scale, load_ms, hosts, portals);
same!(struct LabMachine: processor, processors, memory_bytes, system);
same!(
    struct LabScenario: id, title, source, reason, quantity, unit, notes;
    into: state, ratio_of; some: published; all: cases, aims
);
same!(struct LabPublished: what, off, on, gain);
same!(enum LabState: Done, Failed, Skipped);
same!(enum LabRatio: OffByOn, OnByOff);
same!(struct LabCase: case, off, on, ratio, too_fast, in_software);
same!(struct LabAim: what, goal, measured, met, reason);
