//! The devices of a pool on several: bringing all of them in, and the results of a scrub.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::array::Array;

/// How long a scrub of such small pools may take, on a busy machine.
const SCRUB_PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);

/// A device in `device list`.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `in`, `catching_up`, `out` or `missing`.
    pub state: String,
    /// Why it is out, if known.
    pub why_out: Option<String>,
}

/// Returns each device, by number.
///
/// # Errors
/// If the array does not respond.
pub fn listed(array: &Array) -> Result<Vec<Listed>> {
    let text = |device: &Value, name: &str| device[name].as_str().map(str::to_owned);
    let one = |device: &Value| Listed {
        state: text(device, "state").unwrap_or_else(|| "?".to_owned()),
        why_out: text(device, "why_out"),
    };
    Ok(list(array)?.iter().map(one).collect())
}

/// Returns all devices that are out or missing, and waits until they have caught up. Returns how
/// long that took.
///
/// # Errors
/// If they have not after `patience`. A temporary refusal by the array is no error.
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
            "the devices do not catch up: {}\nrefused last: {refused}",
            Value::from(devices)
        );
        std::thread::sleep(PAUSE);
    }
}

/// Adds the first place at which the array has no device.
fn add_missing(array: &Array, devices: &[Value]) -> Result<crate::command::Finished> {
    let places = array.places();
    let is_known = |place: &&String| {
        let names = devices.iter().filter_map(|device| device["name"].as_str());
        names.into_iter().any(|name| name.strip_prefix(&***place).is_some_and(in_directory))
    };
    let place = places.iter().find(|place| !is_known(place)).context("no directory is left")?;
    array.try_verb(&["device", "add", place])
}

/// Returns whether this follows the name of a directory.
fn in_directory(rest: &str) -> bool {
    rest.starts_with('/')
}

/// The result of a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrubbed {
    /// Bytes read.
    pub bytes: u64,
    /// The number of findings. What it repaired on reading counts only once the array has checked
    /// it, possibly in the next pass.
    pub found: u64,
    /// Locations that were rewritten meanwhile.
    pub mended: u64,
    /// Damage that could not be repaired.
    pub damaged: u64,
}

/// Reads the whole pool and checks its parity.
///
/// # Errors
/// If it does not end.
pub fn scrub(array: &Array) -> Result<Scrubbed> {
    let (mended_before, before) = (mended(array)?, array.verb(&["pool", "scrub", "status"])?);
    // The array itself scrubs after a device has caught up.
    loop {
        scrubbed(array)?;
        let started = array.try_verb(&["pool", "scrub", "start"])?;
        if started.code == 0 {
            break;
        }
        let status = array.verb(&["pool", "scrub", "status"])?;
        ensure!(status["running"] == true, "a scrub does not start: {}", started.text);
    }
    let after = scrubbed(array)?;
    let number = |status: &Value, name: &str| {
        status[name].as_u64().with_context(|| format!("the scrub status has no {name}: {status}"))
    };
    Ok(Scrubbed {
        bytes: number(&after, "done_bytes")?,
        found: number(&after, "findings")? - number(&before, "findings")?,
        mended: mended(array)? - mended_before,
        damaged: number(&after, "damaged")?,
    })
}

/// Waits until no scrub runs, and returns the status.
fn scrubbed(array: &Array) -> Result<Value> {
    let begin = Instant::now();
    loop {
        let status = array.verb(&["pool", "scrub", "status"])?;
        if status["running"] == false {
            return Ok(status);
        }
        ensure!(begin.elapsed() < SCRUB_PATIENCE, "the scrub does not end: {status}");
        std::thread::sleep(PAUSE);
    }
}

/// Reads the whole pool and checks its parity. Returns how many bytes were read.
///
/// # Errors
/// If anything was wrong.
pub fn scrub_finds_nothing(array: &Array) -> Result<u64> {
    let scrubbed = scrub(array)?;
    ensure!(scrubbed.is_nothing_found(), "the scrub found damage: {scrubbed:?}");
    Ok(scrubbed.bytes)
}

impl Scrubbed {
    /// Returns whether there were no findings.
    pub fn is_nothing_found(&self) -> bool {
        (self.found, self.mended, self.damaged) == (0, 0, 0)
    }
}

/// Returns how many locations of all devices were rewritten since the start of the process.
///
/// # Errors
/// If the array does not respond.
pub fn mended(array: &Array) -> Result<u64> {
    Ok(list(array)?.iter().filter_map(|device| device["mended"].as_u64()).sum())
}

/// Returns the devices in `device list`.
///
/// # Errors
/// If the array does not respond.
pub fn list(array: &Array) -> Result<Vec<Value>> {
    let devices = array.verb(&["device", "list"])?;
    Ok(devices.as_array().context("no list of devices")?.clone())
}
