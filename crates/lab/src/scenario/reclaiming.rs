//! Reclaim: returning free space of a datastore to the array.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::judge::ratio_of_times;
use super::rounds::{ALONE, Limits, Middle, Rounds};
use super::template::{Template, disk};
use super::{Found, ScenarioError, lines, value};
use crate::datastore::{AllocateAs, BLOCK_BYTES, File, Placement};
use crate::disk::{Place, Provisioning};
use crate::guest::{GuestDisk, Load, LoadPlan};
use crate::host::{EsxVersion, Settings};
use crate::outcome::{Line, Measure};
use crate::vm::{ReclaimPlan, Reclaimed, Vm, reclaim};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
/// The sizes of an iteration in P-19, in blocks of 1 MB.
const BLOCK_COUNTS: [u64; 7] = [200, 1_000, 5_000, 10_000, 20_000, 40_000, 60_000];
/// What is deleted in V-51 to V-55.
const DELETED_GIB: [u64; 3] = [75, 150, 300];
/// Reclaims take milliseconds, but their preparation takes long.
pub(super) const RECLAIMS: Limits = Limits { least: 3, most: 3, budget: Duration::from_secs(180) };
/// Data next to the space that is reclaimed, which must not be changed.
const DATA_BYTES: u64 = 8 << 30;

/// Leaves only so much of a datastore free: a file takes the rest.
pub(super) async fn leave_free(
    place: &Place,
    free_bytes: u64,
) -> Result<Option<File>, ScenarioError> {
    let free = place.datastore.free_blocks().await?;
    let Some(rest) = free.checked_sub(free_bytes / BLOCK_BYTES).filter(|rest| *rest > 0) else {
        return Ok(None);
    };
    let file = place.datastore.create("rest", rest * BLOCK_BYTES).await?;
    file.allocate(0, rest, AllocateAs::ToBeZeroed, Placement::Contiguous).await?;
    Ok(Some(file))
}

/// Reclaims, and returns the cost, and the array's space before and after.
pub(super) async fn timed(
    bench: &Bench,
    place: &Place,
    plan: ReclaimPlan,
) -> Result<(Measure, Reclaimed), ScenarioError> {
    let before = bench.physical_bytes()?;
    let (mut measure, done) = bench.measure(reclaim(place, plan)).await?;
    measure.values.push(value("reclaimed", "B", done.bytes as f64));
    measure.values.push(value("iterations", "", done.iterations as f64));
    measure.values.push(value("blocks of an iteration", "", done.blocks_each as f64));
    if let (Some(before), Some(after)) = (before, bench.physical_bytes()?) {
        let freed = before as f64 - after as f64;
        measure.values.push(value("physical bytes freed", "B", freed));
    }
    Ok((measure, done))
}

/// P-19: 1, 4 and 8 TB free, with 200 to 60,000 blocks per iteration.
pub(super) async fn block_counts(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut drawn = Vec::new();
    for tib in [1, 4, 8] {
        // Later versions allow at most 1% of the free space.
        bench.set(Settings { version: EsxVersion::V5, ..Settings::default() });
        let mut points = Vec::new();
        for blocks in BLOCK_COUNTS {
            let case = format!("{tib} TB, {blocks} blocks");
            let place = bench.fresh(bench.host(), 0).await?;
            let kept = keep_some(&bench, &place).await?;
            let rest = leave_free(&place, bench.scaled(tib * TIB)).await?;
            if rest.is_none() {
                let short = "the unit is too small: less than that is free";
                return Err(ScenarioError::Plan(format!("{case}: {short}")));
            }
            let mut rounds = Rounds::new(1, ALONE);
            while rounds.begin().is_some() {
                bench.progress().phase(&case, 0);
                let plan = ReclaimPlan::BlocksUnchecked(blocks);
                rounds.add(timed(&bench, &place, plan).await?.0);
            }
            for Middle { measure, .. } in rounds.ended() {
                points.push((blocks as f64, measure.seconds));
                found.put(&case, Side::On, measure);
            }
            found.verified_bytes += kept.verify(&kept.vm).await?;
        }
        drawn.push(Line { name: format!("{tib} TB"), points });
    }
    let mut chart = lines("Time by blocks of an iteration", "s", drawn);
    if let crate::outcome::Chart::Lines { x_unit, .. } = &mut chart {
        *x_unit = String::from("blocks");
    }
    found.charts.push(chart);
    Ok(found)
}

/// Creates a machine whose data a reclaim must not change.
pub(super) async fn keep_some(bench: &Bench, place: &Place) -> Result<Template, ScenarioError> {
    let bytes = bench.scaled(DATA_BYTES);
    let plan = disk(bytes, Provisioning::ZeroedThick);
    Template::make(place, "kept", plan, bytes, bench.plan().seed).await
}

/// What happens in parallel with a reclaim of V-51 to V-55.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    is_snapshotted: bool,
    is_loaded: bool,
}

/// Deletes a machine of this many GB on a full datastore, and reclaims as in 5.0 and 5.1: 99% of
/// the free space in one balloon.
async fn delete_and_reclaim(
    found: &mut Found,
    bench: &Rc<Bench>,
    gib: u64,
    beside: Beside,
) -> Result<Measure, ScenarioError> {
    bench.set(Settings { version: EsxVersion::V5_0, ..Settings::default() });
    let place = bench.fresh(bench.host(), 0).await?;
    let bytes = bench.scaled(gib * GIB);
    let kept = keep_some(bench, &place).await?;
    let gone = full_machine(bench, &place, gib).await?;
    let work = disk(bench.scaled(DATA_BYTES), Provisioning::EagerZeroedThick);
    let worker = Vm::create(&place, "worker", &[work]).await?;
    let _rest = leave_free(&place, 0).await?;
    gone.vm.delete().await?;
    let snapshot = if beside.is_snapshotted { Some(take_snapshot(bench, &place)?) } else { None };
    let mut load = beside.is_loaded.then(|| half_load(bench, worker.disks()));
    bench.progress().phase(&format!("reclaiming {gib} GB"), bytes);
    let reclaimed = timed(bench, &place, ReclaimPlan::Percent(99)).await;
    if let (Some(snapshot), Some(array)) = (snapshot, bench.array()) {
        let destroy = ["snapshot", "destroy", &snapshot, "--eradicate"];
        array.run(&destroy).map_err(ScenarioError::Array)?;
    }
    let (mut measure, done) = reclaimed?;
    if let Some(load) = &mut load {
        measure.values.push(value("IOPS beside", "1/s", load.meter().per_second()));
        load.stop().await?;
        found.verified_bytes += load.verify().await?;
    }
    // A balloon of 99% leaves some of it.
    if done.bytes * 100 < bytes * 98 {
        let short = format!("{} of {bytes} bytes were reclaimed", done.bytes);
        return Err(ScenarioError::Wrong(short));
    }
    found.verified_bytes += kept.verify(&kept.vm).await?;
    Ok(measure)
}

/// Creates a machine to be deleted, with this many of the papers' GB, all of them data.
pub(super) async fn full_machine(
    bench: &Bench,
    place: &Place,
    gib: u64,
) -> Result<Template, ScenarioError> {
    let bytes = bench.scaled(gib * GIB);
    let eager = disk(bytes, Provisioning::EagerZeroedThick);
    bench.progress().phase("filling the machine", bytes);
    Template::make(place, "gone", eager, bytes, bench.plan().seed + gib).await
}

/// Starts a load that keeps about half of the ports busy: one request at a time.
fn half_load(bench: &Bench, disks: &[GuestDisk]) -> Load {
    let plan = LoadPlan { depth: 1, seed: bench.plan().seed, ..LoadPlan::default() };
    Load::start(bench.reactor(), disks, plan, None)
}

/// Takes a snapshot of the unit, with the array's own command line.
fn take_snapshot(bench: &Bench, place: &Place) -> Result<String, ScenarioError> {
    let array = bench.array().ok_or_else(|| ScenarioError::Plan(NO_ARRAY.to_owned()))?;
    let volume = array.volume_of(&place.device.name()).map_err(ScenarioError::Array)?;
    array.run(&["snapshot", "create", &volume, "--suffix", "lab"]).map_err(ScenarioError::Array)?;
    Ok(format!("{volume}.lab"))
}

const NO_ARRAY: &str = "no snapshot can be taken: the lab does not know this array's command line";

/// Reclaims each size in parallel with each of these, in turns; returns the times.
async fn sizes(
    found: &mut Found,
    bench: &Rc<Bench>,
    besides: &[(&str, Beside)],
) -> Result<Vec<f64>, ScenarioError> {
    let jobs: Vec<(u64, &str, Beside)> = DELETED_GIB
        .into_iter()
        .flat_map(|gib| besides.iter().map(move |(name, beside)| (gib, *name, *beside)))
        .collect();
    let mut rounds = Rounds::new(jobs.len(), RECLAIMS);
    while let Some(turn) = rounds.begin() {
        let (gib, _, beside) = jobs[turn];
        rounds.add(delete_and_reclaim(found, bench, gib, beside).await?);
    }
    let mut sums = vec![0.0; besides.len()];
    for (index, Middle { measure, .. }) in rounds.ended().into_iter().enumerate() {
        let (gib, name, _) = jobs[index];
        sums[index % besides.len()] += measure.seconds;
        found.put(&format!("{gib} GB{name}"), Side::On, measure);
    }
    Ok(sums)
}

/// V-51: 75, 150 and 300 GB.
pub(super) async fn baseline(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    sizes(&mut found, &bench, &[("", Beside::default())]).await?;
    Ok(found)
}

/// V-52: with replication, which the array does not have yet.
pub(super) async fn replicated(_: Rc<Bench>) -> Result<Found, ScenarioError> {
    let reason = "needs an array that replicates; the lab can't set that up yet";
    Ok(Found { skipped: Some(reason.to_owned()), ..Found::default() })
}

/// V-53: with a snapshot of the volume.
pub(super) async fn snapshotted(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    if bench.array().is_none() {
        found.skipped = Some(NO_ARRAY.to_owned());
        return Ok(found);
    }
    let beside = Beside { is_snapshotted: true, ..Beside::default() };
    compare(&mut found, &bench, ", with a snapshot", beside).await?;
    Ok(found)
}

/// V-55: with the ports at work.
pub(super) async fn loaded(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let beside = Beside { is_loaded: true, ..Beside::default() };
    compare(&mut found, &bench, ", beside a load", beside).await?;
    Ok(found)
}

/// Compares the same without and with something in parallel; a tenth more is allowed.
async fn compare(
    found: &mut Found,
    bench: &Rc<Bench>,
    name: &str,
    beside: Beside,
) -> Result<(), ScenarioError> {
    let sums = sizes(found, bench, &[("", Beside::default()), (name, beside)]).await?;
    let [without, with] = sums[..] else { return Ok(()) };
    if beside.is_snapshotted {
        let what = "time with a snapshot, relative to that without";
        found.judge_at_most(what, "1.1x at most", 1.1, with, without);
    } else if let Some(times) = ratio_of_times(with, without) {
        found.notes.push(format!("Beside a load it takes {times:.2} times as long."));
    }
    Ok(())
}
