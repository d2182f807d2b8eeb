//! What joins the open record, and what becomes of it.

use block::{VolumeError, VolumeReply};
use format::Entry;

use crate::Token;
use crate::chunks::plans::Held;
use crate::edits::edit::Edit;
use crate::log::relocation::Relocation;
use crate::space::need::Wait;

/// Something that changes the pool.
#[derive(Debug)]
pub(crate) enum Job {
    /// A request of a host.
    Edit(Box<Edit>),
    /// An administrator's change, which may wait for space.
    Entries { entries: Vec<Entry>, wait: Option<Wait>, plan: Held },
    /// A part of a long copy: the edit goes on once it is durable.
    Stage(Box<Edit>),
    /// SYNCHRONIZE CACHE: nothing but durability.
    Flush,
    /// Chunks that move to a new place, with their content.
    Relocate(Relocation),
}

/// An answer to be given once no lock is held.
#[derive(Debug)]
pub(crate) enum Answer {
    Reply(Token, Result<VolumeReply, VolumeError>),
    Again(Token, Box<Edit>),
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// It joined, and is answered by a later commit.
    Queued,
    /// Answered.
    Done(Result<VolumeReply, VolumeError>),
    /// A block has changed since it was read: read again.
    Stale(Box<Edit>),
}

impl Submitted {
    /// What is to be answered now.
    pub(crate) fn answer(self, token: Token) -> Option<Answer> {
        match self {
            Self::Queued => None,
            Self::Done(reply) => Some(Answer::Reply(token, reply)),
            Self::Stale(edit) => Some(Answer::Again(token, edit)),
        }
    }
}
