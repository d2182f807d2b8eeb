//! The fence at the medium: which of two controllers on two machines may write to the devices that
//! both reach (RFC 0015).
//!
//! * [`key`]: what a controller registers at a device,
//! * [`taking`]: taking one device, from nobody or from one that is silent,
//! * [`watch`]: who is silent, and when enough devices may be taken,
//! * [`hands`]: a thread for each device, as one that hangs must not keep the others from it,
//! * [`turn`]: waiting until the pool may be had, and taking it,
//! * [`guard`]: keeping it: signs of life, and the end of whoever finds itself fenced,
//! * [`lease`]: until when what this process knows may be told to hosts.
//!
//! Invariants:
//! 1. A controller opens the pool only on devices at which its key holds the reservation and no
//!    other one is registered, and only on [`quorum`] of them. Any two quorums share a device.
//! 2. A key is taken away only if it has not changed for [`SILENCE`], and only as long as it is
//!    exactly that one: an owner changes its key with each sign of life.
//! 3. A lease is [`LEASE`] from the beginning of the last sign of life that a quorum of devices has
//!    taken, and is over before the key can count as silent.
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

/// How often an owner gives a sign of life to each device.
const SIGN_INTERVAL: Duration = Duration::from_millis(500);
/// For how long a sign of life lets an owner serve hosts.
const LEASE: Duration = Duration::from_secs(2);
/// How long a key must not have changed before it may be taken away.
const SILENCE: Duration = Duration::from_secs(3);

/// A device, by its name.
#[derive(Clone)]
pub struct Named {
    /// How it was named.
    pub name: String,
    /// What is asked of it.
    pub device: Arc<dyn Reservable>,
}

/// Of how many of so many devices a controller must be the only one that may write: more than half,
/// and as many as hold all data.
pub fn quorum(devices: usize) -> usize {
    (devices / 2 + 1).max(devices.saturating_sub(2))
}
