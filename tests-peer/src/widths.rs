//! A device is lost permanently, without spare space: its columns are rebuilt on the others while a
//! host continues, and then any two may fail once more. Another device replaces it, and one is
//! removed.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::array::{Array, Shape};
use crate::devices;
use crate::load::Load;
use crate::report::Report;

/// How long it may take until a lost device has no parts left, or a new one is in.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Runs the group `widths`.
///
/// # Errors
/// If the array can't be started.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let settings = "rebuild_after = \"2s\"\n";
    let shape = Shape { devices: 6, apart: true, settings, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let target = array.volume("survivor", "512M", "peer", 1)?;
    let (programs, seed) = (crate::programs(arguments)?, arguments.seed);
    let load = Load::of(&array, &programs, &target, seed);
    let before = array.pool_number("capacity_bytes")?;
    report.check("under load and with little space, a lost device is rebuilt", || {
        let mut process = load.start()?;
        std::thread::sleep(Duration::from_secs(1));
        array.verb(&["device", "fail", "2"])?;
        let took = until(&array, |devices| parts_of(devices, 2) == Some(0));
        load.wait(&mut process, PATIENCE)?;
        Ok(format!("{:.1} s after it was taken out", took?.as_secs_f64()))
    });
    report.check("after kill -9 no part has moved back", || {
        array.kill()?;
        array.inspect()?;
        array.start()?;
        let devices = devices::list(&array)?;
        ensure!(parts_of(&devices, 2) == Some(0), "{}", Value::from(devices));
        load.verify().map(|blocks| format!("{blocks} blocks"))
    });
    report.check("the capacity shrinks accordingly", || {
        let now = array.pool_number("capacity_bytes")?;
        ensure!(now < before && now >= before / 4 * 3 - before / 50, "{before}, then {now}");
        Ok(format!("{} MiB, then {}", before >> 20, now >> 20))
    });
    report.check("two more devices may then fail", || {
        for device in ["0", "4"] {
            array.verb(&["device", "fail", device])?;
        }
        load.verify().map(|blocks| format!("{blocks} blocks"))
    });
    report.check("after their return a scrub finds nothing", || {
        for device in ["0", "4"] {
            array.verb(&["device", "return", device])?;
        }
        until(&array, |devices| [0, 4].iter().all(|number| is_in(devices, *number)))?;
        devices::scrub_finds_nothing(&array).map(|bytes| format!("{} MB", bytes / 1_000_000))
    });
    report.check("a new device replaces it, and segments become wider", || {
        let place = array.scratch().join("new");
        std::fs::create_dir_all(&place)?;
        array.verb(&["device", "replace", "2", &place.display().to_string()])?;
        let took = until(&array, |devices| parts_of(devices, 2).is_some_and(|used| used > 20))?;
        load.verify()?;
        let now = array.pool_number("capacity_bytes")?;
        Ok(format!("after {:.1} s, {} MiB", took.as_secs_f64(), now >> 20))
    });
    report.check("a device is removed, and all data is present", || {
        array.verb(&["device", "remove", "1"])?;
        let took = until(&array, |devices| devices.len() == 5)?;
        let blocks = load.verify()?;
        devices::scrub_finds_nothing(&array)?;
        Ok(format!("after {:.1} s, {blocks} blocks", took.as_secs_f64()))
    });
    report.check("inspect finds nothing after an orderly stop", || {
        array.stop()?;
        array.inspect()?;
        Ok(String::new())
    });
    Ok(())
}

fn is_in(devices: &[Value], number: u64) -> bool {
    devices.iter().any(|device| device["number"] == number && device["state"] == "in")
}

/// Returns how many parts of a device are in use.
fn parts_of(devices: &[Value], number: u64) -> Option<u64> {
    let its = devices.iter().find(|device| device["number"] == number)?;
    its["parts"]["used"].as_u64()
}

/// Waits until the devices are in this state.
fn until(array: &Array, are_so: impl Fn(&[Value]) -> bool) -> Result<Duration> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if are_so(&devices::list(array)?) {
            return Ok(begin.elapsed());
        }
        std::thread::sleep(PAUSE);
    }
    bail!("not within {} s: {}", PATIENCE.as_secs(), Value::from(devices::list(array)?))
}
