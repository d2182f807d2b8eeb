//! A report of invented numbers, with everything that a report can have.

use crate::figures;
use crate::outcome::{
    About, Chart, Line, Machine, Measure, Report, Row, ScenarioOutcome, Series, Status, Value,
    Verdict,
};

/// A text that must be escaped.
pub const HOSTILE: &str = "<script>alert(\"1\")</script> & 'so' | on";

/// Returns a report with all figures, in different states. `speed` divides the seconds of "on".
pub fn report(name: &str, speed: f64) -> Report {
    let mut scenarios: Vec<ScenarioOutcome> =
        figures::ALL.iter().map(|figure| outcome(figure.id, speed)).collect();
    scenarios.retain(|outcome| outcome.id != "V-55");
    for outcome in &mut scenarios {
        adorn(outcome, speed);
    }
    Report { about: about(name), scenarios }
}

/// Returns what was measured, and how.
pub fn about(name: &str) -> About {
    About {
        array: String::from("HOLDFAST VOLUME 0001"),
        name: name.to_owned(),
        durability: String::from("on the medium when acknowledged (WCE 0)"),
        machine: Machine {
            cpu: String::from("Some Processor @ 2.70GHz"),
            cores: 2,
            memory_bytes: 24 << 30,
            kernel: String::from("6.18.0"),
            os: String::from("Debian GNU/Linux 12"),
        },
        lab_version: String::from("0.1.0"),
        date: String::from("2026-11-22T20:00:00Z"),
        scale: 64,
        count_scale: 1,
        load_seconds: 3.0,
        portals: vec![String::from("127.0.0.1:3260"), String::from("127.0.0.1:3261")],
        hosts: 4,
    }
}

/// Returns a scenario that ran, with cases of growing size.
pub fn outcome(id: &str, speed: f64) -> ScenarioOutcome {
    let cases = ["1 VM", "2 VMs", "4 VMs", "8 VMs", "16 VMs"];
    let rows = cases.iter().enumerate().map(|(index, case)| {
        let size = f64::from(1 << index);
        Row {
            case: (*case).to_owned(),
            off: Some(measure(size * 2.3, 2_048_000_000 * (1 << index), 2048 << index)),
            on: Some(measure(size * 0.11 / speed, 104_000 << index, 64 << index)),
        }
    });
    ScenarioOutcome {
        id: id.to_owned(),
        status: Status::Done,
        seconds: 61.5,
        verified_bytes: 34_000_000_000,
        datastores_checked: 3,
        in_software: Vec::new(),
        rows: rows.collect(),
        charts: Vec::new(),
        verdicts: vec![Verdict {
            what: String::from("16 VMs, off against on"),
            goal: String::from("at least 8×"),
            measured: String::from("20.9×"),
            is_met: true,
            reason: None,
        }],
        notes: Vec::new(),
    }
}

fn measure(seconds: f64, wire_bytes: u64, commands: u64) -> Measure {
    Measure { seconds, wire_bytes, host_cpu_s: seconds * 0.4, commands, ..Measure::default() }
}

/// Adds to some scenarios what only they have.
fn adorn(outcome: &mut ScenarioOutcome, speed: f64) {
    match outcome.id.as_str() {
        "P-6" => load_over_time(outcome),
        "P-18" => loads(outcome, speed),
        "P-19" => outcome.charts.push(blocks()),
        "V-34" => {
            let reason = format!("data differs at byte 4,096 of clone 3 {HOSTILE}");
            outcome.status = Status::Failed { reason };
            outcome.rows.truncate(2);
            outcome.rows[1].on = None;
        }
        "V-52" => {
            let reason = String::from("the target has no replication");
            outcome.status = Status::Skipped { reason };
            outcome.rows.clear();
            outcome.verdicts.clear();
            outcome.verified_bytes = 0;
        }
        "V-51" => outcome.rows.iter_mut().for_each(|row| row.off = None),
        _ => {}
    }
}

/// Adds two loads, each disturbed at its own time.
fn load_over_time(outcome: &mut ScenarioOutcome) {
    let line = |name: &str, dip: f64| Line {
        name: name.to_owned(),
        points: (0..120)
            .map(|second| {
                let x = f64::from(second);
                let wave = 1.0 + 0.03 * (x * 0.9).sin();
                let storm =
                    if (30..80).contains(&second) { dip + 0.2 * (x * 2.1).cos() } else { 0.0 };
                (x, 18_000.0 * (wave - storm).max(0.02))
            })
            .collect(),
    };
    outcome.rows = vec![Row {
        case: String::from("150 VMs"),
        off: Some(with_values(120.0, 7_200.0, 48.0)),
        on: Some(with_values(120.0, 17_600.0, 1.9)),
    }];
    outcome.charts = vec![Chart::Lines {
        title: String::from("IOPS of the load while 150 VMs boot"),
        x_unit: String::from("s"),
        y_unit: String::from("IOPS"),
        lines: vec![line("off", 0.65), line("on", 0.0)],
    }];
    outcome.verdicts.push(Verdict {
        what: format!("p99 of the load {HOSTILE}"),
        goal: String::from("at most 1.5× of the quiet one"),
        measured: String::from("1.72×"),
        is_met: false,
        reason: Some(String::from(
            "the hosts share one processor: 61% of the profile is the boot storm's own reads",
        )),
    });
    outcome.notes = vec![
        format!("Locks: reservations when off, ATS when on. {HOSTILE}"),
        String::from("The scale does not touch the count of VMs."),
    ];
}

fn with_values(seconds: f64, iops: f64, p99_ms: f64) -> Measure {
    let value = |name: &str, unit: &str, value: f64| Value {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
    };
    Measure {
        values: vec![
            value("rate", "IOPS", iops),
            value("throughput", "MB/s", iops * 0.032),
            value("p99", "ms", p99_ms),
        ],
        ..measure(seconds, 9_000_000_000, 700_000)
    }
}

/// Adds cases of which one has no "off".
fn loads(outcome: &mut ScenarioOutcome, speed: f64) {
    let row = |case: &str, off: Option<f64>, on: f64| Row {
        case: case.to_owned(),
        off: off.map(|iops| with_values(30.0, iops, 3.0)),
        on: Some(with_values(30.0, on * speed, 2.0)),
    };
    outcome.rows = vec![
        row("thin", Some(7_600.0), 8_300.0),
        row("zeroedthick", Some(7_700.0), 8_400.0),
        row("eagerzeroedthick, nothing is left to be zeroed", None, 10_100.0),
    ];
    let values = |side: fn(&Row) -> Option<&Measure>| {
        outcome.rows.iter().map(|row| Some(side(row)?.values[0].value)).collect()
    };
    outcome.charts = vec![Chart::Bars {
        title: String::from("IOPS of first writes"),
        unit: String::from("IOPS"),
        labels: outcome.rows.iter().map(|row| row.case.clone()).collect(),
        series: vec![
            Series { name: String::from("off"), values: values(|row| row.off.as_ref()) },
            Series { name: String::from("on"), values: values(|row| row.on.as_ref()) },
        ],
    }];
}

/// Returns lines that are neither off nor on.
fn blocks() -> Chart {
    let line = |name: &str, size: f64| Line {
        name: name.to_owned(),
        points: [200.0, 1e3, 5e3, 1e4, 2e4, 4e4, 6e4]
            .map(|blocks: f64| (blocks, size * (0.4 + 400.0 / blocks)))
            .to_vec(),
    };
    Chart::Lines {
        title: String::from("Time to reclaim, by blocks an iteration"),
        x_unit: String::from("blocks"),
        y_unit: String::from("s"),
        lines: vec![line("1 TB", 1.0), line("4 TB", 4.0), line("8 TB", 8.0)],
    }
}
