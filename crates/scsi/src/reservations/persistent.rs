//! PERSISTENT RESERVE OUT (SPC-4, 6.16 and 5.13).

use std::collections::{BTreeMap, BTreeSet};

use target::reservations::{BadList, Listed, at_ports};
use target::{Action, Asked, HostPort, Kind, NexusId, REGISTRANTS_MAX, Refusal};

use super::transport_id::{self, TransportId};
use crate::bytes::{be_u8, be_u16, be_u32, be_u64, parameter_list};
use crate::device::Context;
use crate::saving::{NO_ROOM, answer};
use crate::sense::{Sense, SenseKey};
use crate::step::{AnswerAfter, Command, Outcome, Response, Status, Step};

const LIST_BYTES: usize = 24;
/// The TRANSPORTID PARAMETER DATA LENGTH field, before a list of TransportIDs.
const IDS_LENGTH_BYTES: usize = 4;
/// The shortest TransportID.
const ID_BYTES_MIN: usize = 24;
/// The longest parameter list: a TransportID with the longest name for each nexus that can
/// register. Longer lists are refused before they are examined.
pub(crate) const LIST_BYTES_MAX: usize =
    LIST_BYTES + IDS_LENGTH_BYTES + REGISTRANTS_MAX * transport_id::BYTES_MAX;

/// Offsets in the parameter list. REGISTER AND MOVE has a different layout after byte 19 (SPC-4,
/// 6.16.3 and 6.16.4).
const ACTION_KEY_AT: usize = 8;
const UNREG_AT: usize = 17;
const PORT_AT: usize = 18;
const FLAGS_AT: usize = 20;
const IDS_AT: usize = 24;

/// Returns a service action by its code (SPC-4, 6.16.2).
fn action_of(code: u8) -> Option<Action> {
    Some(match code {
        0 => Action::Register,
        1 => Action::Reserve,
        2 => Action::Release,
        3 => Action::Clear,
        4 => Action::Preempt,
        5 => Action::PreemptAndAbort,
        6 => Action::RegisterAndIgnore,
        7 => Action::Move,
        _ => return None,
    })
}

/// The parameters of a command, and the error in its list.
struct Parsed<'a> {
    asked: Asked<'a>,
    wrong: Option<Sense>,
}

impl Parsed<'_> {
    /// Interprets a list. Its errors count only if the list is not ignored.
    fn listed<T>(&mut self, list: Result<T, Sense>) -> Listed<T> {
        list.map_err(|sense| {
            self.wrong = Some(sense);
            BadList
        })
    }

    /// Returns the response to a refusal.
    fn told(&self, refusal: Refusal) -> Outcome {
        Err(match refusal {
            Refusal::Conflict => {
                return Ok(Step::Done(Response::with_status(Status::ReservationConflict)));
            }
            Refusal::Scope => Sense::cdb_field(2, 7),
            Refusal::Kind => Sense::cdb_field(2, 3),
            // INVALID RELEASE OF PERSISTENT RESERVATION.
            Refusal::WrongRelease => Sense::new(SenseKey::IllegalRequest, 0x26, 0x04),
            Refusal::NoKey => Sense::parameter(ACTION_KEY_AT, 0),
            Refusal::AlreadyRegistered => Sense::parameter(FLAGS_AT, 0),
            Refusal::ListedRegistered => Sense::parameter(IDS_AT, 0),
            Refusal::BadList => self.wrong.unwrap_or(Sense::INTERNAL_FAILURE),
            Refusal::NothingToMove => Sense::cdb_field(1, 4),
            Refusal::NoRoom => NO_ROOM,
        })
    }
}

pub(crate) fn out(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let length = command.cdb.u32(5) as usize;
    if length > LIST_BYTES_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list = parameter_list(&command.data_out, length)?;
    let parsed = read(context, &command, &list)?;
    let asked = &parsed.asked;
    // Commands in progress of the preempted nexuses end by themselves, those of several requests
    // early; later ones conflict with the reservation.
    let after = match asked.action {
        Action::PreemptAndAbort => AnswerAfter::All,
        _ => AnswerAfter::Nothing,
    };
    match context.server.target.act(volume.id, asked) {
        Ok(change) => {
            let response = Response { after, ..Response::good() }.wanting(Some(list.len() as u64));
            Ok(answer(volume.id, change, response, asked.action.registers()))
        }
        Err(refusal) => parsed.told(refusal),
    }
}

fn read<'a>(context: &Context<'a>, command: &Command, list: &[u8]) -> Result<Parsed<'a>, Sense> {
    let cdb = &command.cdb;
    let asked = Asked {
        nexus: context.nexus.id(),
        action: action_of(cdb.service_action()).ok_or(Sense::cdb_field(1, 4))?,
        whole_unit: cdb.u8(2) >> 4 == 0,
        kind: Kind::from_code(cdb.u8(2) & 0x0f),
        key: be_u64(list, 0),
        action_key: be_u64(list, ACTION_KEY_AT),
        aptpl: false,
        ports: vec![context.nexus.target_port()],
        listed: None,
        moved_to: None,
        unregisters: false,
    };
    let mut parsed = Parsed { asked, wrong: None };
    if parsed.asked.action == Action::Move {
        read_move(context, list, &mut parsed)?;
    } else {
        read_basic(context, list, &mut parsed)?;
    }
    Ok(parsed)
}

/// Parses the basic parameter list (SPC-4, 6.16.3).
fn read_basic(context: &Context<'_>, list: &[u8], parsed: &mut Parsed<'_>) -> Result<(), Sense> {
    if list.len() < LIST_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = be_u8(list, FLAGS_AT);
    let (lists_ports, all_ports, aptpl) = (flags & 0x08 != 0, flags & 0x04 != 0, flags & 0x01 != 0);
    let asked = &mut parsed.asked;
    if lists_ports && asked.action != Action::Register {
        return Err(Sense::parameter(FLAGS_AT, 0));
    }
    // All other actions ignore ALL_TG_PT and APTPL.
    if matches!(asked.action, Action::Register | Action::RegisterAndIgnore) {
        asked.aptpl = aptpl;
        if all_ports {
            asked.ports =
                context.server.target.ports().iter().map(|port| port.relative_id).collect();
        }
    }
    if lists_ports {
        let listed = read_list(context, list, &asked.ports)?;
        parsed.asked.listed = Some(parsed.listed(listed));
    } else if list.len() != LIST_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH); // 6.16.2
    }
    Ok(())
}

/// Parses the list of TransportIDs after the basic list to nexuses with `ports`. A list that is
/// longer than the parameter list is an immediate error; other errors are in the inner result,
/// including more nexuses than can register, which is detected before the list is expanded.
fn read_list(
    context: &Context<'_>,
    list: &[u8],
    ports: &[u16],
) -> Result<Result<Vec<NexusId>, Sense>, Sense> {
    let start = LIST_BYTES + IDS_LENGTH_BYTES;
    let length = be_u32(list, IDS_AT) as usize;
    if list.len() < start || list.len() - start < length {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let named = named_ports(context, list, start, start + length, ports.len());
    Ok(named.map(|named| named.iter().flat_map(|host| at_ports(host, ports)).collect()))
}

/// Returns the initiator ports identified by the TransportIDs in bytes `start` to `end` (exclusive)
/// of the parameter list, without duplicates.
fn named_ports(
    context: &Context<'_>,
    list: &[u8],
    start: usize,
    end: usize,
    target_ports: usize,
) -> Result<BTreeSet<HostPort>, Sense> {
    let most = REGISTRANTS_MAX / target_ports.max(1);
    let mut named = BTreeSet::new();
    // Sessions and names are each looked up only once.
    let mut sessions: Option<BTreeMap<String, Vec<HostPort>>> = None;
    let mut at = start;
    while at < end {
        let bad = Sense::parameter(at, 0);
        let (id, bytes) = list.get(at..end).and_then(transport_id::read).ok_or(bad)?;
        match id {
            TransportId::Port(port) => {
                named.insert(port.into());
            }
            // All ports of that name with a session here (SPC-4, 7.6.4.6). Without any, nothing
            // would be registered, and GOOD would be wrong.
            TransportId::Device(name) => {
                let sessions = sessions.get_or_insert_with(|| context.server.target.host_ports());
                let known = sessions.get_mut(&name).ok_or(bad)?;
                named.append(&mut known.drain(..).collect());
            }
        }
        if named.len() > most {
            return Err(NO_ROOM);
        }
        at += bytes;
    }
    Ok(named)
}

/// Parses the parameter list of REGISTER AND MOVE (SPC-4, 6.16.4).
fn read_move(context: &Context<'_>, list: &[u8], parsed: &mut Parsed<'_>) -> Result<(), Sense> {
    let length = be_u32(list, FLAGS_AT) as usize;
    if list.len() < LIST_BYTES || list.len() - LIST_BYTES < length {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = be_u8(list, UNREG_AT);
    let moved_to = parsed.listed(destination(context, list, length));
    let asked = &mut parsed.asked;
    (asked.unregisters, asked.aptpl) = (flags & 0x02 != 0, flags & 0x01 != 0);
    asked.moved_to = Some(moved_to);
    Ok(())
}

fn destination(context: &Context<'_>, list: &[u8], length: usize) -> Result<NexusId, Sense> {
    let target_port = be_u16(list, PORT_AT);
    if !context.server.target.ports().iter().any(|port| port.relative_id == target_port) {
        return Err(Sense::parameter(PORT_AT, 0));
    }
    if length < ID_BYTES_MIN || !length.is_multiple_of(4) {
        return Err(Sense::parameter(FLAGS_AT, 0)); // TRANSPORTID LENGTH
    }
    let own = context.nexus.initiator();
    // A reservation moves to one nexus. A name without ISID, which may be refused, does not
    // identify one; and the reservation can't move to the initiator port that it comes from.
    match transport_id::read(&list[IDS_AT..IDS_AT + length]) {
        Some((TransportId::Port(port), _)) if HostPort::from(port.clone()) != *own => {
            Ok(NexusId { host: port.into(), target_port })
        }
        _ => Err(Sense::parameter(IDS_AT, 0)),
    }
}
