//! Metrics of the devices of the pool.

use super::{Exposition, add_latencies};
use crate::{CatchingUp, Device, DeviceHealth, DeviceState, DeviceTransfers, Interface};

/// Adds the devices, from the view of hosts' commands.
pub(super) fn devices(interface: &Interface, page: &mut Exposition) {
    let all_devices = interface.devices();
    let devices: Vec<&Device> = all_devices.counting().into_iter().collect();
    let all: Vec<_> = devices
        .iter()
        .flat_map(|device| {
            let name = device.name.as_str();
            [(name, "read", &device.reads), (name, "commit", &device.commits)]
        })
        .collect();
    let total = "Transfers that commands waited for.";
    let under_way = "Transfers that commands are waiting for.";
    asked("holdfast_device_transfer", [total, under_way], &all, page);
    let help = "Retries of writes and flushes that the device had refused.";
    let mut family = page.counter("holdfast_device_retries_total", help);
    for device in &all_devices.devices {
        family.count(&[("device", &named(device))], device.retries);
    }
    refusals(&devices, page);
    members(&all_devices.devices, page);
    leaving(&all_devices.devices, page);
    calls(&all_devices.devices, page);
    health(&all_devices.devices, page);
}

/// Adds the families of the calls to devices, by kind: count, bytes, latency, and calls in
/// progress. `help` is that of the first and the last.
fn asked(
    name: &str,
    [total, under_way]: [&str; 2],
    all: &[(&str, &str, &DeviceTransfers)],
    page: &mut Exposition,
) {
    let mut family = page.counter(&format!("{name}s_total"), total);
    for (device, kind, of) in all {
        let labels = |result| [("device", *device), ("kind", *kind), ("result", result)];
        family.count(&labels("ok"), of.ok).count(&labels("failed"), of.failed);
    }
    let mut family = page.counter(&format!("{name}_bytes_total"), "Bytes of these.");
    // A flush transfers no bytes.
    for (device, kind, of) in all.iter().filter(|(_, kind, _)| *kind != "flush") {
        family.count(&[("device", device), ("kind", kind)], of.bytes);
    }
    let help = "Latency of the successful ones.";
    let mut family = page.histogram(&format!("{name}_latency_seconds"), help);
    for (device, kind, of) in all {
        let labels = [("device", *device), ("kind", *kind)];
        add_latencies(&mut family, &labels, &of.latencies, of.ok_latency_us);
    }
    let mut family = page.gauge(&format!("{name}s_under_way"), under_way);
    for (device, kind, of) in all {
        family.count(&[("device", device), ("kind", kind)], of.under_way);
    }
}

/// Adds the health that block devices report about themselves.
fn health(devices: &[Device], page: &mut Exposition) {
    let reported: Vec<(String, &DeviceHealth)> = devices
        .iter()
        .filter_map(|device| Some((named(device), device.health.as_ref()?)))
        .collect();
    let mut add = |name: &str, help: &str, value: fn(&DeviceHealth) -> Option<f64>| {
        let mut family = page.gauge(name, help);
        for (device, health) in &reported {
            if let Some(value) = value(health) {
                family.add(&[("device", device)], value);
            }
        }
    };
    let help = "Whether the device reports itself as healthy (SMART).";
    add("holdfast_device_health_passed", help, |it| Some(f64::from(u8::from(it.passed?))));
    let help = "The used endurance of the device; 1 is all of it.";
    add("holdfast_device_wear_ratio", help, |it| Some(it.wear_percent? as f64 / 100.0));
    let help = "The temperature of the device.";
    add("holdfast_device_temperature_celsius", help, |it| Some(it.temperature_c? as f64));
    let help = "Uncorrected errors of the medium, over the device's lifetime.";
    add("holdfast_device_media_errors", help, |it| Some(it.media_errors? as f64));
    let help = "The power-on time of the device.";
    add("holdfast_device_power_on_seconds", help, |it| Some(it.power_on_hours? as f64 * 3600.0));
    let help = "The time of the device's last health report, since 1970.";
    add("holdfast_device_health_time_seconds", help, |it| Some(it.told_ms? as f64 / 1000.0));
}

/// Adds the calls to each device, from all callers.
fn calls(devices: &[Device], page: &mut Exposition) {
    let names: Vec<String> = devices.iter().map(named).collect();
    let all: Vec<_> = names
        .iter()
        .zip(devices)
        .flat_map(|(name, Device { calls, .. })| {
            let kinds =
                [("read", &calls.reads), ("write", &calls.writes), ("flush", &calls.flushes)];
            kinds.map(|(kind, of)| (&**name, kind, of))
        })
        .collect();
    let total = "Calls to the device, including background work.";
    let under_way = "Calls to the device in progress.";
    asked("holdfast_device_call", [total, under_way], &all, page);
    let help = "Reads of the device's data that others served instead.";
    let mut family = page.counter("holdfast_device_reads_elsewhere_total", help);
    for (name, device) in names.iter().zip(devices) {
        family.count(&[("device", name)], device.calls.reads_elsewhere);
    }
}

/// Returns the label of a device: its path, or its number if the path is unknown.
fn named(device: &Device) -> String {
    match device.name.is_empty() {
        true => format!("device {}", device.number),
        false => device.name.clone(),
    }
}

/// Adds the state and progress of each device in its pool.
fn members(devices: &[Device], page: &mut Exposition) {
    let help = "The state of the device in its pool: 1 for this state, 0 for all others.";
    let mut family = page.gauge("holdfast_device_state", help);
    for device in devices {
        for state in DeviceState::ALL {
            let labels = [("device", &*named(device)), ("state", state.name())];
            family.count(&labels, u64::from(device.state == state));
        }
    }
    let help = "Failed reads and writes (including flushes) of one of several devices.";
    let mut family = page.counter("holdfast_device_errors_total", help);
    for device in devices {
        let name = named(device);
        family
            .count(&[("device", &name), ("kind", "read")], device.read_errors)
            .count(&[("device", &name), ("kind", "write")], device.write_errors);
    }
    let help = "Places of the device with wrong content, rewritten from another one.";
    let mut family = page.counter("holdfast_device_mended_total", help);
    for device in devices {
        family.count(&[("device", &named(device))], device.mended);
    }
    let help = "Bytes that a device which is catching up still lacks.";
    let mut family = page.gauge("holdfast_device_catching_up_bytes", help);
    for (device, CatchingUp { done_bytes, all_bytes, .. }) in catching_up(devices) {
        family.count(&[("device", &device)], all_bytes.saturating_sub(done_bytes));
    }
    let help = "Bytes that it has of those that it needs.";
    let mut family = page.gauge("holdfast_device_catching_up_done_bytes", help);
    for (device, progress) in catching_up(devices) {
        family.count(&[("device", &device)], progress.done_bytes);
    }
    let help = "Bytes that it needs.";
    let mut family = page.gauge("holdfast_device_catching_up_all_bytes", help);
    for (device, progress) in catching_up(devices) {
        family.count(&[("device", &device)], progress.all_bytes);
    }
    let help = "The remaining time by the rate of the last minute; absent if unknown.";
    let mut family = page.gauge("holdfast_device_catching_up_left_seconds", help);
    for (device, progress) in catching_up(devices) {
        if let Some(left_s) = progress.left_s {
            family.count(&[("device", &device)], left_s);
        }
    }
}

/// Adds what remains to be rebuilt or moved of devices that leave.
fn leaving(devices: &[Device], page: &mut Exposition) {
    let help = "Parts of the device in use by columns, in a striped pool.";
    let mut family = page.gauge("holdfast_device_used_parts", help);
    for (device, parts) in devices.iter().filter_map(|device| Some((device, device.parts?))) {
        family.count(&[("device", &named(device))], parts.used.into());
    }
    let help = "The remaining time, by the rate of the last minute, until others have the content \
                of a device that is out, missing or being removed; absent if unknown.";
    let mut family = page.gauge("holdfast_device_leaving_left_seconds", help);
    for device in devices {
        if let Some(left_s) = device.parts.and_then(|parts| parts.left_s) {
            family.count(&[("device", &named(device))], left_s);
        }
    }
}

fn catching_up(devices: &[Device]) -> impl Iterator<Item = (String, CatchingUp)> {
    devices.iter().filter_map(|device| Some((named(device), device.catching_up?)))
}

/// Adds the outcomes of writes that a device refused, and of failed flushes.
fn refusals(devices: &[&Device], page: &mut Exposition) {
    let help = "How often data that the device had refused was written elsewhere.";
    let mut family = page.counter("holdfast_device_moved_writes_total", help);
    for device in devices {
        family.count(&[("device", &device.name)], device.moved_writes);
    }
    let help = "Failed flushes; their data was written again.";
    let mut family = page.counter("holdfast_device_failed_flushes_total", help);
    for device in devices {
        family.count(&[("device", &device.name)], device.failed_flushes);
    }
    let help = "Memory with written data that is not flushed yet.";
    let mut family = page.gauge("holdfast_device_unflushed_bytes", help);
    for device in devices {
        family.count(&[("device", &device.name)], device.unflushed_bytes);
    }
}
