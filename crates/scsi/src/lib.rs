//! SCSI without a transport: a command in, a response or a request to a volume out.
//!
//! [`DeviceServer`] is what all logical units of the array share. A transport makes a [`Nexus`]
//! for each session, gives every command to [`DeviceServer::execute`], runs the
//! [`block::VolumeRequest`] that comes back, and gives its result to [`DeviceServer::resume`],
//! until the [`Step`] is a [`Response`]. Nothing here waits, draws randomness or reads a clock.
//!
//! What is known of hosts, their reservations and what they are still to be told is kept by
//! [`target`]; this crate parses commands, encodes answers, and says in sense data what that
//! crate says in its own words.
//!
//! The standards are SPC-4, SBC-3 (SBC-4 where it says more) and SAM-5; the clause of each command
//! stands beside its code.

mod alua;
mod atomic;
mod attention;
mod bytes;
mod capacity;
mod cdb;
mod compare_write;
mod controls;
mod copy;
mod finish;
mod inquiry;
mod log;
mod long;
mod luns;
mod mode;
mod nexus;
mod opcodes;
mod or_write;
mod provisioning;
mod read_write;
mod reservations;
mod response;
mod sanitize;
mod sense;
mod server;
mod small;
mod statistics;
mod table;
mod thresholds;
mod transfer;
mod unmap;
mod verify;
mod vpd;
mod write_same;

pub use cdb::{Cdb, data_out_phase};
pub use nexus::{InitiatorPort, Nexus};
pub use response::{AnswerAfter, Command, Pending, Response, Status, Step};
pub use sense::{FieldPointer, Sense, SenseKey};
pub use server::DeviceServer;
pub use statistics::{Statistics, UnitStatistics};
pub use table::commands;
pub use target::{RodVolume, SaveError, Subject, TargetPort, TokenKey};
pub use transfer::data_out_bytes;
pub use verify::verified_blocks;

#[cfg(test)]
mod tests;
