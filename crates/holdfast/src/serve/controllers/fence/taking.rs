//! Takes one device: registers the own key, preempts silent keys together with their commands in
//! progress, and requires that only the own key is left, with the reservation.
//!
//! A controller that does not get the device restores the key that this machine had registered
//! before, and never writes just because it has registered. The key of an earlier process is
//! restored as well: if that one was the last to have the pool, its key keeps a still older owner,
//! which was stopped, from a device that nobody had.

use sys::{Registered, Reservable, ReservationError};

use super::key::Key;

/// How often the registrations are read before giving up: each time this process, or another one
/// that wants the device too, has changed something.
const ROUNDS_MAX: usize = 16;

/// A device that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether nothing was registered. Then nothing shows that an earlier owner had been silent.
    pub was_free: bool,
    /// The key previously registered by this machine; 0 if none.
    pub former: u64,
}

/// The reason why a device was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A controller that is not known to be silent has it.
    #[error("a controller has it, with the key {0:#018x}")]
    Owned(u64),
    /// Something other than a controller has registered.
    #[error(
        "{0:#018x} is registered, which no controller of Holdfast has done: release it first \
         (sg_persist --out --clear)"
    )]
    Foreign(u64),
    /// The device's error.
    #[error(transparent)]
    Failed(#[from] ReservationError),
}

/// Takes a free device, or one with these keys.
///
/// # Errors
/// [`TakeError`]. The device is then unchanged, unless it could not be reached.
pub(super) fn take(device: &dyn Reservable, own: Key, silent: &[u64]) -> Result<Taken, TakeError> {
    let before = device.registered()?;
    check(&before, own, silent)?;
    let former = before.keys.iter().find(|raw| own.is_same_controller(**raw));
    let former = former.copied().unwrap_or_default();
    device.register(own.raw())?;
    match settle(device, own, silent) {
        Ok(()) => Ok(Taken { was_free: before.keys.is_empty() && before.holder.is_none(), former }),
        Err(error) => {
            // The first error is returned.
            let _ = device.register(former);
            Err(error)
        }
    }
}

/// Checks that all registered keys may be preempted.
fn check(now: &Registered, own: Key, silent: &[u64]) -> Result<(), TakeError> {
    for raw in now.keys.iter().chain(&now.holder).copied() {
        let key = Key::of(raw).ok_or(TakeError::Foreign(raw))?;
        if key != own && !silent.contains(&raw) {
            return Err(TakeError::Owned(raw));
        }
    }
    Ok(())
}

/// Repeats until the own key, which is registered, holds the reservation, and no other key is left.
fn settle(device: &dyn Reservable, own: Key, silent: &[u64]) -> Result<(), TakeError> {
    let mut seen = 0;
    for _ in 0..ROUNDS_MAX {
        let now = device.registered()?;
        let others = || now.keys.iter().copied().filter(|raw| *raw != own.raw());
        seen = now.holder.or(others().next()).unwrap_or(seen);
        if !now.keys.contains(&own.raw()) {
            return Err(TakeError::Owned(seen));
        }
        if let Some(foreign) = others().find(|raw| Key::of(*raw).is_none()) {
            return Err(TakeError::Foreign(foreign));
        }
        let done = match now.holder {
            Some(holder) if holder == own.raw() => match others().next() {
                None => return Ok(()),
                // It came too late to get the device, and will unregister itself, or ended before
                // it could.
                Some(late) => device.preempt_and_abort(own.raw(), late),
            },
            Some(holder) if silent.contains(&holder) => device.preempt_and_abort(own.raw(), holder),
            Some(holder) => return Err(TakeError::Owned(holder)),
            None => match others().find(|raw| silent.contains(raw)) {
                Some(other) => device.preempt_and_abort(own.raw(), other),
                None => device.reserve(own.raw()),
            },
        };
        match done {
            // Another controller was faster: read again.
            Ok(()) | Err(ReservationError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(TakeError::Owned(seen))
}
