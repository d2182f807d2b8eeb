//! List identifiers and the results of copies: RECEIVE COPY STATUS, DATA, FAILURE DETAILS and
//! OPERATING PARAMETERS (SPC-4, 5.17.4, 6.20 to 6.25).

use crate::cdb::Cdb;
use crate::copies::{CopyResult, Ended, Known, Origin};
use crate::copy::token::MANAGEMENT_BYTES;
use crate::device::Context;
use crate::sense::Sense;
use crate::step::{AnswerAfter, Command, Outcome, Response, Status, Step};
use crate::unit::third_party::operating_parameters as operating_parameters_data;

fn look_up(context: &Context<'_>, id: u32) -> Result<Known, Sense> {
    context.nexus.copies.lock().look_up(id)
}

/// Returns parameter data whose first 4 bytes are reserved for its length.
fn answer(cdb: &Cdb, mut out: Vec<u8>) -> Outcome {
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, cdb.u32(10) as usize)))
}

pub(crate) fn operating_parameters(context: &Context<'_>, command: Command) -> Outcome {
    answer(&command.cdb, operating_parameters_data(context.volume()?))
}

/// Scales a byte count to 32 bits, and returns the unit: bytes, KiB, MiB, … (SPC-4, table 259).
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
    let (status, segments, bytes) = match look_up(context, id)? {
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

/// No supported segment descriptor produces held data, so there is none.
pub(crate) fn data_lid1(context: &Context<'_>, command: Command) -> Outcome {
    look_up(context, command.cdb.u8(2).into())?;
    answer(&command.cdb, vec![0; 4])
}

/// Returns the details of a failed copy, until they were read (SPC-4, 6.23).
pub(crate) fn failure_lid1(context: &Context<'_>, command: Command) -> Outcome {
    let id = command.cdb.u8(2).into();
    let Known::Ended(Ended { result: CopyResult { sense: Some(sense), .. }, .. }) =
        look_up(context, id)?
    else {
        return answer(&command.cdb, vec![0; 4]);
    };
    context.nexus.copies.lock().forget(id);
    let sense = sense.bytes();
    let mut out = vec![0; 60];
    out[56] = Status::CheckCondition as u8;
    out[58..60].copy_from_slice(&(sense.len() as u16).to_be_bytes());
    out.extend(sense);
    answer(&command.cdb, out)
}

/// Returns the common part of the LID4 responses (SPC-4, 6.24).
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
        out[15] = 0xf1; // TRANSFER COUNT UNITS: logical blocks, otherwise bytes
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
    let known = look_up(context, command.cdb.u32(2))?;
    answer(&command.cdb, status_data(&known))
}

pub(crate) fn data_lid4(context: &Context<'_>, command: Command) -> Outcome {
    let known = look_up(context, command.cdb.u32(2))?;
    let mut out = status_data(&known);
    out.extend([0; 4]); // HELD DATA LENGTH
    answer(&command.cdb, out)
}

/// RECEIVE ROD TOKEN INFORMATION (SPC-4, 6.25): the status of a copy, and the token it has created.
pub(crate) fn rod_token_information(context: &Context<'_>, command: Command) -> Outcome {
    let known = look_up(context, command.cdb.u32(2))?;
    let mut out = status_data(&known);
    let token = match &known {
        Known::Ended(ended) => ended.result.token.as_deref(),
        Known::Running(_) => None,
    };
    let descriptor_bytes = token.map_or(0, |token| 2 + token.len());
    out.extend((descriptor_bytes as u32).to_be_bytes());
    if let Some(token) = token {
        out.extend([0, 0]); // ID FOR CREATING ROD CSCD DESCRIPTOR: EXTENDED COPY only
        out.extend(token);
    }
    answer(&command.cdb, out)
}

/// REPORT ALL ROD TOKENS (SPC-4, 6.26): those that the same initiator has created.
pub(crate) fn all_rod_tokens(context: &Context<'_>, command: Command) -> Outcome {
    let mut out = vec![0; 8];
    for rod in context.server.target.rods().of_host(&context.nexus.initiator().name) {
        out.extend(&rod.token[..MANAGEMENT_BYTES]);
    }
    answer(&command.cdb, out)
}

/// COPY OPERATION ABORT (SPC-4, 6.3). A commit in progress can't be recalled, but a copy of several
/// commits ends between two of them, with COPY ABORTED. The abort completes after that, when
/// nothing more can happen.
pub(crate) fn abort(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let id = command.cdb.u32(2);
    if !context.nexus.copies.lock().call_off(id) {
        return Err(Sense::cdb_bytes(2));
    }
    Ok(Step::Done(Response { after: AnswerAfter::CalledOff, ..Response::good() }))
}
