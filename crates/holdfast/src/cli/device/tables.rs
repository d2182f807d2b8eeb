//! Tables of the calls of each device, and of the health that it reports.

use api::{Device, DeviceTransfers};

use super::{latency, mean, name_of};
use crate::cli::output::{Align, table, time};
use crate::cli::size::human;

/// Returns a table of the calls of each device.
pub(super) fn calls_table(devices: &[Device]) -> String {
    let columns = [
        ("NUMBER", Align::Right),
        ("NAME", Align::Left),
        ("CALLS", Align::Left),
        ("OK", Align::Right),
        ("FAILED", Align::Right),
        ("IN FLIGHT", Align::Right),
        ("BYTES", Align::Right),
        ("MEAN", Align::Right),
        ("P50", Align::Right),
        ("P99", Align::Right),
        ("LONGEST", Align::Right),
        ("ELSEWHERE", Align::Right),
    ];
    let row = |device: &Device, kind: &str, of: &DeviceTransfers, elsewhere: Option<u64>| {
        let longest_us = Some(of.ok_latency_us_max).filter(|_| of.ok > 0);
        vec![
            device.number.to_string(),
            name_of(device),
            kind.into(),
            of.ok.to_string(),
            of.failed.to_string(),
            of.under_way.to_string(),
            human(of.bytes),
            mean(of),
            latency(of.percentile_us(50)),
            latency(of.percentile_us(99)),
            latency(longest_us),
            elsewhere.map_or_else(String::new, |count| count.to_string()),
        ]
    };
    let kinds = |device: &Device| {
        let calls = &device.calls;
        [
            row(device, "reads", &calls.reads, Some(calls.reads_elsewhere)),
            row(device, "writes", &calls.writes, None),
            row(device, "flushes", &calls.flushes, None),
        ]
    };
    table(&columns, &devices.iter().flat_map(kinds).collect::<Vec<_>>(), "No devices.")
}

/// Returns a table of the health that devices report, and why some do not report any.
pub(super) fn health_table(devices: &[Device]) -> String {
    let columns = [
        ("NUMBER", Align::Right),
        ("NAME", Align::Left),
        ("HEALTH", Align::Left),
        ("WEAR", Align::Right),
        ("TEMPERATURE", Align::Right),
        ("MEDIA ERRORS", Align::Right),
        ("ON FOR", Align::Right),
        ("TOLD", Align::Left),
    ];
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let row = |device: &Device| {
        let health = device.health.clone().unwrap_or_default();
        vec![
            device.number.to_string(),
            name_of(device),
            dash(health.passed.map(|passed| if passed { "PASSED" } else { "FAILED" }.into())),
            dash(health.wear_percent.map(|percent| format!("{percent}%"))),
            dash(health.temperature_c.map(|degrees| format!("{degrees} °C"))),
            dash(health.media_errors.map(|count| count.to_string())),
            dash(health.power_on_hours.map(|hours| format!("{hours} h"))),
            dash(health.told_ms.map(time)),
        ]
    };
    let troubles = devices.iter().filter_map(|device| {
        let trouble = device.health.as_ref()?.trouble.as_ref()?;
        Some(format!("Device {}: {trouble}.\n", device.number))
    });
    let rows: Vec<_> = devices.iter().map(row).collect();
    format!("{}{}", table(&columns, &rows, "No devices."), troubles.collect::<String>())
}

#[cfg(test)]
mod tests {
    use api::{DeviceCalls, DeviceHealth, LatencyBucket};

    use super::*;

    #[test]
    fn a_device_reports_its_health_and_a_file_has_none() {
        let health = DeviceHealth {
            passed: Some(false),
            wear_percent: Some(103),
            temperature_c: Some(41),
            media_errors: Some(2),
            power_on_hours: Some(2401),
            told_ms: Some(0),
            trouble: Some("it did not end".into()),
        };
        let failing = Device { name: "/dev/sda".into(), health: Some(health), ..<_>::default() };
        let file = Device { number: 1, name: "/srv/pool.data".into(), ..Device::default() };
        let text = health_table(&[failing, file]);
        let rows: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(rows[1].starts_with("0 /dev/sda FAILED 103% 41 °C 2 2401 h 1970-01-01"), "{text}");
        assert_eq!(rows[2], "1 /srv/pool.data - - - - - -");
        assert_eq!(rows[3], "Device 0: it did not end.");
    }

    #[test]
    fn a_device_has_a_row_for_each_kind_of_call() {
        let bucket = |up_to_us, count| LatencyBucket { up_to_us, count };
        let latencies = vec![bucket(Some(100), 98), bucket(Some(200), 1), bucket(None, 1)];
        let (ok, ok_latency_us, ok_latency_us_max) = (100, 20_000, 11_000_000);
        let writes = DeviceTransfers {
            ok,
            ok_latency_us,
            ok_latency_us_max,
            latencies: latencies.clone(),
            ..<_>::default()
        };
        assert_eq!([50, 99, 100].map(|p| writes.percentile_us(p).unwrap()), [100, 200, 11_000_000]);
        // No more than the maximum, regardless of the width of its bucket.
        let short = DeviceTransfers { ok_latency_us_max: 70, ..writes.clone() };
        assert_eq!(short.percentile_us(50), Some(70));
        let calls = DeviceCalls { writes, reads_elsewhere: 7, ..DeviceCalls::default() };
        let text = calls_table(&[Device { calls, ..Device::default() }]);
        let rows: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(rows[0], "0 - reads 0 0 0 0 B - - - - 7");
        let wanted = "0 - writes 100 0 0 0 B 0.20 ms 0.10 ms 0.20 ms 11000.00 ms";
        assert_eq!(rows[1..], [wanted, "0 - flushes 0 0 0 0 B - - - -"]);
    }
}
