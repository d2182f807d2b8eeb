//! The devices of a pool on several: having all of them in, and what a scrub finds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::array::Array;

/// How long a scrub of such small pools may take, on a machine that others use as well.
const SCRUB_PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);

/// What `device list` says of a device.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `in`, `catching_up`, `out` or `missing`.
    pub state: String,
    /// Why it is out, if it is and that is known.
    pub why_out: Option<String>,
}

/// Each device, by its number.
///
/// # Errors
/// If the array does not say.
pub fn listed(array: &Array) -> Result<Vec<Listed>> {
    let text = |device: &Value, name: &str| device[name].as_str().map(str::to_owned);
    let one = |device: &Value| Listed {
        state: text(device, "state").unwrap_or_else(|| "?".to_owned()),
        why_out: text(device, "why_out"),
    };
    Ok(list(array)?.iter().map(one).collect())
}

/// Has all devices return that are out or missing, and waits until they have caught up: how long
/// that took.
///
/// # Errors
/// If they have not after `patience`. That the array refuses one for a while is none.
pub fn all_return(array: &Array, patience: Duration) -> Result<Duration> {
    let begin = Instant::now();
    let mut refused = String::new();
    loop {
        let devices = list(array)?;
        if devices.iter().all(|device| device["state"] == "in") {
            return Ok(begin.elapsed());
        }
        for device in &devices {
            let answer = match device["state"].as_str() {
                Some("out") => array.try_verb(&["device", "return", &device["number"].to_string()]),
                Some("missing") => add_missing(array, &devices),
                _ => continue,
            }?;
            if answer.code != 0 {
                refused = answer.text;
            }
        }
        ensure!(
            begin.elapsed() < patience,
            "they do not catch up: {}\nrefused last: {refused}",
            Value::from(devices)
        );
        std::thread::sleep(PAUSE);
    }
}

/// Gives the array the first place that none of its devices is at.
fn add_missing(array: &Array, devices: &[Value]) -> Result<crate::command::Finished> {
    let places = array.places();
    let is_known = |place: &&String| {
        let names = devices.iter().filter_map(|device| device["name"].as_str());
        names.into_iter().any(|name| name.strip_prefix(&***place).is_some_and(in_directory))
    };
    let place = places.iter().find(|place| !is_known(place)).context("no place is left")?;
    array.try_verb(&["device", "add", place])
}

/// Whether this follows the name of a directory.
fn in_directory(rest: &str) -> bool {
    rest.starts_with('/')
}

/// What a scrub came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrubbed {
    /// Bytes that it has read.
    pub bytes: u64,
    /// How often it says that it found something. What it has mended because it read it is among
    /// that only when the array has looked there, which may be in the next pass.
    pub found: u64,
    /// Places of devices that were written anew meanwhile.
    pub mended: u64,
    /// What is damaged still, as it could not be repaired.
    pub damaged: u64,
}

/// Reads all of the pool and recounts its parity.
///
/// # Errors
/// If it does not end.
pub fn scrub(array: &Array) -> Result<Scrubbed> {
    let mended_before = mended(array)?;
    let before = array.verb(&["pool", "scrub", "start"])?;
    let begin = Instant::now();
    let after = loop {
        let status = array.verb(&["pool", "scrub", "status"])?;
        if status["running"] == false {
            break status;
        }
        ensure!(begin.elapsed() < SCRUB_PATIENCE, "it does not end: {status}");
        std::thread::sleep(PAUSE);
    };
    let number = |status: &Value, name: &str| {
        status[name].as_u64().with_context(|| format!("the scrub does not say {name}: {status}"))
    };
    Ok(Scrubbed {
        bytes: number(&after, "done_bytes")?,
        found: number(&after, "findings")? - number(&before, "findings")?,
        mended: mended(array)? - mended_before,
        damaged: number(&after, "damaged")?,
    })
}

/// Reads all of the pool and recounts its parity: how many bytes.
///
/// # Errors
/// If anything was wrong.
pub fn scrub_finds_nothing(array: &Array) -> Result<u64> {
    let scrubbed = scrub(array)?;
    ensure!(scrubbed.is_nothing_found(), "it has found something: {scrubbed:?}");
    Ok(scrubbed.bytes)
}

impl Scrubbed {
    /// Whether all was as it should be.
    pub fn is_nothing_found(&self) -> bool {
        (self.found, self.mended, self.damaged) == (0, 0, 0)
    }
}

/// Places of all devices that were written anew since the start of the process.
///
/// # Errors
/// If the array does not say.
pub fn mended(array: &Array) -> Result<u64> {
    Ok(list(array)?.iter().filter_map(|device| device["mended"].as_u64()).sum())
}

/// The devices, as `device list` says them.
///
/// # Errors
/// If the array does not say.
pub fn list(array: &Array) -> Result<Vec<Value>> {
    let devices = array.verb(&["device", "list"])?;
    Ok(devices.as_array().context("no list of devices")?.clone())
}
