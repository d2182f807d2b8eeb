//! Storage vMotion: a machine's disks moved to another datastore, powered off, idle or under load.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::rounds::{Limits, Middle, Rounds};
use super::template::{Template, disk, verify_from};
use super::{Found, ScenarioError, value};
use crate::disk::Provisioning;
use crate::guest::{Load, LoadPlan};
use crate::host::Settings;
use crate::mover::Mover;
use crate::outcome::Measure;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// A machine's memory: its swap file.
const MEMORY_BYTES: u64 = 16 * MIB;

/// Each has a machine of its own, which takes longer to fill than to move.
const MOVES: Limits = Limits { least: 1, most: 3, budget: Duration::from_secs(12) };

/// The state of a machine while it is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Off,
    Idle,
    /// 32 KB, mostly random, mostly writes (000).
    Loaded,
}

async fn one(
    found: &mut Found,
    bench: &Rc<Bench>,
    case: &str,
    state: State,
    bytes: (u64, u64),
    settings: Settings,
) -> Result<(), ScenarioError> {
    for side in Side::BOTH {
        let mut rounds = Rounds::new(1, MOVES);
        while rounds.begin().is_some() {
            let one = Move { case, state, bytes, settings, side };
            rounds.add(once(found, bench, &one).await?);
        }
        for Middle { measure, .. } in rounds.ended() {
            found.put(case, side, measure);
        }
    }
    Ok(())
}

/// A machine that is moved.
struct Move<'a> {
    case: &'a str,
    state: State,
    bytes: (u64, u64),
    settings: Settings,
    side: Side,
}

/// Moves a new machine between new datastores, and verifies it.
async fn once(
    found: &mut Found,
    bench: &Rc<Bench>,
    Move { case, state, bytes, settings, side }: &Move<'_>,
) -> Result<Measure, ScenarioError> {
    let from = bench.fresh(bench.host(), 0).await?;
    let to = bench.fresh(bench.host(), 1).await?;
    bench.set(Settings::default());
    let (size, data) = (bench.scaled(bytes.0), bench.scaled(bytes.1));
    bench.progress().phase("filling the machine", data);
    let plan = disk(size, Provisioning::ZeroedThick);
    let mut made = Template::make(&from, "vm", plan, data, bench.plan().seed).await?;
    bench.set(side.settings(*settings));
    if *state != State::Off {
        made.vm.power_on(MEMORY_BYTES).await?;
    }
    let mut load = (*state == State::Loaded).then(|| {
        let span_bytes = Some(made.first_run_bytes());
        let plan = LoadPlan { span_bytes, seed: bench.plan().seed, ..LoadPlan::default() };
        Load::start(bench.reactor(), made.vm.disks(), plan, Some(made.seed))
    });
    bench.progress().phase(&format!("{case}, {}", side.name()), data);
    let mover = Mover::new(bench.host());
    if let Some(load) = &load {
        load.restart_meter();
    }
    let (mut measure, ()) = bench.measure(made.vm.migrate(&mover, &to)).await?;
    if let Some(load) = &mut load {
        let meter = load.meter();
        load.stop().await?;
        measure.values.push(value("guest IOPS", "1/s", meter.per_second()));
        measure.values.push(value("guest p99", "ms", meter.quantile_ms(0.99)));
    }
    found.verified_bytes += verify(&made, load.as_ref()).await?;
    made.vm.power_off().await?;
    Ok(measure)
}

/// Verifies what the guest has written, and the initial content of everything else.
async fn verify(made: &Template, load: Option<&Load>) -> Result<u64, ScenarioError> {
    let Some(load) = load else { return made.verify(&made.vm).await };
    let written_bytes = load.verify().await?;
    let untouched = made.first_run_bytes() / crate::datastore::BLOCK_BYTES;
    let base = made.vm.disks()[0].base();
    let rest_bytes = verify_from(&base, made.seed, &made.blocks, untouched).await?;
    Ok(written_bytes + rest_bytes)
}

/// P-14: off, idle, under load.
pub(super) async fn pure(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let settings = Settings { transfer_bytes: 16 * MIB, ..Settings::default() };
    let bytes = (100 * GIB, 50 * GIB);
    for (case, state) in
        [("powered off", State::Off), ("idle", State::Idle), ("under load", State::Loaded)]
    {
        one(&mut found, &bench, case, state, bytes, settings).await?;
    }
    Ok(found)
}

/// V-35: one machine of 002, running.
pub(super) async fn vmax(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let settings = Settings { transfer_bytes: 16 * MIB, ..Settings::default() };
    one(&mut found, &bench, "running", State::Idle, (40 * GIB, 25 * GIB), settings).await?;
    Ok(found)
}
