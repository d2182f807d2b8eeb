//! A command from its first byte to its last, without sockets, threads or a clock.
//!
//! A [`FrontEnd`] is what one thread does. It has some of the connections and a channel to the
//! medium, and takes one *turn* after the other: what came, what ended, one commit for all of it,
//! and one send a connection. Bytes, completions, mail and time go in; bytes, requests to the
//! medium and deadlines come out. Whoever runs it brings the sockets ([`Wires`]), the time
//! ([`Clock`]) and a way to be woken ([`Wake`]): `holdfast serve` a poller and a thread each, the
//! simulator a seed.
//!
//! From what knows least to what knows most:
//!
//! * `wires`: what front ends ask of who runs them, `device`: how long requests to the medium take,
//!   [`counters`]: what was done, for whom, and how long it took, `luns`: what is at a LUN,
//! * [`transport`]: what is asked of the protocol that carries commands; iSCSI as one,
//! * [`command_set`]: what is asked of what commands do; SCSI as one,
//! * `mailbox`: what threads tell each other, [`sessions`]: who is logged in, on what terms, and
//!   who was refused,
//! * [`kept`]: what of hosts is stored, `managed`: where the array keeps it, and what hosts see of
//!   the array, `saver`: making it durable,
//! * [`episode`]: telling once of what fails often,
//! * `repeated`: who sends a COMPARE AND WRITE, and whether its answer has come,
//! * `turn`: how much is done in a turn, `throttle`: the limits of volumes, `patience`: how long to
//!   look around before it sleeps, `tasks`: what is under way,
//! * `shared`: what all front ends of an array share, `peer`: a connection's bytes, in and out,
//! * `front_end`: the turn of one, in parts: `commands`: a command's way through SCSI and the
//!   store, and its answer, `storage`: reads and commits on the channel, `parking`, `gather` and
//!   `tending`: what waits for a later turn, for memory and for the limits of its volume,
//!   `management`: task management, resets, and the end of sessions, over all threads, `ending`:
//!   the end of connections, `handing`: those that go on in another process.
//!
//! There is no policy here: who may log in, what a LUN is and what a command does is decided in
//! the crates that this wires together.
//!
//! Invariants:
//! 1. A command is answered once, or its connection has ended, or it was aborted (`tasks`).
//! 2. What a task management request has aborted has ended before that is answered
//!    (`front_end/management`).
//! 3. A session begins when the one before it of the same nexus has ended with all its tasks.
//! 4. No turn does more than a bounded amount of work, whatever hosts ask for (`turn`).
//! 5. Nothing here waits, and nothing here asks the system for anything but memory.

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
