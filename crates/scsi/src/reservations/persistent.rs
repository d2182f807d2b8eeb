//! PERSISTENT RESERVE OUT (SPC-4, 6.16 and 5.13).

use std::collections::{BTreeMap, BTreeSet};

use super::register::{
    ACTION_KEY_AT, FLAGS_AT, IDS_AT, NO_ROOM, PORT_AT, REGISTRANTS_MAX, UNREG_AT, at_ports,
    register, register_and_move,
};
use super::saving::Changed;
use super::transport_id::{self, TransportId};
use super::{Kind, NexusId, Registrant, Registry, Reservation};
use crate::attention::Attention;
use crate::bytes::{be_u8, be_u16, be_u32, be_u64, parameter_list};
use crate::nexus::{InitiatorPort, Nexus};
use crate::response::{AnswerAfter, Command, Pending, Response, Rest, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::Context;
use crate::table::Outcome;

const LIST_BYTES: usize = 24;
/// TRANSPORTID PARAMETER DATA LENGTH, before a list of them.
const IDS_LENGTH_BYTES: usize = 4;
/// The shortest TransportID.
const ID_BYTES_MIN: usize = 24;
/// The longest parameter list: a TransportID for each nexus that can register, the name in it as
/// long as names get. What is longer is refused before its bytes are looked at.
pub(crate) const LIST_BYTES_MAX: usize =
    LIST_BYTES + IDS_LENGTH_BYTES + REGISTRANTS_MAX * transport_id::BYTES_MAX;

pub(super) const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;
const REGISTER_AND_MOVE: u8 = 7;

/// What an action does to others.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// The unit attentions to queue, by nexus.
    pub told: Vec<(NexusId, Attention)>,
    /// Whose commands are to be aborted.
    pub aborted: Vec<NexusId>,
}

/// Why an action was not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// RESERVATION CONFLICT.
    Conflict,
    /// CHECK CONDITION.
    Check(Sense),
}

/// The parameters of an action.
pub(super) struct Asked<'a> {
    pub nexus: &'a Nexus,
    pub action: u8,
    scope: u8,
    kind: Option<Kind>,
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    pub action_key: u64,
    pub aptpl: bool,
    /// The target ports to register with: that of the nexus, or all with ALL_TG_PT.
    pub ports: Vec<u16>,
    /// With SPEC_I_PT, the nexuses of the list, each once and no more than can register, or what is
    /// wrong with it. The error is reported only if the list is not ignored.
    pub listed: Option<Result<Vec<NexusId>, Sense>>,
    /// For REGISTER AND MOVE: the nexus to move to, or what is wrong with it.
    pub moved_to: Option<Result<NexusId, Sense>>,
    /// UNREG of REGISTER AND MOVE.
    pub unregisters: bool,
}

pub(crate) fn out(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let length = command.cdb.u32(5) as usize;
    if length > LIST_BYTES_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list = parameter_list(&command.data_out, length)?;
    let asked = read(context, &command, &list)?;
    let server = context.server;
    let changed = server.reservations.with(volume.id, |state| {
        let changed = state.change(|registry| act(registry, &asked))?;
        if counts(asked.action) {
            state.generation = state.generation.wrapping_add(1);
        }
        if let Changed::AtOnce(effect) = &changed {
            // With the lock held, so that each nexus gets the unit attentions in the order of the
            // changes.
            server.deliver(volume.id, effect);
        }
        Ok(changed)
    });
    let wanted = Some(list.len() as u64);
    // Commands that the preempted nexuses had under way end by themselves, those of several
    // requests early; what comes later meets the reservation.
    let after = match asked.action {
        PREEMPT_AND_ABORT => AnswerAfter::All,
        _ => AnswerAfter::Nothing,
    };
    match changed {
        Ok(Changed::AtOnce(_)) => {
            let response = Response { after, ..Response::good() };
            Ok(Step::Done(response.wanting(wanted)))
        }
        Ok(Changed::MustBeSaved(change)) => {
            let registers =
                matches!(asked.action, REGISTER | REGISTER_AND_IGNORE | REGISTER_AND_MOVE);
            let rest = Rest::Save { change, after, registers };
            let pending = Pending { wanted, volume: volume.id, block_sectors: 1, rest };
            Ok(Step::Persist { volume: volume.id, pending })
        }
        Err(Refusal::Conflict) => {
            Ok(Step::Done(Response::with_status(Status::ReservationConflict)))
        }
        Err(Refusal::Check(sense)) => Err(sense),
    }
}

/// Whether PRGENERATION counts the action, whatever it changed (SPC-4, 6.15.2).
fn counts(action: u8) -> bool {
    !matches!(action, RESERVE | RELEASE)
}

fn read<'a>(context: &Context<'a>, command: &Command, list: &[u8]) -> Result<Asked<'a>, Sense> {
    let cdb = &command.cdb;
    let mut asked = Asked {
        nexus: context.nexus,
        action: cdb.service_action(),
        scope: cdb.u8(2) >> 4,
        kind: Kind::from_code(cdb.u8(2) & 0x0f),
        key: be_u64(list, 0),
        action_key: be_u64(list, ACTION_KEY_AT),
        aptpl: false,
        ports: vec![context.nexus.target_port()],
        listed: None,
        moved_to: None,
        unregisters: false,
    };
    if asked.action == REGISTER_AND_MOVE {
        read_move(context, list, &mut asked)?;
    } else {
        read_basic(context, list, &mut asked)?;
    }
    Ok(asked)
}

/// The basic parameter list (SPC-4, 6.16.3).
fn read_basic(context: &Context<'_>, list: &[u8], asked: &mut Asked<'_>) -> Result<(), Sense> {
    if list.len() < LIST_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = be_u8(list, FLAGS_AT);
    let (lists_ports, all_ports, aptpl) = (flags & 0x08 != 0, flags & 0x04 != 0, flags & 0x01 != 0);
    if lists_ports && asked.action != REGISTER {
        return Err(Sense::parameter(FLAGS_AT, 0));
    }
    // ALL_TG_PT and APTPL are ignored by all other actions.
    if matches!(asked.action, REGISTER | REGISTER_AND_IGNORE) {
        asked.aptpl = aptpl;
        if all_ports {
            asked.ports = context.server.ports.iter().map(|port| port.relative_id).collect();
        }
    }
    if lists_ports {
        asked.listed = Some(read_list(context, list, &asked.ports)?);
    } else if list.len() != LIST_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH); // 6.16.2
    }
    Ok(())
}

/// The list of TransportIDs after the basic one, as nexuses with `ports`. A list that is longer
/// than the parameter list is told at once; else what is wrong in it stands in the inner result:
/// that it names more than can register, too, which is found before it is expanded.
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
    Ok(named.map(|named| named.iter().flat_map(|initiator| at_ports(initiator, ports)).collect()))
}

/// The initiator ports that the TransportIDs in `list[start..end]` name, each once.
fn named_ports(
    context: &Context<'_>,
    list: &[u8],
    start: usize,
    end: usize,
    target_ports: usize,
) -> Result<BTreeSet<InitiatorPort>, Sense> {
    let most = REGISTRANTS_MAX / target_ports.max(1);
    let mut named = BTreeSet::new();
    // Who has a session is looked up once, and each name is looked up once.
    let mut sessions: Option<BTreeMap<String, Vec<InitiatorPort>>> = None;
    let mut at = start;
    while at < end {
        let bad = Sense::parameter(at, 0);
        let (id, bytes) = transport_id::read(&list[at..end]).ok_or(bad)?;
        match id {
            TransportId::Port(port) => {
                named.insert(port);
            }
            // All ports of that name that are known here (SPC-4, 7.6.4.6): those with a session.
            // If there are none it would register nobody, which GOOD must not stand for.
            TransportId::Device(name) => {
                let sessions = sessions.get_or_insert_with(|| context.server.ports_by_name());
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

/// The parameter list of REGISTER AND MOVE (SPC-4, 6.16.4).
fn read_move(context: &Context<'_>, list: &[u8], asked: &mut Asked<'_>) -> Result<(), Sense> {
    let length = be_u32(list, FLAGS_AT) as usize;
    if list.len() < LIST_BYTES || list.len() - LIST_BYTES < length {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let flags = be_u8(list, UNREG_AT);
    (asked.unregisters, asked.aptpl) = (flags & 0x02 != 0, flags & 0x01 != 0);
    asked.moved_to = Some(destination(context, list, length));
    Ok(())
}

fn destination(context: &Context<'_>, list: &[u8], length: usize) -> Result<NexusId, Sense> {
    let target_port = be_u16(list, PORT_AT);
    if !context.server.ports.iter().any(|port| port.relative_id == target_port) {
        return Err(Sense::parameter(PORT_AT, 0));
    }
    if length < ID_BYTES_MIN || !length.is_multiple_of(4) {
        return Err(Sense::parameter(FLAGS_AT, 0)); // TRANSPORTID LENGTH
    }
    // A reservation moves to one nexus: a name without its ISID, which may be refused, does not say
    // which. And it can't move to the initiator port that it comes from.
    match transport_id::read(&list[IDS_AT..IDS_AT + length]) {
        Some((TransportId::Port(initiator), _)) if initiator != *context.nexus.initiator() => {
            Ok(NexusId { initiator, target_port })
        }
        _ => Err(Sense::parameter(IDS_AT, 0)),
    }
}

fn act(registry: &mut Registry, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    if matches!(asked.action, REGISTER | REGISTER_AND_IGNORE) {
        return register(registry, asked);
    }
    // All others are for registered nexuses, with their key (SPC-4, 6.16.3).
    if registry.key_of(asked.nexus) != Some(asked.key) {
        return Err(Refusal::Conflict);
    }
    match asked.action {
        RESERVE => reserve(registry, asked),
        RELEASE => release(registry, asked),
        CLEAR => Ok(clear(registry, asked)),
        PREEMPT | PREEMPT_AND_ABORT => preempt(registry, asked),
        REGISTER_AND_MOVE => register_and_move(registry, asked),
        _ => Err(Refusal::Check(Sense::cdb_field(1, 4))),
    }
}

pub(super) fn tell_others(registry: &Registry, nexus: &Nexus, what: Attention) -> Effect {
    let others = registry.registrants.iter().filter(|who| !who.nexus.is(nexus));
    let told = others.map(|who| (who.nexus.clone(), what)).collect();
    Effect { told, ..Effect::default() }
}

fn scope_and_kind(asked: &Asked<'_>) -> Result<Kind, Refusal> {
    if asked.scope != 0 {
        return Err(Refusal::Check(Sense::cdb_field(2, 7)));
    }
    asked.kind.ok_or(Refusal::Check(Sense::cdb_field(2, 3)))
}

fn reserve(registry: &mut Registry, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let kind = scope_and_kind(asked)?;
    match &registry.reservation {
        Some(held) if held.kind == kind && registry.holds(asked.nexus) => {}
        Some(_) => return Err(Refusal::Conflict),
        None => {
            registry.reservation = Some(Reservation { kind, holder: NexusId::of(asked.nexus) });
        }
    }
    Ok(Effect::default())
}

fn release(registry: &mut Registry, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let Some(held) = &registry.reservation else { return Ok(Effect::default()) };
    if !registry.holds(asked.nexus) {
        return Ok(Effect::default());
    }
    let kind = held.kind;
    if asked.scope != 0 || asked.kind != Some(kind) {
        // INVALID RELEASE OF PERSISTENT RESERVATION
        return Err(Refusal::Check(Sense::new(SenseKey::IllegalRequest, 0x26, 0x04)));
    }
    registry.reservation = None;
    if kind.admits_registrants() {
        return Ok(tell_others(registry, asked.nexus, Attention::ReservationsReleased));
    }
    Ok(Effect::default())
}

fn clear(registry: &mut Registry, asked: &Asked<'_>) -> Effect {
    let effect = tell_others(registry, asked.nexus, Attention::ReservationsPreempted);
    registry.reservation = None;
    registry.registrants.clear();
    effect
}

/// PREEMPT and PREEMPT AND ABORT (SPC-4, 5.13.11.2.4 to 5.13.11.2.6, table 72).
fn preempt(registry: &mut Registry, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let held = registry.reservation.clone();
    let takes_over = match &held {
        None => false,
        Some(held) if held.kind.all_registrants() => asked.action_key == 0,
        Some(held) => registry
            .registrants
            .iter()
            .any(|who| who.nexus == held.holder && who.key == asked.action_key),
    };
    let everyone = takes_over && asked.action_key == 0;
    if asked.action_key == 0 && !everyone {
        return Err(Refusal::Check(Sense::parameter(ACTION_KEY_AT, 0)));
    }
    let named = |who: &Registrant| everyone || who.key == asked.action_key;
    if !takes_over && !registry.registrants.iter().any(named) {
        return Err(Refusal::Conflict);
    }
    // To remove registrations alone the scope and the type are ignored.
    let kind = if takes_over { Some(scope_and_kind(asked)?) } else { None };
    let mut effect = Effect::default();
    if asked.action == PREEMPT_AND_ABORT {
        let named = registry.registrants.iter().filter(|who| named(who));
        effect.aborted = named.map(|who| who.nexus.clone()).collect();
    }
    // The preempting nexus itself stays registered where it takes the reservation over.
    registry.registrants.retain(|who| {
        let own = who.nexus.is(asked.nexus);
        let stays = !named(who) || (own && takes_over);
        if !stays && !own {
            effect.told.push((who.nexus.clone(), Attention::RegistrationsPreempted));
        }
        stays
    });
    if let Some(kind) = kind {
        registry.reservation = Some(Reservation { kind, holder: NexusId::of(asked.nexus) });
        if held.is_some_and(|held| held.kind != kind) {
            let others = tell_others(registry, asked.nexus, Attention::ReservationsReleased);
            effect.told.extend(others.told);
        }
    } else if registry.registrants.is_empty() {
        registry.reservation = None; // an "all registrants" reservation ends with the last of them
    }
    Ok(effect)
}
