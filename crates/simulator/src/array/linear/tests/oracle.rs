//! Random histories, correct and incorrect ones, against an oracle that keeps every possibility.

use super::*;
use crate::rng::Rng;

/// A value, and the operations in flight that have taken effect, with their outcomes.
type Possible = (u64, BTreeMap<usize, Outcome>);

/// Tries everything at once: each operation at each moment.
struct Oracle {
    ops: BTreeMap<usize, Op>,
    all: BTreeSet<Possible>,
}

impl Oracle {
    fn new() -> Self {
        Self { ops: BTreeMap::new(), all: BTreeSet::from([(0, BTreeMap::new())]) }
    }

    fn invoke(&mut self, at: usize, op: Op) {
        self.ops.insert(at, op);
        let mut left: Vec<Possible> = self.all.iter().cloned().collect();
        while let Some((value, taken)) = left.pop() {
            for (at, op) in self.ops.iter().filter(|(at, _)| !taken.contains_key(at)) {
                let (after, outcome) = match *op {
                    Op::Write(new) => (new, Outcome::Done),
                    Op::CompareAndWrite { expected, new, .. } if value == expected => {
                        (new, Outcome::Matched)
                    }
                    Op::CompareAndWrite { .. } => (value, Outcome::Miscompare),
                    Op::Read => (value, Outcome::Read(value)),
                    Op::CopyOf(_) => unreachable!("the oracle models a single block"),
                };
                let mut taken = taken.clone();
                taken.insert(*at, outcome);
                if self.all.insert((after, taken.clone())) {
                    left.push((after, taken));
                }
            }
        }
    }

    /// Keeps only these possibilities, and ends the operation. Returns whether any are left.
    fn conclude(&mut self, at: usize, keeps: impl Fn(Option<&Outcome>) -> bool) -> bool {
        self.ops.remove(&at);
        self.all = std::mem::take(&mut self.all)
            .into_iter()
            .filter_map(|(value, mut taken)| {
                keeps(taken.remove(&at).as_ref()).then_some((value, taken))
            })
            .collect();
        !self.all.is_empty()
    }
}

fn any_op(rng: &mut Rng) -> Op {
    match rng.below(8) {
        0..3 => Op::Write(rng.below(3)),
        3..5 => Op::CompareAndWrite { expected: rng.below(3), new: rng.below(3), repeats: false },
        _ => Op::Read,
    }
}

fn any_outcome(rng: &mut Rng, op: Op) -> Outcome {
    match op {
        Op::Read => Outcome::Read(rng.below(3)),
        Op::CompareAndWrite { .. } if rng.chance(50) => Outcome::Matched,
        Op::CompareAndWrite { .. } => Outcome::Miscompare,
        _ => Outcome::Done,
    }
}

/// Returns whether the history was correct to its end.
fn compare(seed: u64) -> bool {
    let mut rng = Rng::new(seed);
    let mut monitor = monitor();
    let mut oracle = Oracle::new();
    let mut open: Vec<(usize, OpId, Op)> = Vec::new();
    let mut lost: Vec<(usize, OpId, Op)> = Vec::new();
    for at in 0..16 {
        if lost.len() + open.len() < 5 && (open.is_empty() || rng.chance(55)) {
            let op = any_op(&mut rng);
            oracle.invoke(at, op);
            open.push((at, monitor.invoke(BLOCK, op), op));
            continue;
        }
        if !lost.is_empty() && rng.chance(20) {
            let (name, id, _) = lost.swap_remove(rng.below(lost.len() as u64) as usize);
            assert!(oracle.conclude(name, |_| true));
            assert_eq!(monitor.never_again(id), Ok(()), "{seed}");
            continue;
        }
        if open.is_empty() {
            continue;
        }
        let (name, id, op) = open.swap_remove(rng.below(open.len() as u64) as usize);
        let (right, result) = match rng.below(10) {
            0 => {
                monitor.lost(id);
                if op != Op::Read {
                    lost.push((name, id, op));
                }
                continue;
            }
            1 => (oracle.conclude(name, |_| true), monitor.never_again(id)),
            2 => (oracle.conclude(name, |taken| taken.is_none()), monitor.refused(id)),
            _ => {
                let outcome = any_outcome(&mut rng, op);
                let right = oracle.conclude(name, |taken| taken == Some(&outcome));
                (right, monitor.answer(id, outcome))
            }
        };
        assert_eq!(right, result.is_ok(), "seed {seed}: {result:?}");
        if !right {
            return false;
        }
    }
    true
}

#[test]
fn the_monitor_agrees_with_an_oracle() {
    let right = (0..4000).filter(|seed| compare(*seed)).count();
    assert!((400..3600).contains(&right), "{right}");
}
