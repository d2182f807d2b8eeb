use std::fs;

use tempfile::TempDir;

use super::{About, Chart, Parameters, Report, ScenarioOutcome, Status, Store, StoreError};
use crate::sheet::sample;

fn parameters(scale: u64) -> Parameters {
    Parameters {
        target: String::from("iqn.2026-01.example:array"),
        portals: vec![String::from("127.0.0.1:3260")],
        hosts: 4,
        scale,
        count_scale: 1,
        load_ms: 3000,
        seed: 1,
        lab_version: String::from("0.1.0"),
    }
}

fn outcome(id: &str) -> ScenarioOutcome {
    sample::outcome(id, 1.0)
}

/// A store in which a run was begun.
fn begun() -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("results")).unwrap();
    store.begin(&sample::about("Holdfast"), &parameters(64)).unwrap();
    (directory, store)
}

fn path(directory: &TempDir, name: &str) -> std::path::PathBuf {
    directory.path().join("results").join(name)
}

#[test]
fn a_report_is_the_same_after_json() {
    let mut report = sample::report("Holdfast", 1.0);
    // A number that was not measured stays absent both ways.
    for chart in report.scenarios.iter_mut().flat_map(|outcome| &mut outcome.charts) {
        if let Chart::Bars { series, .. } = chart {
            series[0].values[0] = None;
        }
    }
    let text = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&text).unwrap();
    assert!(back == report);
}

#[test]
fn a_time_is_formatted_by_rfc_3339() {
    let now = About::now();
    assert_eq!((now.len(), &now[10..11], &now[19..]), (20, "T", "Z"), "{now}");
}

#[test]
fn an_interrupted_run_continues() {
    let (_directory, store) = begun();
    assert_eq!(store.done("P-13", &parameters(64)), None);
    store.put(&outcome("P-13"), &parameters(64)).unwrap();
    assert!(store.done("P-13", &parameters(64)) == Some(outcome("P-13")));
    assert_eq!(store.done("P-9", &parameters(64)), None);
    assert_eq!(store.done("P-13", &parameters(32)), None, "other sizes are another run");
}

#[test]
fn failed_and_skipped_scenarios_are_run_again() {
    let (_directory, store) = begun();
    let reason = String::from("no answer");
    for status in [Status::Failed { reason: reason.clone() }, Status::Skipped { reason }] {
        store.put(&ScenarioOutcome { status, ..outcome("P-13") }, &parameters(64)).unwrap();
        assert_eq!(store.done("P-13", &parameters(64)), None);
        assert_eq!(store.report().unwrap().report.scenarios.len(), 1, "it is in the report");
    }
}

#[test]
fn a_report_has_the_order_of_the_figures() {
    let (_directory, store) = begun();
    for id in ["X-2", "V-25", "P-6", "X-1", "P-13", "P-9"] {
        store.put(&outcome(id), &parameters(64)).unwrap();
    }
    let assembled = store.report().unwrap();
    let ids: Vec<&str> = assembled.report.scenarios.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["P-9", "P-13", "P-6", "V-25", "X-1", "X-2"]);
    assert_eq!(assembled.left_out, [""; 0]);
    assert_eq!(assembled.report.about.name, "Holdfast");
}

#[test]
fn torn_and_foreign_files_are_left_out_and_listed() {
    let (directory, store) = begun();
    for id in ["P-9", "P-13", "P-14"] {
        store.put(&outcome(id), &parameters(64)).unwrap();
    }
    let whole = fs::read(path(&directory, "scenario-P-9.json")).unwrap();
    fs::write(path(&directory, "scenario-P-9.json"), &whole[..whole.len() / 2]).unwrap();
    fs::write(path(&directory, "scenario-P-15.json"), &whole).unwrap();
    fs::write(path(&directory, "scenario-P-16.json"), "[1, 2]").unwrap();
    fs::write(path(&directory, "notes.txt"), "not ours").unwrap();
    store.put(&outcome("P-14"), &parameters(32)).unwrap();
    assert_eq!(store.done("P-9", &parameters(64)), None);
    assert_eq!(store.done("P-15", &parameters(64)), None, "it is of another scenario");
    let assembled = store.report().unwrap();
    let ids: Vec<&str> = assembled.report.scenarios.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["P-13"]);
    assert_eq!(
        assembled.left_out,
        [
            "scenario-P-14.json: it was run with other parameters",
            "scenario-P-15.json: the scenario in it has another name",
            "scenario-P-16.json: it is torn, or not a result",
            "scenario-P-9.json: it is torn, or not a result",
        ]
    );
}

#[test]
fn no_temporary_file_is_left() {
    let (directory, store) = begun();
    store.put(&outcome("P-9"), &parameters(64)).unwrap();
    store.put(&ScenarioOutcome { seconds: 1.0, ..outcome("P-9") }, &parameters(64)).unwrap();
    let found = store.done("P-9", &parameters(64)).unwrap();
    assert_eq!(found.seconds, 1.0, "the newer one is kept");
    let mut names: Vec<String> = fs::read_dir(directory.path().join("results"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["run.json", "scenario-P-9.json"]);
}

#[test]
fn numbers_that_json_can_not_represent_are_refused() {
    let (_directory, store) = begun();
    let endless = ScenarioOutcome { seconds: f64::INFINITY, ..outcome("P-9") };
    assert!(matches!(store.put(&endless, &parameters(64)), Err(StoreError::NoNumber(_))));
    for id in ["", "../P-9", "P 9", "P/9"] {
        let result = store.put(&outcome(id), &parameters(64));
        assert!(matches!(result, Err(StoreError::BadId(_))), "{id:?}");
        assert_eq!(store.done(id, &parameters(64)), None);
    }
}

#[test]
fn undefined_numbers_are_left_out_and_noted() {
    let mut odd = sample::report("Holdfast", 1.0).scenarios;
    let of = |id: &str| odd.iter().position(|outcome| outcome.id == id).unwrap();
    let (loads, storm) = (of("P-18"), of("P-6"));
    for id in [loads, storm] {
        assert!(odd[id].clone().finite() == odd[id], "what is whole stays as it is");
    }
    odd[loads].rows[0].on.as_mut().unwrap().values[2].value = f64::NAN;
    odd[loads].rows[1].off.as_mut().unwrap().seconds = f64::INFINITY;
    let Chart::Bars { series, .. } = &mut odd[loads].charts[0] else { panic!("no bars") };
    series[1].values[0] = Some(f64::NAN);
    let Chart::Lines { lines, .. } = &mut odd[storm].charts[0] else { panic!("no lines") };
    lines[0].points[3].1 = f64::NEG_INFINITY;
    for (index, left_out) in [(loads, 3), (storm, 1)] {
        let whole = odd[index].clone().finite();
        assert_eq!(whole.notes.len() - odd[index].notes.len(), left_out, "{:?}", whole.notes);
        let (_directory, store) = begun();
        store.put(&whole, &parameters(64)).unwrap();
        assert!(store.done(&whole.id, &parameters(64)) == Some(whole));
        assert!(matches!(store.put(&odd[index], &parameters(64)), Err(StoreError::NoNumber(_))));
    }
    let whole = odd[loads].clone().finite();
    assert_eq!(whole.rows[0].on.as_ref().unwrap().values.len(), 2);
    assert!(whole.rows[1].off.is_none() && whole.rows[1].on.is_some());
}

#[test]
fn other_numbers_of_machines_and_loads_are_another_run() {
    let (_directory, store) = begun();
    store.put(&outcome("P-13"), &parameters(64)).unwrap();
    let fewer = Parameters { count_scale: 16, ..parameters(64) };
    let shorter = Parameters { load_ms: 200, ..parameters(64) };
    for other in [fewer, shorter] {
        assert_eq!(store.done("P-13", &other), None, "{other:?}");
    }
}

#[test]
fn absent_software_work_is_not_in_json() {
    let text = serde_json::to_string(&outcome("P-13")).unwrap();
    assert!(!text.contains("in_software") && !text.contains("spread"), "{text}");
    // An outcome from a lab that did not check yet.
    let older = text.replace("\"datastores_checked\":3,", "");
    assert!(older.len() < text.len());
    let back: ScenarioOutcome = serde_json::from_str(&older).unwrap();
    assert_eq!(back.datastores_checked, 0);
}

#[test]
fn without_a_run_there_is_no_report() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    assert!(matches!(store.report(), Err(StoreError::NoRun(_))));
    fs::write(directory.path().join("run.json"), "{").unwrap();
    let error = store.report().unwrap_err().to_string();
    assert!(error.contains("holdfast-lab run"), "{error}");
    assert!(!error.contains('\n'));
}
