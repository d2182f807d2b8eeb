//! A nexus's copies that have list identifiers, and their results (SPC-4, 5.17.4).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use target::Token;

use crate::limits::IDENTIFIED_MAX;
use crate::sense::{Sense, SenseKey};

/// Which result of the copy to keep (SPC-4, 6.4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListUse {
    /// 00b: its result.
    Hold,
    /// 10b: its result if it fails.
    HoldFailure,
    /// 11b: nothing.
    None,
}

/// The sense data of an aborted copy: COPY ABORTED, I/O PROCESS TERMINATED.
pub(crate) const TERMINATED: Sense = Sense::new(SenseKey::CopyAborted, 0x00, 0x06);
/// The number of results kept for a nexus; the oldest is dropped first.
const RESULTS_MAX: usize = 64;

/// The command that used a list identifier. All kinds share one space (SPC-4, 5.17.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    ExtendedCopyLid1,
    ExtendedCopyLid4,
    PopulateToken,
    WriteUsingToken,
}

impl Origin {
    /// Returns its service action, for RESPONSE TO SERVICE ACTION.
    pub(crate) fn action(self) -> u8 {
        match self {
            Self::ExtendedCopyLid1 => 0x00,
            Self::ExtendedCopyLid4 => 0x01,
            Self::PopulateToken => 0x10,
            Self::WriteUsingToken => 0x11,
        }
    }

    /// Returns the sense data for an identifier that a command of another kind uses, pointing to
    /// the field that contains it.
    fn in_use(self) -> Sense {
        match self {
            Self::ExtendedCopyLid1 => Sense::parameter(0, 0),
            Self::ExtendedCopyLid4 => Sense::parameter(20, 0),
            Self::PopulateToken | Self::WriteUsingToken => Sense::cdb_bytes(6),
        }
    }
}

/// The result of a copy.
#[derive(Clone, Debug)]
pub(crate) struct CopyResult {
    /// Segments that were copied.
    pub segments: u16,
    /// The amount copied: in bytes, or in logical blocks if a token was used.
    pub count: u64,
    /// Why it ended early.
    pub sense: Option<Sense>,
    /// The token that it created.
    pub token: Option<Box<Token>>,
    /// Whether it was aborted.
    pub is_aborted: bool,
}

impl CopyResult {
    /// Returns the result of an aborted copy.
    pub(crate) fn aborted() -> Self {
        Self { segments: 0, count: 0, sense: Some(TERMINATED), token: None, is_aborted: true }
    }

    /// Returns the COPY OPERATION STATUS (SPC-4, table 265): completed, completed with errors,
    /// terminated.
    pub(crate) fn operation_status(&self) -> u8 {
        match (self.is_aborted, self.sense) {
            (true, _) => 0x60,
            (false, Some(_)) => 0x02,
            (false, None) => 0x01,
        }
    }
}

/// A nexus's copies that have list identifiers.
#[derive(Debug, Default)]
pub(crate) struct CopyLists {
    running: Vec<Running>,
    ended: VecDeque<Ended>,
}

/// A copy in progress, with its list identifier.
#[derive(Clone, Debug)]
struct Running {
    id: u32,
    origin: Origin,
    /// Set by COPY OPERATION ABORT.
    is_aborted: Arc<AtomicBool>,
}

impl CopyLists {
    fn running(&self, id: u32) -> Option<&Running> {
        self.running.iter().find(|running| running.id == id)
    }

    /// Looks up a list identifier.
    pub(crate) fn look_up(&self, id: u32) -> Result<Known, Sense> {
        if let Some(running) = self.running(id) {
            return Ok(Known::Running(running.origin));
        }
        let ended = self.ended.iter().find(|ended| ended.id == id);
        ended.cloned().map(Known::Ended).ok_or(Sense::cdb_bytes(2))
    }

    /// Drops the result of a copy.
    pub(crate) fn forget(&mut self, id: u32) {
        self.ended.retain(|ended| ended.id != id);
    }

    /// Cancels a copy. Returns false if none with this identifier is in progress.
    pub(crate) fn call_off(&self, id: u32) -> bool {
        let running = self.running(id);
        running.inspect(|it| it.is_aborted.store(true, Ordering::Release)).is_some()
    }
}

/// A completed copy, with its list identifier.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    id: u32,
    pub origin: Origin,
    pub result: CopyResult,
}

/// The state of a list identifier.
pub(crate) enum Known {
    Running(Origin),
    Ended(Ended),
}

/// A list identifier in use. Dropping it frees the identifier, even if the command was aborted.
#[derive(Debug)]
pub(crate) struct Listed {
    id: u32,
    origin: Origin,
    list_use: ListUse,
    is_aborted: Arc<AtomicBool>,
    lists: Arc<Mutex<CopyLists>>,
}

/// Registers a list identifier as in use.
pub(crate) fn begin(
    copies: &Arc<Mutex<CopyLists>>,
    id: u32,
    origin: Origin,
    list_use: ListUse,
) -> Result<Listed, Sense> {
    let mut lists = copies.lock();
    if let Some(other) = lists.running(id) {
        return Err(if other.origin == origin {
            Sense::new(SenseKey::IllegalRequest, 0x00, 0x16) // OPERATION IN PROGRESS
        } else {
            origin.in_use()
        });
    }
    if lists.running.len() >= IDENTIFIED_MAX {
        // INSUFFICIENT RESOURCES: more than the reported maximum.
        return Err(Sense::new(SenseKey::IllegalRequest, 0x55, 0x03));
    }
    lists.ended.retain(|ended| ended.id != id);
    let is_aborted = Arc::new(AtomicBool::new(false));
    lists.running.push(Running { id, origin, is_aborted: is_aborted.clone() });
    Ok(Listed { id, origin, list_use, is_aborted, lists: copies.clone() })
}

impl Listed {
    /// Returns whether COPY OPERATION ABORT has named it.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// Ends the copy, and keeps its result if that was requested.
    pub(crate) fn end(self, result: CopyResult) {
        if self.list_use == ListUse::Hold || result.sense.is_some() {
            let mut lists = self.lists.lock();
            if lists.ended.len() == RESULTS_MAX {
                lists.ended.pop_front();
            }
            lists.ended.push_back(Ended { id: self.id, origin: self.origin, result });
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.lists.lock().running.retain(|running| running.id != self.id);
    }
}
