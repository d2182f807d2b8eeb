//! List identifiers and the results of copies: RECEIVE COPY STATUS, DATA, FAILURE DETAILS and
//! OPERATING PARAMETERS (SPC-4, 5.17.4, 6.20 to 6.25).

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cdb::Cdb;
use crate::copy::limits::{IDENTIFIED_MAX, operating_parameters as operating_parameters_data};
use crate::copy::parse::{Form, ListUse};
use crate::nexus::Nexus;
use crate::response::{Command, Response, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::Context;
use crate::table::Outcome;

/// Results that are kept for a nexus; the oldest goes first.
const RESULTS_MAX: usize = 64;

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyResult {
    /// Segments that were copied.
    pub segments: u16,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Why it ended early.
    pub sense: Option<Sense>,
}

/// The copies of a nexus that have list identifiers.
#[derive(Debug, Default)]
pub(crate) struct CopyLists {
    running: Vec<(u32, Form)>,
    ended: VecDeque<(u32, CopyResult)>,
}

/// A list identifier in use; dropping it frees the identifier, also if the command was aborted.
#[derive(Debug)]
pub(crate) struct Listed {
    id: u32,
    list_use: ListUse,
    lists: Arc<Mutex<CopyLists>>,
}

/// Takes a list identifier into use.
pub(crate) fn begin(
    nexus: &Nexus,
    id: u32,
    form: Form,
    list_use: ListUse,
) -> Result<Listed, Sense> {
    let mut lists = nexus.copies.lock();
    if let Some((_, other)) = lists.running.iter().find(|(running, _)| *running == id) {
        let at = if form == Form::Lid1 { 0 } else { 20 };
        return Err(if *other == form {
            Sense::new(SenseKey::IllegalRequest, 0x00, 0x16) // OPERATION IN PROGRESS
        } else {
            Sense::parameter(at, 0)
        });
    }
    if lists.running.len() >= IDENTIFIED_MAX {
        // INSUFFICIENT RESOURCES: more than is reported
        return Err(Sense::new(SenseKey::IllegalRequest, 0x55, 0x03));
    }
    lists.ended.retain(|(ended, _)| *ended != id);
    lists.running.push((id, form));
    Ok(Listed { id, list_use, lists: nexus.copies.clone() })
}

impl Listed {
    /// Ends the copy, and keeps its result if it was asked for.
    pub(crate) fn end(self, nexus: &Nexus, result: CopyResult) {
        if self.list_use == ListUse::Hold || result.sense.is_some() {
            let mut lists = nexus.copies.lock();
            if lists.ended.len() == RESULTS_MAX {
                lists.ended.pop_front();
            }
            lists.ended.push_back((self.id, result));
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.lists.lock().running.retain(|(id, _)| *id != self.id);
    }
}

/// What is known of a list identifier.
enum Known {
    Running,
    Ended(CopyResult),
}

fn look_up(nexus: &Nexus, id: u32) -> Result<Known, Sense> {
    let lists = nexus.copies.lock();
    if lists.running.iter().any(|(running, _)| *running == id) {
        return Ok(Known::Running);
    }
    let ended = lists.ended.iter().find(|(ended, _)| *ended == id);
    ended.map(|(_, result)| Known::Ended(*result)).ok_or(Sense::cdb_bytes(2))
}

fn answer(cdb: &Cdb, mut out: Vec<u8>) -> Outcome {
    let length = (out.len().saturating_sub(4)) as u32;
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
        Known::Running => (0, 0, 0),
        Known::Ended(result) => {
            (if result.sense.is_some() { 2 } else { 1 }, result.segments, result.bytes)
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
    let Known::Ended(CopyResult { sense: Some(sense), .. }) = look_up(context.nexus, id)? else {
        return answer(&command.cdb, vec![0; 4]);
    };
    context.nexus.copies.lock().ended.retain(|(ended, _)| *ended != id);
    let sense = sense.bytes();
    let mut out = vec![0; 60];
    out[56] = Status::CheckCondition as u8;
    out[58..60].copy_from_slice(&(sense.len() as u16).to_be_bytes());
    out.extend(sense);
    answer(&command.cdb, out)
}

/// The common part of the LID4 answers (SPC-4, 6.24).
fn status_data(nexus: &Nexus, id: u32) -> Result<Vec<u8>, Sense> {
    let mut out = vec![0; 32];
    out[4] = 0x01; // RESPONSE TO SERVICE ACTION: EXTENDED COPY (LID4)
    let result = match look_up(nexus, id)? {
        Known::Running => {
            out[5] = 0x11; // foreground operation in progress
            return Ok(out);
        }
        Known::Ended(result) => result,
    };
    out[5] = if result.sense.is_some() { 0x02 } else { 0x01 };
    out[6..8].copy_from_slice(&1_u16.to_be_bytes()); // OPERATION COUNTER
    out[16..24].copy_from_slice(&result.bytes.to_be_bytes());
    out[24..26].copy_from_slice(&result.segments.to_be_bytes());
    if let Some(sense) = result.sense {
        let sense = sense.bytes();
        out[12] = Status::CheckCondition as u8;
        out[13] = sense.len() as u8;
        out[14] = sense.len() as u8;
        out.extend(sense);
    }
    Ok(out)
}

pub(crate) fn status_lid4(context: &Context<'_>, command: Command) -> Outcome {
    let out = status_data(context.nexus, command.cdb.u32(2))?;
    answer(&command.cdb, out)
}

pub(crate) fn data_lid4(context: &Context<'_>, command: Command) -> Outcome {
    let mut out = status_data(context.nexus, command.cdb.u32(2))?;
    out.extend([0; 4]); // HELD DATA LENGTH
    answer(&command.cdb, out)
}
