//! What a call does to the device, and what hinders it.

use super::*;

/// What hinders a write temporarily.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hindrance {
    /// It ends after this many blocks, and a part of the next one.
    Short(usize),
    /// The filesystem below has no space for what is after this many.
    Full(usize),
    /// An error of the device.
    Error,
}

impl Below {
    /// Writes what it can of these blocks. Returns the number of bytes.
    pub(super) fn write_some(&self, blocks: Vec<(u64, Frame)>, fua: bool) -> io::Result<usize> {
        let mut inner = lock(&self.inner);
        let first = blocks.first().map_or(0, |(number, _)| *number);
        assert!((first + blocks.len() as u64) * BLOCK <= inner.len_bytes, "a write past the end");
        let (done, mut result) = inner.count(false);
        if inner.refuses(first, blocks.len() as u64) {
            result = result.and(Err(io::Error::other("simulated: a bad block")));
        }
        match result {
            Ok(()) => inner.take(blocks, fua),
            Err(error) if !done => Err(error),
            Err(error) => {
                inner.note_write(&blocks, fua);
                let blocks = inner.strike(blocks);
                inner.device.write_failed(blocks);
                Err(error)
            }
        }
    }

    pub(super) fn flush_once(&self) -> io::Result<()> {
        let inner = &mut *lock(&self.inner);
        let (done, mut result) = inner.count(true);
        if done {
            inner.note("flush", 0, 0, 0);
        }
        if result.is_ok() && inner.refuses_flush() {
            result = Err(error_that_may_pass());
        }
        if result.is_err() && !inner.dead {
            inner.lose_cached();
        } else if result.is_ok() && !inner.faults.lying_flush {
            inner.device.flush();
        }
        result
    }
}

impl Inner {
    fn note_write(&mut self, blocks: &[(u64, Frame)], fua: bool) {
        let content = blocks.iter().fold(0, |hash, (_, frame)| mix(hash ^ hash_bytes(&frame[..])));
        let kind = if fua { "write durably" } else { "write" };
        let offset_bytes = blocks.first().map_or(0, |(number, _)| number * BLOCK);
        self.note(kind, offset_bytes, blocks.len(), content);
    }

    /// Handles a call that the device accepts, or hinders.
    fn take(&mut self, mut blocks: Vec<(u64, Frame)>, fua: bool) -> io::Result<usize> {
        self.note_write(&blocks, fua);
        let end = blocks.last().map_or(0, |(number, _)| *number);
        let hindrance = self.hinders(blocks.len(), end);
        self.hindered_count += u64::from(hindrance.is_some());
        let bytes_of = |blocks: usize| blocks * BLOCK as usize;
        let result = match hindrance {
            None => Ok(bytes_of(blocks.len())),
            Some(Hindrance::Error) => {
                self.note("refused write", 0, blocks.len(), 0);
                self.device.write_failed(blocks);
                if fua {
                    // Its flush may have failed, which also affects what others have written.
                    self.lose_cached();
                }
                return Err(error_that_may_pass());
            }
            Some(Hindrance::Short(count) | Hindrance::Full(count)) => {
                self.note("short write", 0, count, 0);
                let next = self.shear(blocks[count].clone());
                blocks.truncate(count);
                blocks.push(next);
                match hindrance {
                    Some(Hindrance::Short(_)) if count > 0 => Ok(bytes_of(count)),
                    _ => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                }
            }
        };
        let blocks = self.strike(blocks);
        match fua && !self.faults.lying_flush {
            true => self.device.write_fua(blocks),
            false => self.device.write(blocks),
        }
        result
    }

    /// Returns what hinders a call with this many blocks, up to `end`. Not so often that the writer
    /// takes it for a bad location.
    fn hinders(&mut self, blocks: usize, end: u64) -> Option<Hindrance> {
        let per_mille = self.faults.transient_writes_per_mille;
        if per_mille == 0 {
            return None;
        }
        let part = self.rng.below(blocks as u64) as usize;
        let times = self.writes_refused.get(&end).copied().unwrap_or(0);
        let refused = match times {
            0 => self.rng.below(1000) < per_mille,
            times => times + 1 < sys::READ_TRIES_MAX && self.rng.chance(50),
        };
        match refused {
            true => drop(self.writes_refused.insert(end, times + 1)),
            false => drop(self.writes_refused.remove(&end)),
        }
        let kind = self.rng.below(3);
        refused.then_some(match kind {
            0 => Hindrance::Short(part),
            1 => Hindrance::Full(part),
            _ => Hindrance::Error,
        })
    }

    /// Returns whether a flush fails, randomly. Often several in a row do, but not forever.
    fn refuses_flush(&mut self) -> bool {
        let per_mille = match (self.faults.failed_flushes_per_mille, self.flushes_refused) {
            (0, _) => return false,
            (per_mille, 0) => per_mille,
            (_, refused) if refused >= FLUSHES_REFUSED_MAX => 0,
            _ => 600,
        };
        let refuses = self.rng.below(1000) < per_mille;
        self.flushes_refused = if refuses { self.flushes_refused + 1 } else { 0 };
        refuses
    }

    /// Loses, after a failed flush, some of what it should have kept.
    fn lose_cached(&mut self) {
        self.device.flush_failed(&mut self.rng);
    }
}
