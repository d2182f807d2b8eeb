//! Commands from their first byte to their last, without sockets, threads or a clock.
//!
//! A [`FrontEnd`] is the work of one thread. It owns some of the connections and a channel to the
//! medium, and works in *turns*: it processes input and completions, starts one commit for all of
//! it, and sends once on each connection. Bytes, completions, mail and time go in; bytes, requests
//! to the medium and deadlines come out. The caller provides the sockets ([`Wires`]), the time
//! ([`Clock`]) and a way to wake it ([`Wake`]): `holdfast serve` a poller and a thread for each,
//! the simulator a seeded world.
//!
//! The modules, from lowest to highest layer:
//!
//! * `wires`: what front ends require of their caller, `device`: latencies of requests to the
//!   medium, [`counters`]: numbers and latencies of commands by initiator and volume, `luns`: LUN
//!   look-up,
//! * [`transport`]: the interface of a protocol that carries commands; iSCSI is one,
//! * [`command_set`]: the interface of a command set; SCSI is one,
//! * `mailbox`: messages between threads, [`sessions`]: sessions and their parameters, and refused
//!   logins,
//! * [`kept`]: persistent state of hosts, `managed`: where the array stores it, and what hosts see
//!   of the array, `saver`: making it durable,
//! * [`episode`]: reporting a recurring failure once,
//! * `repeated`: identifies the sender of a COMPARE AND WRITE, and whether it has the response,
//! * `turn`: the budget of a turn, `throttle`: the limits of volumes, `patience`: how long to
//!   busy-poll before sleeping, `tasks`: commands in progress,
//! * `shared`: what all front ends of an array share, `peer`: a connection's input and output,
//! * `front_end`: the turn of one front end, in parts: `commands`: the execution of a command by
//!   SCSI and the store, and its response, `storage`: reads and commits on the channel, `parking`,
//!   `gather` and `tending`: requests that wait for a later turn, for memory and for the limits of
//!   their volume, `management`: task management, resets, and the end of sessions, across all
//!   threads, `ending`: the end of connections, `handing`: connections that are handed over to
//!   another process.
//!
//! This crate contains no policy: the crates that it wires together decide who may log in, what a
//! LUN is and what a command does.
//!
//! Invariants:
//! 1. Each command gets one response, unless its connection has ended or it was aborted (`tasks`).
//! 2. A task management request gets its response only after all commands that it aborted have
//!    ended (`front_end/management`).
//! 3. A session begins only after the previous one of the same nexus has ended with all its tasks.
//! 4. Each turn does a bounded amount of work for any requests of hosts (`turn`).
//! 5. Nothing here blocks, or requests anything but memory from the system.

pub mod command_set;
pub mod counters;
mod device;
pub mod episode;
mod front_end;
mod handing;
pub mod kept;
mod luns;
mod mailbox;
mod managed;
mod patience;
mod peer;
mod repeated;
mod saver;
pub mod sessions;
mod shared;
mod tasks;
mod throttle;
pub mod transport;
mod turn;
mod wires;

pub use counters::Counters;
pub use device::DeviceSnapshot;
pub use front_end::FrontEnd;
pub use handing::{Handed, Untold};
pub use kept::{LoadError, TargetRecords};
pub use mailbox::Mailbox;
pub use managed::LunMaps;
pub use segments::{LATENCY_BOUNDS_US, Latencies, TransferSnapshot};
pub use shared::{Options, Shared};
pub use throttle::Limited;
pub use transport::PortOptions;
pub use wires::{Clock, Wake, Wires};
