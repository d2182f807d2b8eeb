//! SCSI without a transport: a command in, a response or a request to a volume out.
//!
//! [`DeviceServer`] is the state that all logical units of the array share. A transport creates a
//! [`Nexus`] for each session, passes every command to [`DeviceServer::execute`], executes the
//! resulting [`block::VolumeRequest`], and passes its result to [`DeviceServer::resume`], until the
//! [`Step`] is a [`Response`]. Nothing here blocks, draws randomness or reads a clock.
//!
//! [`target`] keeps the state of hosts, their reservations and their pending notifications. This
//! crate parses commands, encodes responses, and translates the results of [`target`] to sense
//! data.
//!
//! The layers; each may use only those below it:
//!
//! * [`server`]: routes commands by [`table`], which lists all of them, and continues them,
//! * [`blocks`], [`unit`], [`copy`], [`reservations`]: the commands,
//! * [`device`]: what commands may access; [`saving`]: commands that wait until a change is
//!   durable,
//! * [`step`]: input and output, and the state of a command between two steps,
//! * [`limits`], [`copies`], [`controls`], [`thresholds`], [`nexus`], [`sense`], [`cdb`], [`lun`]:
//!   the building blocks.
//!
//! The standards are SPC-4, SBC-3 (SBC-4 where it says more) and SAM-5. The code of each command
//! names its clause.

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
