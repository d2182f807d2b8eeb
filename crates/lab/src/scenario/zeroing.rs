//! Disks that consist of zeros: eagerzeroedthick ones, one and many at once.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::judge::{ratio, ratio_of_times};
use super::rounds::{ALIKE, ALONE, Limits, Middle, Rounds};
use super::template::{disk, verify_disk};
use super::{Found, ScenarioError, lines, value};
use crate::disk::{Place, Provisioning, VirtualDisk};
use crate::engine::all;
use crate::host::Settings;
use crate::outcome::{Line, Measure};
use crate::vm::Vm;

const GIB: u64 = 1 << 30;
/// Added to the name of a case: the limit is that of VPD page B0h, not ESXi's own 1 MB.
const LONG_RANGES: &str = ", ranges as Block Limits allow";
/// The interval between two points of a line.
const SAMPLE: Duration = Duration::from_millis(50);

/// Creates eagerzeroedthick disks, all at once.
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

/// Reads all of them, or one if that was done before, and deletes them.
async fn check(
    found: &mut Found,
    bench: &Bench,
    place: &Place,
    disks: Vec<VirtualDisk>,
    is_first: bool,
) -> Result<(), ScenarioError> {
    let count = if is_first { disks.len() } else { 1 };
    bench.progress().phase("verifying", disks.iter().take(count).map(VirtualDisk::bytes).sum());
    for (index, disk) in disks.into_iter().enumerate() {
        if index < count {
            found.verified_bytes += verify_disk(&disk, 0, &[]).await?;
        }
        disk.close().await?;
        place.datastore.delete(&disk.name()).await?;
    }
    Ok(())
}

/// Measures one side of some cases, in turns, on a new datastore.
async fn side(
    found: &mut Found,
    bench: &Rc<Bench>,
    cases: &[Case<'_>],
    side: Side,
    settings: Settings,
    limits: Limits,
) -> Result<(), ScenarioError> {
    let place = bench.fresh(bench.host(), 0).await?;
    bench.set(side.settings(settings));
    let mut rounds = Rounds::new(cases.len(), limits.divided(bench.plan().count_scale));
    while let Some(turn) = rounds.begin() {
        let case = &cases[turn];
        let (bytes, count) = (bench.scaled(case.bytes), bench.counted(case.count) as u64);
        bench.progress().phase(&format!("{}, {}", case.name, side.name()), bytes * count);
        let (measure, disks) = make(bench, &place, case.count, bytes).await?;
        let is_first = rounds.is_first();
        rounds.add(measure);
        check(found, bench, &place, disks, is_first).await?;
    }
    for (case, Middle { measure, .. }) in cases.iter().zip(rounds.ended()) {
        found.put(case.name, side, measure);
    }
    Ok(())
}

/// Some disks of a size.
#[derive(Clone, Copy)]
struct Case<'a> {
    name: &'a str,
    count: usize,
    bytes: u64,
}

/// Measures both sides, with ESXi's defaults.
async fn both(found: &mut Found, bench: &Rc<Bench>, case: &Case<'_>) -> Result<(), ScenarioError> {
    for this in Side::BOTH {
        side(found, bench, &[*case], this, Settings::default(), ALONE).await?;
    }
    Ok(())
}

/// Measures also with ranges as long as the array accepts, next to the same by the host.
async fn long_ranges(
    found: &mut Found,
    bench: &Rc<Bench>,
    case: &Case<'_>,
) -> Result<(), ScenarioError> {
    let name = format!("{}{LONG_RANGES}", case.name);
    let long = Settings { zero_bytes: u64::MAX, ..Settings::default() };
    let by_hand = found.row(case.name).off.clone();
    side(found, bench, &[Case { name: &name, ..*case }], Side::On, long, ALONE).await?;
    found.row(&name).off = by_hand;
    Ok(())
}

/// The gain of Block Zero that a paper publishes, and its wording.
struct Gain {
    least: f64,
    goal: &'static str,
    /// Whether it is that of the mean over the sizes; otherwise of each.
    is_mean: bool,
}

/// Fig. 16 of 000: "about 6x on average", which is what rounds to 6.
const MEAN_6: Gain = Gain { least: 5.5, goal: "about 6x on average, as published", is_mean: true };
/// Fig. 36 of 002 has no number: "significant" is read as twice.
const TWICE: Gain = Gain { least: 2.0, goal: "2x at every size: significant", is_mean: false };
/// 004: "over 260% better".
const BETTER_260: Gain = Gain { least: 3.6, goal: "260% better, as published", is_mean: false };

/// Judges whether the gain is what was published: in ranges of 1 MB, for which it was measured, and
/// in long ones.
fn judge_gain(found: &mut Found, published: &Gain) {
    if let Some((off_s, on_s, _)) = sides(found, false, published.is_mean) {
        let what = "time, off against on, 1 MB a command";
        found.judge_faster(what, published.goal, published.least, off_s, on_s);
        found.because(
            "each MB is a command of its own, acknowledged when it is durable, two at a time",
        );
    }
    if let Some((off_s, on_s, commands)) = sides(found, true, published.is_mean) {
        let what = "time, off against on, long ranges";
        found.judge_faster(what, published.goal, published.least, off_s, on_s);
        let off_ms = off_s * 1000.0;
        found.because(&format!(
            "the {commands} commands, most of them for the datastore's own records, take the same \
             time at any size; by hand the smallest disk of this scale takes {off_ms:.0} ms"
        ));
    }
}

/// Returns the times off and on whose ratio is the mean gain, or those of the case that gains
/// least; and the commands of that one.
fn sides(found: &Found, is_long: bool, is_mean: bool) -> Option<(f64, f64, u64)> {
    let sides: Vec<_> = measured(found, is_long).collect();
    let gain = |(off, on): &(&Measure, &Measure)| off.seconds / on.seconds;
    let (off, on) = *sides.iter().min_by(|a, b| gain(a).total_cmp(&gain(b)))?;
    let off_s = match is_mean {
        false => off.seconds,
        true => on.seconds * sides.iter().map(gain).sum::<f64>() / sides.len() as f64,
    };
    Some((off_s, on.seconds, on.commands))
}

/// Returns off and on of all cases that have both, for ranges of 1 MB or for long ones.
fn measured(found: &Found, is_long: bool) -> impl Iterator<Item = (&Measure, &Measure)> {
    let rows = found.rows.iter().filter(move |row| row.case.ends_with(LONG_RANGES) == is_long);
    rows.filter_map(|row| row.off.as_ref().zip(row.on.as_ref()))
}

/// Judges whether no size gains far more than another.
fn judge_consistent(found: &mut Found) {
    let gains: Vec<f64> = measured(found, false)
        .filter_map(|(off, on)| ratio_of_times(off.seconds, on.seconds))
        .collect();
    let most = gains.iter().copied().fold(0.0, f64::max);
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    if let Some(apart) = ratio(most, least).filter(|_| gains.len() > 1) {
        let (what, goal) =
            ("gain of one size, relative to that of another", "2x at most: the same");
        found.judge(what, goal, format!("{apart:.2}x"), apart <= 2.0);
        found.because("the datastore's own records take the same time for any size");
    }
}

async fn sizes(bench: Rc<Bench>, gib: &[u64]) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for gib in gib {
        let case = Case { name: &format!("{gib} GB"), count: 1, bytes: gib * GIB };
        both(&mut found, &bench, &case).await?;
        long_ranges(&mut found, &bench, &case).await?;
    }
    Ok(found)
}

/// P-16: four sizes.
pub(super) async fn four_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = sizes(bench, &[25, 50, 100, 200]).await?;
    judge_gain(&mut found, &MEAN_6);
    found.notes.push(String::from("The paper does not state the four sizes: these are ours."));
    Ok(found)
}

/// V-36: six sizes.
pub(super) async fn six_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = sizes(bench, &[10, 20, 40, 60, 100, 200]).await?;
    judge_gain(&mut found, &TWICE);
    judge_consistent(&mut found);
    Ok(found)
}

/// P-17: how much longer four disks at once take than one.
pub(super) async fn four_at_once(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let [one, four] = [1, 4].map(|count| bench.cases(count, "disk"));
    let cases = [(1, &one), (4, &four)];
    let cases = cases.map(|(count, name)| Case { name, count, bytes: 100 * GIB });
    for this in Side::BOTH {
        side(&mut found, &bench, &cases, this, Settings::default(), ALIKE).await?;
    }
    let times = |side| Some((found.seconds(&four, side)?, found.seconds(&one, side)?));
    let (off, on) = (times(Side::Off), times(Side::On));
    if let Some(times) = off.and_then(|(four, one)| ratio_of_times(four, one)) {
        found.notes.push(format!("Four at once take {times:.2} times as long as one with it off."));
    }
    if let Some((four, one)) = on {
        found.judge_at_most("time of four, relative to one, on", "1.6x at most", 1.6, four, one);
    }
    Ok(found)
}

/// V-37: what the host writes over time while a disk of 20 GB is created.
pub(super) async fn write_rate(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let mut drawn = Vec::new();
    for side in Side::BOTH {
        let place = bench.fresh(bench.host(), 0).await?;
        bench.set(side.settings(Settings::default()));
        let bytes = bench.scaled(20 * GIB);
        let (mut rounds, mut seen) = (Rounds::new(1, ALONE), Vec::new());
        while rounds.begin().is_some() {
            bench.progress().phase(side.name(), bytes);
            let (sampler, before) = (bench.sample(SAMPLE), bench.traffic());
            let (mut measure, disks) = make(&bench, &place, 1, bytes).await?;
            let sent = (bench.traffic().sent_bytes - before.sent_bytes) as f64 / 1e6;
            seen.push(sampler.end());
            let rate = ratio(sent, measure.seconds);
            measure.values.extend(rate.map(|rate| value("write rate", "MB/s", rate)));
            rounds.add(measure);
            check(&mut found, &bench, &place, disks, true).await?;
        }
        for Middle { measure, at } in rounds.ended() {
            let points = std::mem::take(&mut seen[at].sent_mb);
            drawn.push(Line { name: side.name().to_owned(), points });
            found.put("20 GB", side, measure);
        }
    }
    found.charts.push(lines("What the host sends", "MB/s", drawn));
    let wire = |side| found.measured("20 GB", side).map(|measure| measure.wire_bytes as f64);
    let wires = wire(Side::Off).zip(wire(Side::On));
    if let Some(less) = wires.and_then(|(off, on)| ratio(off, on)) {
        let what = "bytes on the wire, off against on";
        found.judge(what, "250x", format!("{less:.0}x"), less >= 250.0);
    }
    Ok(found)
}

/// I-zero: 50 machines of 40 GB, and 200 of 10 GB.
pub(super) async fn ibm(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for (count, gib) in [(50, 40), (200, 10)] {
        let name = format!("{} of {gib} GB", bench.cases(count, "VM"));
        for side in Side::BOTH {
            machines(&mut found, &bench, &Case { name: &name, count, bytes: gib * GIB }, side)
                .await?;
        }
    }
    judge_gain(&mut found, &BETTER_260);
    Ok(found)
}

/// Creates machines, each with an eagerzeroedthick disk, all at once.
async fn machines(
    found: &mut Found,
    bench: &Rc<Bench>,
    case: &Case<'_>,
    side: Side,
) -> Result<(), ScenarioError> {
    let place = bench.fresh(bench.host(), 0).await?;
    bench.set(side.settings(Settings::default()));
    let (count, bytes) = (bench.counted(case.count), bench.scaled(case.bytes));
    let plan = [disk(bytes, Provisioning::EagerZeroedThick)];
    let names: Vec<String> = (1..=count).map(|number| format!("vm{number}")).collect();
    let mut rounds = Rounds::new(1, ALONE);
    while rounds.begin().is_some() {
        let phase = format!("{}, {}", case.name, side.name());
        bench.progress().phase(&phase, bytes * count as u64);
        let made = names.iter().map(|name| Vm::create(&place, name, &plan));
        let (measure, vms) = bench.measure(all(made)).await?;
        let verified = if rounds.is_first() { count } else { 1 };
        rounds.add(measure);
        for (index, vm) in vms.into_iter().enumerate() {
            if index < verified {
                found.verified_bytes += verify_disk(&vm.disks()[0].base(), 0, &[]).await?;
            }
            vm.delete().await?;
        }
    }
    for Middle { measure, .. } in rounds.ended() {
        found.put(case.name, side, measure);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(times: &[(&str, f64, f64)]) -> Found {
        let mut found = Found::default();
        let of = |seconds| Measure { seconds, commands: 7, ..Measure::default() };
        for (case, off, on) in times {
            found.put(case, Side::Off, of(*off));
            found.put(case, Side::On, of(*on));
        }
        found
    }

    fn verdicts(found: &Found) -> Vec<(&str, bool)> {
        found.verdicts.iter().map(|it| (it.measured.as_str(), it.is_met)).collect()
    }

    #[test]
    fn a_gain_is_judged_by_the_published_one() {
        let long = &format!("100 GB{LONG_RANGES}");
        let times = [("25 GB", 2.0, 0.5), ("100 GB", 10.0, 1.0), (long, 10.0, 0.1)];
        let mut mean = found(&times);
        judge_gain(&mut mean, &MEAN_6);
        assert_eq!(verdicts(&mean), [("7.0x", true), ("100.0x", true)]);
        let mut each = found(&times);
        judge_gain(&mut each, &BETTER_260);
        judge_consistent(&mut each);
        assert_eq!(verdicts(&each), [("4.0x", true), ("100.0x", true), ("2.50x", false)]);
        let mut slow = found(&[("10 GB", 3.0, 1.0)]);
        judge_gain(&mut slow, &BETTER_260);
        judge_consistent(&mut slow);
        assert_eq!(verdicts(&slow), [("3.0x", false)]);
        assert!(slow.verdicts[0].reason.as_ref().unwrap().contains("two at a time"));
    }
}
