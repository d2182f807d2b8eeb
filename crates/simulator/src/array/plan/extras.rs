//! Features that only some worlds have, in any combination, independent of the rest of their seeds.

use std::time::Duration;

use block::VolumeLimits;
use store::Durability;

use super::super::host;
use super::super::world::{Trouble, World};
use super::{POOL_BYTES, SEGMENT_BYTES};
use crate::disk::Faults;
use crate::rng::{Rng, mix};

/// Separates the seeds of extras from those of worlds.
const EXTRAS: u64 = 0x6578_7472_6173;

type Plan = (World, host::Plan);
/// Adds something to a world.
type Add = fn(&mut Plan, &mut Rng);

/// What a world may have, and the percentage of worlds that have it.
const ALL: [(u64, Add); 11] = [
    (20, late_durability),
    (40, repeated_locks),
    (20, limited_volumes),
    (12, little_memory),
    (5, gathered_reads),
    (30, troubled_disk),
    (30, struck_array),
    (50, patterns),
    (10, prompt_answers),
    (40, several_connections),
    (25, planned_switches),
];

pub(super) fn add(seed: u64, plan: &mut Plan) {
    let rng = &mut Rng::new(mix(seed ^ EXTRAS));
    for (percent, add) in ALL {
        let mut own = Rng::new(rng.draw());
        if rng.chance(percent) {
            add(plan, &mut own);
        }
    }
    if plan.1.is_prompt {
        hold_nothing_up(plan);
    }
}

/// Writes are acknowledged before they are durable; SYNCHRONIZE CACHE and FUA make them durable.
fn late_durability((world, hosts): &mut Plan, rng: &mut Rng) {
    world.setup.options.durability = Durability::Flush;
    hosts.is_durable = false;
    hosts.mix.synchronizes = rng.between(1, 12);
    hosts.mix.forced_percent = rng.below(30);
}

/// The pool changes hands, and connections continue. The monitors allow no reservation that
/// outlives its session, as those of a session that does not continue do (RFC 0008).
fn planned_switches((world, hosts): &mut Plan, rng: &mut Rng) {
    world.events.switches = rng.between(1, 20);
    hosts.reserved_from = hosts.units.len();
}

/// Many COMPARE AND WRITE commands, whose responses are lost and which are repeated; in half of the
/// worlds nothing is copied, so that each one that was done must be recognized.
fn repeated_locks((world, hosts): &mut Plan, rng: &mut Rng) {
    let mix = &mut hosts.mix;
    mix.repeated_percent = rng.between(50, 100);
    mix.swaps += rng.below(60);
    mix.cuts += rng.below(60);
    if rng.chance(60) {
        mix.copies = 0;
    }
    world.events.kills += rng.below(10);
}

/// Volumes with changing limits.
fn limited_volumes(plan: &mut Plan, rng: &mut Rng) {
    if rng.chance(40) {
        prompt_answers(plan, rng);
    }
    let (world, _) = plan;
    world.setup.volume_limits =
        VolumeLimits { iops: Some(100 << rng.below(8)), bandwidth_bytes_per_s: None };
    world.events.limits = rng.below(10);
}

/// Long reads, and memory for only a few of them.
fn little_memory(plan: &mut Plan, rng: &mut Rng) {
    if rng.chance(50) {
        prompt_answers(plan, rng);
    }
    let (world, hosts) = plan;
    hosts.units = vec![rng.between(100, 300)];
    hosts.reserved_from = hosts.reserved_from.min(1);
    hosts.long_blocks = rng.between(32, 250);
    hosts.mix.long_percent = rng.between(5, 30);
    hosts.in_flight_max = 5;
    world.pool_bytes = POOL_BYTES + 200 * SEGMENT_BYTES;
    let limits = &mut world.setup.limits;
    limits.data_out_bytes_per_command = 1 << 20;
    limits.data_bytes = 2 << 20;
    limits.data_timeout = Duration::from_millis(rng.between(50, 30_000));
}

/// A volume long enough for reads of several requests.
fn gathered_reads(plan: &mut Plan, rng: &mut Rng) {
    plan.1.units = vec![rng.between(1030, 1200), rng.between(2, 20)];
    plan.1.reserved_from = plan.1.reserved_from.min(2);
    if rng.chance(60) {
        prompt_answers(plan, rng);
    }
    let (world, hosts) = plan;
    hosts.mix.gathered_percent = 3;
    world.pool_bytes = POOL_BYTES + 800 * SEGMENT_BYTES;
    // One of them takes all that a command may take.
    world.setup.limits.data_bytes = 64 << rng.between(20, 22);
    world.setup.limits.data_out_bytes_per_command = 32 << 20;
}

/// A disk that hinders writes temporarily, loses what flushes should have kept, and has bad
/// locations.
fn troubled_disk((world, _): &mut Plan, rng: &mut Rng) {
    let no_fua = rng.chance(40);
    let faults = Faults { no_fua, ..Faults::that_pass(rng.chance(60)) };
    world.trouble = Trouble { faults, ..world.trouble };
    world.events.bad_places = rng.below(30);
}

/// The power fails at any I/O, even during a start; or writes fail, and the array continues for a
/// while.
fn struck_array((world, _): &mut Plan, rng: &mut Rng) {
    world.events.failures = rng.between(1, 12);
    world.trouble.starts_struck_percent = rng.below(40);
    world.trouble.broken_steps = rng.below(1500);
}

/// WRITE SAME of something other than zeros.
fn patterns((_, hosts): &mut Plan, rng: &mut Rng) {
    hosts.mix.patterns = rng.between(2, 20);
}

/// Each command must get its response within a time limit.
fn prompt_answers((_, hosts): &mut Plan, _: &mut Rng) {
    hosts.is_prompt = true;
}

/// Sessions of several connections, which are added and removed while the sessions continue.
fn several_connections((world, hosts): &mut Plan, rng: &mut Rng) {
    hosts.connections = rng.between(2, 4) as u16;
    world.setup.limits.connections_per_session = rng.between(2, 4) as u16;
    let mix = &mut hosts.mix;
    mix.joins = rng.between(100, 1000);
    mix.partings = rng.below(60);
    mix.replacements = rng.below(60);
}

/// Nothing stalls, and no host ends what others have requested.
fn hold_nothing_up((world, hosts): &mut Plan) {
    hosts.mix.resets = 0;
    hosts.reserved_from = hosts.units.len();
    (world.events.stalls, world.events.cuts) = (0, 0);
}
