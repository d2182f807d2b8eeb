//! Invariant 3 under races: many sessions through all portals, on a few blocks of two volumes, and
//! a checker that decides whether any order explains what they saw
//! ([`linear`](tests_peer::linear)). [`hosts`]: the hosts that race.

mod hosts;

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use libiscsi::Session;

use self::hosts::{Aborter, Hosts};
use crate::Arguments;
use crate::array::Array;
use crate::linear::checker::{Verdict, check};
use crate::linear::history::{Action, Value, alone};
use crate::linear::lines;
use crate::linear::rounds::Rounds;
use crate::linear::seen::{Field, Seen};
use crate::linear::zone::{CELLS, VOLUMES, Values, read};
use crate::report::Report;
use crate::target::Target;

/// The number of libiscsi sessions.
const SESSIONS: usize = 32;
/// The number of their threads.
const THREADS: usize = 4;
/// The number of sessions, one thread each, that abort their commands.
const ABORTERS: usize = 2;
/// The commands of each session in a round.
const COMMANDS: usize = 3;
/// The commands of each aborting session, twice.
const ABORTED: usize = 3;
/// The turns of the checker before it gives up on a round.
const TURNS: usize = 200_000;

/// Races `rounds` rounds on two volumes, through all portals.
pub fn linear(
    report: &mut Report,
    array: &Array,
    targets: [&Target; VOLUMES],
    arguments: &Arguments,
) {
    let name = format!("{SESSIONS} sessions race through {} portals", array.portals.len());
    report.check(&format!("{name}, linearizably"), || race(array, targets, arguments));
}

fn race(array: &Array, targets: [&Target; VOLUMES], arguments: &Arguments) -> Result<String> {
    let seed = arguments.seed;
    let mut names = Vec::new();
    for target in targets {
        let name = Session::connect(&target.config())?.naa()?;
        names.push(name.context("a volume has no NAA name")?);
    }
    let names = names.try_into().map_err(|_| anyhow!("the number of volumes is fixed"))?;
    let field = Field { clock: Instant::now(), values: Values::default(), names };
    let shared = Rounds::new(THREADS + ABORTERS);
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
        let result = referee(&field, &shared, targets, arguments);
        shared.be_over();
        result
    })
}

/// Runs the rounds, and judges each.
fn referee(
    field: &Field,
    shared: &Rounds<Seen>,
    targets: [&Target; VOLUMES],
    arguments: &Arguments,
) -> Result<String> {
    let (rounds, seed) = (arguments.linear_rounds, arguments.seed);
    let mut told = arguments.histories.as_ref().map(File::create).transpose()?;
    let places = [(targets[0].clone(), 0), (targets[1].clone(), 1)];
    let mut own = Hosts::connect(field, &places, seed)?;
    let mut state = state_of(&look(&mut own)?);
    let mut all = Seen::default();
    let mut undecided = 0;
    for round in 0..rounds {
        let mut seen = one_round(shared).with_context(|| format!("seed {seed}, round {round}"))?;
        let last = look(&mut own)?;
        let after = state_of(&last);
        seen.join(last);
        if let Some(file) = &mut told {
            let name = format!("seed {seed}, round {round}");
            writeln!(file, "{}", lines::line(&name, &state, &seen.steps))?;
        }
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
    // 2%, and one if there are few rounds.
    ensure!(undecided * 50 <= rounds + 50, "{undecided} of {rounds} rounds could not be judged");
    ensure!(won > 0 && lost > 0 && all.aborted > 0, "{won} won, {lost} lost: there was no race");
    let (judged, commands, aborted) = (rounds - undecided, all.commands, all.aborted);
    Ok(format!(
        "{judged} of {rounds} rounds judged, {commands} commands; \
         locks: {won} won, {lost} lost; {aborted} aborted"
    ))
}

/// Runs one round of all threads. Returns what they saw.
fn one_round(shared: &Rounds<Seen>) -> Result<Seen> {
    shared.begin();
    let mut all = Seen::default();
    shared.end()?.into_iter().for_each(|seen| all.join(seen));
    Ok(all)
}

/// Reads all cells while no session writes.
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
