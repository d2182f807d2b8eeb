//! Copies of machines: kinds of disks, transfer sizes, cold and hot, several at once.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::template::{Template, disk};
use super::{Found, ScenarioError, cases, middle};
use crate::disk::{Place, Provisioning};
use crate::engine::all;
use crate::guest::{Load, LoadPlan};
use crate::host::{EsxVersion, Settings};
use crate::mover::Mover;
use crate::vm::DiskPlan;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// What is over in milliseconds is done so often, and the middle one counts.
const REPEATS: usize = 5;

/// A copy to be timed.
struct Copy<'a> {
    case: &'a str,
    side: Side,
    settings: Settings,
    count: usize,
}

/// Copies a template, verifies each copy, and deletes it; the middle one of several counts.
async fn copy(
    found: &mut Found,
    bench: &Bench,
    template: &Template,
    to: &Place,
    copy: Copy<'_>,
) -> Result<(), ScenarioError> {
    bench.set(copy.side.settings(copy.settings));
    let bytes = template.data_bytes() * copy.count as u64;
    bench.progress().phase(&format!("{}, {}", copy.case, copy.side.name()), bytes);
    let mut measures = Vec::new();
    let repeats = if copy.side == Side::On { REPEATS } else { 1 };
    for _ in 0..repeats {
        let mover = Mover::new(bench.host());
        let names: Vec<String> =
            (1..=bench.counted(copy.count)).map(|number| format!("copy{number}")).collect();
        let copies = names.iter().map(|name| template.vm.deploy(&mover, to, name, None));
        let (measure, vms) = bench.measure(all(copies)).await?;
        measures.push(measure);
        for vm in vms {
            found.verified_bytes += template.verify(&vm).await?;
            vm.delete().await?;
        }
    }
    found.put(copy.case, copy.side, middle(measures));
    Ok(())
}

/// A template of one disk. A thin one is filled while another is, so that they fragment each other.
async fn template(
    bench: &Bench,
    place: &Place,
    name: &str,
    plan: DiskPlan,
    data_bytes: u64,
) -> Result<Template, ScenarioError> {
    bench.set(Settings::default());
    bench.progress().phase("filling a template", data_bytes);
    let seed = bench.plan().seed;
    let beside = format!("beside-{name}");
    let wanted = Template::make(place, name, plan, data_bytes, seed);
    if plan.provisioning != Provisioning::Thin {
        return wanted.await;
    }
    let other = Template::make(place, &beside, plan, data_bytes, !seed);
    let (template, other) = futures::future::join(wanted, other).await;
    let (template, other) = (template?, other?);
    other.vm.delete().await?;
    Ok(template)
}

fn transfer(mib: u64, segments: u64) -> Settings {
    Settings { transfer_bytes: mib * MIB, transfer_segments: segments, ..Settings::default() }
}

/// P-15: 75 GB, thin, zeroedthick, eagerzeroedthick, as 5.x and as 6.0 copy them.
pub(super) async fn kinds(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let bytes = bench.scaled(75 * GIB);
    let from = bench.fresh(bench.host(), 0).await?;
    let to = bench.fresh(bench.host(), 1).await?;
    let six = transfer(16, 1);
    let five = Settings { version: EsxVersion::V5, ..six };
    let kinds: [(_, _, &[_]); 3] = [
        ("thin", Provisioning::Thin, &[("thin, 5.x", five), ("thin, 6.0", six)]),
        ("thick", Provisioning::ZeroedThick, &[("zeroedthick", six)]),
        ("eager", Provisioning::EagerZeroedThick, &[("eagerzeroedthick", six)]),
    ];
    for (name, kind, ways) in kinds {
        let template = template(&bench, &from, name, disk(bytes, kind), bytes).await?;
        for (case, settings) in ways {
            for side in Side::BOTH {
                let job = Copy { case, side, settings: *settings, count: 1 };
                copy(&mut found, &bench, &template, &to, job).await?;
            }
        }
        template.vm.delete().await?;
    }
    judge_alike(&mut found, &["thin, 6.0", "zeroedthick", "eagerzeroedthick"]);
    Ok(found)
}

/// Whether these cases take as long as each other, within a tenth.
fn judge_alike(found: &mut Found, alike: &[&str]) {
    let times = found.rows.iter().filter(|row| alike.contains(&row.case.as_str()));
    let times: Vec<f64> =
        times.filter_map(|row| row.on.as_ref().map(|measure| measure.seconds)).collect();
    let most = times.iter().copied().fold(0.0, f64::max);
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let apart = (most / least - 1.0) * 100.0;
    let what = format!("{}: time of the slowest, to the fastest", alike.join(", "));
    found.judge(&what, "10% more at most", format!("{apart:.1}% more"), apart <= 10.0);
}

/// V-25: 4, 16 and 240 MB, the last in 8 segments; thick, thin, and the clone of a thin one.
pub(super) async fn extents(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (size, data) = (bench.scaled(40 * GIB), bench.scaled(25 * GIB));
    let from = bench.fresh(bench.host(), 0).await?;
    let to = bench.fresh(bench.host(), 1).await?;
    let sizes =
        [("4 MB", transfer(4, 1)), ("16 MB", transfer(16, 1)), ("240 MB", transfer(240, 8))];
    for (name, kind) in [("thick", Provisioning::ZeroedThick), ("thin", Provisioning::Thin)] {
        let first = template(&bench, &from, name, disk(size, kind), data).await?;
        for (transfer, settings) in sizes {
            let case = format!("{name}, {transfer}");
            let sides: &[Side] = if transfer == "4 MB" { &Side::BOTH } else { &[Side::On] };
            for side in sides {
                let job = Copy { case: &case, side: *side, settings, count: 1 };
                copy(&mut found, &bench, &first, &to, job).await?;
            }
        }
        if kind == Provisioning::Thin {
            clone_of_clone(&mut found, &bench, &first, &to, &sizes).await?;
        }
        first.vm.delete().await?;
    }
    judge_alike(&mut found, &["thick, 240 MB", "clone of a thin clone, 240 MB"]);
    Ok(found)
}

/// The clone of a thin disk was written in order: its own clone is copied like a thick disk.
async fn clone_of_clone(
    found: &mut Found,
    bench: &Bench,
    first: &Template,
    to: &Place,
    sizes: &[(&str, Settings)],
) -> Result<(), ScenarioError> {
    let mover = Mover::new(bench.host());
    let vm = first.vm.deploy(&mover, to, "clone", None).await?;
    let clone = Template { vm, seed: first.seed, blocks: first.blocks.clone() };
    for (transfer, settings) in sizes {
        let case = format!("clone of a thin clone, {transfer}");
        let job = Copy { case: &case, side: Side::On, settings: *settings, count: 1 };
        copy(found, bench, &clone, to, job).await?;
    }
    clone.vm.delete().await.map_err(ScenarioError::from)
}

/// V-30: a disk of 40 GB with 25 GB in it, 4 and 16 MB.
pub(super) async fn transfer_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (template, to) = vmax_template(&bench).await?;
    for (case, settings) in [("4 MB", transfer(4, 1)), ("16 MB", transfer(16, 1))] {
        for side in Side::BOTH {
            let job = Copy { case, side, settings, count: 1 };
            copy(&mut found, &bench, &template, &to, job).await?;
        }
    }
    Ok(found)
}

/// The machine of 002 on the first unit, and a datastore on the second.
async fn vmax_template(bench: &Bench) -> Result<(Template, Place), ScenarioError> {
    let from = bench.fresh(bench.host(), 0).await?;
    let to = bench.fresh(bench.host(), 1).await?;
    let plan = disk(bench.scaled(40 * GIB), Provisioning::ZeroedThick);
    let made = template(bench, &from, "template", plan, bench.scaled(25 * GIB)).await?;
    Ok((made, to))
}

/// V-34: four clones of one source at once.
pub(super) async fn four_at_once(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (template, to) = vmax_template(&bench).await?;
    for count in [1, 4] {
        for side in Side::BOTH {
            let case = cases(count, "clone");
            let job = Copy { case: &case, side, settings: transfer(16, 1), count };
            copy(&mut found, &bench, &template, &to, job).await?;
        }
    }
    Ok(found)
}

/// I-copy: 50 machines of 40 GB, and 200 of 10 GB, cloned from one of each.
pub(super) async fn ibm(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    for (count, gib) in [(50, 40), (200, 10)] {
        let from = bench.fresh(bench.host(), 0).await?;
        let bytes = bench.scaled(gib * GIB);
        let plan = disk(bytes, Provisioning::EagerZeroedThick);
        // The paper's disks are of zeros, as they were made; half of ours is data.
        let template = template(&bench, &from, "template", plan, bytes / 2).await?;
        for side in Side::BOTH {
            let to = bench.fresh(bench.host(), 1).await?;
            bench.set(side.settings(transfer(16, 1)));
            let case = format!("{} of {gib} GB", cases(count, "VM"));
            bench.progress().phase(&format!("{case}, {}", side.name()), bytes * count as u64);
            let mover = Mover::new(bench.host());
            let names: Vec<String> =
                (1..=bench.counted(count)).map(|number| format!("vm{number}")).collect();
            let copies = names.iter().map(|name| template.vm.deploy(&mover, &to, name, None));
            let (measure, vms) = bench.measure(all(copies)).await?;
            found.put(&case, side, measure);
            for vm in vms {
                found.verified_bytes += template.verify(&vm).await?;
                vm.delete().await?;
            }
        }
    }
    Ok(found)
}

/// V-31: cold, hot, and hot under a heavy load of reads.
pub(super) async fn hot(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (template, to) = vmax_template(&bench).await?;
    for (case, is_hot, is_loaded) in
        [("cold", false, false), ("hot", true, false), ("hot, under reads", true, true)]
    {
        for side in Side::BOTH {
            bench.set(side.settings(transfer(16, 1)));
            bench.progress().phase(&format!("{case}, {}", side.name()), template.data_bytes());
            let mut load = is_loaded.then(|| start_reads(&bench, &template));
            let mover = Mover::new(bench.host());
            let (measure, vm) = match is_hot {
                true => bench.measure(template.vm.clone_hot(&mover, &to, "clone")).await?,
                false => bench.measure(template.vm.deploy(&mover, &to, "clone", None)).await?,
            };
            if let Some(load) = &mut load {
                load.stop().await?;
            }
            found.put(case, side, measure);
            found.verified_bytes += template.verify(&vm).await?;
            vm.delete().await?;
        }
    }
    Ok(found)
}

/// Heavy reads of what the template's disk holds, from its beginning.
fn start_reads(bench: &Bench, template: &Template) -> Load {
    let plan = LoadPlan {
        read_percent: 100,
        depth: 8,
        span_bytes: Some(template.first_run_bytes()),
        seed: bench.plan().seed,
        ..LoadPlan::default()
    };
    let disks: Vec<_> = template.vm.disks().to_vec();
    Load::start(bench.reactor(), &disks, plan, Some(template.seed))
}
