//! The parts of a simulated array that stand on the hosts' side.
//!
//! - [`network`]: connections that delay, split, merge, stall and lose bytes, from a seed.
//! - [`linear`]: whether the answers that hosts got are those of some order of their commands,
//!   exact for each block of 4 KiB and while the run goes on.
//! - [`reservations`]: whether an answer GOOD or RESERVATION CONFLICT was possible.
//!
//! None of them knows of iSCSI or of the array: who drives the hosts tells the monitors what was
//! asked and what was answered. Time is simulated, as `Duration` since the beginning of the run.

pub mod channel;
pub mod controller;
pub mod linear;
pub mod network;
pub mod reservations;
pub mod world;
