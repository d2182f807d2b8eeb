//! Infinite and undefined numbers: left out, and reported, so that the other results are kept.

use super::{Chart, Measure, ScenarioOutcome};

impl ScenarioOutcome {
    /// Removes numbers that are infinite or undefined (something was divided by zero). JSON has no
    /// such numbers, and a table that shows one is wrong. A note names each that was removed; a
    /// measure with undefined seconds is removed completely.
    pub fn finite(mut self) -> Self {
        let mut left_out = Vec::new();
        for row in &mut self.rows {
            for (name, side) in [("off", &mut row.off), ("on", &mut row.on)] {
                let case = format!("{}, {name}", row.case);
                if side.as_mut().is_some_and(|measure| !clean(measure, &case, &mut left_out)) {
                    *side = None;
                    left_out.push(case);
                }
            }
        }
        for chart in &mut self.charts {
            clean_chart(chart, &mut left_out);
        }
        if !self.seconds.is_finite() {
            self.seconds = 0.0;
            left_out.push(String::from("the total time"));
        }
        let note = |what| format!("Left out, because it could not be computed: {what}.");
        self.notes.extend(left_out.into_iter().map(note));
        self
    }
}

/// Returns whether its own numbers are finite; removes others.
fn clean(measure: &mut Measure, case: &str, left_out: &mut Vec<String>) -> bool {
    measure.values.retain(|value| {
        let is_finite = value.value.is_finite();
        if !is_finite {
            left_out.push(format!("{case}: {}", value.name));
        }
        is_finite
    });
    let is_odd = |spread: super::Spread| {
        !(spread.least_seconds.is_finite() && spread.most_seconds.is_finite())
    };
    if measure.spread.is_some_and(is_odd) {
        measure.spread = None;
        left_out.push(format!("{case}: its spread"));
    }
    measure.seconds.is_finite() && measure.host_cpu_s.is_finite()
}

fn clean_chart(chart: &mut Chart, left_out: &mut Vec<String>) {
    match chart {
        Chart::Bars { title, series, .. } => {
            for value in series.iter_mut().flat_map(|series| &mut series.values) {
                if value.is_some_and(|value| !value.is_finite()) {
                    *value = None;
                    left_out.push(format!("a bar of \"{title}\""));
                }
            }
        }
        Chart::Lines { title, lines, .. } => {
            for line in lines {
                let before = line.points.len();
                line.points.retain(|(x, y)| x.is_finite() && y.is_finite());
                if line.points.len() < before {
                    left_out.push(format!("points of \"{title}\", {}", line.name));
                }
            }
        }
    }
}
