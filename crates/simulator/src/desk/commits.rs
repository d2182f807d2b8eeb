//! How a commit in hand is written and flushed.

use std::io;

use store::Commit;
use sys::{Disk as _, Persist};

use super::{CommitStep, Desk};

impl Desk {
    /// As the ring of a front end does it: a durable write where the device has one and that is
    /// enough, or a write, and a flush behind it.
    pub(super) fn write_commit(&self, commit: &Commit) -> io::Result<CommitStep> {
        let (at, frames) = (commit.offset_bytes, &commit.frames);
        let before = self.disk.flush_failures();
        match commit.persist {
            _ if frames.is_empty() => Ok(CommitStep::Flush(before)),
            Persist::Itself if self.fua => {
                self.disk.write_durable(at, frames).map(|()| CommitStep::Finish)
            }
            Persist::Nothing => self.disk.write(at, frames).map(|()| CommitStep::Finish),
            Persist::Itself | Persist::All => {
                self.disk.write(at, frames).map(|()| CommitStep::Flush(before))
            }
        }
    }

    /// As the ring does it: what is to be durable by itself is written again with its flush; not
    /// where that is for others as well.
    pub(super) fn flush_commit(&self, commit: &Commit, before: u64) -> io::Result<CommitStep> {
        match self.disk.flush_since(before) {
            Err(_) if commit.persist == Persist::Itself && !self.disk.has_failed() => {
                Ok(CommitStep::Write)
            }
            flushed => flushed.map(|()| CommitStep::Finish),
        }
    }
}
