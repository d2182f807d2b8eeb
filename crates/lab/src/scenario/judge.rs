//! Goals, judged by meaningful numbers: never by a division by almost nothing.

use super::{Found, Side};
use crate::outcome::{LEAST_SECONDS, Measure, Verdict};

/// Returns `of` divided by `to`; `None` if that is meaningless.
pub fn ratio(of: f64, to: f64) -> Option<f64> {
    let ratio = of / to;
    (to > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// Does the same for times in seconds; `None` if one of them is too short to measure.
pub fn ratio_of_times(of: f64, to: f64) -> Option<f64> {
    if of < LEAST_SECONDS || to < LEAST_SECONDS { None } else { ratio(of, to) }
}

impl Found {
    /// Records whether a goal was reached.
    pub fn judge(&mut self, what: &str, goal: &str, measured: String, is_met: bool) {
        let (what, goal) = (what.to_owned(), goal.to_owned());
        self.verdicts.push(Verdict { what, goal, measured, is_met, reason: None });
    }

    /// Adds the reason why the last goal was missed, if it was.
    pub fn because(&mut self, reason: &str) {
        if let Some(verdict) = self.verdicts.last_mut().filter(|verdict| !verdict.is_met) {
            verdict.reason = Some(reason.to_owned());
        }
    }

    /// Judges whether "on" is this many times faster than "off". An "on" too short to measure
    /// counts as the shortest measurable time; if that is not enough, nothing is judged.
    pub fn judge_faster(&mut self, what: &str, goal: &str, least: f64, off_s: f64, on_s: f64) {
        if let Some(times) = ratio_of_times(off_s, on_s) {
            return self.judge(what, goal, format!("{times:.1}x"), times >= least);
        }
        match ratio(off_s, LEAST_SECONDS).filter(|bound| *bound >= least) {
            Some(bound) if on_s < LEAST_SECONDS => {
                self.judge(what, goal, format!("over {bound:.0}x: too fast to measure"), true);
            }
            _ => self.too_fast(what, goal),
        }
    }

    /// Judges whether one time is at most this many times another.
    pub fn judge_at_most(&mut self, what: &str, goal: &str, most: f64, of_s: f64, to_s: f64) {
        match ratio_of_times(of_s, to_s) {
            Some(times) => self.judge(what, goal, format!("{times:.2}x"), times <= most),
            None => self.too_fast(what, goal),
        }
    }

    /// Judges whether these cases take the same time with it on, within a tenth.
    pub fn judge_alike(&mut self, alike: &[&str]) {
        let cases = self.rows.iter().filter(|row| alike.contains(&row.case.as_str()));
        let times: Vec<f64> =
            cases.filter_map(|row| row.on.as_ref().map(|measure| measure.seconds)).collect();
        let most = times.iter().copied().fold(0.0, f64::max);
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let what = format!("{}: time of the slowest, relative to the fastest", alike.join(", "));
        let goal = "10% more at most";
        if times.len() != alike.len() {
            return self.notes.push(format!("Not judged: {what}: not all were measured."));
        }
        match ratio_of_times(most, least) {
            Some(times) => {
                let apart = (times - 1.0) * 100.0;
                self.judge(&what, goal, format!("{apart:.1}% more"), apart <= 10.0);
                if let Some(reason) = self.restless(alike) {
                    self.because(&reason);
                }
            }
            None => self.too_fast(&what, goal),
        }
    }

    /// Returns why, if the times of one of these cases vary so much that a tenth can't be resolved.
    fn restless(&self, alike: &[&str]) -> Option<String> {
        let cases = self.rows.iter().filter(|row| alike.contains(&row.case.as_str()));
        let spreads = cases.filter_map(|row| {
            let on = row.on.as_ref()?;
            let spread = on.spread.as_ref()?;
            let range = ratio(spread.most_seconds - spread.least_seconds, on.seconds)?;
            Some((range, row.case.as_str(), spread))
        });
        let (range, case, spread) = spreads.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (least_ms, most_ms) = (spread.least_seconds * 1000.0, spread.most_seconds * 1000.0);
        (range > 0.2).then(|| {
            format!(
                "by itself \"{case}\" took {least_ms:.1} to {most_ms:.1} ms in {} tries: a tenth \
                 can hardly be resolved at this scale",
                spread.runs
            )
        })
    }

    fn too_fast(&mut self, what: &str, goal: &str) {
        self.notes.push(format!("Not judged: {what} ({goal}): too fast to measure at this scale."));
    }

    /// Adds to each goal that hosts did work that was to be offloaded, if they did: it was missed
    /// because of that, or met by hosts.
    pub fn explain_software(&mut self) {
        let on = self.rows.iter().filter_map(|row| row.on.as_ref());
        let mut all: Vec<&str> =
            on.flat_map(|on| &on.in_software).map(|of| of.offload.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() {
            return;
        }
        let reason = format!("hosts did this themselves, all of it or in part: {}", all.join(", "));
        for verdict in &mut self.verdicts {
            verdict.reason = Some(match verdict.reason.take() {
                Some(known) => format!("{known}; {reason}"),
                None => reason.clone(),
            });
        }
    }

    /// Returns the cost of a side of a case.
    pub fn measured(&self, case: &str, side: Side) -> Option<&Measure> {
        let row = self.rows.iter().find(|row| row.case == case)?;
        if side == Side::Off { row.off.as_ref() } else { row.on.as_ref() }
    }

    /// Returns how long a side of a case took.
    pub fn seconds(&self, case: &str, side: Side) -> Option<f64> {
        self.measured(case, side).map(|measure| measure.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::InSoftware;
    use crate::outcome::Spread;

    fn faster(off_s: f64, on_s: f64) -> Found {
        let mut found = Found::default();
        found.judge_faster("time", "50x", 50.0, off_s, on_s);
        found
    }

    #[test]
    fn an_unmeasurably_short_time_is_judged_by_its_bound() {
        let one = |found: &Found| (found.verdicts[0].measured.clone(), found.verdicts[0].is_met);
        assert_eq!(one(&faster(2.0, 0.01)), (String::from("200.0x"), true));
        assert_eq!(one(&faster(2.0, 0.1)), (String::from("20.0x"), false));
        assert_eq!(one(&faster(2.0, 0.0)), (String::from("over 2000x: too fast to measure"), true));
        for (off_s, on_s) in [(0.02, 0.000_5), (0.0, 0.0), (0.000_1, 2.0), (f64::NAN, 0.0)] {
            let found = faster(off_s, on_s);
            assert!(found.verdicts.is_empty(), "{off_s} {on_s}: {:?}", found.verdicts);
            assert!(found.notes[0].contains("too fast to measure"), "{:?}", found.notes);
        }
    }

    #[test]
    fn two_times_are_compared_only_if_both_are_measurable() {
        let mut found = Found::default();
        found.judge_at_most("four to one", "1.6x", 1.6, 0.32, 0.2);
        found.judge_at_most("four to one", "1.6x", 1.6, 0.34, 0.2);
        found.judge_at_most("four to one", "1.6x", 1.6, 0.34, 0.0);
        let met: Vec<bool> = found.verdicts.iter().map(|verdict| verdict.is_met).collect();
        assert_eq!((met, found.notes.len()), (vec![true, false], 1));
    }

    fn alike(times: [f64; 2]) -> Found {
        let mut found = Found::default();
        for (case, seconds) in ["a", "b"].into_iter().zip(times) {
            found.put(case, Side::On, Measure { seconds, ..Measure::default() });
        }
        found.judge_alike(&["a", "b"]);
        found
    }

    #[test]
    fn alike_is_within_a_tenth() {
        assert!(alike([1.0, 1.09]).verdicts[0].is_met);
        assert!(!alike([1.2, 1.0]).verdicts[0].is_met);
        assert_eq!(alike([1.0, 0.000_1]).notes.len(), 1);
        let mut found = alike([1.0, 1.0]);
        found.judge_alike(&["a", "c"]);
        assert_eq!((found.verdicts.len(), found.notes.len()), (1, 1));
    }

    #[test]
    fn times_that_vary_too_much_are_not_distinguished() {
        let mut found = Found::default();
        for (case, seconds, most_seconds) in [("a", 0.008, 0.009), ("b", 0.01, 0.013)] {
            let spread = Some(Spread { runs: 5, least_seconds: 0.008, most_seconds });
            found.put(case, Side::On, Measure { seconds, spread, ..Measure::default() });
        }
        found.judge_alike(&["a", "b"]);
        let reason = found.verdicts[0].reason.as_deref().unwrap();
        assert!(reason.starts_with("by itself \"b\" took 8.0 to 13.0 ms in 5 tries"), "{reason}");
    }

    #[test]
    fn work_in_software_is_shown_with_each_goal() {
        let mut found = alike([1.0, 2.0]);
        found.explain_software();
        assert_eq!(found.verdicts[0].reason, None);
        let refused = InSoftware {
            offload: String::from("EXTENDED COPY"),
            refused: 3,
            by_host: 3,
            by_host_bytes: 1,
            by_array: 0,
            by_array_bytes: 0,
        };
        found.row("b").on.as_mut().unwrap().in_software.push(refused);
        found.explain_software();
        let reason = found.verdicts[0].reason.as_deref().unwrap();
        assert_eq!(reason, "hosts did this themselves, all of it or in part: EXTENDED COPY");
    }
}
