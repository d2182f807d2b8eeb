//! A report as JSON: all results, and for each scenario the summary next to the published figures.
//! So a reader needs neither the papers nor the rules for ratios.

use serde::Serialize;

use super::Ratio;
use super::quantity::Shown;
use crate::figures::{self, Published};
use crate::outcome::{About, Report, Row, ScenarioOutcome};

/// The version of the JSON: readers refuse others.
const FORM: u32 = 1;

/// A report.
#[derive(Serialize)]
struct Written<'a> {
    form: u32,
    about: &'a About,
    scenarios: Vec<Scenario<'a>>,
}

/// A scenario, with its summary.
#[derive(Serialize)]
struct Scenario<'a> {
    #[serde(flatten)]
    outcome: &'a ScenarioOutcome,
    summary: Summary,
}

/// One number for each case, and the paper's.
#[derive(Serialize)]
struct Summary {
    title: &'static str,
    /// The paper and the location in it.
    source: Option<&'static str>,
    /// The most relevant of the published figures.
    published: Option<Figures>,
    /// The quantity: "time".
    quantity: String,
    unit: String,
    /// `off_by_on` or `on_by_off`.
    ratio_of: &'static str,
    cases: Vec<Case>,
}

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    off: Option<&'static str>,
    on: Option<&'static str>,
    gain: Option<&'static str>,
}

#[derive(Serialize)]
struct Case {
    case: String,
    off: Option<f64>,
    on: Option<f64>,
    /// `None` if there is no ratio.
    ratio: Option<f64>,
    /// Whether it was too short to measure.
    too_fast: bool,
    /// Whether hosts did what was to be offloaded, completely or in part.
    in_software: bool,
}

/// Returns the JSON form of a report.
pub fn written(report: &Report) -> impl Serialize + '_ {
    let scenarios = report.scenarios.iter();
    let scenarios = scenarios.map(|outcome| Scenario { outcome, summary: summary(outcome) });
    Written { form: FORM, about: &report.about, scenarios: scenarios.collect() }
}

fn summary(outcome: &ScenarioOutcome) -> Summary {
    let figure = figures::find(&outcome.id);
    let measures = outcome.rows.iter().flat_map(|row| row.on.iter().chain(&row.off));
    let shown = Shown::of(&outcome.id, measures);
    let (quantity, unit, ratio_of) = match &shown {
        Shown::Seconds => ("time", "s", "off_by_on"),
        Shown::Value(name, unit) => (name.as_str(), unit.as_str(), "on_by_off"),
    };
    let published = figure.and_then(|figure| figure.published.first());
    Summary {
        title: figure.map_or("", |figure| figure.title),
        source: figure.map(|figure| figure.paper),
        published: published.map(|&Published { what, off, on, gain }| Figures {
            what,
            off,
            on,
            gain,
        }),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        ratio_of,
        cases: outcome.rows.iter().map(|row| case(row, &shown)).collect(),
    }
}

fn case(row: &Row, shown: &Shown) -> Case {
    let (off, on) = (shown.read(row.off.as_ref()), shown.read(row.on.as_ref()));
    let ratio = match shown {
        Shown::Seconds => Ratio::of_measured(off, on, shown.least()),
        Shown::Value(..) => Ratio::of(on, off),
    };
    let times = match ratio {
        Ratio::Times(times) if times.is_finite() => Some(times),
        _ => None,
    };
    Case {
        case: row.case.clone(),
        off: off.map(six),
        on: on.map(six),
        ratio: times.map(six),
        too_fast: ratio == Ratio::TooFast,
        in_software: row.on.as_ref().is_some_and(|on| !on.in_software.is_empty()),
    }
}

/// Rounds to six significant digits: more would be meaningless.
fn six(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{six, written};
    use crate::outcome::{InSoftware, Report};
    use crate::report::to_json;
    use crate::sheet::sample;

    /// Returns some scenarios, with everything that readers of reports use.
    fn report() -> Report {
        let mut report = sample::report("Holdfast", 1.0);
        let wanted = ["P-13", "P-18", "V-34", "V-52"];
        report.scenarios.retain(|outcome| wanted.contains(&outcome.id.as_str()));
        for outcome in &mut report.scenarios {
            outcome.charts.clear();
            outcome.rows.truncate(2);
        }
        let first = report.scenarios[0].rows.iter_mut().filter_map(|row| row.on.as_mut());
        for (on, seconds) in first.zip([0.11, 0.000_4]) {
            on.seconds = seconds;
            on.in_software.extend((seconds > 0.1).then(|| InSoftware {
                offload: String::from("EXTENDED COPY"),
                refused: 1,
                by_host: 1,
                by_host_bytes: 1 << 20,
                by_array: 1,
                by_array_bytes: 3 << 20,
            }));
        }
        report
    }

    /// The array's command line reads the same file in its tests: the two can't diverge.
    #[test]
    fn the_json_matches_the_sample() {
        let text = to_json(&written(&report())).unwrap() + "\n";
        let at = "crates/lab/src/sheet/sample.json";
        assert!(text == include_str!("sample.json"), "{at} should be:\n{text}");
    }

    #[test]
    fn json_round_trips() {
        let all = sample::report("Holdfast", 1.0);
        let back: Report = serde_json::from_str(&to_json(&written(&all)).unwrap()).unwrap();
        assert!(back == all);
    }

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!((six(0.123_456_789), six(123_456_789.0)), (0.123_457, 123_457_000.0));
        assert_eq!((six(0.0), six(-2.5)), (0.0, -2.5));
    }
}
