//! A command from its first byte to its last, without sockets, threads or a clock.
//!
//! A [`FrontEnd`] is what one thread does. It has some of the connections and a channel to the
//! medium, and takes one *turn* after the other: what came, what ended, one commit for all of it,
//! and one send a connection. Bytes, completions, mail and time go in; bytes, requests to the
//! medium and deadlines come out. Whoever runs it brings the sockets ([`Wires`]), the time
//! ([`Clock`]) and a way to be woken ([`Wake`]): `holdfast serve` a poller and a thread each, the
//! simulator a seed.
//!
//! * `shared`: what all front ends of an array share, `wires`: what they ask of who runs them,
//! * `front_end`: the turn of one, `turn`: how much of it, `patience`: how long to look
//!   around before it sleeps,
//! * `peer`: a connection's bytes, in and out,
//! * `commands`: a command's way through SCSI and the store, and its answer,
//! * [`transport`]: what is asked of the protocol that carries commands; iSCSI as one,
//! * [`command_set`]: what is asked of what commands do; SCSI as one,
//! * `luns`: what is at a LUN,
//! * `storage`: reads and commits on the channel; `device`: how long these take,
//! * `tasks`: what is under way, `throttle`: what waits for the limits of its volume,
//!   `gather`: what waits for memory,
//! * `management`: task management, resets, and the end of sessions, over all threads,
//! * `mailbox`: what threads tell each other,
//! * [`kept`]: what of hosts is stored, `saver`: making it durable, `managed`: where the array
//!   keeps it, and what hosts see of the array,
//! * `repeated`: who sends a COMPARE AND WRITE, and whether its answer has come,
//! * [`sessions`]: who is logged in, on what terms, and who was refused,
//! * [`counters`]: what was done, for whom, and how long it took.
//!
//! There is no policy here: who may log in, what a LUN is and what a command does is decided in
//! the crates that this wires together.
//!
//! Invariants:
//! 1. A command is answered once, or its connection has ended, or it was aborted (`tasks`).
//! 2. What a task management request has aborted has ended before that is answered
//!    (`management`).
//! 3. A session begins when the one before it of the same nexus has ended with all its tasks.
//! 4. No turn does more than a bounded amount of work, whatever hosts ask for (`turn`).
//! 5. Nothing here waits, and nothing here asks the system for anything but memory.

pub mod command_set;
mod commands;
pub mod counters;
mod device;
mod front_end;
mod gather;
pub mod kept;
mod luns;
mod mailbox;
mod managed;
mod management;
mod patience;
mod peer;
mod repeated;
mod saver;
pub mod sessions;
mod shared;
mod storage;
mod tasks;
mod throttle;
pub mod transport;
mod turn;
mod wires;

pub use counters::Counters;
pub use device::{DeviceSnapshot, LATENCY_BOUNDS_US, Latencies, TransferSnapshot};
pub use front_end::FrontEnd;
pub use kept::{LoadError, TargetRecords};
pub use mailbox::Mailbox;
pub use managed::LunMaps;
pub use shared::{Options, Shared};
pub use transport::PortOptions;
pub use wires::{Clock, Wake, Wires};
