//! The progress of a run, for an observer.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{ScenarioOutcome, Status};
use crate::number;

/// The maximum rate at which the bars are redrawn.
const DRAWS_A_SECOND: u8 = 5;

/// Two bars on standard error: the scenarios of the run, and the phase of the current one. If that
/// is not a terminal, only a line for each scenario that has ended.
///
/// Cheap to clone: all clones show the same.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: MultiProgress,
    scenarios: ProgressBar,
    phase: ProgressBar,
    is_silent: bool,
}

impl Progress {
    /// Creates one for a run of this many scenarios.
    pub fn new(scenarios: u64) -> Self {
        Self::drawn_on(scenarios, ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND), false)
    }

    /// Creates one that shows nothing: for tests, and if the output is for programs.
    pub fn hidden() -> Self {
        Self::drawn_on(0, ProgressDrawTarget::hidden(), true)
    }

    fn drawn_on(scenarios: u64, target: ProgressDrawTarget, is_silent: bool) -> Self {
        let bars = MultiProgress::with_draw_target(target);
        let all = bars.add(ProgressBar::new(scenarios));
        all.set_style(style("{pos:>3} of {len} [{bar:24}] {msg} ({elapsed})"));
        let phase = bars.add(ProgressBar::no_length());
        phase.set_style(style("           [{bar:24}] {msg} {decimal_bytes}"));
        Self { bars, scenarios: all, phase, is_silent }
    }

    /// Begins a scenario.
    pub fn begin(&self, id: &str, title: &str) {
        self.scenarios.set_message(format!("{id} {title}"));
        self.phase("", 0);
    }

    /// Begins another phase of the scenario: "verify". It ends at this many bytes; 0 if unknown.
    pub fn phase(&self, name: &str, total_bytes: u64) {
        self.phase.reset();
        if total_bytes == 0 {
            self.phase.unset_length();
        } else {
            self.phase.set_length(total_bytes);
        }
        self.phase.set_message(name.to_owned());
    }

    /// Advances by this many bytes.
    pub fn advance(&self, bytes: u64) {
        self.phase.inc(bytes);
    }

    /// Ends a scenario.
    pub fn end(&self, outcome: &ScenarioOutcome) {
        self.say(&line(outcome));
        self.scenarios.inc(1);
    }

    /// Shows a scenario that is not run, because it was before.
    pub fn resume(&self, outcome: &ScenarioOutcome) {
        self.say(&format!("{} (from an earlier run)", line(outcome)));
        self.scenarios.inc(1);
    }

    /// Ends the run: removes the bars.
    pub fn finish(&self) {
        self.phase.finish_and_clear();
        self.scenarios.finish_and_clear();
    }

    /// Shows a line above the bars.
    fn say(&self, text: &str) {
        if self.is_silent {
            return;
        }
        if self.bars.is_hidden() {
            eprintln!("{text}");
        } else {
            // A line that can't be shown is no reason to stop.
            let _ = self.bars.println(text);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is constant");
    style.progress_chars("=> ")
}

/// Returns the line about a scenario that has ended.
fn line(outcome: &ScenarioOutcome) -> String {
    let met = outcome.verdicts.iter().filter(|verdict| verdict.is_met).count();
    let goals = match outcome.verdicts.len() {
        0 => String::new(),
        all => format!(", {met} of {all} goals met"),
    };
    let seconds = number::seconds(outcome.seconds);
    match &outcome.status {
        Status::Done => {
            let verified = number::bytes(outcome.verified_bytes as f64);
            format!("{}: done in {seconds}, {verified} verified{goals}", outcome.id)
        }
        Status::Failed { reason } => format!("{}: FAILED after {seconds}: {reason}", outcome.id),
        Status::Skipped { reason } => format!("{}: skipped: {reason}", outcome.id),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, line};
    use crate::outcome::{ScenarioOutcome, Status};

    fn outcome(status: Status) -> ScenarioOutcome {
        ScenarioOutcome {
            id: String::from("P-9"),
            status,
            seconds: 2.5,
            verified_bytes: 3_000_000,
            datastores_checked: 1,
            in_software: Vec::new(),
            rows: Vec::new(),
            charts: Vec::new(),
            verdicts: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_line_shows_how_a_scenario_ended() {
        let line = |status: Status| line(&outcome(status)).replace('\u{a0}', " ");
        assert_eq!(line(Status::Done), "P-9: done in 2.50 s, 3.00 MB verified");
        let failed = Status::Failed { reason: String::from("no response") };
        assert_eq!(line(failed), "P-9: FAILED after 2.50 s: no response");
        let skipped = Status::Skipped { reason: String::from("no ATS") };
        assert_eq!(line(skipped), "P-9: skipped: no ATS");
    }

    #[test]
    fn clones_count_together() {
        let progress = Progress::hidden();
        let other = progress.clone();
        other.begin("P-9", "a template");
        other.phase("verify", 100);
        other.advance(40);
        progress.advance(2);
        assert_eq!(progress.phase.position(), 42);
        assert_eq!(progress.phase.length(), Some(100));
        progress.phase("copy", 0);
        assert_eq!((progress.phase.position(), progress.phase.length()), (0, None));
        progress.end(&outcome(Status::Done));
        assert_eq!(other.scenarios.position(), 1);
    }
}
