//! The whole array in a seed: hosts that speak iSCSI, a network, front ends with their target and
//! their store, and a disk.
//!
//! - [`world`]: one step after the other, with losses of power, kills, chores and cut connections,
//! - [`host`]: hosts that ask for anything, on several paths each,
//! - [`network`]: connections that delay, split, merge, stall and lose bytes,
//! - [`controller`]: the array's side: front ends, with their `sockets` and their way to the disk
//!   ([`channel`]); [`chores`]: what threads do beside them,
//! - [`linear`]: whether the answers that hosts got are those of some order of their commands,
//!   exact for each block of 4 KiB and while the run goes on,
//! - [`reservations`]: whether an answer GOOD or RESERVATION CONFLICT was possible.
//!
//! The monitors know neither iSCSI nor the array: who drives the hosts tells them what was asked
//! and what was answered. Time is simulated, as `Duration` since the beginning of the run.

pub mod channel;
pub mod chores;
pub mod controller;
pub mod host;
pub mod linear;
pub mod network;
mod plan;
pub mod reservations;
mod search;
mod sockets;
pub mod summary;
pub mod world;

use summary::Summary;

/// Steps of a world, unless somebody wants others.
pub const STEPS: u64 = 20_000;

/// Runs the world that a seed stands for.
///
/// # Errors
/// What was wrong, and after how many steps.
pub fn run(seed: u64, steps: u64) -> Result<Summary, (u64, String)> {
    let (world, hosts) = plan::of_seed(seed, steps);
    world.run(Box::new(host::SimHosts::new(hosts)))
}
