//! A seeded world for the store: a faulty disk, requests in any order, oracles, and crashes.
//!
//! A [`history`] is determined by one seed: which requests are sent, when each device read and each
//! step of a commit is done, when a checkpoint is written, where the power fails and which sectors
//! survive. The same seed gives the same history, to the byte; [`Summary::trace`] is a hash of
//! every I/O and every response, which tests can compare.
//!
//! There are four kinds of history:
//! - [`history`]: requests that are in flight together are on different sectors (often of the same
//!   blocks), so that the [`model`] knows every byte. Crashes anywhere, also in checkpoints and in
//!   recovery, and write errors.
//! - [`contended`]: requests that race on the same sectors; a register for each sector says which
//!   values some order of the requests allows, and COMPARE AND WRITE must have one winner per
//!   value.
//! - [`damage`]: bits flip, reads fail or are misdirected; nothing wrong may ever be read.
//! - [`misplaced`]: a write is lost, lands elsewhere or in part, and the device reports it as done;
//!   this must be found.
//!
//! The head of [`device`] says what a device keeps and loses, and that of [`disk`] which other
//! faults it has. For pools that do not fit in memory there is a [`synthetic`] one, without faults.

pub mod array;
mod commits;
pub mod contended;
pub mod content;
pub mod damage;
mod desk;
pub mod device;
pub mod devices;
pub mod disk;
mod generate;
pub mod history;
pub mod misplaced;
pub mod model;
pub mod plan;
mod pursuit;
pub mod rng;
pub mod synthetic;

pub use history::run;
pub use plan::{Failure, Plan, Summary};

/// Returns the seeds in `seeds.txt` of worlds of this kind (`array`, `devices`), which failed once.
///
/// # Panics
/// If a line of it names no seed.
pub fn seeds_that_failed_once(kind: &str) -> Vec<u64> {
    let of_kind = include_str!("../seeds.txt").lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(kind))
            .then(|| (line, words.next().and_then(|word| word.parse().ok())))
    });
    of_kind.map(|(line, seed)| seed.unwrap_or_else(|| panic!("{line:?} has no seed"))).collect()
}
