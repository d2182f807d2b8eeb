//! The world of a seed.

mod extras;

use std::time::Duration;

use block::VolumeLimits;
use iscsi::Limits;
use store::{Durability, OpenOptions, Tuning};

use super::controller::Setup;
use super::host;
use super::network::Rules;
use super::world::{Events, Trouble, World};
use crate::rng::{Rng, mix};

const SEGMENT_BYTES: u64 = 64 << 10;
/// Room for the superblocks, and segments for many times the content of small volumes.
const POOL_BYTES: u64 = (16 << 20) + 144 * SEGMENT_BYTES;
/// Separates the seeds of worlds from those of other histories.
const WORLDS: u64 = 0x0061_7272_6179;

/// Returns the world of a seed, and its hosts. Each size is so small that its bound is reached all
/// the time: windows of commands, bursts, memory for data, segments, records, memory for metadata.
/// What takes long, or fails, happens only in some worlds.
pub fn of_seed(seed_number: u64, steps: u64) -> (World, host::Plan) {
    let mut plan = plain(seed_number, steps);
    extras::add(seed_number, &mut plan);
    let (world, hosts) = &mut plan;
    world.setup.volume_bytes =
        hosts.units.iter().map(|blocks| blocks * block::BLOCK_BYTES).collect();
    hosts.window = world.setup.limits.commands_per_session;
    plan
}

/// The same without what only some worlds have, and without volumes.
pub(super) fn plain(seed_number: u64, steps: u64) -> (World, host::Plan) {
    let rng = &mut Rng::new(mix(seed_number ^ WORLDS));
    let hosts = rng.between(1, 3) as usize;
    let ports = rng.between(1, 3) as u16;
    let units: Vec<u64> = (0..rng.between(1, 3)).map(|_| rng.between(2, 40)).collect();
    let hosts = host::Plan {
        seed: rng.draw(),
        hosts,
        paths_per_host: rng.between(1, u64::from(ports)) as usize,
        ports,
        in_flight_max: rng.between(1, 5) as usize,
        reserved_from: rng.below(units.len() as u64 + 1) as usize,
        units,
        long_blocks: 0,
        is_durable: true,
        is_prompt: false,
        connections: 1,
        window: 0,
        mix: mix_of(rng),
    };
    let memory_bytes = if rng.chance(50) { 256 << 10 } else { 1 << 20 };
    let checkpoint_log_segments = rng.between(1, 8);
    let options = OpenOptions {
        durability: Durability::Commit,
        tuning: Tuning::SMALL,
        memory_bytes,
        checkpoint_log_bytes: checkpoint_log_segments * SEGMENT_BYTES,
        discard: checkpoint_log_segments.is_multiple_of(3),
        takes_over: None,
        ..OpenOptions::default()
    };
    let setup = Setup {
        options,
        threads: rng.between(1, 3) as usize,
        ports,
        limits: limits(rng),
        hosts: hosts.names(),
        volume_bytes: Vec::new(),
        volume_limits: VolumeLimits::NONE,
    };
    let events = Events {
        crashes: rng.between(1, 12),
        kills: rng.between(0, 8),
        chores: rng.between(0, 80),
        cuts: rng.between(0, 12),
        stalls: rng.between(0, 40),
        ..Events::default()
    };
    let seed = rng.draw();
    let rules = rules(rng);
    let (segment_bytes, pool_bytes) = (SEGMENT_BYTES, POOL_BYTES);
    let trouble = Trouble::default();
    let world = World { seed, setup, segment_bytes, pool_bytes, events, steps, rules, trouble };
    let mut plan = (world, hosts);
    // Two of five have realistic bounds and a realistic network.
    if (1..=2).contains(&(seed_number % 5)) {
        (plan.0.setup.limits, plan.0.rules) = (Limits::default(), Rules::default());
    }
    plan
}

/// In every second world some things happen far more often than usual, and others never.
fn mix_of(rng: &mut Rng) -> host::Mix {
    let usual = host::Mix::default();
    if rng.chance(50) {
        return usual;
    }
    host::Mix {
        zeros: rng.below(30),
        unmaps: rng.below(30),
        swaps: rng.below(60),
        copies: rng.below(40),
        aborts: rng.below(600),
        resets: rng.below(60),
        cuts: rng.below(40),
        takeovers: rng.below(40),
        ..usual
    }
}

fn limits(rng: &mut Rng) -> Limits {
    let burst_bytes = 4096 << rng.below(5);
    Limits {
        commands_per_session: rng.between(2, 16) as u32,
        receive_segment_bytes: 8192 << rng.below(3),
        burst_bytes,
        first_burst_bytes: burst_bytes >> rng.below(3),
        outstanding_r2t: rng.between(1, 4) as u16,
        data_out_bytes_per_connection: 16 << 10 << rng.below(4),
        pdus_per_call: rng.between(1, 16) as u32,
        output_bytes: 4 << 10 << rng.below(6),
        data_timeout: Duration::from_millis(rng.between(500, 30_000)),
        login_timeout: Duration::from_secs(15),
        ping_after: Duration::from_millis(rng.between(200, 30_000)),
        ..Limits::default()
    }
}

fn rules(rng: &mut Rng) -> Rules {
    Rules {
        window_bytes: 512 << rng.below(10),
        piece_bytes_max: 64 << rng.below(11),
        slow_percent: rng.below(10),
        ..Rules::default()
    }
}
