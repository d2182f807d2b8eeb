//! Reclaim: free space of a datastore given back to the array.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::template::{Template, disk};
use super::{Found, ScenarioError, lines, middle, value};
use crate::datastore::{AllocateAs, BLOCK_BYTES, File, Placement};
use crate::disk::{Place, Provisioning};
use crate::guest::{GuestDisk, Load, LoadPlan};
use crate::host::Settings;
use crate::outcome::{Line, Measure};
use crate::vm::{ReclaimPlan, Reclaimed, Vm, reclaim};

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
/// What an iteration takes in P-19, in blocks of 1 MB.
const BLOCK_COUNTS: [u64; 7] = [200, 1_000, 5_000, 10_000, 20_000, 40_000, 60_000];
/// What is deleted in V-51 to V-55.
const DELETED_GIB: [u64; 3] = [75, 150, 300];
/// A reclaim of these is over in milliseconds: it is done so often, and the middle one counts.
const REPEATS: usize = 3;
/// Some data beside the space that is reclaimed, which must not be touched.
const DATA_BYTES: u64 = 8 << 30;

/// A datastore of which only so much is free: a file has the rest.
async fn leave_free(place: &Place, free_bytes: u64) -> Result<Option<File>, ScenarioError> {
    let free = place.datastore.free_blocks().await?;
    let Some(rest) = free.checked_sub(free_bytes / BLOCK_BYTES).filter(|rest| *rest > 0) else {
        return Ok(None);
    };
    let file = place.datastore.create("rest", rest * BLOCK_BYTES).await?;
    file.allocate(0, rest, AllocateAs::ToBeZeroed, Placement::Contiguous).await?;
    Ok(Some(file))
}

/// Reclaims, and says what that cost; the array's space before and after too.
async fn timed(
    bench: &Bench,
    place: &Place,
    plan: ReclaimPlan,
) -> Result<(Measure, Reclaimed), ScenarioError> {
    let before = bench.physical_bytes()?;
    let (mut measure, done) = bench.measure(reclaim(place, plan)).await?;
    measure.values.push(value("reclaimed", "B", done.bytes as f64));
    measure.values.push(value("iterations", "", done.iterations as f64));
    if let (Some(before), Some(after)) = (before, bench.physical_bytes()?) {
        measure.values.push(value(
            "physical bytes freed",
            "B",
            before.saturating_sub(after) as f64,
        ));
    }
    Ok((measure, done))
}

/// P-19: 1, 4 and 8 TB free, with 200 to 60,000 blocks an iteration.
pub(super) async fn block_counts(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut drawn = Vec::new();
    for tib in [1, 4, 8] {
        bench.set(Settings::default());
        let mut points = Vec::new();
        for blocks in BLOCK_COUNTS {
            let place = bench.fresh(bench.host(), 0).await?;
            let kept = keep_some(&bench, &place).await?;
            let _rest = leave_free(&place, bench.scaled(tib * TIB)).await?;
            bench.progress().phase(&format!("{tib} TB, {blocks} blocks"), 0);
            let plan = ReclaimPlan::BlocksUnchecked(blocks);
            let (measure, _) = timed(&bench, &place, plan).await?;
            points.push((blocks as f64, measure.seconds));
            found.put(&format!("{tib} TB, {blocks} blocks"), Side::On, measure);
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

/// A machine whose data a reclaim must not touch.
async fn keep_some(bench: &Bench, place: &Place) -> Result<Template, ScenarioError> {
    let bytes = bench.scaled(DATA_BYTES);
    let plan = disk(bytes, Provisioning::ZeroedThick);
    Template::make(place, "kept", plan, bytes, bench.plan().seed).await
}

/// What a reclaim of V-48 to V-55 is done beside.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    is_snapshotted: bool,
    is_loaded: bool,
}

/// A full datastore, of which a machine of so many GB is deleted and reclaimed.
async fn delete_and_reclaim(
    found: &mut Found,
    bench: &Rc<Bench>,
    gib: u64,
    plan: ReclaimPlan,
    beside: Beside,
) -> Result<Measure, ScenarioError> {
    bench.set(Settings::default());
    let place = bench.fresh(bench.host(), 0).await?;
    let bytes = bench.scaled(gib * GIB);
    let seed = bench.plan().seed;
    let kept = keep_some(bench, &place).await?;
    let eager = disk(bytes, Provisioning::EagerZeroedThick);
    bench.progress().phase("filling the machine", bytes);
    let gone = Template::make(&place, "gone", eager, bytes, seed + gib).await?;
    let work = disk(bench.scaled(DATA_BYTES), Provisioning::EagerZeroedThick);
    let worker = Vm::create(&place, "worker", &[work]).await?;
    let _rest = leave_free(&place, 0).await?;
    gone.vm.delete().await?;
    let snapshot = if beside.is_snapshotted { Some(take_snapshot(bench, &place)?) } else { None };
    let mut load = beside.is_loaded.then(|| half_load(bench, worker.disks()));
    bench.progress().phase(&format!("reclaiming {gib} GB"), bytes);
    let (mut measure, done) = timed(bench, &place, plan).await?;
    if let Some(load) = &mut load {
        measure.values.push(value("IOPS beside", "1/s", load.meter().per_second()));
        load.stop().await?;
        found.verified_bytes += load.verify().await?;
    }
    if let (Some(snapshot), Some(array)) = (snapshot, bench.array()) {
        array
            .run(&["snapshot", "destroy", &snapshot, "--eradicate"])
            .map_err(ScenarioError::Array)?;
    }
    // A balloon of 99% leaves some of it.
    if done.bytes * 100 < bytes * 98 {
        let short = format!("{} of {bytes} bytes were reclaimed", done.bytes);
        return Err(ScenarioError::Wrong(short));
    }
    found.verified_bytes += kept.verify(&kept.vm).await?;
    Ok(measure)
}

/// A load that keeps about half of the ports busy: one request at a time.
fn half_load(bench: &Bench, disks: &[GuestDisk]) -> Load {
    let plan = LoadPlan { depth: 1, seed: bench.plan().seed, ..LoadPlan::default() };
    Load::start(bench.reactor(), disks, plan, None)
}

/// A snapshot of the unit, by the array's own command line.
fn take_snapshot(bench: &Bench, place: &Place) -> Result<String, ScenarioError> {
    let array = bench.array().ok_or_else(|| ScenarioError::Plan(NO_ARRAY.to_owned()))?;
    let volume = array.volume_of(&place.device.name()).map_err(ScenarioError::Array)?;
    array.run(&["snapshot", "create", &volume, "--suffix", "lab"]).map_err(ScenarioError::Array)?;
    Ok(format!("{volume}.lab"))
}

const NO_ARRAY: &str = "no snapshot can be taken: the lab knows no command line of this array";

/// V-48: 200 blocks an iteration against 1% of the free space.
pub(super) async fn default_and_percent(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for gib in [150, 300] {
        let free = bench.scaled(gib * GIB) / BLOCK_BYTES;
        let ways = [("200 blocks", 200), ("1% of the free space", (free / 100).max(1))];
        for (name, blocks) in ways {
            let plan = ReclaimPlan::BlocksUnchecked(blocks);
            let beside = Beside::default();
            let measure = delete_and_reclaim(&mut found, &bench, gib, plan, beside).await?;
            found.put(&format!("{gib} GB, {name}"), Side::On, measure);
        }
    }
    Ok(found)
}

async fn sizes(
    found: &mut Found,
    bench: &Rc<Bench>,
    name: &str,
    beside: Beside,
) -> Result<Vec<f64>, ScenarioError> {
    let mut seconds = Vec::new();
    for gib in DELETED_GIB {
        let mut measures = Vec::new();
        for _ in 0..REPEATS {
            let plan = ReclaimPlan::Percent(99);
            measures.push(delete_and_reclaim(found, bench, gib, plan, beside).await?);
        }
        let measure = middle(measures);
        seconds.push(measure.seconds);
        found.put(&format!("{gib} GB{name}"), Side::On, measure);
    }
    Ok(seconds)
}

/// V-51: 75, 150 and 300 GB.
pub(super) async fn baseline(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    sizes(&mut found, &bench, "", Beside::default()).await?;
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

/// The same without and with something beside it; a tenth more is allowed.
async fn compare(
    found: &mut Found,
    bench: &Rc<Bench>,
    name: &str,
    beside: Beside,
) -> Result<(), ScenarioError> {
    let without = sizes(found, bench, "", Beside::default()).await?;
    let with = sizes(found, bench, name, beside).await?;
    let ratio = with.iter().sum::<f64>() / without.iter().sum::<f64>();
    if beside.is_snapshotted {
        let what = "time with a snapshot, to that without";
        found.judge(what, "1.1x at most", format!("{ratio:.2}x"), ratio <= 1.1);
    } else {
        found.notes.push(format!("Beside a load it takes {ratio:.2} times as long."));
    }
    Ok(())
}
