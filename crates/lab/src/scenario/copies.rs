//! Copies of machines: kinds of disks, transfer sizes, cold and hot, several at once.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::rounds::{ALIKE, ALONE, Limits, Middle, Rounds};
use super::template::{Template, disk};
use super::{Found, ScenarioError};
use crate::disk::{Place, Provisioning};
use crate::engine::all;
use crate::guest::{Load, LoadPlan};
use crate::host::{EsxVersion, Settings};
use crate::mover::Mover;
use crate::vm::DiskPlan;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// The memory of a running machine that is cloned: its swap file.
const MEMORY_BYTES: u64 = 16 * MIB;
/// A copy to be timed.
#[derive(Clone, Copy)]
struct Copy<'a> {
    case: &'a str,
    /// Its template, among those that are given.
    of: usize,
    side: Side,
    settings: Settings,
    count: usize,
}

/// Copies templates, job by job, and repeats short ones.
async fn copy(
    found: &mut Found,
    bench: &Bench,
    templates: &[&Template],
    to: &Place,
    jobs: &[Copy<'_>],
) -> Result<(), ScenarioError> {
    for job in jobs {
        take_turns(found, bench, templates, to, &[*job], ALONE).await?;
    }
    Ok(())
}

/// The same in turns: for copies that are compared with each other. All copies of the first round
/// are verified, and one of each in every fourth round after that; then they are deleted.
async fn take_turns(
    found: &mut Found,
    bench: &Bench,
    templates: &[&Template],
    to: &Place,
    jobs: &[Copy<'_>],
    limits: Limits,
) -> Result<(), ScenarioError> {
    let mut rounds = Rounds::new(jobs.len(), limits.divided(bench.plan().count_scale));
    while let Some(turn) = rounds.begin() {
        let job = &jobs[turn];
        let template = templates[job.of];
        bench.set(job.side.settings(job.settings));
        let bytes = template.data_bytes() * bench.counted(job.count) as u64;
        bench.progress().phase(&format!("{}, {}", job.case, job.side.name()), bytes);
        let mover = Mover::new(bench.host());
        let names: Vec<String> =
            (1..=bench.counted(job.count)).map(|number| format!("copy{number}")).collect();
        let copies = names.iter().map(|name| template.vm.deploy(&mover, to, name, None));
        let (measure, vms) = bench.measure(all(copies)).await?;
        let verified = match rounds.is_first() {
            true => vms.len(),
            false => usize::from(rounds.is_verified()),
        };
        rounds.add(measure);
        for (index, vm) in vms.into_iter().enumerate() {
            if index < verified {
                found.verified_bytes += template.verify(&vm).await?;
            }
            vm.delete().await?;
        }
    }
    for (job, Middle { measure, .. }) in jobs.iter().zip(rounds.ended()) {
        found.put(job.case, job.side, measure);
    }
    Ok(())
}

/// Creates a template with one disk. A thin one is filled at the same time as another, so that they
/// fragment each other.
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
    let kinds = [
        ("thin", Provisioning::Thin),
        ("thick", Provisioning::ZeroedThick),
        ("eager", Provisioning::EagerZeroedThick),
    ];
    let mut made = Vec::new();
    for (name, kind) in kinds {
        made.push(template(&bench, &from, name, disk(bytes, kind), bytes).await?);
    }
    let cases = [
        ("thin, 5.x", 0, five),
        ("thin, 6.0", 0, six),
        ("zeroedthick", 1, six),
        ("eagerzeroedthick", 2, six),
    ];
    let jobs =
        |side: Side| cases.map(|(case, of, settings)| Copy { case, of, side, settings, count: 1 });
    let templates: Vec<&Template> = made.iter().collect();
    copy(&mut found, &bench, &templates, &to, &jobs(Side::Off)).await?;
    take_turns(&mut found, &bench, &templates, &to, &jobs(Side::On), ALIKE).await?;
    found.judge_alike(&["thin, 6.0", "zeroedthick", "eagerzeroedthick"]);
    Ok(found)
}

/// V-25: 4, 16 and 240 MB, the last in 8 segments; thick, thin, and the clone of a thin one.
pub(super) async fn extents(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (size, data) = (bench.scaled(40 * GIB), bench.scaled(25 * GIB));
    let from = bench.fresh(bench.host(), 0).await?;
    let to = bench.fresh(bench.host(), 1).await?;
    let mut made = Vec::new();
    for (name, kind) in [("thick", Provisioning::ZeroedThick), ("thin", Provisioning::Thin)] {
        made.push(template(&bench, &from, name, disk(size, kind), data).await?);
    }
    made.push(clone_of(&bench, &made[1], &to).await?);
    let sizes =
        [("4 MB", transfer(4, 1)), ("16 MB", transfer(16, 1)), ("240 MB", transfer(240, 8))];
    let templates: Vec<&Template> = made.iter().collect();
    for (transfer, settings) in sizes {
        let names = KINDS.map(|kind| format!("{kind}, {transfer}"));
        let job = |of: usize, side| Copy { case: &names[of], of, side, settings, count: 1 };
        if transfer == "4 MB" {
            let off = [job(0, Side::Off), job(1, Side::Off)];
            copy(&mut found, &bench, &templates, &to, &off).await?;
        }
        let on: Vec<Copy<'_>> = (0..KINDS.len()).map(|of| job(of, Side::On)).collect();
        take_turns(&mut found, &bench, &templates, &to, &on, ALIKE).await?;
        // Thin disks are fragmented, and so are their commands: 002 shows the clone only next to
        // thick.
        found.judge_alike(&[&names[0], &names[2]]);
    }
    Ok(found)
}

/// What V-25 copies, in the order of its templates.
const KINDS: [&str; 3] = ["thick", "thin", "clone of a thin clone"];

/// The clone of a thin disk was written sequentially: its own clone is copied like a thick disk.
async fn clone_of(bench: &Bench, thin: &Template, to: &Place) -> Result<Template, ScenarioError> {
    bench.set(transfer(16, 1));
    let vm = thin.vm.deploy(&Mover::new(bench.host()), to, "clone", None).await?;
    Ok(Template { vm, seed: thin.seed, blocks: thin.blocks.clone() })
}

/// V-30: a disk of 40 GB with 25 GB of data, 4 and 16 MB.
pub(super) async fn transfer_sizes(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let (template, to) = vmax_template(&bench).await?;
    for (case, settings) in [("4 MB", transfer(4, 1)), ("16 MB", transfer(16, 1))] {
        let jobs = Side::BOTH.map(|side| Copy { case, of: 0, side, settings, count: 1 });
        copy(&mut found, &bench, &[&template], &to, &jobs).await?;
    }
    Ok(found)
}

/// Creates the machine of 002 on the first unit, and a datastore on the second.
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
        let (case, settings) = (bench.cases(count, "clone"), transfer(16, 1));
        let jobs = Side::BOTH.map(|side| Copy { case: &case, of: 0, side, settings, count });
        copy(&mut found, &bench, &[&template], &to, &jobs).await?;
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
        // The paper's disks contain zeros, as they were created; half of ours is data.
        let template = template(&bench, &from, "template", plan, bytes / 2).await?;
        let case = format!("{} of {gib} GB", bench.cases(count, "VM"));
        for side in Side::BOTH {
            let to = bench.fresh(bench.host(), 1).await?;
            let job = Copy { case: &case, of: 0, side, settings: transfer(16, 1), count };
            copy(&mut found, &bench, &[&template], &to, &[job]).await?;
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
        if is_hot {
            template.vm.power_on(MEMORY_BYTES).await?;
        }
        for side in Side::BOTH {
            bench.set(side.settings(transfer(16, 1)));
            bench.progress().phase(&format!("{case}, {}", side.name()), template.data_bytes());
            let mut load = is_loaded.then(|| start_reads(&bench, &template));
            let mut rounds = Rounds::new(1, ALONE);
            while rounds.begin().is_some() {
                let mover = Mover::new(bench.host());
                let (measure, vm) = match is_hot {
                    true => bench.measure(template.vm.clone_hot(&mover, &to, "clone")).await?,
                    false => bench.measure(template.vm.deploy(&mover, &to, "clone", None)).await?,
                };
                rounds.add(measure);
                found.verified_bytes += template.verify(&vm).await?;
                vm.delete().await?;
            }
            if let Some(load) = &mut load {
                load.stop().await?;
            }
            for Middle { measure, .. } in rounds.ended() {
                found.put(case, side, measure);
            }
        }
        template.vm.power_off().await?;
    }
    Ok(found)
}

/// Starts heavy reads of the template's data, from its beginning.
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
