//! Reports of smartctl 7.1 to 7.4, shortened, and reports that no tool should print.

use serde_json::{Value, json};

use super::*;

fn reported(report: &Value) -> DeviceHealth {
    parse(report.to_string().as_bytes()).unwrap()
}

fn nvme(passed: bool) -> Value {
    json!({
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 1], "argv": ["smartctl", "--json=c"], "exit_status": 0},
        "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
        "model_name": "EXAMPLE 1T",
        "user_capacity": {"blocks": 2_000_409_264_u64, "bytes": 1_024_209_543_168_u64},
        "smart_status": {"passed": passed, "nvme": {"value": 0}},
        "nvme_smart_health_information_log": {
            "critical_warning": 0, "temperature": 36, "available_spare": 100,
            "available_spare_threshold": 10, "percentage_used": 3, "data_units_read": 9_511_859,
            "power_on_hours": 2401, "media_errors": 2, "num_err_log_entries": 0,
        },
        "temperature": {"current": 36},
        "power_on_time": {"hours": 2401},
    })
}

fn ata(attributes: Value) -> Value {
    json!({
        "smartctl": {"version": [7, 2], "exit_status": 64},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "smart_status": {"passed": true},
        "ata_smart_attributes": {"revision": 16, "table": attributes},
        "power_on_time": {"hours": 1730, "minutes": 12},
        "temperature": {"current": 32},
    })
}

fn attribute(id: u64, name: &str, value: u64, raw: u64) -> Value {
    json!({
        "id": id, "name": name, "value": value, "worst": value, "thresh": 1, "when_failed": "",
        "flags": {"value": 50, "string": "-O--CK ", "prefailure": false},
        "raw": {"value": raw, "string": raw.to_string()},
    })
}

#[test]
fn nvme_reports_all_health_fields() {
    let expected = DeviceHealth {
        passed: Some(true),
        wear_percent: Some(3),
        temperature_c: Some(36),
        media_errors: Some(2),
        power_on_hours: Some(2401),
        ..DeviceHealth::default()
    };
    assert_eq!(reported(&nvme(true)), expected);
    assert_eq!(reported(&nvme(false)).passed, Some(false));
    // From 7.4 on.
    let mut newer = nvme(true);
    newer["endurance_used"] = json!({"current_percent": 4});
    assert_eq!(reported(&newer).wear_percent, Some(4));
}

#[test]
fn ata_health_is_read_from_attributes_and_statistics() {
    let table = json!([
        attribute(5, "Reallocated_Sector_Ct", 100, 0),
        attribute(177, "Wear_Leveling_Count", 93, 120),
        attribute(187, "Reported_Uncorrect", 99, 5),
        attribute(198, "Offline_Uncorrectable", 100, 7),
    ]);
    let health = reported(&ata(table));
    let found = (health.passed, health.wear_percent, health.media_errors);
    assert_eq!(found, (Some(true), Some(7), Some(5)));
    assert_eq!((health.temperature_c, health.power_on_hours), (Some(32), Some(1730)));
    let disk = reported(&ata(json!([attribute(198, "Offline_Uncorrectable", 100, 7)])));
    assert_eq!((disk.wear_percent, disk.media_errors), (None, Some(7)));
    let mut with_statistics = ata(json!([attribute(177, "Wear_Leveling_Count", 93, 120)]));
    with_statistics["ata_device_statistics"] = json!({"pages": [
        {"number": 1, "table": [{"offset": 8, "name": "Lifetime Power-On Resets", "value": 300}]},
        {"number": 7, "name": "Solid State Device Statistics", "table": [
            {"offset": 8, "name": "Percentage Used Endurance Indicator", "size": 1, "value": 6},
        ]},
    ]});
    assert_eq!(reported(&with_statistics).wear_percent, Some(6));
}

#[test]
fn scsi_health_is_read_from_log_pages() {
    let counters = |uncorrected: u64| {
        json!({
            "errors_corrected_by_eccfast": 300_357_663_u64,
            "gigabytes_processed": "176987.332",
            "total_uncorrected_errors": uncorrected,
        })
    };
    let health = reported(&json!({
        "device": {"name": "/dev/sdg", "type": "scsi", "protocol": "SCSI"},
        "smart_status": {"passed": true},
        "temperature": {"current": 34, "drive_trip": 68},
        "scsi_grown_defect_list": 56,
        "power_on_time": {"hours": 43_549, "minutes": 33},
        "scsi_percentage_used_endurance_indicator": 91,
        "scsi_error_counter_log": {"read": counters(3), "write": counters(1)},
    }));
    let expected = DeviceHealth {
        passed: Some(true),
        wear_percent: Some(91),
        temperature_c: Some(34),
        media_errors: Some(4),
        power_on_hours: Some(43_549),
        ..DeviceHealth::default()
    };
    assert_eq!(health, expected);
}

#[test]
fn a_device_without_health_data_is_shown_with_the_reason() {
    let message = "/dev/vda: Unable to detect device type\u{1b}[2J";
    let report = json!({
        "smartctl": {
            "version": [7, 3],
            "messages": [
                {"string": "Something else", "severity": "information"},
                {"string": message, "severity": "error"},
            ],
            "exit_status": 1,
        },
        "local_time": {"time_t": 1_795_806_312},
    });
    let why = parse(report.to_string().as_bytes()).unwrap_err();
    assert_eq!(why, "/dev/vda: Unable to detect device type [2J");
    assert_eq!(parse(b"{}").unwrap_err(), "smartctl reports no health");
    let long = json!({"smartctl": {"messages": [{"string": "x".repeat(100_000)}]}});
    assert_eq!(parse(long.to_string().as_bytes()).unwrap_err().len(), MESSAGE_MAX);
}

#[test]
fn invalid_reports_are_refused() {
    let whole = nvme(true).to_string();
    for cut in 0..whole.len() {
        assert!(parse(&whole.as_bytes()[..cut]).is_err(), "{cut}");
    }
    let deep = "[".repeat(100_000);
    let wrong = [
        "",
        "null",
        "[]",
        "smartctl 7.3 2022-02-28 r5338",
        "\u{0}\u{1}",
        &deep,
        r#"{"smart_status": {"passed": "yes"}}"#,
        r#"{"smart_status": {"passed": true}, "power_on_time": {"hours": -1}}"#,
        r#"{"smart_status": {"passed": true}, "temperature": {"current": 1e400}}"#,
    ];
    for text in wrong {
        assert!(parse(text.as_bytes()).is_err(), "{text:.60}");
    }
    let greatest = json!({"total_uncorrected_errors": u64::MAX});
    let sum = json!({"scsi_error_counter_log": {"read": greatest, "write": greatest}});
    assert_eq!(reported(&sum).media_errors, Some(u64::MAX));
    let worn = ata(json!([attribute(231, "SSD_Life_Left", 253, 0)]));
    assert_eq!(reported(&worn).wear_percent, Some(0));
}
