//! `device …`: the devices of the pool.

mod tables;

use std::path::Path;

use api::{
    CatchingUp, Device, DeviceAdd, DeviceState, DeviceStateChange, DeviceTransfers, Devices,
};
use serde_json::json;

use self::tables::{calls_table, health_table};
use super::args::{Common, DeviceVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, show, table};
use super::size::human;

/// Transfers that take longer are slow: if the mean does, there is an alert (`device-slow`).
const SLOW_US: u64 = 20_000;

/// Shows the devices of the pool, and adds, replaces or removes devices.
pub fn run(common: &Common, verb: &DeviceVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let show_device =
        |device: &Device, text: &str| show(common.form, device, || format!("{text}\n"));
    match verb {
        DeviceVerb::List { counters, health } => {
            let found: Devices = client.get("/v1/devices")?;
            show(common.form, &found.devices, || match (counters, health) {
                (true, _) => calls_table(&found.devices),
                (_, true) => health_table(&found.devices),
                _ => text_of(&found),
            })
        }
        DeviceVerb::Add { place, force } => {
            let device = add(&client, place, None, *force)?;
            show_device(&device, &came(&device))
        }
        DeviceVerb::Replace { number, place, force } => {
            let device = add(&client, place, Some(*number), *force)?;
            // In stripes the new device has the number of the one that it replaces.
            let text = match device.number == *number {
                true => came(&device),
                false => format!("{} Device {number} is out of the pool.", came(&device)),
            };
            show_device(&device, &text)
        }
        DeviceVerb::Remove { number } => {
            client.delete(&format!("/v1/devices/{number}"))?;
            let found: Devices = client.get("/v1/devices")?;
            let left = found.devices.iter().find(|device| device.number == *number);
            let parts = left.and_then(|device| device.parts).map(|parts| parts.used);
            let reported = json!({ "removed": number, "parts_left": parts.unwrap_or_default() });
            show(common.form, &reported, || match parts {
                None => format!("Device {number} was removed from the pool.\n"),
                Some(parts) => format!(
                    "Device {number} is being emptied: {parts} parts are moved to the others, and \
                     then it is removed from the pool. holdfast device list shows the progress; \
                     holdfast device return {number} keeps it.\n"
                ),
            })
        }
        DeviceVerb::Fail { number } => {
            let device = set_state(&client, *number, DeviceState::Out)?;
            let instead = format!("holdfast device return {number} brings it back");
            show_device(&device, &format!("Device {number} is out, and is not used. {instead}."))
        }
        DeviceVerb::Return { number } => {
            let device = set_state(&client, *number, DeviceState::In)?;
            show_device(&device, &came(&device))
        }
        DeviceVerb::Identify { number } => {
            let path = format!("/v1/devices/{number}/identify");
            let device: Device = client.post(&path, &json!({}))?;
            let text = format!(
                "{} is being read for 10 seconds: look for the active device. No locate light is \
                 switched on.",
                device.name
            );
            show_device(&device, &text)
        }
    }
}

fn add(
    client: &Client,
    place: &Path,
    replaces: Option<u16>,
    force: bool,
) -> Result<Device, Failure> {
    // The path is relative to this process; the array may have another working directory.
    let path =
        std::path::absolute(place).map_err(|error| Failure::of_file("use", place, &error))?;
    let place = path.display().to_string();
    client.post("/v1/devices", &DeviceAdd { place, replaces, force })
}

fn set_state(client: &Client, number: u16, state: DeviceState) -> Result<Device, Failure> {
    let change = DeviceStateChange { state: state.name().into() };
    client.patch(&format!("/v1/devices/{number}"), &change)
}

/// Returns the message for a device that was added.
fn came(device: &Device) -> String {
    let Device { number, name, .. } = device;
    match device.state {
        DeviceState::CatchingUp => format!(
            "Device {number} ({name}) is catching up; holdfast device list shows the progress."
        ),
        _ => format!("Device {number} ({name}) is {}.", in_words(device.state)),
    }
}

/// Returns a table of the devices; for several, also their total I/O.
fn text_of(found: &Devices) -> String {
    match &found.together {
        None => device_table(&found.devices),
        Some(together) => {
            let transfers = device_table(std::slice::from_ref(together));
            let whys = found.devices.iter().filter_map(|device| {
                let why = device.why_out.as_ref()?;
                Some(format!("Device {} is out: {why}.\n", device.number))
            });
            let whys: String = whys.collect();
            format!("{}{whys}\nAll of them together:\n{transfers}", member_table(&found.devices))
        }
    }
}

/// Returns a table of several devices.
fn member_table(devices: &[Device]) -> String {
    let columns = [
        ("NUMBER", Align::Right),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("LENGTH", Align::Right),
        ("PARTS", Align::Right),
        ("BAD READS", Align::Right),
        ("BAD WRITES", Align::Right),
        ("MENDED", Align::Right),
        ("RETRIES", Align::Right),
        ("ID", Align::Left),
    ];
    let row = |device: &Device| {
        vec![
            device.number.to_string(),
            name_of(device),
            state_of(device),
            human(device.len_bytes),
            device.parts.map_or("-".into(), |parts| format!("{}/{}", parts.used, parts.all)),
            device.read_errors.to_string(),
            device.write_errors.to_string(),
            device.mended.to_string(),
            device.retries.to_string(),
            device.id.chars().take(8).collect(),
        ]
    };
    table(&columns, &devices.iter().map(row).collect::<Vec<_>>(), "No devices.")
}

/// Returns the location of the device, if it is known.
fn name_of(device: &Device) -> String {
    if device.name.is_empty() { "-".into() } else { device.name.clone() }
}

/// Returns the state, with its progress.
fn state_of(device: &Device) -> String {
    let words = in_words(device.state);
    match device.catching_up {
        Some(progress) if device.state == DeviceState::CatchingUp => {
            let CatchingUp { done_bytes, all_bytes, .. } = progress;
            let left = progress.left().map_or_else(String::new, |left| format!(", {left}"));
            format!("{words}, {} of {}{left}", human(done_bytes), human(all_bytes))
        }
        _ => {
            let parts = device.parts.unwrap_or_default();
            let emptied = if parts.is_emptied { ", emptied" } else { "" };
            let left = parts.left().map_or_else(String::new, |left| format!(", {left}"));
            format!("{words}{emptied}{left}")
        }
    }
}

fn in_words(state: DeviceState) -> &'static str {
    match state {
        DeviceState::CatchingUp => "catching up",
        other => other.name(),
    }
}

fn device_table(devices: &[Device]) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("CAPACITY", Align::Right),
        ("WRITES", Align::Left),
        ("RETRIES", Align::Right),
        ("MOVED", Align::Right),
        ("BAD FLUSHES", Align::Right),
        ("TRANSFERS", Align::Left),
        ("OK", Align::Right),
        ("FAILED", Align::Right),
        ("IN FLIGHT", Align::Right),
        ("BYTES", Align::Right),
        ("LATENCY", Align::Right),
        ("SLOW", Align::Right),
    ];
    let row = |device: &Device, kind: &str, of: &DeviceTransfers| {
        vec![
            device.name.clone(),
            human(device.capacity_bytes),
            if device.takes_writes { "taken" } else { "refused" }.into(),
            device.retries.to_string(),
            device.moved_writes.to_string(),
            device.failed_flushes.to_string(),
            kind.into(),
            of.ok.to_string(),
            of.failed.to_string(),
            of.under_way.to_string(),
            human(of.bytes),
            mean(of),
            of.longer_than(SLOW_US).to_string(),
        ]
    };
    let both = |device: &Device| {
        [row(device, "reads", &device.reads), row(device, "commits", &device.commits)]
    };
    table(&columns, &devices.iter().flat_map(both).collect::<Vec<_>>(), "No devices.")
}

/// Returns the mean duration of a transfer since the start.
fn mean(of: &DeviceTransfers) -> String {
    latency(of.ok_latency_us.checked_div(of.ok))
}

fn latency(us: Option<u64>) -> String {
    us.map_or_else(|| "-".into(), |us| format!("{:.2} ms", us as f64 / 1000.0))
}

#[cfg(test)]
mod tests {
    use api::{DeviceParts, LatencyBucket};

    use super::*;

    #[test]
    fn several_devices_have_a_row_each_and_a_total() {
        let device = |number, state| Device {
            number,
            name: format!("/{number}"),
            state,
            ..Device::default()
        };
        let progress = CatchingUp { done_bytes: 1 << 30, all_bytes: 4 << 30, left_s: Some(7500) };
        let parts = |is_emptied, left_s| {
            Some(DeviceParts { all: 9, used: 3, is_emptied, left_s: Some(left_s) })
        };
        let out = Device {
            why_out: Some("a write failed".into()),
            parts: parts(false, 65),
            ..device(2, DeviceState::Out)
        };
        let leaving = Device { parts: parts(true, 9), ..device(3, DeviceState::In) };
        let catching_up =
            Device { catching_up: Some(progress), ..device(1, DeviceState::CatchingUp) };
        let devices = vec![device(0, DeviceState::In), catching_up, out, leaving];
        let together = Some(Device { name: "pool".into(), ..Device::default() });
        let text = text_of(&Devices { devices, together });
        for reported in [
            "catching up, 1 GiB of 4 GiB, 2 h 5 min left",
            "Device 2 is out: a write failed.",
            "out, 1 min 5 s left",
            "in, emptied, 9 s left",
            "together",
        ] {
            assert!(text.contains(reported), "{text}");
        }
    }

    #[test]
    fn a_device_has_a_row_for_reads_and_one_for_commits() {
        let latencies = vec![
            LatencyBucket { up_to_us: Some(SLOW_US), count: 3 },
            LatencyBucket { up_to_us: None, count: 1 },
        ];
        let reads = DeviceTransfers {
            ok: 4,
            bytes: 16_384,
            ok_latency_us: 500,
            latencies,
            ..<_>::default()
        };
        let device = Device {
            name: "/dev/nvme0n1".into(),
            capacity_bytes: 1 << 40,
            takes_writes: false,
            retries: 7,
            moved_writes: 3,
            failed_flushes: 5,
            reads,
            commits: DeviceTransfers { failed: 1, under_way: 2, ..DeviceTransfers::default() },
            ..Device::default()
        };
        let text = device_table(&[device]);
        let rows: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        let [capacity, unit] = [rows[0][1], rows[0][2]];
        assert_eq!(format!("{capacity} {unit}"), human(1 << 40));
        let tail = |row: usize| rows[row][3..].join(" ");
        assert_eq!(tail(0), "refused 7 3 5 reads 4 0 0 16 KiB 0.12 ms 1");
        assert_eq!(tail(1), "refused 7 3 5 commits 0 1 2 0 B - 0");
    }
}
