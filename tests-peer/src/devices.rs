//! The devices of a pool on several: having all of them in, and what a scrub finds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::array::Array;

/// How long a scrub of such small pools may take.
const SCRUB_PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);

/// The state of each device, by its number, as `device list` says it.
pub fn states(array: &Array) -> Result<Vec<String>> {
    let state = |device: &Value| device["state"].as_str().unwrap_or("?").to_owned();
    Ok(list(array)?.iter().map(state).collect())
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

/// Reads all of the pool and recounts its parity: how many bytes.
///
/// # Errors
/// If anything was wrong.
pub fn scrub_finds_nothing(array: &Array) -> Result<u64> {
    array.verb(&["pool", "scrub", "start"])?;
    let begin = Instant::now();
    loop {
        let status = array.verb(&["pool", "scrub", "status"])?;
        if status["running"] == false {
            ensure!(status["findings"] == 0, "it has found something: {status}");
            return status["scrubbed_bytes"].as_u64().context("it does not say how much it read");
        }
        ensure!(begin.elapsed() < SCRUB_PATIENCE, "it does not end: {status}");
        std::thread::sleep(PAUSE);
    }
}

fn list(array: &Array) -> Result<Vec<Value>> {
    let devices = array.verb(&["device", "list"])?;
    Ok(devices.as_array().context("no list of devices")?.clone())
}
