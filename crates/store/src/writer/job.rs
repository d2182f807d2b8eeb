//! Jobs, which join the open record, and their results.

use block::{VolumeError, VolumeReply};
use format::Entry;

use crate::Token;
use crate::chunks::plans::Held;
use crate::edits::edit::Edit;
use crate::log::relocation::Relocation;
use crate::space::need::Wait;

/// A change of the pool.
#[derive(Debug)]
pub(crate) enum Job {
    /// A request of a host.
    Edit(Box<Edit>),
    /// A change by an administrator, which may wait for space; `grows` if it adds configuration.
    Entries { entries: Vec<Entry>, grows: bool, wait: Option<Wait>, plan: Held },
    /// A part of a long copy: the edit continues once it is durable.
    Stage(Box<Edit>),
    /// SYNCHRONIZE CACHE: only durability.
    Flush,
    /// Chunks that move to a new location, with their content.
    Relocate(Relocation),
}

/// An answer, to be given once no lock is held.
#[derive(Debug)]
pub(crate) enum Answer {
    Reply(Token, Result<VolumeReply, VolumeError>),
    Again(Token, Box<Edit>),
}

/// The result of submitting a job.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// It joined; a later commit answers it.
    Queued,
    /// Answered.
    Done(Result<VolumeReply, VolumeError>),
    /// A block has changed since it was read, and must be read again.
    Stale(Box<Edit>),
}

impl Submitted {
    /// Returns the answer to give now, if any.
    pub(crate) fn answer(self, token: Token) -> Option<Answer> {
        match self {
            Self::Queued => None,
            Self::Done(reply) => Some(Answer::Reply(token, reply)),
            Self::Stale(edit) => Some(Answer::Again(token, edit)),
        }
    }
}
