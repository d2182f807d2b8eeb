//! Registrations: REGISTER, REGISTER AND IGNORE EXISTING KEY, REGISTER AND MOVE (SPC-4, 5.13.7,
//! 5.13.8 and 5.13.11.2.3).

use std::collections::HashSet;

use super::actions::tell_others;
use super::{Action, Asked, BadList, Effect, Refusal};
use crate::attention::Attention;
use crate::kept::{Kept, REGISTRANTS_MAX, Registrant, Reservation};
use crate::nexus::{HostPort, NexusId};

impl Kept {
    /// Registers a nexus, or changes its key.
    fn put(&mut self, nexus: NexusId, key: u64) -> Result<(), Refusal> {
        let is_full = self.registrants.len() >= REGISTRANTS_MAX;
        match self.registrants.iter_mut().find(|who| who.nexus == nexus) {
            Some(who) => who.key = key,
            None if is_full => return Err(Refusal::NoRoom),
            None => self.registrants.push(Registrant { nexus, key }),
        }
        Ok(())
    }
}

/// REGISTER and REGISTER AND IGNORE EXISTING KEY (SPC-4, tables 67 to 69).
pub(super) fn register(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let own = kept.key_of(asked.nexus);
    // A nexus that is not registered must give the key 0.
    if asked.action == Action::Register && own.unwrap_or(0) != asked.key {
        return Err(Refusal::Conflict);
    }
    if asked.listed.is_some() && own.is_some() {
        return Err(Refusal::AlreadyRegistered); // table 67, note c
    }
    let ours = at_ports(&asked.nexus.host, &asked.ports);
    refuse_other_keys(kept, asked, &ours)?;
    if asked.action_key == 0 {
        return Ok(unregister_all(kept, asked, &ours));
    }
    kept.aptpl = asked.aptpl;
    for nexus in ours {
        kept.put(nexus, asked.action_key)?;
    }
    match &asked.listed {
        None => {}
        Some(Err(BadList)) => return Err(Refusal::BadList),
        Some(Ok(listed)) => add_all(kept, asked, listed)?,
    }
    Ok(Effect::default())
}

/// Registers the listed nexuses (each once), none of which may be registered yet.
fn add_all(kept: &mut Kept, asked: &Asked<'_>, listed: &[NexusId]) -> Result<(), Refusal> {
    let own = &asked.nexus.host;
    let theirs = || listed.iter().filter(|nexus| nexus.host != *own);
    let known: HashSet<&NexusId> = kept.registrants.iter().map(|who| &who.nexus).collect();
    if theirs().any(|nexus| known.contains(nexus)) {
        return Err(Refusal::ListedRegistered); // table 67, note b
    }
    if known.len() + theirs().count() > REGISTRANTS_MAX {
        return Err(Refusal::NoRoom);
    }
    let registrant = |nexus: &NexusId| Registrant { nexus: nexus.clone(), key: asked.action_key };
    kept.registrants.extend(theirs().map(registrant));
    Ok(())
}

/// Returns the nexuses of a host's port with these target ports.
pub fn at_ports(host: &HostPort, ports: &[u16]) -> Vec<NexusId> {
    let nexus = |port: &u16| NexusId { host: host.clone(), target_port: *port };
    ports.iter().map(nexus).collect()
}

/// With ALL_TG_PT it is as if REGISTER had come through each target port (SPC-4, 6.16.3): if one of
/// these nexuses has another key, that is a conflict, and nothing is done at any port. A port where
/// the initiator is not registered yet is no conflict: it is registered too.
fn refuse_other_keys(kept: &Kept, asked: &Asked<'_>, ours: &[NexusId]) -> Result<(), Refusal> {
    let differs = |nexus| kept.key_of(nexus).is_some_and(|key| key != asked.key);
    if asked.action == Action::Register && ours.iter().any(differs) {
        return Err(Refusal::Conflict);
    }
    Ok(())
}

/// Removes those that are registered; if none is, does nothing at all, not even for APTPL.
fn unregister_all(kept: &mut Kept, asked: &Asked<'_>, ours: &[NexusId]) -> Effect {
    if !ours.iter().any(|nexus| kept.key_of(nexus).is_some()) {
        return Effect::default();
    }
    kept.aptpl = asked.aptpl;
    unregister(kept, asked, ours)
}

/// Removes registrations, and the reservation with them if it was the holder's, or the last one of
/// an "all registrants" type (SPC-4, 5.13.11.2.3).
fn unregister(kept: &mut Kept, asked: &Asked<'_>, whom: &[NexusId]) -> Effect {
    kept.registrants.retain(|who| !whom.contains(&who.nexus));
    let Some(reservation) = &kept.reservation else { return Effect::default() };
    let kind = reservation.kind;
    let ends = if kind.all_registrants() {
        kept.registrants.is_empty()
    } else {
        whom.contains(&reservation.holder)
    };
    if !ends {
        return Effect::default();
    }
    kept.reservation = None;
    if kind.admits_registrants() {
        return tell_others(kept, asked.nexus, Attention::ReservationsReleased);
    }
    Effect::default()
}

/// REGISTER AND MOVE (SPC-4, 5.13.8 and table 70). The key was already checked.
pub(super) fn register_and_move(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let Some(held) = &kept.reservation else {
        return Err(Refusal::NothingToMove);
    };
    let kind = held.kind;
    if kind.all_registrants() || held.holder != *asked.nexus {
        return Err(Refusal::Conflict);
    }
    if asked.action_key == 0 {
        return Err(Refusal::NoKey);
    }
    let to = asked.moved_to.clone().unwrap_or(Err(BadList)).map_err(|_| Refusal::BadList)?;
    kept.aptpl = asked.aptpl;
    kept.put(to.clone(), asked.action_key)?;
    kept.reservation = Some(Reservation { kind, holder: to });
    if asked.unregisters {
        return Ok(unregister(kept, asked, std::slice::from_ref(asked.nexus)));
    }
    Ok(Effect::default())
}
