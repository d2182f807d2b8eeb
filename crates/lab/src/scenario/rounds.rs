//! Short measurements are repeated, and the median counts.
//!
//! Two measurements that are to be compared are taken in turns (ABAB), so that other activity of
//! the machine affects both alike.

use std::time::{Duration, Instant};

use crate::outcome::{Measure, Spread};

/// Shorter measurements are repeated.
const SHORT_SECONDS: f64 = 1.0;

/// How often measurements are taken.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The minimum number of rounds, short or long, if the time suffices.
    pub least: usize,
    /// The maximum.
    pub most: usize,
    /// No round is begun that would not be over by then, as far as known from earlier ones. There
    /// is one round in any case.
    pub budget: Duration,
}

impl Limits {
    /// Divides the rounds like the numbers of machines, for tests.
    pub fn divided(self, count_scale: u64) -> Self {
        let most = self.most / usize::try_from(count_scale).unwrap_or(usize::MAX).max(1);
        Self { most: most.max(self.least), ..self }
    }
}

/// For single measurements.
pub const ALONE: Limits = Limits { least: 1, most: 5, budget: Duration::from_secs(5) };
/// For measurements that are compared with each other: one try differs by a seventh from the next,
/// so that the median of sixty is a fiftieth off.
pub const ALIKE: Limits = Limits { least: 3, most: 61, budget: Duration::from_secs(30) };
/// After the first round, the result of one round in this many is verified: that takes longer than
/// what is measured.
const VERIFIED_EVERY: usize = 4;

/// Measurements that are taken in turns, round by round: an odd number of rounds, so that there is
/// a median.
#[derive(Debug)]
pub struct Rounds {
    limits: Limits,
    tries: Vec<Vec<Measure>>,
    turn: usize,
    started: Instant,
    spent: Duration,
}

/// The median of several tries.
#[derive(Clone, Debug)]
pub struct Middle {
    /// Its cost, and the spread of the others.
    pub measure: Measure,
    /// Its index among the tries, from 0.
    pub at: usize,
}

impl Rounds {
    /// Creates rounds of this many measurements.
    pub fn new(jobs: usize, limits: Limits) -> Self {
        let tries = vec![Vec::new(); jobs];
        Self { limits, tries, turn: 0, started: Instant::now(), spent: Duration::ZERO }
    }

    /// Begins the next measurement, if there is one; returns its index.
    pub fn begin(&mut self) -> Option<usize> {
        if self.turn == self.tries.len() {
            if !self.is_another_wanted() {
                return None;
            }
            self.turn = 0;
        }
        self.started = Instant::now();
        (self.turn < self.tries.len()).then_some(self.turn)
    }

    /// Returns whether this is the first round, in which all results are verified.
    pub fn is_first(&self) -> bool {
        self.done() == 0
    }

    /// Returns whether some of the results of this round are verified.
    pub fn is_verified(&self) -> bool {
        self.done().is_multiple_of(VERIFIED_EVERY)
    }

    /// Adds the cost of the current measurement. The time since it began counts as spent.
    pub fn add(&mut self, measure: Measure) {
        self.add_after(measure, self.started.elapsed());
    }

    fn add_after(&mut self, measure: Measure, took: Duration) {
        self.spent += took;
        self.tries[self.turn].push(measure);
        self.turn += 1;
    }

    /// Returns the number of complete rounds.
    fn done(&self) -> usize {
        self.tries.last().map_or(0, Vec::len)
    }

    fn is_another_wanted(&self) -> bool {
        let done = self.done();
        if done == 0 || done >= self.limits.most {
            return false;
        }
        // An even number has no median.
        if done.is_multiple_of(2) {
            return true;
        }
        let is_short = self.tries.iter().any(|tries| middle(tries).1 < SHORT_SECONDS);
        let two_more = self.spent / done as u32 * 2;
        (done < self.limits.least || is_short) && self.spent + two_more <= self.limits.budget
    }

    /// Returns the medians, in order.
    pub fn ended(self) -> Vec<Middle> {
        let ended = self.tries.into_iter().filter(|tries| !tries.is_empty());
        ended.map(chosen).collect()
    }
}

/// Returns the index of the median time, and that time.
fn middle(tries: &[Measure]) -> (usize, f64) {
    let mut order: Vec<usize> = (0..tries.len()).collect();
    order.sort_by(|a, b| tries[*a].seconds.total_cmp(&tries[*b].seconds));
    let at = order[tries.len() / 2];
    (at, tries[at].seconds)
}

fn chosen(mut tries: Vec<Measure>) -> Middle {
    let (at, _) = middle(&tries);
    let times = || tries.iter().map(|measure| measure.seconds);
    let spread = (tries.len() > 1).then(|| Spread {
        runs: tries.len() as u32,
        least_seconds: times().fold(f64::INFINITY, f64::min),
        most_seconds: times().fold(0.0, f64::max),
    });
    let in_software = tries.iter().find(|tried| !tried.in_software.is_empty());
    let in_software = in_software.map(|tried| tried.in_software.clone());
    let mut measure = tries.swap_remove(at);
    measure.spread = spread;
    // If the array refused in another try, the case is no better for that.
    if measure.in_software.is_empty() {
        measure.in_software = in_software.unwrap_or_default();
    }
    Middle { measure, at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::InSoftware;

    fn measure(seconds: f64) -> Measure {
        Measure { seconds, ..Measure::default() }
    }

    /// Returns the turns that are taken if each try of a job takes its time, and as long for the
    /// rest.
    fn turns(times: &[f64], limits: Limits) -> Vec<usize> {
        let mut rounds = Rounds::new(times.len(), limits);
        let mut turns = Vec::new();
        while let Some(job) = rounds.begin() {
            turns.push(job);
            let took = Duration::from_secs_f64(2.0 * times[job]);
            rounds.add_after(measure(times[job]), took);
        }
        turns
    }

    #[test]
    fn short_measurements_are_repeated() {
        assert_eq!(turns(&[0.1], ALONE), [0; 5]);
        assert_eq!(turns(&[1.5], ALONE), [0]);
        // Two more would take 3.6 s, and 1.8 s have passed.
        assert_eq!(turns(&[0.9], ALONE), [0]);
        assert_eq!(turns(&[0.7], ALONE), [0; 3]);
        assert_eq!(turns(&[], ALONE), [0; 0]);
    }

    #[test]
    fn tests_take_fewer_rounds() {
        let most = |scale| ALIKE.divided(scale).most;
        assert_eq!((most(0), most(1), most(16), most(u64::MAX)), (61, 61, 3, 3));
    }

    #[test]
    fn compared_measurements_take_turns() {
        assert_eq!(turns(&[2.0, 2.0], ALIKE), [0, 1, 0, 1, 0, 1]);
        assert_eq!(turns(&[0.1, 2.0], ALIKE), [0, 1].repeat(7));
        assert_eq!(turns(&[0.1, 0.1], ALIKE), [0, 1].repeat(61));
        // A round takes 40 s: there is no time for another.
        assert_eq!(turns(&[10.0, 10.0], ALIKE), [0, 1]);
    }

    #[test]
    fn the_median_counts_and_has_the_spread() {
        let mut rounds = Rounds::new(1, ALIKE);
        for seconds in [0.5, 0.1, 0.3] {
            assert_eq!(rounds.begin(), Some(0));
            rounds.add(measure(seconds));
        }
        let ended = rounds.ended();
        assert_eq!((ended.len(), ended[0].at, ended[0].measure.seconds), (1, 2, 0.3));
        let spread = Spread { runs: 3, least_seconds: 0.1, most_seconds: 0.5 };
        assert_eq!(ended[0].measure.spread, Some(spread));
    }

    #[test]
    fn a_single_measurement_has_no_spread() {
        let mut rounds = Rounds::new(1, ALONE);
        assert!(rounds.begin().is_some() && rounds.is_first());
        rounds.add(measure(3.0));
        assert!(!rounds.is_first());
        assert_eq!(rounds.begin(), None);
        assert_eq!(rounds.ended()[0].measure.spread, None);
    }

    #[test]
    fn a_refusal_in_any_round_is_kept() {
        let refused = InSoftware {
            offload: String::from("WRITE SAME"),
            refused: 1,
            by_host: 1,
            by_host_bytes: 1,
            by_array: 0,
            by_array_bytes: 0,
        };
        let odd = Measure { in_software: vec![refused.clone()], ..measure(9.0) };
        let chosen = chosen(vec![measure(1.0), odd, measure(2.0)]);
        assert_eq!((chosen.at, chosen.measure.in_software), (2, vec![refused]));
    }
}
