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
//! What is above may name what is below, and nothing else:
//!
//! * [`server`]: routes commands by [`table`], which names all of them, and goes on with them,
//! * [`blocks`], [`unit`], [`copy`], [`reservations`]: the commands,
//! * [`device`]: what they may look at; [`saving`], for those that wait until a change is durable,
//! * [`step`]: what comes in and goes out, and what is left of a command between two steps,
//! * [`limits`], [`copies`], [`controls`], [`thresholds`], [`nexus`], [`sense`], [`cdb`], [`lun`]:
//!   what these are made of.
//!
//! The standards are SPC-4, SBC-3 (SBC-4 where it says more) and SAM-5; the clause of each command
//! stands beside its code.

mod blocks;
mod bytes;
mod cdb;
mod controls;
mod copies;
mod copy;
mod device;
mod limits;
mod lun;
mod nexus;
mod reservations;
mod saving;
mod sense;
mod server;
mod statistics;
mod step;
mod table;
mod thresholds;
mod transfer;
mod unit;

pub use blocks::verify::verified_blocks;
pub use cdb::{Cdb, data_out_phase};
pub use device::DeviceServer;
pub use nexus::{InitiatorPort, Nexus};
pub use sense::{FieldPointer, Sense, SenseKey};
pub use step::{AnswerAfter, Command, Pending, Response, Status, Step};

pub use statistics::{Statistics, UnitStatistics};
pub use table::commands;
pub use target::{RodVolume, SaveError, Subject, TargetPort, TokenKey};
pub use transfer::data_out_bytes;

#[cfg(test)]
mod tests;
