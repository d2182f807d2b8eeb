//! Machines deployed from a template: how long that takes, and what of it goes over the wire.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::template::{Template, disk};
use super::{Found, ScenarioError, cases, lines, value};
use crate::disk::{Place, Provisioning};
use crate::engine::all;
use crate::host::Settings;
use crate::mover::Mover;
use crate::outcome::{Chart, Line, Measure, Series};
use crate::vm::Vm;

/// The machine of 000: a zeroedthick disk of 100 GB that holds 50 GB.
const DISK_BYTES: u64 = 100 << 30;
const DATA_BYTES: u64 = 50 << 30;
/// What 000 recommends.
const TRANSFER_BYTES: u64 = 16 << 20;
/// Between two points of a line.
const SAMPLE: Duration = Duration::from_millis(50);

/// The hosts' settings as 000 recommends them.
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

/// Deploys `count` machines at once.
async fn deploy(
    bench: &Bench,
    template: &Template,
    place: &Place,
    count: usize,
) -> Result<(Measure, Vec<Vm>), ScenarioError> {
    let mover = Mover::new(bench.host());
    let names: Vec<String> =
        (1..=bench.counted(count)).map(|number| format!("vm{number}")).collect();
    let copies = names.iter().map(|name| template.vm.deploy(&mover, place, name, None));
    let (measure, vms) = bench.measure(all(copies)).await?;
    Ok((measure, vms))
}

/// Compares all copies, and deletes them.
async fn verify_and_delete(
    found: &mut Found,
    bench: &Bench,
    template: &Template,
    vms: Vec<Vm>,
) -> Result<(), ScenarioError> {
    bench.progress().phase("verifying", template.data_bytes() * vms.len() as u64);
    for vm in vms {
        found.verified_bytes += template.verify(&vm).await?;
        vm.delete().await?;
    }
    Ok(())
}

/// P-9: one machine, to another datastore; the host's traffic over time.
pub(super) async fn one(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    let (mut commands, mut mb) = (Vec::new(), Vec::new());
    for side in Side::BOTH {
        let to = bench.fresh(bench.host(), 1).await?;
        bench.set(side.settings(recommended()));
        bench.progress().phase(side.name(), template.data_bytes());
        let before = bench.physical_bytes()?;
        let sampler = bench.sample(SAMPLE);
        let (mut measure, vms) = deploy(&bench, &template, &to, 1).await?;
        let name = side.name().to_owned();
        commands.push(Line { name: name.clone(), points: sampler.commands_per_second() });
        mb.push(Line { name, points: sampler.mb_per_second() });
        drop(sampler);
        if let (Some(before), Some(after)) = (before, bench.physical_bytes()?) {
            let more = after.saturating_sub(before) as f64;
            measure.values.push(value("physical growth", "B", more));
        }
        found.put("1 VM", side, measure);
        verify_and_delete(&mut found, &bench, &template, vms).await?;
    }
    found.charts.push(lines("Commands of the host", "commands/s", commands));
    found.charts.push(lines("Traffic of the host", "MB/s", mb));
    judge_one(&mut found);
    Ok(found)
}

fn judge_one(found: &mut Found) {
    let Some((off, on)) = found.rows.first().and_then(|row| row.off.as_ref().zip(row.on.as_ref()))
    else {
        return;
    };
    let wire = on.wire_bytes as f64 / off.wire_bytes as f64;
    let faster = off.seconds / on.seconds;
    found.judge(
        "bytes on the wire, on against off",
        "under 0.1%",
        format!("{:.3}%", wire * 100.0),
        wire < 0.001,
    );
    found.judge("time, off against on", "50x", format!("{faster:.1}x"), faster >= 50.0);
}

/// P-13: 1, 2, 4, 8 and 16 machines at once.
pub(super) async fn many(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    for count in [1, 2, 4, 8, 16] {
        for side in Side::BOTH {
            let to = bench.fresh(bench.host(), 1).await?;
            bench.set(side.settings(recommended()));
            bench
                .progress()
                .phase(side.name(), template.data_bytes() * bench.counted(count) as u64);
            let (measure, vms) = deploy(&bench, &template, &to, count).await?;
            found.put(&cases(count, "VM"), side, measure);
            verify_and_delete(&mut found, &bench, &template, vms).await?;
        }
    }
    Ok(found)
}

/// B-scale: 1, 32, 64 and 128 machines at once, 16 copies in flight; what the array stores more.
pub(super) async fn scale(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let from = bench.fresh(bench.host(), 0).await?;
    let template = template(&bench, &from).await?;
    let mut seconds = Vec::new();
    for count in [1, 32, 64, 128] {
        let to = bench.fresh(bench.host(), 1).await?;
        bench.set(recommended());
        let deployed = template.data_bytes() * bench.counted(count) as u64;
        bench.progress().phase(&cases(count, "VM"), deployed);
        let before = bench.physical_bytes()?;
        let (mut measure, vms) = deploy(&bench, &template, &to, count).await?;
        if let (Some(before), Some(after)) = (before, bench.physical_bytes()?) {
            let more = after.saturating_sub(before);
            measure.values.push(value("physical growth", "B", more as f64));
            let share = more as f64 / deployed as f64;
            let measured = format!("{:.4}%", share * 100.0);
            let what = format!("physical growth, {}", cases(count, "VM"));
            found.judge(&what, "under 0.5% of what was deployed", measured, share < 0.005);
        }
        seconds.push((count, measure.seconds));
        found.put(&cases(count, "VM"), Side::On, measure);
        verify_and_delete(&mut found, &bench, &template, vms).await?;
    }
    let (one, all) = (seconds[0].1, seconds[seconds.len() - 1].1);
    let ratio = all / one;
    found.judge("time of 128, to one", "128x at most", format!("{ratio:.1}x"), ratio <= 128.0);
    let labels = seconds.iter().map(|(count, _)| cases(*count, "VM")).collect();
    let values = seconds.iter().map(|(count, time)| Some(time / *count as f64)).collect();
    let series = vec![Series { name: String::from("on"), values }];
    let (title, unit) = (String::from("Time for one machine"), String::from("s"));
    found.charts.push(Chart::Bars { title, unit, labels, series });
    Ok(found)
}
