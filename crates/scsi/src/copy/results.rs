//! List identifiers and the results of copies: RECEIVE COPY STATUS, DATA, FAILURE DETAILS and
//! OPERATING PARAMETERS (SPC-4, 5.17.4, 6.20 to 6.25).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use target::Token;

use crate::cdb::Cdb;
use crate::copy::limits::{IDENTIFIED_MAX, operating_parameters as operating_parameters_data};
use crate::copy::parse::ListUse;
use crate::copy::token::MANAGEMENT_BYTES;
use crate::nexus::Nexus;
use crate::response::{AnswerAfter, Command, Response, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::Context;
use crate::table::Outcome;

/// What a copy ends with that was aborted: COPY ABORTED, I/O PROCESS TERMINATED.
pub(crate) const TERMINATED: Sense = Sense::new(SenseKey::CopyAborted, 0x00, 0x06);
/// Results that are kept for a nexus; the oldest goes first.
const RESULTS_MAX: usize = 64;

/// Which command a list identifier came with. Those of all kinds are one space (SPC-4, 5.17.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    ExtendedCopyLid1,
    ExtendedCopyLid4,
    PopulateToken,
    WriteUsingToken,
}

impl Origin {
    /// Its service action, for RESPONSE TO SERVICE ACTION.
    fn action(self) -> u8 {
        match self {
            Self::ExtendedCopyLid1 => 0x00,
            Self::ExtendedCopyLid4 => 0x01,
            Self::PopulateToken => 0x10,
            Self::WriteUsingToken => 0x11,
        }
    }

    /// That the identifier is in use by a command of another kind: at the field that holds it.
    fn in_use(self) -> Sense {
        match self {
            Self::ExtendedCopyLid1 => Sense::parameter(0, 0),
            Self::ExtendedCopyLid4 => Sense::parameter(20, 0),
            Self::PopulateToken | Self::WriteUsingToken => Sense::cdb_bytes(6),
        }
    }
}

/// How a copy ended.
#[derive(Clone, Debug)]
pub(crate) struct CopyResult {
    /// Segments that were copied.
    pub segments: u16,
    /// What was copied: in bytes, or in logical blocks where a token was used.
    pub count: u64,
    /// Why it ended early.
    pub sense: Option<Sense>,
    /// The token that it made.
    pub token: Option<Box<Token>>,
    /// Whether it was aborted.
    pub is_aborted: bool,
}

impl CopyResult {
    /// That of a copy which was aborted.
    pub(crate) fn aborted() -> Self {
        Self { segments: 0, count: 0, sense: Some(TERMINATED), token: None, is_aborted: true }
    }

    /// COPY OPERATION STATUS (SPC-4, table 265): completed, completed with errors, terminated.
    fn operation_status(&self) -> u8 {
        match (self.is_aborted, self.sense) {
            (true, _) => 0x60,
            (false, Some(_)) => 0x02,
            (false, None) => 0x01,
        }
    }
}

/// The copies of a nexus that have list identifiers.
#[derive(Debug, Default)]
pub(crate) struct CopyLists {
    running: Vec<Running>,
    ended: VecDeque<Ended>,
}

/// A copy under way, with its list identifier.
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
}

/// A copy that has ended, with its list identifier.
#[derive(Clone, Debug)]
struct Ended {
    id: u32,
    origin: Origin,
    result: CopyResult,
}

/// A list identifier in use; dropping it frees the identifier, also if the command was aborted.
#[derive(Debug)]
pub(crate) struct Listed {
    id: u32,
    origin: Origin,
    list_use: ListUse,
    is_aborted: Arc<AtomicBool>,
    lists: Arc<Mutex<CopyLists>>,
}

/// Takes a list identifier into use.
pub(crate) fn begin(
    nexus: &Nexus,
    id: u32,
    origin: Origin,
    list_use: ListUse,
) -> Result<Listed, Sense> {
    let mut lists = nexus.copies.lock();
    if let Some(other) = lists.running(id) {
        return Err(if other.origin == origin {
            Sense::new(SenseKey::IllegalRequest, 0x00, 0x16) // OPERATION IN PROGRESS
        } else {
            origin.in_use()
        });
    }
    if lists.running.len() >= IDENTIFIED_MAX {
        // INSUFFICIENT RESOURCES: more than is reported
        return Err(Sense::new(SenseKey::IllegalRequest, 0x55, 0x03));
    }
    lists.ended.retain(|ended| ended.id != id);
    let is_aborted = Arc::new(AtomicBool::new(false));
    lists.running.push(Running { id, origin, is_aborted: is_aborted.clone() });
    Ok(Listed { id, origin, list_use, is_aborted, lists: nexus.copies.clone() })
}

impl Listed {
    /// Whether COPY OPERATION ABORT has named it.
    pub(crate) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::Acquire)
    }

    /// Ends the copy, and keeps its result if it was asked for.
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

/// What is known of a list identifier.
enum Known {
    Running(Origin),
    Ended(Ended),
}

fn look_up(nexus: &Nexus, id: u32) -> Result<Known, Sense> {
    let lists = nexus.copies.lock();
    if let Some(running) = lists.running(id) {
        return Ok(Known::Running(running.origin));
    }
    let ended = lists.ended.iter().find(|ended| ended.id == id);
    ended.cloned().map(Known::Ended).ok_or(Sense::cdb_bytes(2))
}

/// Answers with parameter data whose first 4 bytes are left for its length.
fn answer(cdb: &Cdb, mut out: Vec<u8>) -> Outcome {
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, cdb.u32(10) as usize)))
}

pub(crate) fn operating_parameters(context: &Context<'_>, command: Command) -> Outcome {
    answer(&command.cdb, operating_parameters_data(context.volume()?))
}

/// A count of bytes in 32 bits, and the unit that makes it fit: bytes, KiB, MiB, … (SPC-4, table
/// 259).
fn scaled(mut bytes: u64) -> (u8, u32) {
    let mut unit = 0;
    while bytes > u64::from(u32::MAX) {
        bytes >>= 10;
        unit += 1;
    }
    (unit, bytes as u32)
}

pub(crate) fn status_lid1(context: &Context<'_>, command: Command) -> Outcome {
    let id = command.cdb.u8(2).into();
    let (status, segments, bytes) = match look_up(context.nexus, id)? {
        Known::Running(_) => (0, 0, 0),
        Known::Ended(Ended { result, .. }) => {
            (if result.sense.is_some() { 2 } else { 1 }, result.segments, result.count)
        }
    };
    let (unit, count) = scaled(bytes);
    let [high, low] = segments.to_be_bytes();
    let mut out = vec![0, 0, 0, 0, status, high, low, unit];
    out.extend(count.to_be_bytes());
    answer(&command.cdb, out)
}

/// No segment descriptor that is supported makes held data, so there is none.
pub(crate) fn data_lid1(context: &Context<'_>, command: Command) -> Outcome {
    look_up(context.nexus, command.cdb.u8(2).into())?;
    answer(&command.cdb, vec![0; 4])
}

/// Details are there for a copy that failed, until they were read (SPC-4, 6.23).
pub(crate) fn failure_lid1(context: &Context<'_>, command: Command) -> Outcome {
    let id = command.cdb.u8(2).into();
    let Known::Ended(Ended { result: CopyResult { sense: Some(sense), .. }, .. }) =
        look_up(context.nexus, id)?
    else {
        return answer(&command.cdb, vec![0; 4]);
    };
    context.nexus.copies.lock().ended.retain(|ended| ended.id != id);
    let sense = sense.bytes();
    let mut out = vec![0; 60];
    out[56] = Status::CheckCondition as u8;
    out[58..60].copy_from_slice(&(sense.len() as u16).to_be_bytes());
    out.extend(sense);
    answer(&command.cdb, out)
}

/// The common part of the LID4 answers (SPC-4, 6.24).
fn status_data(known: &Known) -> Vec<u8> {
    let mut out = vec![0; 32];
    let Ended { origin, result, .. } = match known {
        Known::Running(origin) => {
            out[4] = origin.action();
            out[5] = 0x11; // foreground operation in progress
            return out;
        }
        Known::Ended(ended) => ended,
    };
    out[4] = origin.action();
    out[5] = result.operation_status();
    out[6..8].copy_from_slice(&1_u16.to_be_bytes()); // OPERATION COUNTER
    if matches!(origin, Origin::PopulateToken | Origin::WriteUsingToken) {
        out[15] = 0xf1; // TRANSFER COUNT UNITS: logical blocks, else bytes
    }
    out[16..24].copy_from_slice(&result.count.to_be_bytes());
    out[24..26].copy_from_slice(&result.segments.to_be_bytes());
    if let Some(sense) = result.sense {
        let sense = sense.bytes();
        out[12] = Status::CheckCondition as u8;
        out[13] = sense.len() as u8;
        out[14] = sense.len() as u8;
        out.extend(sense);
    }
    out
}

pub(crate) fn status_lid4(context: &Context<'_>, command: Command) -> Outcome {
    let known = look_up(context.nexus, command.cdb.u32(2))?;
    answer(&command.cdb, status_data(&known))
}

pub(crate) fn data_lid4(context: &Context<'_>, command: Command) -> Outcome {
    let known = look_up(context.nexus, command.cdb.u32(2))?;
    let mut out = status_data(&known);
    out.extend([0; 4]); // HELD DATA LENGTH
    answer(&command.cdb, out)
}

/// RECEIVE ROD TOKEN INFORMATION (SPC-4, 6.25): how a copy stands, and the token that it has made.
pub(crate) fn rod_token_information(context: &Context<'_>, command: Command) -> Outcome {
    let known = look_up(context.nexus, command.cdb.u32(2))?;
    let mut out = status_data(&known);
    let token = match &known {
        Known::Ended(ended) => ended.result.token.as_deref(),
        Known::Running(_) => None,
    };
    let descriptor_bytes = token.map_or(0, |token| 2 + token.len());
    out.extend((descriptor_bytes as u32).to_be_bytes());
    if let Some(token) = token {
        out.extend([0, 0]); // ID FOR CREATING ROD CSCD DESCRIPTOR: of EXTENDED COPY alone
        out.extend(token);
    }
    answer(&command.cdb, out)
}

/// REPORT ALL ROD TOKENS (SPC-4, 6.26): those that the same initiator has made.
pub(crate) fn all_rod_tokens(context: &Context<'_>, command: Command) -> Outcome {
    let mut out = vec![0; 8];
    for rod in context.server.target.rods().of_host(&context.nexus.initiator().name) {
        out.extend(&rod.token[..MANAGEMENT_BYTES]);
    }
    answer(&command.cdb, out)
}

/// COPY OPERATION ABORT (SPC-4, 6.3). A commit can't be called back once it is on its way; but a
/// copy of several ends between two of them, with COPY ABORTED. The abort is answered after that:
/// nothing happens later.
pub(crate) fn abort(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let id = command.cdb.u32(2);
    let lists = context.nexus.copies.lock();
    let running = lists.running(id).ok_or(Sense::cdb_bytes(2))?;
    running.is_aborted.store(true, Ordering::Release);
    Ok(Step::Done(Response { after: AnswerAfter::CalledOff, ..Response::good() }))
}
