//! The whole array from a seed: hosts that speak iSCSI, a network, front ends with their target and
//! their store, and a disk.
//!
//! - [`world`]: one step after the other, with power losses, kills, chores and cut connections,
//! - [`host`]: hosts that send random requests, on several paths each,
//! - [`network`]: connections that delay, split, merge, stall and lose bytes,
//! - [`controller`]: the array's side: front ends, with their `sockets` and their channel to the
//!   disk ([`channel`]); [`chores`]: the work of other threads,
//! - [`linear`]: whether the responses of hosts are those of some order of their commands, exact
//!   for each block of 4 KiB and during the run,
//! - [`reservations`]: whether a response GOOD or RESERVATION CONFLICT was possible.
//!
//! The monitors know neither iSCSI nor the array: the driver of the hosts passes them requests and
//! responses. Time is simulated, as `Duration` since the beginning of the run.

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

/// The default number of steps of a world.
pub const STEPS: u64 = 20_000;

/// Runs the world of a seed.
///
/// # Errors
/// What was wrong, and after how many steps.
pub fn run(seed: u64, steps: u64) -> Result<Summary, (u64, String)> {
    let (world, hosts) = plan::of_seed(seed, steps);
    world.run(Box::new(host::SimHosts::new(hosts)))
}
