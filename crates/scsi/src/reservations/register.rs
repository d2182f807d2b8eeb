//! Registrations: REGISTER, REGISTER AND IGNORE EXISTING KEY, REGISTER AND MOVE (SPC-4, 5.13.7,
//! 5.13.8 and 5.13.11.2.3).

use std::collections::HashSet;

use super::persistent::{Asked, Effect, REGISTER, Refusal, tell_others};
use super::{NexusId, Registrant, Registry, Reservation};
use crate::attention::Attention;
use crate::nexus::InitiatorPort;
use crate::sense::{Sense, SenseKey};

/// The most nexuses that can register with a volume: 64 hosts with 8 paths each. What is kept of
/// them must fit one change of the store, however long their names are.
pub(crate) const REGISTRANTS_MAX: usize = 512;

/// INSUFFICIENT REGISTRATION RESOURCES.
pub(crate) const NO_ROOM: Sense = Sense::new(SenseKey::IllegalRequest, 0x55, 0x04);

/// Offsets in the parameter list. The bytes after 19 are laid out differently in the list of
/// REGISTER AND MOVE (SPC-4, 6.16.3 and 6.16.4).
pub(crate) const ACTION_KEY_AT: usize = 8;
pub(crate) const UNREG_AT: usize = 17;
pub(crate) const PORT_AT: usize = 18;
pub(crate) const FLAGS_AT: usize = 20;
pub(crate) const IDS_AT: usize = 24;

impl Registry {
    fn key_at(&self, nexus: &NexusId) -> Option<u64> {
        self.registrants.iter().find(|who| who.nexus == *nexus).map(|who| who.key)
    }

    /// Registers a nexus, or changes its key.
    fn put(&mut self, nexus: NexusId, key: u64) -> Result<(), Refusal> {
        let is_full = self.registrants.len() >= REGISTRANTS_MAX;
        match self.registrants.iter_mut().find(|who| who.nexus == nexus) {
            Some(who) => who.key = key,
            None if is_full => return Err(Refusal::Check(NO_ROOM)),
            None => self.registrants.push(Registrant { nexus, key }),
        }
        Ok(())
    }
}

/// REGISTER and REGISTER AND IGNORE EXISTING KEY (SPC-4, tables 67 to 69).
pub(super) fn register(registry: &mut Registry, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let own = registry.key_of(asked.nexus);
    // A nexus that is not registered gives the key 0.
    if asked.action == REGISTER && own.unwrap_or(0) != asked.key {
        return Err(Refusal::Conflict);
    }
    if asked.listed.is_some() && own.is_some() {
        return Err(Refusal::Check(Sense::parameter(FLAGS_AT, 0))); // table 67, note c
    }
    let ours = at_ports(asked.nexus.initiator(), &asked.ports);
    refuse_other_keys(registry, asked, &ours)?;
    if asked.action_key == 0 {
        return Ok(unregister_all(registry, asked, &ours));
    }
    registry.aptpl = asked.aptpl;
    for nexus in ours {
        registry.put(nexus, asked.action_key)?;
    }
    match &asked.listed {
        None => {}
        Some(Err(sense)) => return Err(Refusal::Check(*sense)),
        Some(Ok(listed)) => add_all(registry, asked, listed)?,
    }
    Ok(Effect::default())
}

/// Registers those that are listed (each once), none of whom may be registered yet.
fn add_all(registry: &mut Registry, asked: &Asked<'_>, listed: &[NexusId]) -> Result<(), Refusal> {
    let own = asked.nexus.initiator();
    let theirs = || listed.iter().filter(|nexus| nexus.initiator != *own);
    let known: HashSet<&NexusId> = registry.registrants.iter().map(|who| &who.nexus).collect();
    if theirs().any(|nexus| known.contains(nexus)) {
        return Err(Refusal::Check(Sense::parameter(IDS_AT, 0))); // table 67, note b
    }
    if known.len() + theirs().count() > REGISTRANTS_MAX {
        return Err(Refusal::Check(NO_ROOM));
    }
    let registrant = |nexus: &NexusId| Registrant { nexus: nexus.clone(), key: asked.action_key };
    registry.registrants.extend(theirs().map(registrant));
    Ok(())
}

/// The nexuses of an initiator port with the target ports that were asked for.
pub(super) fn at_ports(initiator: &InitiatorPort, ports: &[u16]) -> Vec<NexusId> {
    let nexus = |port: &u16| NexusId { initiator: initiator.clone(), target_port: *port };
    ports.iter().map(nexus).collect()
}

/// With ALL_TG_PT it is as if REGISTER had come through each target port (SPC-4, 6.16.3): where one
/// of these nexuses has another key, that is a conflict, and then nothing is done at any port. A
/// port where the initiator is not registered yet is no hindrance: it joins the others.
fn refuse_other_keys(
    registry: &Registry,
    asked: &Asked<'_>,
    ours: &[NexusId],
) -> Result<(), Refusal> {
    let differs = |nexus| registry.key_at(nexus).is_some_and(|key| key != asked.key);
    if asked.action == REGISTER && ours.iter().any(differs) {
        return Err(Refusal::Conflict);
    }
    Ok(())
}

/// Removes those that are registered; does nothing at all, APTPL included, where none is.
fn unregister_all(registry: &mut Registry, asked: &Asked<'_>, ours: &[NexusId]) -> Effect {
    if !ours.iter().any(|nexus| registry.key_at(nexus).is_some()) {
        return Effect::default();
    }
    registry.aptpl = asked.aptpl;
    unregister(registry, asked, ours)
}

/// Removes registrations, and the reservation with them if it was the holder's, or the last of an
/// "all registrants" type (SPC-4, 5.13.11.2.3).
fn unregister(registry: &mut Registry, asked: &Asked<'_>, whom: &[NexusId]) -> Effect {
    registry.registrants.retain(|who| !whom.contains(&who.nexus));
    let Some(reservation) = &registry.reservation else { return Effect::default() };
    let kind = reservation.kind;
    let ends = if kind.all_registrants() {
        registry.registrants.is_empty()
    } else {
        whom.contains(&reservation.holder)
    };
    if !ends {
        return Effect::default();
    }
    registry.reservation = None;
    if kind.admits_registrants() {
        return tell_others(registry, asked.nexus, Attention::ReservationsReleased);
    }
    Effect::default()
}

/// REGISTER AND MOVE (SPC-4, 5.13.8 and table 70). The key was found right.
pub(super) fn register_and_move(
    registry: &mut Registry,
    asked: &Asked<'_>,
) -> Result<Effect, Refusal> {
    let Some(held) = &registry.reservation else {
        return Err(Refusal::Check(Sense::cdb_field(1, 4)));
    };
    let kind = held.kind;
    if kind.all_registrants() || !held.holder.is(asked.nexus) {
        return Err(Refusal::Conflict);
    }
    if asked.action_key == 0 {
        return Err(Refusal::Check(Sense::parameter(ACTION_KEY_AT, 0)));
    }
    let to = asked.moved_to.clone().unwrap_or(Err(Sense::INTERNAL_FAILURE));
    let to = to.map_err(Refusal::Check)?;
    registry.aptpl = asked.aptpl;
    registry.put(to.clone(), asked.action_key)?;
    registry.reservation = Some(Reservation { kind, holder: to });
    if asked.unregisters {
        return Ok(unregister(registry, asked, &[NexusId::of(asked.nexus)]));
    }
    Ok(Effect::default())
}
