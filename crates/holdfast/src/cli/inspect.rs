//! `inspect`: reads a pool that is not in use, and checks it. Nothing is written.

mod devices;

use std::collections::BTreeMap;
use std::process::ExitCode;

use array::Array;
use block::VolumeId;
use segments::Shared;
use serde::Serialize;
use serde_json::json;
use store::{InspectOptions, InspectReport, OpenOptions, Store};

use self::devices::Devices;
use super::args::{Common, InspectArgs};
use super::failure::Failure;
use super::medium::{Medium, Use};
use super::output::show;
use super::place::Places;

/// The findings of the store, and the names of the volumes.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    report: InspectReport,
    /// The names of the volumes, by their ids.
    names: BTreeMap<u64, String>,
    /// For a pool on several devices: which are present, and which are required.
    devices: Option<Devices>,
}

/// Shows the pool. Findings are listed in the report, and the exit code is then 1.
pub fn run(common: &Common, options: &InspectArgs) -> Result<ExitCode, Failure> {
    let named = [&options.places, &common.pool];
    let Some(pool) = named.into_iter().find(|paths| !paths.is_empty()) else {
        let text = "inspect needs a pool: holdfast inspect DIR-OR-DEVICE";
        return Err(Failure::Usage(text.into()));
    };
    let (survey, opened) = Medium::survey(&Places::of_existing(pool)?, Use::Read)?;
    let devices = survey.map(Devices::from);
    let segments = match (opened, &devices) {
        (Ok(medium), _) => medium.segments(),
        (Err(failure), None) => return Err(failure),
        (Err(failure), Some(devices)) => {
            show(common.form, &json!({ "devices": devices }), || devices.to_string())?;
            return Err(failure);
        }
    };
    let objects = load_names(&segments);
    let names = objects.as_ref().map(Clone::clone).unwrap_or_default();
    let asked = options.volume.as_deref();
    let volume = match (asked.map(|name| find(name, &names)).transpose(), &objects) {
        (Err(_), Err(failure)) => return Err(Failure::Refused(failure.to_string())),
        (found, _) => found?,
    };
    let wanted = InspectOptions { volume, data: options.data };
    let mut report = store::inspect(segments, wanted)?;
    // If the store can't be loaded, `inspect` has failed above; here only the objects can fail.
    report.findings.extend(objects.err().map(|failure| failure.to_string()));
    let is_sound = report.findings.is_empty();
    let shown = Shown { report, names, devices };
    show(common.form, &shown, || text(&shown))?;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the names of an administrator's objects, checked against the volumes of the store. The
/// pool is only read.
fn load_names(segments: &Shared) -> Result<BTreeMap<u64, String>, Failure> {
    let options = OpenOptions { memory_bytes: 0, ..OpenOptions::default() };
    let store = Store::load(segments.clone(), options)?;
    let names = Array::volume_names(&store)?;
    Ok(names.into_iter().map(|(id, name)| (id.0, name)).collect())
}

/// Returns a volume by its name or its id. No name consists of digits only.
fn find(asked: &str, names: &BTreeMap<u64, String>) -> Result<VolumeId, Failure> {
    if let Ok(id) = asked.parse() {
        return Ok(VolumeId(id));
    }
    let found = names.iter().find(|(_, name)| name.eq_ignore_ascii_case(asked));
    found.map(|(id, _)| VolumeId(*id)).ok_or_else(|| {
        Failure::Refused(format!("Volume does not exist: {asked}. Omit --volume to list all."))
    })
}

fn text(shown: &Shown) -> String {
    let names = shown.names.iter().map(|(id, name)| format!("name        {id}: {name}\n"));
    let devices = shown.devices.as_ref().map_or_else(String::new, ToString::to_string);
    format!("{devices}{}{}\n", names.collect::<String>(), shown.report)
}
