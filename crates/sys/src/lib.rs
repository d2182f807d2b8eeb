//! The only effects: disks, the clock, entropy. The only crate of the array, except `parity`, that
//! may be `unsafe`.
//!
//! * [`Disk`]: what the store requires of a disk; [`FileDisk`] is a real one,
//! * [`Ring`]: asynchronous access to the same disk, one for each front-end thread; several of a
//!   thread signal by one [`Event`],
//! * [`Calls`]: what both do in the end; the simulator has its own calls below the same
//!   [`RetryingDisk`] and the same [`Transfers`],
//! * [`Clock`]: time since the start; [`Timer`]: one with a descriptor for pollers; [`wall`]: the
//!   time of day,
//! * [`attendant`]: low-priority threads next to those that hosts wait for,
//! * [`entropy()`]: random bytes from the kernel,
//! * [`announce()`]: announcing to neighbors that an address is here now,
//! * [`reservations`]: who may write to a device that several machines reach,
//! * [`counts`]: I/O counters of a disk,
//! * [`allocations`]: counting what a thread allocates, for tests.

pub mod allocations;
mod announce;
mod answers;
pub mod attendant;
pub mod calls;
pub mod clock;
pub mod counts;
pub mod disk;
pub mod entropy;
pub mod event;
mod fiemap;
pub mod file;
mod flushes;
mod iovec;
mod opening;
pub mod prepare;
pub mod reservations;
mod retry;
pub mod retrying;
pub mod ring;
mod scsi;
mod setup;
pub mod timer;
mod transfer;
pub mod transfers;
mod units;
pub mod wall;

pub use announce::announce;
pub use answers::ReservationError;
pub use calls::Calls;
pub use clock::Clock;
pub use counts::{DiskSnapshot, LATENCY_BOUNDS_US, Latencies, TransferCounters, TransferSnapshot};
pub use disk::{Disk, Persist, READ_TRIES_MAX};
pub use entropy::entropy;
pub use event::Event;
pub use file::FileDisk;
pub use prepare::Preparer;
pub use reservations::{Registered, Reservable, ReservedDevice};
pub use retrying::RetryingDisk;
pub use ring::Ring;
pub use timer::Timer;
pub use transfers::{Buffers, Completion, Transfers};
