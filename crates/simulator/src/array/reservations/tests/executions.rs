//! Executions of a simulated unit: correct ones never raise an alarm; one with a fault does.

use super::*;
use crate::rng::Rng;

fn any_action(rng: &mut Rng) -> Action {
    let key = rng.between(1, 3);
    let kind = Kind::ALL[rng.below(6) as usize];
    match rng.below(9) {
        0..4 => Action::Register {
            key: rng.below(4),
            new_key: rng.below(4),
            ignores_key: rng.chance(70),
            is_kept: rng.chance(50),
        },
        4..6 => Action::Reserve { key, kind },
        6 => Action::Release { key, kind },
        7 => Action::Preempt { key, victim: rng.below(4), kind },
        _ => match rng.chance(50) {
            true => Action::Clear { key },
            false => Action::Move {
                key,
                new_key: rng.below(4),
                to: Nexus(rng.between(1, 3) as u32),
                unregisters: rng.chance(50),
                is_kept: true,
            },
        },
    }
}

fn any_op(rng: &mut Rng) -> Op {
    let nexus = Nexus(rng.between(1, 3) as u32);
    match rng.below(20) {
        0..8 => Op::Out(nexus, any_action(rng)),
        8..12 => Op::Command(nexus, Access::Write),
        12..15 => Op::Command(nexus, Access::Read),
        15 => Op::ReadKeys,
        16 => Op::ReadReservation,
        17 => Op::Reserve(nexus),
        18 => Op::Release(nexus),
        _ => {
            if rng.chance(50) {
                Op::Reset
            } else {
                Op::Loss(nexus)
            }
        }
    }
}

/// Runs a unit, with several operations in flight. With a fault the last answer is changed.
fn execute(seed: u64, fault: bool) -> Result<(), Wrong> {
    let mut rng = Rng::new(seed);
    let mut monitor = monitor();
    let mut state = State::default();
    let mut open: Vec<(OpId, Op, Option<Outcome>)> = Vec::new();
    for _ in 0..200 {
        if open.len() < 5 && rng.chance(40) {
            let op = any_op(&mut rng);
            open.push((monitor.invoke(op), op, None));
            continue;
        }
        if open.is_empty() {
            continue;
        }
        let at = rng.below(open.len() as u64) as usize;
        if let (id, _, Some(outcome)) = &open[at] {
            match rng.chance(90) {
                true => monitor.answer(*id, outcome)?,
                false => monitor.never_again(*id)?,
            }
            open.swap_remove(at);
            continue;
        }
        let mut all = Unit::apply(&state, &open[at].1);
        let (after, outcome) = all.swap_remove(rng.below(all.len() as u64) as usize);
        state = after;
        open[at].2 = Some(outcome);
    }
    for (id, _, outcome) in open {
        match outcome {
            Some(outcome) => monitor.answer(id, &outcome)?,
            None => monitor.refused(id)?,
        }
    }
    let keys = Unit::apply(&state, &Op::ReadKeys).remove(0).1;
    let outcome = match keys {
        Outcome::Keys(keys) if fault => Outcome::Keys([&keys[..], &[9]].concat()),
        Outcome::Conflict if fault => Outcome::Keys(vec![9]),
        keys => keys,
    };
    let id = monitor.invoke(Op::ReadKeys);
    monitor.answer(id, &outcome)
}

#[test]
fn only_a_faulty_execution_raises_an_alarm() {
    for seed in 0..300 {
        execute(seed, false).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        assert!(execute(seed, true).is_err(), "seed {seed}");
    }
}
