//! Failed flushes, and which other flushes do not count then.
//!
//! A flush is never merely repeated. The disk is opened with `O_DIRECT`, so volatile writes are in
//! the device's cache; when a flush fails, the device may have lost some of them, and the next
//! flush succeeds nevertheless, because it has nothing left to do. (Through the page cache it is
//! the kernel that considers the pages clean then.) A write with its own flush (`RWF_DSYNC`) that
//! fails is such a flush as well, because others' writes were in the cache. So each failure is
//! counted, and a flush covers a write only if none has failed since the write began:
//!
//! * A write that is to be durable by itself is written again with its flush. So are a checkpoint
//!   and a superblock ([`crate::Disk::write_and_flush`]).
//! * A flush for all earlier writes ([`crate::Disk::flush`]: the log with `durability = "flush"`)
//!   fails, and is not retried here: the writer of that data writes it again first. It reads
//!   [`crate::Disk::flush_failures`] before it writes, and again after the flush. The next flush of
//!   that kind begins after a pause, which grows as long as they fail.
//!
//! # Two at once
//! Of two flushes that overlap, the one that has failed on the device may be reported later. So the
//! success of a flush counts only when all have ended that were in flight at its end
//! ([`Flushes::has_passed`]). A write with its own flush does not wait for others: on a device with
//! FUA it does not depend on them, and on one without, the kernel reports a failed flush before it
//! sends the next one.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::retry::pause_of;

/// A call that flushes, and has not ended.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ticket(u64);

/// Calls that were in flight when another one ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlap {
    before: u64,
}

#[derive(Debug, Default)]
struct UnderWay {
    next: u64,
    /// Ascending.
    tickets: Vec<u64>,
}

/// The flushes of one disk, since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    failed: AtomicU64,
    /// How many for all earlier writes have failed in a row.
    in_a_row: AtomicU32,
    under_way: Mutex<UnderWay>,
}

impl Flushes {
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many have failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Acquire)
    }

    /// Begins a call that flushes.
    pub(crate) fn begin(&self) -> Ticket {
        let mut under_way = self.under_way();
        let ticket = under_way.next;
        under_way.next += 1;
        under_way.tickets.push(ticket);
        Ticket(ticket)
    }

    /// Ends it. Returns what must end before its success counts.
    pub(crate) fn end(&self, ticket: Ticket, error: Option<&io::Error>) -> Overlap {
        // First: a reader that sees its end must also see its failure.
        if error.is_some_and(may_have_lost) {
            self.failed.fetch_add(1, Ordering::AcqRel);
        }
        let mut under_way = self.under_way();
        under_way.tickets.retain(|other| *other != ticket.0);
        Overlap { before: under_way.next }
    }

    /// Returns whether all of them have ended.
    pub(crate) fn has_passed(&self, overlap: Overlap) -> bool {
        self.under_way().tickets.first().is_none_or(|oldest| *oldest >= overlap.before)
    }

    /// Returns what the success of a flush means for writes that began when `before` had failed.
    pub(crate) fn judge(&self, before: u64) -> io::Result<()> {
        match self.failed() == before {
            true => Ok(()),
            // It could cover what another one has lost.
            false => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }

    /// Records the end of a flush for all earlier writes.
    pub(crate) fn note_for_all(&self, result: &io::Result<()>) {
        match result {
            Ok(()) => self.in_a_row.store(0, Ordering::Relaxed),
            Err(_) => drop(self.in_a_row.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// Returns how long to wait before the next flush for all earlier writes.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let failed = self.in_a_row.load(Ordering::Relaxed);
        (failed > 0).then(|| pause_of(failed))
    }
}

/// Returns whether a call that flushes may have lost something. A write with its own flush that
/// found no space did not get that far.
fn may_have_lost(error: &io::Error) -> bool {
    let harmless = [libc::ENOSPC, libc::EDQUOT, libc::EOPNOTSUPP, libc::EINVAL];
    !error.raw_os_error().is_some_and(|code| harmless.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_counts_when_all_overlapping_ones_have_ended() {
        let flushes = Flushes::default();
        let (first, second) = (flushes.begin(), flushes.begin());
        let overlap = flushes.end(second, None);
        assert!(!flushes.has_passed(overlap));
        // Flushes that begin after it do not matter.
        let third = flushes.begin();
        let error = io::Error::from_raw_os_error(libc::EIO);
        flushes.end(first, Some(&error));
        assert!(flushes.has_passed(overlap) && flushes.judge(0).is_err());
        assert!(flushes.judge(1).is_ok());
        let overlap = flushes.end(third, None);
        assert!(flushes.has_passed(overlap));
    }
}
