//! The JSON that `holdfast-lab` writes, and the part that the array keeps.

use std::fs;
use std::io::Read;
use std::path::Path;

use api::{
    LabAim, LabCase, LabMachine, LabMeasured, LabPublished, LabRatio, LabScenario, LabSettings,
    LabState,
};
use array::lab_reports::LAB_TEXT_CHARS_MAX;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::cli::failure::Failure;

/// The version of the form that is read here.
const FORM: u64 = 1;
/// Longer than any report with all its charts.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What distinguishes a report from other JSON, and its form from others.
#[derive(Deserialize)]
struct Form {
    form: Option<u64>,
}

/// A report. The array keeps no charts, and one number of each case.
#[derive(Deserialize)]
struct File {
    about: About,
    scenarios: Vec<Scenario>,
}

#[derive(Deserialize)]
struct About {
    array: String,
    name: String,
    durability: String,
    machine: Machine,
    lab_version: String,
    date: String,
    scale: u64,
    count_scale: u64,
    load_seconds: f64,
    portals: Vec<String>,
    hosts: u32,
}

#[derive(Deserialize)]
struct Machine {
    cpu: String,
    cores: u32,
    memory_bytes: u64,
    kernel: String,
    os: String,
}

#[derive(Deserialize)]
struct Scenario {
    id: String,
    status: Status,
    verdicts: Vec<Verdict>,
    notes: Vec<String>,
    summary: Summary,
}

#[derive(Deserialize)]
struct Status {
    state: LabState,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Verdict {
    what: String,
    goal: String,
    measured: String,
    is_met: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    title: String,
    source: Option<String>,
    published: Option<LabPublished>,
    quantity: String,
    unit: String,
    ratio_of: LabRatio,
    cases: Vec<LabCase>,
}

/// Reads a report.
///
/// # Errors
/// If the file can't be read, or is not a report; the error is one line.
pub fn read(path: &Path) -> Result<LabMeasured, Failure> {
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| Failure::of_file("read", path, &error))?;
    let refuse = |why| Failure::Usage(format!("{} {why}", path.display()));
    measured(&text).map_err(refuse)
}

/// Parses a report; the error is to be shown after the file's name.
fn measured(text: &str) -> Result<LabMeasured, String> {
    let unread = |error: serde_json::Error| format!("is no report of holdfast-lab: {error}");
    let Form { form } = serde_json::from_str(text).map_err(unread)?;
    match form {
        Some(FORM) => {}
        Some(other) => {
            return Err(format!("is a report of form {other}; this program reads form {FORM}"));
        }
        None => {
            return Err(String::from(
                "does not tell its form. Make it anew: holdfast-lab report --results DIR --json \
                 FILE",
            ));
        }
    }
    let File { about, scenarios } = serde_json::from_str(text).map_err(unread)?;
    let began = OffsetDateTime::parse(&about.date, &Rfc3339).ok();
    let measured_ms =
        began.and_then(|began| (began.unix_timestamp_nanos() / 1_000_000).try_into().ok());
    let measured_ms = measured_ms.ok_or_else(|| format!("was measured at {:?}", about.date))?;
    let Machine { cpu, cores, memory_bytes, kernel, os } = about.machine;
    Ok(LabMeasured {
        measured_ms,
        lab_version: cut(&about.lab_version),
        array: cut(&about.array),
        array_name: cut(&about.name),
        durability: cut(&about.durability),
        settings: LabSettings {
            scale: about.scale,
            count_scale: about.count_scale,
            load_ms: (about.load_seconds * 1000.0) as u64,
            hosts: about.hosts,
            portals: about.portals.len() as u32,
        },
        machine: LabMachine {
            processor: cut(&cpu),
            processors: cores,
            memory_bytes,
            system: cut(&format!("{os}, Linux {kernel}")),
        },
        scenarios: scenarios.into_iter().map(scenario).collect(),
    })
}

fn scenario(from: Scenario) -> LabScenario {
    let Scenario { id, status, verdicts, notes, summary } = from;
    let aim = |from: Verdict| LabAim {
        what: cut(&from.what),
        goal: cut(&from.goal),
        measured: cut(&from.measured),
        met: from.is_met,
        reason: from.reason.as_deref().map(cut),
    };
    let Summary { title, source, published, quantity, unit, ratio_of, cases } = summary;
    let case = |from: LabCase| LabCase { case: cut(&from.case), ..from };
    LabScenario {
        id,
        title,
        source,
        published,
        state: status.state,
        reason: status.reason.as_deref().map(cut),
        quantity: cut(&quantity),
        unit: cut(&unit),
        ratio_of,
        cases: cases.into_iter().map(case).collect(),
        aims: verdicts.into_iter().map(aim).collect(),
        notes: notes.iter().map(|note| cut(note)).collect(),
    }
}

/// A text on one line, cut to the limit.
fn cut(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut kept: String = text.chars().map(plain).take(LAB_TEXT_CHARS_MAX).collect();
    if text.chars().nth(LAB_TEXT_CHARS_MAX).is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample of the lab's own tests.
    const SAMPLE: &str = include_str!("../../../../lab/src/sheet/sample.json");

    #[test]
    fn a_report_of_the_lab_is_understood() {
        let found = measured(SAMPLE).unwrap();
        assert_eq!(found.measured_ms, 1_795_377_600_000);
        assert_eq!((found.lab_version.as_str(), found.array_name.as_str()), ("0.1.0", "Holdfast"));
        assert_eq!((found.settings.load_ms, found.settings.portals), (3000, 2));
        assert_eq!(found.machine.system, "Debian GNU/Linux 12, Linux 6.18.0");
        let ids: Vec<_> = found.scenarios.iter().map(|of| (of.id.as_str(), of.state)).collect();
        let (done, failed, skipped) = (LabState::Done, LabState::Failed, LabState::Skipped);
        let expected = [("P-13", done), ("P-18", done), ("V-34", failed), ("V-52", skipped)];
        assert_eq!(ids, expected);
        let [first, rates, wrong, _] = &found.scenarios[..] else { panic!("{ids:?}") };
        assert_eq!(first.source.as_deref(), Some("000 Pure, fig. 13"));
        let gain = first.published.as_ref().and_then(|published| published.gain.as_deref());
        assert_eq!(gain, Some("about 8×"));
        assert_eq!((first.cases[0].ratio, first.cases[0].in_software), (Some(20.9091), true));
        assert_eq!((first.cases[1].ratio, first.cases[1].too_fast), (None, true));
        assert!(first.aims[0].met);
        assert_eq!((rates.quantity.as_str(), rates.ratio_of), ("rate", LabRatio::OnByOff));
        assert!(wrong.reason.as_ref().is_some_and(|reason| reason.contains("data differs")));
    }

    #[test]
    fn what_is_no_report_is_told_in_a_line() {
        let other = SAMPLE.replacen("\"form\": 1", "\"form\": 2", 1);
        let older = SAMPLE.replacen("\"form\": 1,", "", 1);
        let undated = SAMPLE.replacen("2026-11-22T20:00:00Z", "yesterday", 1);
        let torn = &SAMPLE[..SAMPLE.len() / 2];
        for (text, why) in [
            (other.as_str(), "reads form 1"),
            (&older, "holdfast-lab report"),
            (&undated, "yesterday"),
            (torn, "no report"),
            ("{\"form\": 1}", "no report"),
            ("[]", "no report"),
            ("", "no report"),
        ] {
            let error = measured(text).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn long_texts_are_cut_and_stand_on_one_line() {
        assert_eq!(cut("a\nb\u{1b}"), "a b ");
        assert_eq!(cut(&"é".repeat(LAB_TEXT_CHARS_MAX)), "é".repeat(LAB_TEXT_CHARS_MAX));
        let cut = cut(&"é".repeat(LAB_TEXT_CHARS_MAX + 1));
        assert!(cut.chars().count() == LAB_TEXT_CHARS_MAX && cut.ends_with('…'));
    }
}
