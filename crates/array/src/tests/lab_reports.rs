//! Reports of the lab: kept, replaced, refused, and there again after a restart.

use super::*;
use crate::lab_reports::*;

fn scenario(id: &str) -> LabScenario {
    let case = |case: &str, off, on, too_fast: bool| LabCase {
        case: case.to_owned(),
        off,
        on,
        ratio: Some(106.25).filter(|_| !too_fast),
        too_fast,
        in_software: false,
    };
    LabScenario {
        id: id.to_owned(),
        title: "Deploy 1, 2, 4, 8 and 16 VMs at once".to_owned(),
        source: Some("000 Pure, fig. 13".to_owned()),
        published: Some(LabPublished {
            what: "16 VMs at once".to_owned(),
            off: Some("4.5 min".to_owned()),
            on: Some("35 s".to_owned()),
            gain: Some("about 8×".to_owned()),
        }),
        state: LabState::Done,
        reason: None,
        quantity: "time".to_owned(),
        unit: "s".to_owned(),
        ratio_of: LabRatio::OffByOn,
        cases: vec![
            case("16 VMs", Some(8.5), Some(0.08), false),
            case("1 VM", None, Some(0.0002), true),
        ],
        aims: vec![LabAim {
            what: "wire bytes".to_owned(),
            goal: "under 0.1%".to_owned(),
            measured: "0.014%".to_owned(),
            met: true,
            reason: None,
        }],
        notes: vec!["Locks: ATS when on.".to_owned()],
    }
}

fn measured(scenarios: usize) -> LabMeasured {
    LabMeasured {
        measured_ms: 1_795_000_000_000,
        lab_version: "0.1.0".to_owned(),
        array: "HOLDFAST Holdfast 0.1.".to_owned(),
        array_name: "Holdfast".to_owned(),
        durability: "on the device".to_owned(),
        settings: LabSettings { scale: 128, count_scale: 1, load_ms: 3000, hosts: 3, portals: 2 },
        machine: LabMachine {
            processor: "Some Processor".to_owned(),
            processors: 2,
            memory_bytes: 24 << 30,
            system: "Debian, Linux 6.1".to_owned(),
        },
        scenarios: (1..=scenarios).map(|n| scenario(&format!("P-{n}"))).collect(),
    }
}

fn report(name: &str, measured: LabMeasured) -> LabReport {
    LabReport { name: LabReportName::new(name).unwrap(), measured }
}

fn names(array: &Array) -> Vec<String> {
    array.lab_reports().iter().map(|report| report.name.to_string()).collect()
}

#[test]
fn reports_are_kept_replaced_and_deleted() {
    let (store, array) = new_array();
    array.keep_lab_report(report("weekly", measured(26))).unwrap();
    array.keep_lab_report(report("first", measured(1))).unwrap();
    let again = array.keep_lab_report(report("Weekly", measured(2))).unwrap();
    assert_eq!(*again, report("Weekly", measured(2)));
    let reopened = Array::open(store.clone(), false).unwrap();
    for array in [&array, &reopened] {
        assert_eq!(names(array), ["first", "Weekly"]);
        assert_eq!(array.lab_report("WEEKLY").unwrap(), again);
    }
    assert_eq!(array.lab_report("none").unwrap_err().code(), "no_such_lab_report");
    store.refuses.store(true, Ordering::Relaxed);
    assert_eq!(array.delete_lab_report("weekly").unwrap_err().code(), "pool_full");
    let refused = array.keep_lab_report(report("weekly", measured(3))).unwrap_err();
    assert_eq!((refused.code(), names(&array).len()), ("pool_full", 2));
    assert_eq!(array.lab_report("weekly").unwrap(), again);
    store.refuses.store(false, Ordering::Relaxed);
    array.delete_lab_report("weekly").unwrap();
    assert_eq!(array.delete_lab_report("weekly").unwrap_err().code(), "no_such_lab_report");
    let reopened = Array::open(store, false).unwrap();
    assert_eq!((names(&array), names(&reopened)), (vec!["first".into()], vec!["first".into()]));
}

#[test]
fn there_are_only_so_many() {
    let (_, array) = new_array();
    for number in 0..LAB_REPORTS_MAX {
        array.keep_lab_report(report(&format!("r{number}"), measured(0))).unwrap();
    }
    let refused = array.keep_lab_report(report("more", measured(0))).unwrap_err();
    assert_eq!(refused.code(), "limit_reached");
    array.keep_lab_report(report("R7", measured(1))).unwrap();
    array.delete_lab_report("r8").unwrap();
    array.keep_lab_report(report("more", measured(0))).unwrap();
}

#[test]
fn what_is_no_report_is_refused() {
    let (store, array) = new_array();
    let refused = |change: &dyn Fn(&mut LabMeasured)| {
        let mut measured = measured(1);
        change(&mut measured);
        let error = array.keep_lab_report(report("r", measured)).unwrap_err();
        assert_eq!(error.code(), "invalid_lab_report", "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    };
    refused(&|m| m.lab_version = "x".repeat(LAB_TEXT_CHARS_MAX + 1));
    refused(&|m| m.durability = "two\nlines".to_owned());
    refused(&|m| m.settings.scale = 0);
    refused(&|m| m.scenarios[0].id.clear());
    refused(&|m| m.scenarios[0].cases[0].on = Some(f64::NAN));
    refused(&|m| m.scenarios[0].cases[0].ratio = Some(f64::INFINITY));
    refused(&|m| m.scenarios[0].cases[0].case.clear());
    refused(&|m| m.scenarios[0].aims[0].reason = Some("\u{1b}[0m".to_owned()));
    refused(&|m| m.scenarios[0].notes[0].push('\0'));
    refused(&|m| m.scenarios[0].published.as_mut().unwrap().gain = Some("\r".to_owned()));
    refused(&|m| m.scenarios.push(m.scenarios[0].clone()));
    refused(&|m| m.scenarios = measured(LAB_SCENARIOS_MAX + 1).scenarios);
    refused(&|m| m.scenarios[0].cases = vec![m.scenarios[0].cases[0].clone(); LAB_CASES_MAX + 1]);
    refused(&|m| m.scenarios[0].aims = vec![m.scenarios[0].aims[0].clone(); LAB_AIMS_MAX + 1]);
    refused(&|m| m.scenarios[0].notes = vec![String::new(); LAB_NOTES_MAX + 1]);
    assert!(array.lab_reports().is_empty());
    // Each of its parts is short enough; the whole is not.
    refused(&|m| {
        m.scenarios = measured(LAB_SCENARIOS_MAX).scenarios;
        m.scenarios.iter_mut().for_each(|s| s.notes = vec!["é".repeat(LAB_TEXT_CHARS_MAX)]);
    });
    array.keep_lab_report(report("r", measured(LAB_SCENARIOS_MAX))).unwrap();
    let kept = store.kept.lock().0[b"Lr".as_slice()].len();
    assert!((1 << 10..=LAB_REPORT_BYTES_MAX).contains(&kept), "{kept} bytes");
}

#[test]
fn a_record_in_the_wrong_place_is_damage() {
    let (store, array) = new_array();
    array.keep_lab_report(report("a", measured(1))).unwrap();
    {
        let config = &mut store.kept.lock().0;
        let record = config.remove(b"La".as_slice()).unwrap();
        config.insert(b"Lb".to_vec(), record);
    }
    let error = Array::open(store, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The stored configuration can't be used: record Lb: it is the record of another report. \
         `holdfast inspect` shows more."
    );
}
