//! Asymmetric logical unit access: target port groups, their states for each logical unit, REPORT
//! and SET TARGET PORT GROUPS (SPC-4, 5.15, 6.37 and 6.45).
//!
//! An administrator assigns ports to groups, for example one for each controller. The ports of the
//! controller that has the pool are active/optimized for every unit, those of the other one
//! active/non-optimized, or unavailable while it does not run, unless a host has set another state
//! by SET TARGET PORT GROUPS; such states last until the next power on. An unreachable group stays
//! unavailable regardless of what a host sets. A host may leave a unit without an active group: the
//! command is accepted in every state, so any path can change that.
//!
//! ```text
//! target port group descriptor                  SET TARGET PORT GROUPS descriptor
//!  0  1  PREF bit 7, state bits 3..0             0  1  state bits 3..0
//!  1  1  states that are supported               1  1  zero
//!  2  2  target port group                       2  2  target port group
//!  5  1  status: 0, or 1 where a host set it
//!  7  1  number of ports, then 4 bytes each: zero 2, relative target port identifier 2
//! ```

use std::collections::BTreeMap;

use target::AccessState;

use crate::bytes::{be_u8, be_u16, parameter_list};
use crate::device::Context;
use crate::saving::answer;
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Outcome, Response, Step};

/// The bits of the supported states: AO_SUP, AN_SUP, S_SUP, U_SUP.
const SUPPORTED: u8 = 0x0f;
/// STATUS CODE: altered by a SET TARGET PORT GROUPS command.
const SET_BY_HOST: u8 = 0x01;
const SET_HEADER_BYTES: usize = 4;
const SET_DESCRIPTOR_BYTES: usize = 4;

/// Returns the sense data of commands that the state refuses, if it refuses any: LOGICAL UNIT NOT
/// ACCESSIBLE, TARGET PORT IN STANDBY STATE, or IN UNAVAILABLE STATE.
pub(crate) fn sense(state: AccessState) -> Option<Sense> {
    match state {
        AccessState::ActiveOptimized | AccessState::ActiveNonOptimized => None,
        AccessState::Standby => Some(Sense::new(SenseKey::NotReady, 0x04, 0x0b)),
        AccessState::Unavailable => Some(Sense::new(SenseKey::NotReady, 0x04, 0x0c)),
    }
}

/// Returns whether a command is served in this state (SPC-4, 5.15.2.4.4 and 5.15.2.4.5). The lists
/// include commands that are not supported at all (diagnostics, buffers).
pub(crate) fn serves(state: AccessState, opcode: u8, action: u8) -> bool {
    let everywhere = matches!(
        (opcode, action),
        (0x03 | 0x12 | 0xa0, _) | (0xa3, 0x0a) | (0xa4, 0x0a) | (0x3b | 0x3c, _)
    );
    // LOG, MODE, PERSISTENT RESERVE and DIAGNOSTIC commands.
    let in_standby =
        matches!(opcode, 0x15 | 0x1a | 0x1c | 0x1d | 0x4c | 0x4d | 0x55 | 0x5a | 0x5e | 0x5f);
    match state {
        AccessState::ActiveOptimized | AccessState::ActiveNonOptimized => true,
        AccessState::Standby => everywhere || in_standby,
        AccessState::Unavailable => everywhere,
    }
}

pub(crate) fn report(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let mut out = match cdb.u8(1) >> 5 {
        0 => vec![0; 4],
        1 => vec![0, 0, 0, 0, 0x10, 0, 0, 0],
        _ => return Err(Sense::cdb_field(1, 7)),
    };
    let mut groups: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for port in context.server.target.ports() {
        groups.entry(port.group).or_default().push(port.relative_id);
    }
    for (group, ports) in &groups {
        let target = &context.server.target;
        let (state, set) = (
            target.access_state(volume.id, *group),
            target.volumes().access_state(volume.id, *group),
        );
        // Set by a host, or implicitly: then no reason is reported.
        let status = if set == Some(state) { SET_BY_HOST } else { 0 };
        let [high, low] = group.to_be_bytes();
        let count = ports.len().min(255);
        out.extend([state as u8, SUPPORTED, high, low, 0, status, 0]);
        out.push(count as u8);
        for port in &ports[..count] {
            let [high, low] = port.to_be_bytes();
            out.extend([0, 0, high, low]);
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, cdb.u32(6) as usize)))
}

/// SET TARGET PORT GROUPS (SPC-4, 6.45): applies all descriptors or none. Groups without a
/// descriptor keep their state. If something has changed, every other nexus gets a unit attention
/// (5.15.2.6).
pub(crate) fn set(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let length = command.cdb.u32(6) as usize;
    let done = Response::good().wanting(Some(length as u64));
    if length == 0 {
        return Ok(Step::Done(done));
    }
    // A group has one state: more descriptors than there can be groups are invalid, and are refused
    // before they are processed.
    let most = SET_HEADER_BYTES + SET_DESCRIPTOR_BYTES * context.server.target.ports().len();
    let whole = length > SET_HEADER_BYTES && length.is_multiple_of(SET_DESCRIPTOR_BYTES);
    if !whole || length > most {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list = parameter_list(&command.data_out, length)?;
    let mut states = Vec::new();
    for at in (SET_HEADER_BYTES..length).step_by(SET_DESCRIPTOR_BYTES) {
        let state = AccessState::from_code(be_u8(&list, at) & 0x0f);
        let group = be_u16(&list, at + 2);
        if !context.server.target.ports().iter().any(|port| port.group == group) {
            return Err(Sense::parameter(at + 2, 0));
        }
        states.push((group, state.ok_or(Sense::parameter(at, 0))?));
    }
    let change = context.server.target.set_access(volume.id, context.nexus.id(), &states);
    Ok(answer(volume.id, change, done, false))
}
