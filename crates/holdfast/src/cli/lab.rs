//! `lab …`: measurements on the array, beside published figures.

mod file;

use api::{
    LabCase, LabMeasured, LabPublished, LabRatio, LabReport, LabReportLine, LabReports,
    LabScenario, LabState,
};
use serde::Serialize;
use serde_json::json;

use super::args::{Common, LabVerb};
use super::client::{Client, path_of};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};
use super::size::human;

/// The path of reports after the version.
const KIND: &str = "lab/reports";

/// A case on one line, as CSV has it.
#[derive(Serialize)]
struct Line<'a> {
    scenario: &'a str,
    title: &'a str,
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a LabPublished>,
    state: LabState,
    aims: usize,
    aims_met: usize,
    quantity: &'a str,
    unit: &'a str,
    ratio_of: LabRatio,
    case: Option<&'a str>,
    off: Option<f64>,
    on: Option<f64>,
    ratio: Option<f64>,
    too_fast: bool,
    in_software: bool,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &LabVerb) -> Result<(), Failure> {
    let form = common.form;
    match verb {
        LabVerb::List(listing) => list(&Client::find(common)?, form, listing),
        LabVerb::Show { name } => {
            let report: LabReport = Client::find(common)?.get(&path_of(KIND, name)?)?;
            match form.csv {
                true => show(form, &lines(&report.measured), String::new),
                false => show(form, &report, || text(&report)),
            }
        }
        LabVerb::Keep { name, file } => {
            let measured = file::read(file)?;
            let line: LabReportLine =
                Client::find(common)?.put(&path_of(KIND, name)?, &measured)?;
            show(form, &line, || {
                let LabReportLine { name, scenarios, aims, aims_met, .. } = &line;
                format!(
                    "The array keeps the report as {name}: {scenarios} scenarios, {aims_met} of \
                     {aims} aims met.\n"
                )
            })
        }
        LabVerb::Delete { name } => {
            Client::find(common)?.delete(&path_of(KIND, name)?)?;
            show(form, &json!({ "deleted": name }), || format!("Report {name} is deleted.\n"))
        }
    }
}

fn list(client: &Client, form: Form, listing: &Listing) -> Result<(), Failure> {
    let LabReports { reports } = client.get(&format!("/v1/{KIND}"))?;
    let reports = listing.of(reports)?;
    let columns = [
        ("NAME", Align::Left),
        ("MEASURED", Align::Left),
        ("ARRAY", Align::Left),
        ("LAB", Align::Left),
        ("SCALE", Align::Right),
        ("SCENARIOS", Align::Right),
        ("FAILED", Align::Right),
        ("AIMS MET", Align::Right),
    ];
    let row = |report: &LabReportLine| {
        vec![
            report.name.clone(),
            time(report.measured_ms),
            report.array_name.clone(),
            report.lab_version.clone(),
            report.settings.scale.to_string(),
            report.scenarios.to_string(),
            report.failed.to_string(),
            format!("{} of {}", report.aims_met, report.aims),
        ]
    };
    show(form, &reports, || {
        let rows: Vec<_> = reports.iter().map(row).collect();
        table(&columns, &rows, "No reports. Keep one: holdfast lab keep NAME FILE")
    })
}

/// A line for each case; one for a scenario without any.
fn lines(measured: &LabMeasured) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for scenario in &measured.scenarios {
        let line = |case: Option<&'_ LabCase>| Line {
            scenario: &scenario.id,
            title: &scenario.title,
            source: scenario.source.as_deref(),
            published: scenario.published.as_ref(),
            state: scenario.state,
            aims: scenario.aims.len(),
            aims_met: met(scenario),
            quantity: &scenario.quantity,
            unit: &scenario.unit,
            ratio_of: scenario.ratio_of,
            case: None,
            off: case.and_then(|case| case.off),
            on: case.and_then(|case| case.on),
            ratio: case.and_then(|case| case.ratio),
            too_fast: case.is_some_and(|case| case.too_fast),
            in_software: case.is_some_and(|case| case.in_software),
        };
        let cases = scenario.cases.iter();
        lines.extend(cases.map(|case| Line { case: Some(&case.case), ..line(Some(case)) }));
        if scenario.cases.is_empty() {
            lines.push(line(None));
        }
    }
    lines
}

fn text(report: &LabReport) -> String {
    let rows: Vec<_> = report.measured.scenarios.iter().flat_map(rows).collect();
    let columns = [
        ("ID", Align::Left),
        ("CASE", Align::Left),
        ("OF", Align::Left),
        ("OFF", Align::Right),
        ("ON", Align::Right),
        ("GAIN", Align::Left),
        ("AIMS", Align::Left),
        ("PUBLISHED", Align::Left),
    ];
    let head = facts(&about(report));
    let table = table(&columns, &rows, "No scenarios.");
    let remarks: String = report.measured.scenarios.iter().flat_map(remarks).collect();
    let between = if remarks.is_empty() { "" } else { "\n" };
    format!("{head}\n{table}{between}{remarks}")
}

/// What was measured, and how.
fn about(report: &LabReport) -> Vec<(&'static str, String)> {
    let LabMeasured { settings, machine, .. } = &report.measured;
    let measured = &report.measured;
    let divided = |scale| match scale {
        1 => String::from("the papers'"),
        scale => format!("the papers' divided by {scale}"),
    };
    vec![
        ("Name", report.name.clone()),
        ("Measured", time(measured.measured_ms)),
        ("Array", format!("{} ({})", measured.array_name, measured.array)),
        ("Durability", measured.durability.clone()),
        ("Sizes", divided(settings.scale)),
        ("Machines", divided(settings.count_scale)),
        ("Each load", format!("{} s", three(settings.load_ms as f64 / 1000.0))),
        ("Hosts", format!("{}, over {} portals", settings.hosts, settings.portals)),
        ("Measured on", {
            let memory = human(machine.memory_bytes);
            format!("{}, {} processors, {memory}", machine.processor, machine.processors)
        }),
        ("System", machine.system.clone()),
        ("Lab", measured.lab_version.clone()),
    ]
}

/// The lines of a scenario: values of the whole scenario are in the first one.
fn rows(scenario: &LabScenario) -> Vec<Vec<String>> {
    let number = |number: Option<f64>| match number {
        Some(number) => format!("{} {}", three(number), scenario.unit).trim_end().to_owned(),
        None => String::from("-"),
    };
    let row = |(index, case): (usize, &LabCase)| {
        let mut row = vec![String::new(); 8];
        let mark = if case.in_software { " (in software)" } else { "" };
        row[1] = format!("{}{mark}", case.case);
        row[2] = scenario.quantity.clone();
        (row[3], row[4]) = (number(case.off), number(case.on));
        row[5] = gain(scenario, case);
        if index == 0 {
            head(scenario, &mut row);
        }
        row
    };
    let rows: Vec<_> = scenario.cases.iter().enumerate().map(row).collect();
    if rows.is_empty() {
        let mut row = vec![String::new(); 8];
        head(scenario, &mut row);
        return vec![row];
    }
    rows
}

fn head(scenario: &LabScenario, row: &mut [String]) {
    row[0].clone_from(&scenario.id);
    row[6] = match (scenario.state, scenario.aims.len()) {
        (LabState::Failed, _) => String::from("failed"),
        (LabState::Skipped, _) => String::from("skipped"),
        (LabState::Done, 0) => String::from("none"),
        (LabState::Done, aims) => format!("{} of {aims} met", met(scenario)),
    };
    row[7] = scenario.published.as_ref().map(published).unwrap_or_default();
}

fn met(scenario: &LabScenario) -> usize {
    scenario.aims.iter().filter(|aim| aim.met).count()
}

fn gain(scenario: &LabScenario, case: &LabCase) -> String {
    match (case.ratio, scenario.ratio_of) {
        _ if case.too_fast => String::from("too fast to tell"),
        (None, _) => String::from("-"),
        (Some(ratio), LabRatio::OffByOn) => format!("{}x", three(ratio)),
        // More may be better or worse, so the direction is shown.
        (Some(ratio), LabRatio::OnByOff) => format!("on/off {}x", three(ratio)),
    }
}

/// A paper's figure, in its words.
fn published(of: &LabPublished) -> String {
    let LabPublished { what, off, on, gain } = of;
    let off = off.as_ref().map(|off| format!("off {off}"));
    let on = on.as_ref().map(|on| format!("on {on}"));
    let all: Vec<_> = [off, on, gain.clone()].into_iter().flatten().collect();
    format!("{}: {what}", all.join(", "))
}

/// Remarks on a scenario besides its numbers.
fn remarks(scenario: &LabScenario) -> Vec<String> {
    let id = &scenario.id;
    let mut all = Vec::new();
    if let Some(reason) = &scenario.reason {
        let ended = if scenario.state == LabState::Skipped { "skipped" } else { "failed" };
        all.push(format!("{id} {ended}: {reason}\n"));
    }
    for aim in scenario.aims.iter().filter(|aim| !aim.met) {
        let reason = aim.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let (what, goal, measured) = (&aim.what, &aim.goal, &aim.measured);
        all.push(format!("{id} missed: {what}: {goal}; measured {measured}{reason}\n"));
    }
    all.extend(scenario.notes.iter().map(|note| format!("{id}: {note}\n")));
    all
}

/// A number with three significant digits, or more where it is large.
fn three(number: f64) -> String {
    let exponent = if number == 0.0 { 2.0 } else { number.abs().log10().floor() };
    let decimals = (2.0 - exponent).clamp(0.0, 9.0) as usize;
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (number, text) in [
            (0.0, "0"),
            (0.000_123_4, "0.000123"),
            (0.0801, "0.0801"),
            (8.48, "8.48"),
            (106.25, "106"),
            (9312.4, "9312"),
            (-2.5, "-2.50"),
            (1e-30, "0.000000000"),
        ] {
            assert_eq!(three(number), text);
        }
    }

    #[test]
    fn a_paper_is_quoted_in_its_words() {
        let mut of = LabPublished {
            what: "16 VMs".into(),
            off: Some("4.5 min".into()),
            on: Some("35 s".into()),
            gain: Some("about 8×".into()),
        };
        assert_eq!(published(&of), "off 4.5 min, on 35 s, about 8×: 16 VMs");
        (of.off, of.on) = (None, None);
        assert_eq!(published(&of), "about 8×: 16 VMs");
    }
}
