//! A report of the lab, as it is sent and returned.

use array::lab_reports as kept;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The results of one run of the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabMeasured {
    /// When the run began, in milliseconds since 1970.
    pub measured_ms: u64,
    /// The version of the lab.
    #[schema(max_length = 512)]
    pub lab_version: String,
    /// Vendor, product and revision of the array, from INQUIRY.
    #[schema(max_length = 512)]
    pub array: String,
    /// The name of the array in the report.
    #[schema(max_length = 512)]
    pub array_name: String,
    /// What survives a loss of power after a write was acknowledged, in words.
    #[schema(max_length = 512)]
    pub durability: String,
    /// How it was measured.
    pub settings: LabSettings,
    /// Where the lab ran.
    pub machine: LabMachine,
    /// The results of the scenarios.
    #[schema(max_items = 64)]
    pub scenarios: Vec<LabScenario>,
}

/// How it was measured. The numbers mean nothing without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabSettings {
    /// The divisor of the papers' sizes, from 1.
    #[schema(minimum = 1)]
    pub scale: u64,
    /// The divisor of the papers' numbers of machines: 1, except in tests.
    #[schema(minimum = 1)]
    pub count_scale: u64,
    /// How long each load ran, in milliseconds; 0 if unknown.
    pub load_ms: u64,
    /// How many hosts there were.
    pub hosts: u32,
    /// How many portals they used.
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

/// The result of a scenario, with the figure that a paper publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabScenario {
    /// Its id in the lab: `P-13`. Unique in a report.
    #[schema(min_length = 1, max_length = 512)]
    pub id: String,
    /// What is done; may be empty.
    #[schema(max_length = 512)]
    pub title: String,
    /// The paper and the place in it; `null` if it is not a figure from a paper.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The published figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<LabPublished>,
    /// How it ended.
    pub state: LabState,
    /// Why it failed, or was not run.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The quantity that the cases measure: `time`.
    #[schema(min_length = 1, max_length = 512)]
    pub quantity: String,
    /// The unit of the numbers: `s`; may be empty.
    #[schema(max_length = 512)]
    pub unit: String,
    /// How the ratios are formed.
    pub ratio_of: LabRatio,
    /// The measurements.
    #[schema(max_items = 64)]
    pub cases: Vec<LabCase>,
    /// The aims, and whether they were reached.
    #[schema(max_items = 16)]
    pub aims: Vec<LabAim>,
    /// What else a reader must know.
    #[schema(max_items = 64)]
    pub notes: Vec<String>,
}

/// What a paper states, in its words; `null` if it states nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabPublished {
    /// The quantity.
    #[schema(max_length = 512)]
    pub what: String,
    /// Without offload.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// With offload.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The improvement.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<String>,
}

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabRatio {
    /// Off divided by on, for times.
    OffByOn,
    /// On divided by off, for rates.
    OnByOff,
}

/// A case of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabCase {
    /// Its name: `16 VMs`.
    #[schema(min_length = 1, max_length = 512)]
    pub case: String,
    /// Without offload; `null` if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<f64>,
    /// With offload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<f64>,
    /// The ratio; `null` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Whether there is no ratio because the run was too short.
    pub too_fast: bool,
    /// Whether hosts did in software what was to be offloaded, all of it or part of it.
    pub in_software: bool,
}

/// An aim, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabAim {
    /// The quantity: `wire bytes, on against off`.
    #[schema(max_length = 512)]
    pub what: String,
    /// The aim: `under 0.1%`.
    #[schema(max_length = 512)]
    pub goal: String,
    /// The measured value: `0.02%`.
    #[schema(max_length = 512)]
    pub measured: String,
    /// Whether it was reached.
    pub met: bool,
    /// Why not, or what else is worth knowing.
    #[schema(max_length = 512)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Converts a type into the array's type with the same fields, and back. Fields are copied, or
/// converted: one value (`into`), an optional one (`some`), or each of a list (`all`).
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
