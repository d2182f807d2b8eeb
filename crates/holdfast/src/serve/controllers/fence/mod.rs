//! Fencing by the devices: which of two controllers on two machines may write to the devices that
//! both reach (RFC 0015).
//!
//! * [`key`]: what a controller registers with a device,
//! * [`taking`]: taking one device that is free, or from a silent controller,
//! * [`watch`]: which controllers are silent, and when enough devices may be taken,
//! * [`hands`]: a thread for each device, so that one that hangs does not delay the others,
//! * [`turn`]: waiting until the pool may be taken, and taking it,
//! * [`guard`]: keeping it: signs of life, and the end of a process that is fenced,
//! * [`lease`]: the time until which this process may answer hosts.
//!
//! Invariants:
//! 1. A controller opens the pool only on devices at which its key holds the reservation and no
//!    other one is registered, and only on a [`quorum`] of them. Any two quorums have a device in
//!    common.
//! 2. A key is preempted only if it has not changed for [`SILENCE`], and only while it is exactly
//!    that key: an owner changes its key with each sign of life.
//! 3. A lease lasts [`LEASE`] from the start of the last sign of life that a quorum of devices has
//!    accepted, and expires before the key can count as silent.
//! 4. Nothing is received from hosts or sent to them without a lease.

mod guard;
mod hands;
mod key;
mod lease;
mod taking;
mod turn;
mod watch;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use sys::Reservable;

pub use guard::Guard;
pub use lease::Lease;
pub(super) use lease::now_ms;
pub use taking::TakeError;
pub use turn::{Held, Turn};

/// The interval of an owner's signs of life at each device.
const SIGN_INTERVAL: Duration = Duration::from_millis(500);
/// How long a sign of life lets an owner serve hosts.
const LEASE: Duration = Duration::from_secs(2);
/// How long a key must be unchanged before it may be preempted.
const SILENCE: Duration = Duration::from_secs(3);

/// A device with its name.
#[derive(Clone)]
pub struct Named {
    /// The name under which it is reported.
    pub name: String,
    /// The device.
    pub device: Arc<dyn Reservable>,
}

/// Returns how many of this many devices a controller must hold exclusively: more than half, and
/// enough for all data.
pub fn quorum(devices: usize) -> usize {
    (devices / 2 + 1).max(devices.saturating_sub(2))
}
