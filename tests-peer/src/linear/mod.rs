//! Invariant 3 under races: many sessions through all portals, on a few blocks of two volumes, and
//! a checker that says whether what they saw can have happened in any order.
//!
//! - [`history`]: what was done and when; [`checker`]: whether it is right.
//! - [`zone`]: the blocks and the commands on them; [`race`]: the hosts.

mod checker;
#[cfg(test)]
mod checker_tests;
#[cfg(test)]
mod fault_tests;
mod history;
mod parts;
mod race;
mod tighten;
mod zone;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use libiscsi::Session;

use self::checker::{Verdict, check};
use self::history::{Action, Value, alone};
use self::race::{Aborter, Field, Hosts, Seen};
use self::zone::{CELLS, VOLUMES, Values, read};
use crate::array::Array;
use crate::report::Report;
use crate::target::Target;

/// Sessions of libiscsi.
const SESSIONS: usize = 32;
/// Threads that they are in.
const THREADS: usize = 4;
/// Sessions, a thread each, that abort what they do.
const ABORTERS: usize = 2;
/// Commands of each session in a round.
const COMMANDS: usize = 3;
/// Commands of each that aborts, twice.
const ABORTED: usize = 3;
/// Turns of the checker until it gives up on a round.
const TURNS: usize = 200_000;

/// Races `rounds` rounds on two volumes, all of whose portals are used.
pub fn linear(
    report: &mut Report,
    array: &Array,
    targets: [&Target; VOLUMES],
    rounds: usize,
    seed: u64,
) {
    let name = format!("{SESSIONS} sessions race through {} portals", array.portals.len());
    report.check(&format!("{name}, linearizably"), || race(array, targets, rounds, seed));
}

/// What threads do in a round: all begin together, and the next begins when all have ended.
struct Rounds {
    barrier: Barrier,
    over: AtomicBool,
    seen: Mutex<Vec<Result<Seen>>>,
}

impl Rounds {
    /// One thread, until it is over.
    fn work(&self, mut worker: Result<impl FnMut() -> Result<Seen>>) {
        loop {
            self.barrier.wait();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let seen = match &mut worker {
                Ok(round) => round(),
                Err(error) => Err(anyhow!("a host could not begin: {error:#}")),
            };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.barrier.wait();
        }
    }

    /// One round of all threads: what they saw.
    fn run(&self) -> Result<Seen> {
        self.barrier.wait();
        self.barrier.wait();
        let mut all = Seen::default();
        for seen in self.seen.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            all.join(seen?);
        }
        Ok(all)
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.barrier.wait();
    }
}

fn race(array: &Array, targets: [&Target; VOLUMES], rounds: usize, seed: u64) -> Result<String> {
    let mut names = Vec::new();
    for target in targets {
        let name = Session::connect(&target.config())?.naa()?;
        names.push(name.context("a volume has no NAA name")?);
    }
    let names = names.try_into().map_err(|_| anyhow!("there are two volumes"))?;
    let field = Field { clock: Instant::now(), values: Values::default(), names };
    let shared = Rounds {
        barrier: Barrier::new(THREADS + ABORTERS + 1),
        over: AtomicBool::new(false),
        seen: Mutex::default(),
    };
    let place = |index: usize| {
        let portal = array.portals[index / VOLUMES % array.portals.len()].clone();
        (Target { portal, ..targets[index % VOLUMES].clone() }, index % VOLUMES)
    };
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (field, shared) = (&field, &shared);
            let own = index * (SESSIONS / THREADS)..(index + 1) * (SESSIONS / THREADS);
            let places: Vec<(Target, usize)> = own.map(place).collect();
            let seed = seed.wrapping_mul(1000) + index as u64 * 100;
            scope.spawn(move || {
                let hosts = Hosts::connect(field, &places, seed);
                shared.work(hosts.map(|mut hosts| move || hosts.round(COMMANDS)));
            });
        }
        for index in 0..ABORTERS {
            let (field, shared) = (&field, &shared);
            let (target, volume) = place(index + VOLUMES);
            let seed = seed.wrapping_mul(1000) + 900 + index as u64;
            scope.spawn(move || {
                let aborter = Aborter::connect(field, &target, volume, seed);
                shared.work(aborter.map(|mut aborter| move || aborter.round(ABORTED)));
            });
        }
        let result = referee(&field, &shared, targets, rounds, seed);
        shared.end();
        result
    })
}

/// Lets the rounds be run, and judges each.
fn referee(
    field: &Field,
    shared: &Rounds,
    targets: [&Target; VOLUMES],
    rounds: usize,
    seed: u64,
) -> Result<String> {
    let places = [(targets[0].clone(), 0), (targets[1].clone(), 1)];
    let mut own = Hosts::connect(field, &places, seed)?;
    let mut state = state_of(&look(&mut own)?);
    let mut all = Seen::default();
    let mut undecided = 0;
    for round in 0..rounds {
        let mut seen = shared.run().with_context(|| format!("seed {seed}, round {round}"))?;
        let last = look(&mut own)?;
        let after = state_of(&last);
        seen.join(last);
        match check(&state, &seen.steps, TURNS) {
            Verdict::Linearizable => {}
            Verdict::Wrong(why) => bail!("seed {seed}, round {round}: {why}"),
            Verdict::Undecided => undecided += 1,
        }
        state = after;
        seen.steps.clear();
        all.join(seen);
    }
    let (won, lost) = all.compared;
    // 2 %, and one where there are few.
    ensure!(undecided * 50 <= rounds + 50, "{undecided} of {rounds} rounds could not be judged");
    ensure!(won > 0 && lost > 0 && all.aborted > 0, "{won} won, {lost} lost: that was no race");
    let (judged, commands, aborted) = (rounds - undecided, all.commands, all.aborted);
    Ok(format!(
        "{judged} of {rounds} rounds judged, {commands} commands; \
         locks: {won} won, {lost} lost; {aborted} aborted"
    ))
}

/// Reads all cells while nobody writes.
fn look(own: &mut Hosts<'_>) -> Result<Seen> {
    let mut seen = Seen::default();
    for volume in 0..VOLUMES {
        seen.join(own.look(volume, &read(volume * CELLS, CELLS))?);
    }
    seen.steps = seen.steps.iter().flat_map(alone).collect();
    Ok(seen)
}

fn state_of(seen: &Seen) -> Vec<Value> {
    let values = seen.steps.iter().filter_map(|step| match &step.action {
        Action::Read { values, .. } => Some(values.as_slice()),
        _ => None,
    });
    values.flatten().copied().collect()
}
