//! Disks that are made of zeros: eagerzeroedthick ones, one and many at once.

use std::rc::Rc;
use std::time::Duration;

use futures::future::try_join_all;

use super::bench::{Bench, Side};
use super::template::verify_disk;
use super::{Found, ScenarioError, cases, lines};
use crate::disk::{Place, Provisioning, VirtualDisk};
use crate::host::Settings;
use crate::outcome::{Line, Measure};

const GIB: u64 = 1 << 30;
/// Between two points of a line.
const SAMPLE: Duration = Duration::from_millis(50);

/// Makes eagerzeroedthick disks, all at once.
async fn make(
    bench: &Bench,
    place: &Place,
    count: usize,
    bytes: u64,
) -> Result<(Measure, Vec<VirtualDisk>), ScenarioError> {
    let names: Vec<String> = (1..=count).map(|number| format!("disk{number}.vmdk")).collect();
    let eager = Provisioning::EagerZeroedThick;
    let disks = names.iter().map(|name| VirtualDisk::create(place, name, bytes, eager));
    Ok(bench.measure(try_join_all(disks)).await?)
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

/// Both sides of one case, on new datastores that held something else before.
async fn case(
    found: &mut Found,
    bench: &Rc<Bench>,
    name: &str,
    count: usize,
    bytes: u64,
) -> Result<(), ScenarioError> {
    for side in Side::BOTH {
        let place = bench.fresh(bench.host(), 0).await?;
        bench.set(side.settings(Settings::default()));
        let bytes = bench.scaled(bytes);
        bench.progress().phase(&format!("{name}, {}", side.name()), bytes * count as u64);
        let (measure, disks) = make(bench, &place, count, bytes).await?;
        found.put(name, side, measure);
        check(found, bench, &place, disks).await?;
    }
    Ok(())
}

fn judge_gain(found: &mut Found) {
    let gains: Vec<f64> = found
        .rows
        .iter()
        .filter_map(|row| Some(row.off.as_ref()?.seconds / row.on.as_ref()?.seconds))
        .collect();
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    found.judge("time, off against on", "50x at every size", format!("{least:.1}x"), least >= 50.0);
}

async fn sizes(bench: Rc<Bench>, gib: &[u64]) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for gib in gib {
        case(&mut found, &bench, &format!("{gib} GB"), 1, gib * GIB).await?;
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
        case(&mut found, &bench, &cases(count, "disk"), count, 100 * GIB).await?;
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
        case(&mut found, &bench, &name, count, gib * GIB).await?;
    }
    judge_gain(&mut found);
    Ok(found)
}
