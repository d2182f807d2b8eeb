//! Taking one device: the own key is registered, those that are silent are taken away with what is
//! under way of them, and what is left must be the own one alone, with the reservation.
//!
//! Whoever does not get it puts back what was registered from here before, and never writes by
//! having registered. That of a process before is put back as well: if that one was the last to
//! have the pool, it keeps a still older owner, which was stopped, from a device that nobody had.

use sys::{Registered, Reservable, ReservationError};

use super::key::Key;

/// How often it is looked who is registered before it is given up: each time something has changed
/// by this process, or by another one that wants it too.
const ROUNDS_MAX: usize = 16;

/// A device that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether nobody had registered. Then nothing says that an owner before had been silent.
    pub was_free: bool,
    /// What was registered from here before; 0: nothing.
    pub former: u64,
}

/// Why a device was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// A controller has it that is not known to be silent.
    #[error("a controller has it, with the key {0:#018x}")]
    Owned(u64),
    /// Something else than a controller has registered.
    #[error(
        "{0:#018x} is registered, which no controller of Holdfast has done: release it first \
         (sg_persist --out --clear)"
    )]
    Foreign(u64),
    /// What the device says.
    #[error(transparent)]
    Failed(#[from] ReservationError),
}

/// Takes a device from nobody, or from these keys.
///
/// # Errors
/// [`TakeError`]. The device is as it was then, but for a device that could not be asked.
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

/// Whether all that have registered may be taken away.
fn check(now: &Registered, own: Key, silent: &[u64]) -> Result<(), TakeError> {
    for raw in now.keys.iter().chain(&now.holder).copied() {
        let key = Key::of(raw).ok_or(TakeError::Foreign(raw))?;
        if key != own && !silent.contains(&raw) {
            return Err(TakeError::Owned(raw));
        }
    }
    Ok(())
}

/// Until the own key, which is registered, holds the reservation, and no other one is there.
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
                // It came too late to get it, and goes of itself, or ended before it could.
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
            // Somebody was faster: it is looked who.
            Ok(()) | Err(ReservationError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(TakeError::Owned(seen))
}
