//! The claim, which decides which of two controllers has the pool.
//!
//! It is a lock on a file (`flock(2)`), so the kernel releases it when the process that has it has
//! ended, however it ends, and wakes the one that waits. Because that process is gone, with its
//! locks on the devices, a replaced owner can't access the devices; the next owner takes those
//! locks before it reads anything.
//!
//! A waiting process holds a second lock, the *turn*, and so precedes a process that was restarted
//! in the meantime: that one knows nothing of the previous owner, and would begin with a power on.
//!
//! An owner that gives the pool up leaves a line in the file for the next one ([`Claim::leave`]).
//! Only the process that has the claim reads or writes it, and each takes it out at once, so that
//! none is found twice.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Meeting;

/// How long a free claim is left to the process that has the turn, which may have been stopped.
const LEFT_FOR: Duration = Duration::from_secs(1);
/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 1024;
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The pool belongs to this process until this is dropped.
#[derive(Debug)]
pub struct Claim {
    file: File,
    left: Option<String>,
}

impl Claim {
    /// Takes the claim, if no process has it or is about to take it.
    ///
    /// # Errors
    /// If the files can't be used.
    pub fn try_take(meeting: &Meeting) -> io::Result<Option<Self>> {
        let (claim, turn) = (open(&meeting.claim)?, open(&meeting.turn)?);
        let began = Instant::now();
        while !lock(&turn, FlockOperation::NonBlockingLockExclusive)? {
            if !lock(&claim, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(None);
            }
            if began.elapsed() >= LEFT_FOR {
                return Self::of(claim).map(Some);
            }
            lock(&claim, FlockOperation::Unlock)?;
            thread::sleep(LOOK_INTERVAL);
        }
        let is_free = lock(&claim, FlockOperation::NonBlockingLockExclusive)?;
        is_free.then(|| Self::of(claim)).transpose()
    }

    /// Waits for the claim. `has_turn` is called when this process has the turn: only then is it
    /// certain that a restarted process does not come first.
    ///
    /// # Errors
    /// If the files can't be used.
    pub fn wait(meeting: &Meeting, has_turn: impl FnOnce()) -> io::Result<Self> {
        // Released once it has the claim.
        let turn = open(&meeting.turn)?;
        lock(&turn, FlockOperation::LockExclusive)?;
        has_turn();
        let claim = open(&meeting.claim)?;
        lock(&claim, FlockOperation::LockExclusive)?;
        Self::of(claim)
    }

    /// Takes the line out of the locked file.
    fn of(file: File) -> io::Result<Self> {
        let mut left = String::new();
        // What is no text was not left by an owner.
        let is_text = (&file).take(LINE_BYTES_MAX).read_to_string(&mut left).is_ok();
        file.set_len(0)?;
        let left = left.strip_suffix('\n').filter(|_| is_text).map(str::to_owned);
        Ok(Self { file, left })
    }

    /// Returns the line that the previous owner has left; `None` if it did not give the pool up.
    pub fn left(&self) -> Option<&str> {
        self.left.as_deref()
    }

    /// Leaves a line for the next owner, at the end of this process.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn leave(&self, line: &str) -> io::Result<()> {
        (&self.file).write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
impl Claim {
    /// Returns whether a process waits for it; `None` if none ever has.
    pub(super) fn is_awaited(meeting: &Meeting) -> io::Result<Option<bool>> {
        if !meeting.turn.exists() {
            return Ok(None);
        }
        let turn = open(&meeting.turn)?;
        Ok(Some(!lock(&turn, FlockOperation::NonBlockingLockExclusive)?))
    }
}

/// Tries a lock without blocking. Returns whether it was acquired.
fn lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The file is never removed: two processes could then each lock a file of this name.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}
