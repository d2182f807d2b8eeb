//! `device …` and `controller …`: what the array is made of.

use api::{Controller, Controllers, Device, DeviceTransfers, Devices};

use super::args::{Common, ControllerVerb, DeviceVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, show, table, time};
use super::size::human;

/// Transfers that took longer are slow: where the mean does, there is an alert (`device-slow`).
const SLOW_US: u64 = 20_000;

/// Shows the devices of the pool.
pub fn run(common: &Common, verb: &DeviceVerb) -> Result<(), Failure> {
    let DeviceVerb::List = verb;
    let Devices { devices } = Client::find(common)?.get("/v1/devices")?;
    show(common.form, &devices, || device_table(&devices))
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
        ("UNDER WAY", Align::Right),
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

/// The mean duration of a transfer since the start.
fn mean(of: &DeviceTransfers) -> String {
    let mean_us = of.ok_latency_us.checked_div(of.ok);
    mean_us.map_or_else(|| "-".into(), |us| format!("{:.2} ms", us as f64 / 1000.0))
}

/// Shows the controllers of the array.
pub fn controllers(common: &Common, verb: &ControllerVerb) -> Result<(), Failure> {
    let ControllerVerb::List = verb;
    let Controllers { controllers } = Client::find(common)?.get("/v1/controllers")?;
    let columns = [
        ("NAME", Align::Left),
        ("MODE", Align::Left),
        ("VERSION", Align::Left),
        ("SINCE", Align::Left),
        ("PORTALS", Align::Left),
    ];
    let row = |controller: &Controller| {
        let Controller { name, mode, version, started_ms, portals } = controller.clone();
        vec![name, mode, version, time(started_ms), portals.join(", ")]
    };
    show(common.form, &controllers, || {
        table(&columns, &controllers.iter().map(row).collect::<Vec<_>>(), "No controllers.")
    })
}

#[cfg(test)]
mod tests {
    use api::LatencyBucket;

    use super::*;

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
