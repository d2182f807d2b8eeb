//! How a write and a flush are done, call by call, as [`sys::FileDisk`] does them: what moves in
//! part goes on, and what is refused for a while is tried again.

use super::*;

/// What one call has done.
enum Moved {
    /// So many blocks of it.
    Blocks(usize),
    /// It was refused, for a while.
    Refused,
}

/// What hinders a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hindrance {
    /// It ends behind so many blocks, and a part of the next one.
    Short(usize),
    /// The filesystem below has no space for what is behind so many.
    Full(usize),
    /// An error of the device.
    Error,
}

impl SimDisk {
    /// A write, plain or FUA.
    pub(super) fn put(&self, offset_bytes: u64, frames: &[Frame], fua: bool) -> io::Result<()> {
        let mut done = 0;
        while done < frames.len() {
            match self.put_once(offset_bytes + done as u64 * BLOCK, &frames[done..], fua)? {
                Moved::Blocks(count) => done += count,
                // All of it once more.
                Moved::Refused => done = 0,
            }
        }
        Ok(())
    }

    fn put_once(&self, offset_bytes: u64, frames: &[Frame], fua: bool) -> io::Result<Moved> {
        let result = {
            let mut inner = lock(&self.inner);
            assert!(offset_bytes.is_multiple_of(BLOCK), "a write that is not aligned");
            assert!(
                offset_bytes + frames.len() as u64 * BLOCK <= inner.len_bytes,
                "a write past the end"
            );
            let (done, mut result) = inner.count(false);
            if inner.refuses(offset_bytes / BLOCK, frames.len() as u64) {
                result = result.and(Err(io::Error::other("simulated: a bad place")));
            }
            let blocks: Vec<_> = (offset_bytes / BLOCK..).zip(frames.iter().cloned()).collect();
            match (done, result) {
                (false, result) => result.map(|()| Moved::Blocks(0)),
                (true, Ok(())) => Ok(inner.take(blocks, fua)),
                (true, Err(error)) => {
                    inner.note_write(&blocks, fua);
                    let blocks = inner.strike(blocks);
                    inner.device.write_failed(blocks);
                    Err(error)
                }
            }
        };
        self.after();
        result
    }

    /// Flushes, once, for writes that began when `before` flushes had failed.
    pub(crate) fn flush_since(&self, before: u64) -> io::Result<()> {
        let result = {
            let inner = &mut *lock(&self.inner);
            let (done, mut result) = inner.count(true);
            if done {
                inner.note("flush", 0, 0, 0);
            }
            if result.is_ok() && inner.refuses_flush() {
                result = Err(io::Error::other("simulated: a flush that fails"));
            }
            if result.is_err() && !inner.dead {
                inner.fail_flush();
            } else if result.is_ok() && !inner.faults.lying_flush {
                inner.device.flush();
            }
            if result.is_ok() && inner.flushes_failed != before {
                result = Err(io::Error::other("simulated: a flush has failed"));
            }
            result
        };
        self.after();
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

    /// A call that the device takes, or hinders.
    fn take(&mut self, mut blocks: Vec<(u64, Frame)>, fua: bool) -> Moved {
        self.note_write(&blocks, fua);
        let hindrance = self.hinders(blocks.len());
        self.hindered_count += u64::from(hindrance.is_some());
        let all = blocks.len();
        match hindrance {
            None => {}
            Some(Hindrance::Error) => {
                self.note("refused write", 0, all, 0);
                self.device.write_failed(blocks);
                if fua {
                    // Its flush may have failed, and that is for what others have written as well.
                    self.fail_flush();
                }
                return Moved::Refused;
            }
            Some(Hindrance::Short(count) | Hindrance::Full(count)) => {
                self.note("short write", 0, count, 0);
                let next = self.shear(blocks[count].clone());
                blocks.truncate(count);
                blocks.push(next);
            }
        }
        let blocks = self.strike(blocks);
        match fua && !self.faults.lying_flush {
            true => self.device.write_fua(blocks),
            false => self.device.write(blocks),
        }
        match hindrance {
            Some(Hindrance::Short(count)) => Moved::Blocks(count),
            Some(_) => Moved::Refused,
            None => Moved::Blocks(all),
        }
    }

    /// What hinders a call with so many blocks. Not for ever.
    fn hinders(&mut self, blocks: usize) -> Option<Hindrance> {
        let per_mille = self.faults.transient_writes_per_mille;
        if per_mille == 0 {
            return None;
        }
        let part = self.rng.below(blocks as u64) as usize;
        let refused = match self.writes_refused {
            0 => self.rng.below(1000) < per_mille,
            refused => refused < sys::READ_TRIES_MAX && self.rng.chance(50),
        };
        self.writes_refused = if refused { self.writes_refused + 1 } else { 0 };
        let kind = self.rng.below(3);
        refused.then_some(match kind {
            0 => Hindrance::Short(part),
            1 => Hindrance::Full(part),
            _ => Hindrance::Error,
        })
    }

    /// Whether a flush fails, by chance. Often several in a row do, but not for ever.
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

    /// A flush has failed: what it should have kept may be gone.
    fn fail_flush(&mut self) {
        self.flushes_failed += 1;
        self.device.flush_failed(&mut self.rng);
    }
}
