//! The claim: which of two controllers has the pool.
//!
//! It is a lock of a file (`flock(2)`), so the system gives it up when the process that has it has
//! ended, however it ends, and wakes the one that waits. What keeps an owner that is not needed any
//! more from the devices is that its process is gone, and with it the locks of these, which the
//! next owner takes before it reads anything.
//!
//! Who waits has a second lock, the *turn*, and so comes before a process that was started again in
//! the meantime: that one knows nothing of the owner before, and would begin with a power on.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Meeting;

/// How long a claim that nobody has is left to the one whose turn it is: it may have been stopped.
const LEFT_FOR: Duration = Duration::from_secs(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The pool is this process's, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

impl Claim {
    /// Takes the claim, if nobody has it or is about to.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn try_take(meeting: &Meeting) -> io::Result<Option<Self>> {
        let (claim, turn) = (open(&meeting.claim)?, open(&meeting.turn)?);
        let began = Instant::now();
        while !lock(&turn, FlockOperation::NonBlockingLockExclusive)? {
            if !lock(&claim, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(None);
            }
            if began.elapsed() >= LEFT_FOR {
                return Ok(Some(Self { _file: claim }));
            }
            lock(&claim, FlockOperation::Unlock)?;
            thread::sleep(LOOK_INTERVAL);
        }
        let is_free = lock(&claim, FlockOperation::NonBlockingLockExclusive)?;
        Ok(is_free.then_some(Self { _file: claim }))
    }

    /// Waits until it can be taken. `has_turn` is called once nobody else comes before: only then
    /// is it certain that a process that is started again does not.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn wait(meeting: &Meeting, has_turn: impl FnOnce()) -> io::Result<Self> {
        // Let go of when it has the claim.
        let turn = open(&meeting.turn)?;
        lock(&turn, FlockOperation::LockExclusive)?;
        has_turn();
        let claim = open(&meeting.claim)?;
        lock(&claim, FlockOperation::LockExclusive)?;
        Ok(Self { _file: claim })
    }
}

#[cfg(test)]
impl Claim {
    /// Whether somebody waits for it; `None` if nobody ever has.
    pub(super) fn is_awaited(meeting: &Meeting) -> io::Result<Option<bool>> {
        if !meeting.turn.exists() {
            return Ok(None);
        }
        let turn = open(&meeting.turn)?;
        Ok(Some(!lock(&turn, FlockOperation::NonBlockingLockExclusive)?))
    }
}

/// Whether the lock was had, where that is not waited for.
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

/// The file stays where it is: one that is removed could be locked by two.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}
