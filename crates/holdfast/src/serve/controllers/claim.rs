//! The claim: which of two controllers has the pool.
//!
//! It is a lock of a file (`flock(2)`), so the system gives it up when the process that has it has
//! ended, however it ends, and wakes the one that waits. What keeps an owner that is not needed any
//! more from the devices is that its process is gone, and with it the locks of these, which the
//! next owner takes before it reads anything.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{FlockOperation, flock};

use super::Meeting;

/// The pool is this process's, until this is dropped.
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

impl Claim {
    /// Takes the claim, if nobody has it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn try_take(meeting: &Meeting) -> io::Result<Option<Self>> {
        let file = open(meeting)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until it can be taken.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn wait(meeting: &Meeting) -> io::Result<Self> {
        let file = open(meeting)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The file stays where it is: one that is removed could be locked by two.
fn open(meeting: &Meeting) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&meeting.claim)
}
