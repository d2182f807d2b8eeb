//! Writes that are refused temporarily: the filesystem below is full, a path is lost, or an error
//! does not repeat.
//!
//! Such a write is retried, whole and at the same location, with growing pauses; its caller waits
//! longer, and gets an error only if it fails permanently.
//!
//! A read that fails is retried as well, a few times within about 20 ms: an error that does not
//! repeat must not count as a bad block, and a bad block must not delay others for long.
//!
//! A flush that fails is a different matter: [`crate::flushes`].

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::disk::READ_TRIES_MAX;

/// The first pause. Each is twice the previous one, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How many errors of the device make a write fail: about 30 s, as long as hosts wait for a
/// response.
const TRIES_MAX: u32 = 36;
/// How many times EIO at a location makes a write fail, about 70 ms, as long as other locations
/// accept writes: the location may be bad, and the data is then written elsewhere. When writes to
/// two locations have failed in a row, the device is the cause, and [`TRIES_MAX`] applies.
const TRIES_AT_A_PLACE_MAX: u32 = 4;
/// How many times a write is tried that finds no space below: for about 15 minutes. Somebody can
/// free space, and until then nothing is lost.
const TRIES_WITHOUT_SPACE_MAX: u32 = 900;
/// How often a sleeper checks whether all retries were ended.
const SLICE: Duration = Duration::from_millis(50);

/// The first pause after a failed read. Each is four times the previous one.
const READ_PAUSE_FIRST: Duration = Duration::from_millis(1);

type Report = Box<dyn Fn(&str) + Send + Sync>;
type Fenced = Box<dyn Fn() + Send + Sync>;

/// What is refused, and how often it is retried.
#[derive(Default)]
pub(crate) struct Retries {
    ended: AtomicBool,
    count: AtomicU64,
    /// A write was given up, and none has succeeded since.
    failing: AtomicBool,
    /// The same, and it was tried for the full time for a device.
    given_up: AtomicBool,
    /// The highest number of times that a write still being retried was refused, since one has
    /// succeeded.
    refused: AtomicU32,
    /// Other devices have the same data.
    redundant: AtomicBool,
    report: Mutex<Option<Report>>,
    /// Called when the device is reserved for others.
    fenced: OnceLock<Fenced>,
    /// Pauses take no time.
    #[cfg(test)]
    pub(crate) at_once: AtomicBool,
    /// Error numbers with which the next writes and flushes end.
    #[cfg(test)]
    pub(crate) faults: Mutex<std::collections::VecDeque<i32>>,
    #[cfg(test)]
    pub(crate) flush_faults: Mutex<std::collections::VecDeque<i32>>,
    #[cfg(test)]
    pub(crate) read_faults: Mutex<std::collections::VecDeque<i32>>,
}

/// For how long a write is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all.
    None,
    /// It can go elsewhere.
    Place,
    /// It can't, or has failed elsewhere already.
    Device,
    /// Other devices have the same data: this one can be spared if it keeps failing.
    Redundant,
}

/// Returns how often a write with such an error is tried.
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

/// Returns the pause after the failure number `tries`.
pub(crate) fn pause_of(tries: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << (tries - 1).min(16)).min(PAUSE_MAX)
}

/// Returns the pause after failure number `tries` of a write; `None`: it has failed.
fn pause_after(error: &io::Error, tries: u32, patience: Patience) -> Option<Duration> {
    (tries < tries_max(error, patience)).then(|| pause_of(tries))
}

/// Returns the pause after failure number `tries` of a read; `None`: it has failed.
fn read_pause_after(error: &io::Error, tries: u32, patience: Patience) -> Option<Duration> {
    let may_pass = tries_max(error, patience) > 1;
    (may_pass && tries < READ_TRIES_MAX).then(|| READ_PAUSE_FIRST * 4u32.pow(tries - 1))
}

impl Retries {
    /// Handles the end of a transfer that has failed `refused` times before: returns how long to
    /// wait before it is retried; `None` if it is not.
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

    /// Handles failure number `tries` of a write: returns how long to wait before it is retried;
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
            self.tell(&format!("the device refuses a write, which is retried: {error}"));
        }
        #[cfg(test)]
        let pause = if self.at_once.load(Ordering::Relaxed) { Duration::ZERO } else { pause };
        Some(pause)
    }

    /// Records that a write has succeeded that was refused so often.
    pub(crate) fn passed(&self, refused: u32) {
        if self.is_refusing() {
            self.refused.store(0, Ordering::Relaxed);
        }
        if self.failing.load(Ordering::Acquire) {
            self.failing.store(false, Ordering::Release);
            self.given_up.store(false, Ordering::Release);
        }
        if refused > 0 {
            self.tell(&format!("the device accepts writes again, after {refused} tries of one"));
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

    /// Returns for how long a write that begins now is retried.
    pub(crate) fn patience(&self) -> Patience {
        if self.failing.load(Ordering::Acquire) { Patience::Device } else { Patience::Place }
    }

    /// Returns a pause, unless retries were ended.
    pub(crate) fn pause(&self, pause: Option<Duration>) -> Option<Duration> {
        let ended = self.ended.load(Ordering::Acquire);
        let pause = pause.filter(|_| !ended)?;
        #[cfg(test)]
        let pause = if self.at_once.load(Ordering::Relaxed) { Duration::ZERO } else { pause };
        Some(pause)
    }

    /// Waits with `sleep`, but not beyond the end of all retries.
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

    /// Ends all retries.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Returns how often a write was retried, or a read that then succeeded.
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

    /// Checks whether a device has refused something because it is reserved for others, which is
    /// reported at once: the state of this process is then obsolete.
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
    fn pauses_between_retries_grow_and_end() {
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
            assert_eq!(
                total(code, Patience::Redundant).as_millis(),
                70,
                "other devices have the same data"
            );
        }
    }

    #[test]
    fn a_bad_block_delays_others_only_briefly() {
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
        assert!(!refused(1..=4), "the location may be bad");
        assert!(refused(5..=5));
        retries.passed(0);
        assert!(!retries.is_refusing(), "another one has succeeded");
        assert!(refused(6..=6), "but this one still has not");
        assert!(!refused(7..=TRIES_MAX), "it has failed: the store says what follows");
    }

    #[test]
    fn nothing_is_retried_after_the_end() {
        let retries = Retries::default();
        retries.end();
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(retries.ended(true, &Err(error), (0, Device)), None);
        assert_eq!(retries.count(), 0);
    }
}
