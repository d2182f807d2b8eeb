//! Reclaim by the default number of blocks compared with 1% of the free space, and ESXi's rules for
//! that number.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::reclaiming::{RECLAIMS, full_machine, keep_some, leave_free, timed};
use super::rounds::{Middle, Rounds};
use super::{Found, ScenarioError};
use crate::datastore::BLOCK_BYTES;
use crate::disk::Place;
use crate::host::Settings;
use crate::outcome::Measure;
use crate::vm::{BLOCKS_DEFAULT, ReclaimPlan};

/// A datastore with some free space, including a machine that was deleted.
#[derive(Clone, Copy)]
struct Free {
    percent: u64,
    /// What was deleted, in the papers' GB.
    gib: u64,
}

/// How many blocks an iteration requests, and the result.
#[derive(Clone, Copy)]
enum Ask {
    /// The default.
    Default,
    /// 1% of the free space, rounded down: the most that the rules allow.
    Hundredth,
    /// More than they allow: the default is used.
    TooMuch,
    /// 1% of the free space, if the datastore is fuller than the rules allow: the default is used.
    TooFull,
}

impl Ask {
    /// Returns the number of blocks to request, and the number to expect.
    fn blocks(self, free: u64) -> (u64, u64) {
        let hundredth = (free / 100).max(1);
        match self {
            Self::Default => (BLOCKS_DEFAULT, BLOCKS_DEFAULT),
            Self::Hundredth => (hundredth, hundredth),
            Self::TooMuch => (2 * hundredth, BLOCKS_DEFAULT),
            Self::TooFull => (hundredth, BLOCKS_DEFAULT),
        }
    }
}

struct Job {
    case: String,
    free: Free,
    ask: Ask,
}

fn jobs(free: &[Free], asks: &[(&str, Ask)]) -> Vec<Job> {
    let of = |free: &Free| {
        let free = *free;
        let case = move |name: &str| format!("{}% of the datastore free, {name}", free.percent);
        asks.iter().map(move |(name, ask)| Job { case: case(name), free, ask: *ask })
    };
    free.iter().flat_map(of).collect()
}

/// V-48: 200 blocks per iteration compared with 1% of the free space, for one and for twice the
/// free space; and when the default is used.
pub(super) async fn default_and_percent(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let [once, twice] = [(45, 150), (90, 300)].map(|(percent, gib)| Free { percent, gib });
    let asks = [("200 blocks", Ask::Default), ("1% of it", Ask::Hundredth)];
    let compared = jobs(&[once, twice], &asks);
    let mut rounds = Rounds::new(compared.len(), RECLAIMS);
    while let Some(turn) = rounds.begin() {
        rounds.add(one(&mut found, &bench, &compared[turn]).await?);
    }
    for (job, Middle { measure, .. }) in compared.iter().zip(rounds.ended()) {
        found.put(&job.case, Side::On, measure);
    }
    let mut ruled = jobs(&[twice], &[("2% of it: 200 are taken", Ask::TooMuch)]);
    let full = Free { percent: 24, gib: 75 };
    ruled.extend(jobs(&[full], &[("1% of it: 200 are taken", Ask::TooFull)]));
    for job in &ruled {
        let measure = one(&mut found, &bench, job).await?;
        found.put(&job.case, Side::On, measure);
    }
    Ok(found)
}

async fn one(
    found: &mut Found,
    bench: &Rc<Bench>,
    Job { case, free, ask }: &Job,
) -> Result<Measure, ScenarioError> {
    bench.set(Settings::default());
    let place = bench.fresh(bench.host(), 0).await?;
    let kept = keep_some(bench, &place).await?;
    let gone = full_machine(bench, &place, free.gib).await?;
    let blocks = free_blocks(&place, *free, gone.data_bytes())?;
    let _rest = leave_free(&place, blocks * BLOCK_BYTES - gone.data_bytes()).await?;
    gone.vm.delete().await?;
    let now = place.datastore.free_blocks().await?;
    let (asked, taken) = ask.blocks(now);
    if matches!(ask, Ask::Hundredth) && asked <= BLOCKS_DEFAULT {
        let note = format!("{case}: that is {asked} blocks: this is a figure of larger units.");
        if !found.notes.contains(&note) {
            found.notes.push(note);
        }
    }
    bench.progress().phase(case, now * BLOCK_BYTES);
    let (measure, done) = timed(bench, &place, ReclaimPlan::Blocks(asked)).await?;
    if (done.blocks_each, done.bytes) != (taken, now * BLOCK_BYTES) {
        let what = format!(
            "{case}: {} blocks per iteration, not {taken}, and {} of {} bytes",
            done.blocks_each,
            done.bytes,
            now * BLOCK_BYTES
        );
        return Err(ScenarioError::Wrong(what));
    }
    found.verified_bytes += kept.verify(&kept.vm).await?;
    Ok(measure)
}

/// Returns how many blocks must be free when the machine is deleted.
fn free_blocks(place: &Place, free: Free, deleted_bytes: u64) -> Result<u64, ScenarioError> {
    let blocks = place.datastore.capacity_blocks() * free.percent / 100;
    if blocks * BLOCK_BYTES < deleted_bytes {
        let small = format!("{deleted_bytes} bytes must be {}% of the unit", free.percent);
        return Err(ScenarioError::Plan(small));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_block_counts_are_within_or_beyond_the_rules() {
        // (requested, used), as in the example of 000: 1,048,576 MB free.
        let of = |ask: Ask| ask.blocks(1_048_576);
        assert_eq!(of(Ask::Default), (200, 200));
        assert_eq!(of(Ask::Hundredth), (10_485, 10_485));
        assert_eq!(of(Ask::TooMuch), (20_970, 200));
        assert_eq!(of(Ask::TooFull), (10_485, 200));
    }

    #[test]
    fn every_case_has_its_own_name() {
        let free = [Free { percent: 45, gib: 1 }, Free { percent: 90, gib: 2 }];
        let all = jobs(&free, &[("a", Ask::Default), ("b", Ask::Hundredth)]);
        let mut names: Vec<&str> = all.iter().map(|job| job.case.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 4);
    }
}
