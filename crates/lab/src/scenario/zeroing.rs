//! Disks that are made of zeros: eagerzeroedthick ones, one and many at once.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::template::verify_disk;
use super::{Found, ScenarioError, cases, lines};
use crate::disk::{Place, Provisioning, VirtualDisk};
use crate::engine::all;
use crate::host::Settings;
use crate::outcome::{Line, Measure};

const GIB: u64 = 1 << 30;
/// Behind the name of a case: the limit is that of VPD page B0h, not ESXi's own 1 MB.
const LONG_RANGES: &str = ", ranges as Block Limits allow";
/// Between two points of a line.
const SAMPLE: Duration = Duration::from_millis(50);

/// Makes eagerzeroedthick disks, all at once.
async fn make(
    bench: &Bench,
    place: &Place,
    count: usize,
    bytes: u64,
) -> Result<(Measure, Vec<VirtualDisk>), ScenarioError> {
    let names: Vec<String> =
        (1..=bench.counted(count)).map(|number| format!("disk{number}.vmdk")).collect();
    let eager = Provisioning::EagerZeroedThick;
    let disks = names.iter().map(|name| VirtualDisk::create(place, name, bytes, eager));
    Ok(bench.measure(all(disks)).await?)
}

/// Reads all of them, and deletes them.
async fn check(
    found: &mut Found,
    bench: &Bench,
    place: &Place,
    disks: Vec<VirtualDisk>,
) -> Result<(), ScenarioError> {
    let bytes = disks.iter().map(VirtualDisk::bytes).sum();
    bench.progress().phase("verifying", bytes);
    for disk in disks {
        found.verified_bytes += verify_disk(&disk, 0, &[]).await?;
        disk.close().await?;
        place.datastore.delete(&disk.name()).await?;
    }
    Ok(())
}

/// One side of one case, on a new datastore.
async fn side(
    found: &mut Found,
    bench: &Rc<Bench>,
    case: &Case<'_>,
    side: Side,
    settings: Settings,
) -> Result<(), ScenarioError> {
    let place = bench.fresh(bench.host(), 0).await?;
    bench.set(side.settings(settings));
    let bytes = bench.scaled(case.bytes);
    bench.progress().phase(&format!("{}, {}", case.name, side.name()), bytes * case.count as u64);
    let (measure, disks) = make(bench, &place, case.count, bytes).await?;
    found.put(case.name, side, measure);
    check(found, bench, &place, disks).await
}

/// Some disks of a size.
struct Case<'a> {
    name: &'a str,
    count: usize,
    bytes: u64,
}

/// Both sides, as ESXi comes.
async fn both(found: &mut Found, bench: &Rc<Bench>, case: &Case<'_>) -> Result<(), ScenarioError> {
    for this in Side::BOTH {
        side(found, bench, case, this, Settings::default()).await?;
    }
    Ok(())
}

/// And with ranges as long as the array takes them, beside the same by hand.
async fn long_ranges(
    found: &mut Found,
    bench: &Rc<Bench>,
    case: &Case<'_>,
) -> Result<(), ScenarioError> {
    let name = format!("{}{LONG_RANGES}", case.name);
    let long = Settings { zero_bytes: u64::MAX, ..Settings::default() };
    let by_hand = found.row(case.name).off.clone();
    side(found, bench, &Case { name: &name, ..*case }, Side::On, long).await?;
    found.row(&name).off = by_hand;
    Ok(())
}

/// The least gain, of ESXi's ranges and of long ones.
fn judge_gain(found: &mut Found) {
    let least = |is_long: bool| {
        let rows = found.rows.iter().filter(|row| row.case.ends_with(LONG_RANGES) == is_long);
        let gains =
            rows.filter_map(|row| Some(row.off.as_ref()?.seconds / row.on.as_ref()?.seconds));
        gains.fold(f64::INFINITY, f64::min)
    };
    let (short, long) = (least(false), least(true));
    let goal = "50x at every size";
    let reason = "each MB is a command of its own, answered when it is durable, two at a time";
    found.judge(
        "time, off against on, 1 MB a command",
        goal,
        format!("{short:.1}x"),
        short >= 50.0,
    );
    if let Some(verdict) = found.verdicts.last_mut().filter(|verdict| !verdict.is_met) {
        verdict.reason = Some(reason.to_owned());
    }
    if long.is_finite() {
        let what = "time, off against on, long ranges";
        found.judge(what, goal, format!("{long:.1}x"), long >= 50.0);
    }
}

async fn sizes(bench: Rc<Bench>, gib: &[u64]) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for gib in gib {
        let case = Case { name: &format!("{gib} GB"), count: 1, bytes: gib * GIB };
        both(&mut found, &bench, &case).await?;
        long_ranges(&mut found, &bench, &case).await?;
    }
    judge_gain(&mut found);
    Ok(found)
}

/// P-16: four sizes.
pub(super) async fn four_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = sizes(bench, &[25, 50, 100, 200]).await?;
    found.notes.push(String::from("The paper does not tell the four sizes: these are ours."));
    Ok(found)
}

/// V-36: six sizes.
pub(super) async fn six_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    sizes(bench, &[10, 20, 40, 60, 100, 200]).await
}

/// P-17: four disks at once take how much longer than one.
pub(super) async fn four_at_once(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for count in [1, 4] {
        let case = Case { name: &cases(count, "disk"), count, bytes: 100 * GIB };
        both(&mut found, &bench, &case).await?;
    }
    let time = |row: usize, side: fn(&crate::outcome::Row) -> Option<&Measure>| {
        side(&found.rows[row]).map_or(f64::NAN, |measure| measure.seconds)
    };
    let off = time(1, |row| row.off.as_ref()) / time(0, |row| row.off.as_ref());
    let on = time(1, |row| row.on.as_ref()) / time(0, |row| row.on.as_ref());
    found.notes.push(format!("Four at once take {off:.2} times as long as one with it off."));
    found.judge("time of four, to one, on", "1.6x at most", format!("{on:.2}x"), on <= 1.6);
    Ok(found)
}

/// V-37: what the host writes over time while a disk of 20 GB is made.
pub(super) async fn write_rate(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut drawn = Vec::new();
    for side in Side::BOTH {
        let place = bench.fresh(bench.host(), 0).await?;
        bench.set(side.settings(Settings::default()));
        let bytes = bench.scaled(20 * GIB);
        bench.progress().phase(side.name(), bytes);
        let sampler = bench.sample(SAMPLE);
        let (measure, disks) = make(&bench, &place, 1, bytes).await?;
        drawn.push(Line { name: side.name().to_owned(), points: sampler.mb_per_second() });
        drop(sampler);
        found.put("20 GB", side, measure);
        check(&mut found, &bench, &place, disks).await?;
    }
    found.charts.push(lines("Traffic of the host", "MB/s", drawn));
    let (Some(off), Some(on)) = (&found.rows[0].off, &found.rows[0].on) else {
        return Ok(found);
    };
    let less = off.wire_bytes as f64 / on.wire_bytes as f64;
    found.judge("bytes on the wire, off against on", "250x", format!("{less:.0}x"), less >= 250.0);
    Ok(found)
}

/// I-zero: 50 machines of 40 GB, and 200 of 10 GB.
pub(super) async fn ibm(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for (count, gib) in [(50, 40), (200, 10)] {
        let name = format!("{} of {gib} GB", cases(count, "VM"));
        both(&mut found, &bench, &Case { name: &name, count, bytes: gib * GIB }).await?;
    }
    judge_gain(&mut found);
    Ok(found)
}
