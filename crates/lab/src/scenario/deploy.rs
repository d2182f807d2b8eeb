//! Machines deployed from a template: the duration, and the traffic on the wire.

use std::rc::Rc;
use std::time::{Duration, Instant};

use async_lock::Semaphore;

use super::bench::{Bench, Side};
use super::judge::ratio;
use super::rounds::{ALONE, Middle, Rounds};
use super::sampler::Sampled;
use super::template::{Template, disk};
use super::{Found, ScenarioError, lines, value};
use crate::disk::{DiskError, Place, Provisioning};
use crate::engine::all;
use crate::host::Settings;
use crate::mover::Mover;
use crate::outcome::{Chart, Line, Measure, Series, Value};
use crate::vm::Vm;

/// The machine of 000: a zeroedthick disk of 100 GB with 50 GB of data.
const DISK_BYTES: u64 = 100 << 30;
const DATA_BYTES: u64 = 50 << 30;
/// The recommendation of 000.
const TRANSFER_BYTES: u64 = 16 << 20;
/// The number of machines that are copied at a time, the limit of vCenter and ESXi in 001; the
/// others wait.
const MACHINES_IN_FLIGHT: usize = 16;
/// The interval between two points of a line.
const SAMPLE: Duration = Duration::from_millis(50);

/// Returns the hosts' settings as 000 recommends them.
fn recommended() -> Settings {
    Settings { transfer_bytes: TRANSFER_BYTES, ..Settings::default() }
}

async fn template(bench: &Bench, place: &Place) -> Result<Template, ScenarioError> {
    bench.set(recommended());
    let plan = disk(bench.scaled(DISK_BYTES), Provisioning::ZeroedThick);
    let data_bytes = bench.scaled(DATA_BYTES);
    bench.progress().phase("filling the template", data_bytes);
    Template::make(place, "template", plan, data_bytes, bench.plan().seed).await
}

/// Machines that were deployed, each with the seconds that it took by itself.
type Deployed = Vec<(Vm, f64)>;

/// Deploys `count` machines, this many of them concurrently.
async fn deploy(
    bench: &Bench,
    template: &Template,
    place: &Place,
    count: usize,
) -> Result<(Measure, Deployed), ScenarioError> {
    let (mover, slots) = (Mover::new(bench.host()), Semaphore::new(MACHINES_IN_FLIGHT));
    let names = (1..=bench.counted(count)).map(|number| format!("vm{number}"));
    let copies = names.map(|name| {
        let (mover, slots) = (&mover, &slots);
        async move {
            let _slot = slots.acquire().await;
            let started = Instant::now();
            let vm = template.vm.deploy(mover, place, &name, None).await?;
            Ok::<_, DiskError>((vm, started.elapsed().as_secs_f64()))
        }
    });
    let (mut measure, vms) = bench.measure(all(copies)).await?;
    measure.values = own_times(&vms);
    Ok((measure, vms))
}

/// Returns the times of single machines, if there are several.
fn own_times(vms: &Deployed) -> Vec<Value> {
    let mut times: Vec<f64> = vms.iter().map(|(_, seconds)| *seconds).collect();
    times.sort_by(f64::total_cmp);
    match (times.get(times.len() / 2), times.last()) {
        (Some(middle), Some(most)) if times.len() > 1 => {
            vec![value("one VM, median", "s", *middle), value("one VM, longest", "s", *most)]
        }
        _ => Vec::new(),
    }
}

/// Compares all copies, or one if that was done before, and deletes them.
async fn verify_and_delete(
    found: &mut Found,
    bench: &Bench,
    template: &Template,
    vms: Deployed,
    is_first: bool,
) -> Result<(), ScenarioError> {
    let count = if is_first { vms.len() } else { 1 };
    bench.progress().phase("verifying", template.data_bytes() * count as u64);
    for (index, (vm, _)) in vms.into_iter().enumerate() {
        if index < count {
            found.verified_bytes += template.verify(&vm).await?;
        }
        vm.delete().await?;
    }
    Ok(())
}

/// Returns the growth of what the array stores; it may be negative.
fn growth(before: Option<u64>, after: Option<u64>) -> Option<f64> {
    Some(after? as f64 - before? as f64)
}

/// P-9: one machine, to another datastore; the host's traffic over time.
pub(super) async fn one(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    let (mut commands, mut mb) = (Vec::new(), Vec::new());
    for side in Side::BOTH {
        let (mut rounds, mut seen) = (Rounds::new(1, ALONE), Vec::new());
        while rounds.begin().is_some() {
            let to = bench.fresh(bench.host(), 1).await?;
            bench.set(side.settings(recommended()));
            bench.progress().phase(side.name(), template.data_bytes());
            let before = bench.physical_bytes()?;
            let sampler = bench.sample(SAMPLE);
            let (mut measure, vms) = deploy(&bench, &template, &to, 1).await?;
            seen.push(sampler.end());
            let more = growth(before, bench.physical_bytes()?);
            measure.values.extend(more.map(|more| value("physical growth", "B", more)));
            verify_and_delete(&mut found, &bench, &template, vms, true).await?;
            rounds.add(measure);
        }
        for Middle { measure, at } in rounds.ended() {
            let Sampled { commands: points, wire_mb, .. } = std::mem::take(&mut seen[at]);
            commands.push(Line { name: side.name().to_owned(), points });
            mb.push(Line { name: side.name().to_owned(), points: wire_mb });
            found.put("1 VM", side, measure);
        }
    }
    found.charts.push(lines("Commands of the host", "commands/s", commands));
    found.charts.push(lines("Traffic of the host", "MB/s", mb));
    judge_one(&mut found);
    Ok(found)
}

fn judge_one(found: &mut Found) {
    let Some((off, on)) = found.rows.first().and_then(|row| row.off.clone().zip(row.on.clone()))
    else {
        return;
    };
    if let Some(wire) = ratio(on.wire_bytes as f64, off.wire_bytes as f64) {
        found.judge(
            "bytes on the wire, on against off",
            "under 0.1%",
            format!("{:.3}%", wire * 100.0),
            wire < 0.001,
        );
    }
    found.judge_faster("time, off against on", "50x", 50.0, off.seconds, on.seconds);
}

/// P-13: 1, 2, 4, 8 and 16 machines at once.
pub(super) async fn many(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    for count in [1, 2, 4, 8, 16] {
        for side in Side::BOTH {
            let job = Job { count, side };
            let Tried { measure, .. } = again(&mut found, &bench, &template, job).await?;
            found.put(&bench.cases(count, "VM"), side, measure);
        }
    }
    Ok(found)
}

/// So many machines at once, on or off.
#[derive(Clone, Copy)]
struct Job {
    count: usize,
    side: Side,
}

/// The cost of a job, and the growth of what the array stores when it was first done.
struct Tried {
    measure: Measure,
    growth: Option<f64>,
}

/// Deploys to a new datastore, and repeats short deployments.
async fn again(
    found: &mut Found,
    bench: &Rc<Bench>,
    template: &Template,
    Job { count, side }: Job,
) -> Result<Tried, ScenarioError> {
    let to = bench.fresh(bench.host(), 1).await?;
    bench.set(side.settings(recommended()));
    let deployed = template.data_bytes() * bench.counted(count) as u64;
    let (mut rounds, mut more) = (Rounds::new(1, ALONE), None);
    while rounds.begin().is_some() {
        let name = format!("{}, {}", bench.cases(count, "VM"), side.name());
        bench.progress().phase(&name, deployed);
        let before = bench.physical_bytes()?;
        let (measure, vms) = deploy(bench, template, &to, count).await?;
        let is_first = rounds.is_first();
        rounds.add(measure);
        if is_first {
            more = growth(before, bench.physical_bytes()?);
        }
        verify_and_delete(found, bench, template, vms, is_first).await?;
    }
    let middle = rounds.ended().pop();
    let mut measure = middle.map_or_else(Measure::default, |middle| middle.measure);
    measure.values.extend(more.map(|more| value("physical growth", "B", more)));
    Ok(Tried { measure, growth: more })
}

/// B-scale: 1, 32, 64 and 128 machines at once, 16 copies in flight; the growth of what the array
/// stores.
pub(super) async fn scale(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    let mut seconds = Vec::new();
    for count in [1, 32, 64, 128] {
        let job = Job { count, side: Side::On };
        let Tried { measure, growth } = again(&mut found, &bench, &template, job).await?;
        let (name, machines) = (bench.cases(count, "VM"), bench.counted(count) as u64);
        let deployed = (template.data_bytes() * machines) as f64;
        if let Some(share) = growth.and_then(|more| ratio(more, deployed)) {
            let what = format!("physical growth, {name}");
            let measured = format!("{:.4}%", share * 100.0);
            found.judge(&what, "under 0.5% of what was deployed", measured, share < 0.005);
        }
        seconds.push((name.clone(), machines, measure.seconds));
        found.put(&name, Side::On, measure);
    }
    if let [(_, one, first), .., (_, most, last)] = &seconds[..] {
        let (times, what) = (*most as f64 / *one as f64, format!("time of {most}, to {one}"));
        found.judge_at_most(&what, &format!("{times}x at most"), times, *last, *first);
    }
    let labels = seconds.iter().map(|(name, ..)| name.clone()).collect();
    let each = |(_, machines, time): &(String, u64, f64)| Some(time / *machines as f64);
    let values = seconds.iter().map(each).collect();
    let series = vec![Series { name: String::from("on"), values }];
    let (title, unit) = (String::from("Time for one machine"), String::from("s"));
    found.charts.push(Chart::Bars { title, unit, labels, series });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn growth_may_be_below_zero() {
        assert_eq!(growth(Some(7), Some(9)), Some(2.0));
        assert_eq!(growth(Some(9), Some(7)), Some(-2.0));
        assert_eq!(growth(None, Some(7)), None);
    }
}
