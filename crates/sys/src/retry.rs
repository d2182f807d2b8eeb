//! Writes that are refused for a while: a filesystem below that is full, a path that is gone, an
//! error that does not come again.
//!
//! Such a write is tried again, whole and at the same place, with growing pauses; whoever waits for
//! it waits longer, and learns of it only if it fails for good.
//!
//! A read that fails is tried again as well, a few times within some 20 ms: an error that does not
//! come again must not pass for a bad block, and a bad block must hold nobody up for long.
//!
//! A flush that fails is another matter: [`crate::flushes`].

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::disk::READ_TRIES_MAX;

/// The first pause. Each is twice the one before, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often an error of the device is met before the write has failed: for some 30 s, as long as
/// hosts wait for an answer.
const TRIES_MAX: u32 = 36;
/// How often EIO is met at a place, for some 70 ms, as long as other places take writes: the place
/// may be bad, and what is written is placed elsewhere then. When writes to two places have failed
/// in a row, it is the device, and [`TRIES_MAX`] holds.
const TRIES_AT_A_PLACE_MAX: u32 = 4;
/// How often a write is tried that finds no space below: for some 15 minutes. Somebody can make
/// space, and until then nothing is lost.
const TRIES_WITHOUT_SPACE_MAX: u32 = 900;
/// How long a sleeper looks away from the end of all patience.
const SLICE: Duration = Duration::from_millis(50);

/// The pause behind a read that has failed. Each is four times the one before.
const READ_PAUSE_FIRST: Duration = Duration::from_millis(1);

type Report = Box<dyn Fn(&str) + Send + Sync>;
type Fenced = Box<dyn Fn() + Send + Sync>;

/// What is refused, and how often it is tried again.
#[derive(Default)]
pub(crate) struct Retries {
    ended: AtomicBool,
    count: AtomicU64,
    /// A write was given up, and none has succeeded since.
    failing: AtomicBool,
    /// As that, and it was tried for as long as a device is given.
    given_up: AtomicBool,
    /// How often a write was refused that is tried again still, since one has succeeded.
    refused: AtomicU32,
    /// Other devices have what this one has.
    redundant: AtomicBool,
    report: Mutex<Option<Report>>,
    /// What is done when the device is reserved for somebody else.
    fenced: OnceLock<Fenced>,
    /// Pauses take no time.
    #[cfg(test)]
    pub(crate) at_once: AtomicBool,
    /// Error numbers that the next writes end with, and the next flushes.
    #[cfg(test)]
    pub(crate) faults: Mutex<std::collections::VecDeque<i32>>,
    #[cfg(test)]
    pub(crate) flush_faults: Mutex<std::collections::VecDeque<i32>>,
    #[cfg(test)]
    pub(crate) read_faults: Mutex<std::collections::VecDeque<i32>>,
}

/// For how long a write is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    /// It can go elsewhere.
    Place,
    /// It can't, or has failed elsewhere already.
    Device,
    /// Other devices have the same: this one is done without, if it goes on to fail.
    Redundant,
}

/// How often a write that ends with such an error is tried.
fn tries_max(error: &io::Error, patience: Patience) -> u32 {
    match error.raw_os_error() {
        _ if patience == Patience::None => 1,
        Some(libc::ENOSPC | libc::EDQUOT | libc::EIO | libc::ETIMEDOUT | libc::ENOLINK)
            if patience == Patience::Redundant =>
        {
            TRIES_AT_A_PLACE_MAX
        }
        Some(libc::ENOSPC | libc::EDQUOT) => TRIES_WITHOUT_SPACE_MAX,
        Some(libc::EIO) if patience == Patience::Place => TRIES_AT_A_PLACE_MAX,
        Some(libc::EIO | libc::ENOMEM | libc::EAGAIN | libc::EBUSY) => TRIES_MAX,
        Some(libc::ETIMEDOUT | libc::ENOLINK) => TRIES_MAX,
        _ => 1,
    }
}

/// The pause behind what has failed for the `tries`-th time.
pub(crate) fn pause_of(tries: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << (tries - 1).min(16)).min(PAUSE_MAX)
}

/// The pause behind a write that has failed for the `tries`-th time; `None`: it has failed.
fn pause_after(error: &io::Error, tries: u32, patience: Patience) -> Option<Duration> {
    (tries < tries_max(error, patience)).then(|| pause_of(tries))
}

/// The pause behind a read that has failed for the `tries`-th time; `None`: it has failed.
fn read_pause_after(error: &io::Error, tries: u32, patience: Patience) -> Option<Duration> {
    let may_pass = tries_max(error, patience) > 1;
    (may_pass && tries < READ_TRIES_MAX).then(|| READ_PAUSE_FIRST * 4u32.pow(tries - 1))
}

impl Retries {
    /// A transfer has ended that has failed `refused` times before: how long to wait before it is
    /// tried again; `None` if it is not.
    pub(crate) fn ended(
        &self,
        is_write: bool,
        result: &io::Result<()>,
        (refused, patience): (u32, Patience),
    ) -> Option<Duration> {
        match (result, is_write) {
            (Err(error), false) => {
                self.look_for_fence(error);
                return self.pause(read_pause_after(error, refused + 1, patience));
            }
            (Err(error), true) => return self.refused(error, refused + 1, patience),
            // A read that never succeeds is reported as damage.
            (Ok(()), false) => drop(self.count.fetch_add(u64::from(refused), Ordering::Relaxed)),
            (Ok(()), true) => self.passed(refused),
        }
        None
    }

    /// A write has failed for the `tries`-th time: how long to wait before it is tried again;
    /// `None` if it is not.
    pub(crate) fn refused(
        &self,
        error: &io::Error,
        tries: u32,
        patience: Patience,
    ) -> Option<Duration> {
        self.look_for_fence(error);
        let ended = self.ended.load(Ordering::Acquire);
        let patience = match patience {
            Patience::Place | Patience::Device if self.redundant.load(Ordering::Acquire) => {
                Patience::Redundant
            }
            patience => patience,
        };
        let Some(pause) = pause_after(error, tries, patience).filter(|_| !ended) else {
            self.failing.store(true, Ordering::Release);
            self.refused.store(0, Ordering::Relaxed);
            self.given_up.fetch_or(patience == Patience::Device, Ordering::AcqRel);
            if tries > 1 {
                self.tell(&format!("a write was given up after {tries} tries: {error}"));
            }
            return None;
        };
        self.count.fetch_add(1, Ordering::Relaxed);
        self.refused.fetch_max(tries, Ordering::Relaxed);
        if tries == 1 {
            self.tell(&format!("the device refuses a write, which is tried again: {error}"));
        }
        #[cfg(test)]
        let pause = if self.at_once.load(Ordering::Relaxed) { Duration::ZERO } else { pause };
        Some(pause)
    }

    /// A write has succeeded that was refused so often.
    pub(crate) fn passed(&self, refused: u32) {
        if self.is_refusing() {
            self.refused.store(0, Ordering::Relaxed);
        }
        if self.failing.load(Ordering::Acquire) {
            self.failing.store(false, Ordering::Release);
            self.given_up.store(false, Ordering::Release);
        }
        if refused > 0 {
            self.tell(&format!("the device takes writes again, after {refused} tries of one"));
        }
    }

    /// See [`crate::Disk::has_given_up`].
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// See [`crate::Disk::is_refusing`].
    pub(crate) fn is_refusing(&self) -> bool {
        self.refused.load(Ordering::Relaxed) > TRIES_AT_A_PLACE_MAX
    }

    /// For how long a write is tried that begins now.
    pub(crate) fn patience(&self) -> Patience {
        if self.failing.load(Ordering::Acquire) { Patience::Device } else { Patience::Place }
    }

    /// A pause, if anything is waited for still.
    pub(crate) fn pause(&self, pause: Option<Duration>) -> Option<Duration> {
        let ended = self.ended.load(Ordering::Acquire);
        let pause = pause.filter(|_| !ended)?;
        #[cfg(test)]
        let pause = if self.at_once.load(Ordering::Relaxed) { Duration::ZERO } else { pause };
        Some(pause)
    }

    /// Waits by `sleep`, but not beyond the end of all patience.
    pub(crate) fn sleep(&self, mut pause: Duration, sleep: impl Fn(Duration)) {
        while !pause.is_zero() && !self.ended.load(Ordering::Acquire) {
            let slice = pause.min(SLICE);
            sleep(slice);
            pause -= slice;
        }
    }

    /// See [`crate::Disk::set_redundant`].
    pub(crate) fn set_redundant(&self, redundant: bool) {
        self.redundant.store(redundant, Ordering::Release);
    }

    /// From here on nothing is tried again.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// How often a write was tried again, or a read that succeeded then.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn report_to(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    pub(crate) fn when_fenced(&self, fenced: Fenced) {
        // The first one counts: there is one owner.
        let _ = self.fenced.set(fenced);
    }

    /// A device that is reserved for somebody else has refused it, which is told at once: nothing
    /// that this process knows is of use any more.
    pub(crate) fn look_for_fence(&self, error: &io::Error) {
        if error.raw_os_error() == Some(libc::EBADE)
            && let Some(fenced) = self.fenced.get()
        {
            fenced();
        }
    }

    fn tell(&self, text: &str) {
        if let Some(report) = &*self.report.lock().unwrap_or_else(PoisonError::into_inner) {
            report(text);
        }
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").field("ended", &self.ended).field("count", &self.count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Patience::{Device, Place};
    use super::*;

    fn total(code: i32, patience: Patience) -> Duration {
        let error = io::Error::from_raw_os_error(code);
        (1..).map_while(|tries| pause_after(&error, tries, patience)).sum()
    }

    #[test]
    fn pauses_grow_and_end() {
        let error = io::Error::from_raw_os_error(libc::EIO);
        let first: Vec<u128> = (1..9)
            .filter_map(|tries| Some(pause_after(&error, tries, Device)?.as_millis()))
            .collect();
        assert_eq!(first, [10, 20, 40, 80, 160, 320, 640, 1000]);
        assert!((25..35).contains(&total(libc::EIO, Device).as_secs()));
        assert_eq!(total(libc::EIO, Place).as_millis(), 70);
        for patience in [Place, Device] {
            assert!((800..1000).contains(&total(libc::ENOSPC, patience).as_secs()));
            assert_eq!(total(libc::EINVAL, patience), Duration::ZERO, "it can't pass");
            assert_eq!(total(libc::EROFS, patience), Duration::ZERO);
        }
        for code in [libc::EIO, libc::ENOSPC, libc::ETIMEDOUT] {
            assert_eq!(total(code, Patience::Redundant).as_millis(), 70, "others have the same");
        }
    }

    #[test]
    fn a_bad_block_holds_nobody_up_for_long() {
        let error = io::Error::from_raw_os_error(libc::EIO);
        let pauses = (1..).map_while(|tries| read_pause_after(&error, tries, Place));
        let pauses: Vec<u128> = pauses.map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [1, 4, 16]);
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        assert_eq!(read_pause_after(&error, 1, Place), None);
    }

    #[test]
    fn a_device_refuses_writes_until_one_succeeds_or_is_given_up() {
        let error = || io::Error::from_raw_os_error(libc::EIO);
        let retries = Retries::default();
        let refused = |times: std::ops::RangeInclusive<u32>| {
            times.for_each(|tries| _ = retries.refused(&error(), tries, Device));
            retries.is_refusing()
        };
        assert!(!refused(1..=4), "a place may be bad");
        assert!(refused(5..=5));
        retries.passed(0);
        assert!(!retries.is_refusing(), "another one has succeeded");
        assert!(refused(6..=6), "but this one still has not");
        assert!(!refused(7..=TRIES_MAX), "it has failed: the store says what follows");
    }

    #[test]
    fn nothing_is_tried_again_after_the_end() {
        let retries = Retries::default();
        retries.end();
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(retries.ended(true, &Err(error), (0, Device)), None);
        assert_eq!(retries.count(), 0);
    }
}
