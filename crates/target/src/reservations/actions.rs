//! PERSISTENT RESERVE OUT (SPC-4, 6.16 and 5.13): the effect of each action.

use super::register::{register, register_and_move};
use super::{Action, Asked, Effect, Refusal};
use crate::attention::Attention;
use crate::kept::{Kept, Kind, Registrant, Reservation};
use crate::nexus::NexusId;

/// Executes an action.
pub(crate) fn act(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    // These conflict with RESERVE of any nexus (SPC-2, 5.5.1). The command was admitted before, and
    // RESERVE may have come in between.
    if kept.exclusive.is_some() {
        return Err(Refusal::Conflict);
    }
    let effect = match asked.action {
        Action::Register | Action::RegisterAndIgnore => register(kept, asked)?,
        // All others require registration and the right key (SPC-4, 6.16.3).
        _ if kept.key_of(asked.nexus) != Some(asked.key) => return Err(Refusal::Conflict),
        Action::Reserve => reserve(kept, asked)?,
        Action::Release => release(kept, asked)?,
        Action::Clear => clear(kept, asked),
        Action::Preempt | Action::PreemptAndAbort => preempt(kept, asked)?,
        Action::Move => register_and_move(kept, asked)?,
    };
    if asked.action.is_counted() {
        kept.generation = kept.generation.wrapping_add(1);
    }
    Ok(effect)
}

pub(super) fn tell_others(kept: &Kept, nexus: &NexusId, what: Attention) -> Effect {
    let others = kept.registrants.iter().filter(|who| who.nexus != *nexus);
    let told = others.map(|who| (who.nexus.clone(), what)).collect();
    Effect { told, ..Effect::default() }
}

fn scope_and_kind(asked: &Asked<'_>) -> Result<Kind, Refusal> {
    if !asked.whole_unit {
        return Err(Refusal::Scope);
    }
    asked.kind.ok_or(Refusal::Kind)
}

fn reserve(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let kind = scope_and_kind(asked)?;
    match &kept.reservation {
        Some(held) if held.kind == kind && kept.holds(asked.nexus) => {}
        Some(_) => return Err(Refusal::Conflict),
        None => kept.reservation = Some(Reservation { kind, holder: asked.nexus.clone() }),
    }
    Ok(Effect::default())
}

fn release(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let Some(held) = &kept.reservation else { return Ok(Effect::default()) };
    if !kept.holds(asked.nexus) {
        return Ok(Effect::default());
    }
    let kind = held.kind;
    if !asked.whole_unit || asked.kind != Some(kind) {
        return Err(Refusal::WrongRelease);
    }
    kept.reservation = None;
    if kind.admits_registrants() {
        return Ok(tell_others(kept, asked.nexus, Attention::ReservationsReleased));
    }
    Ok(Effect::default())
}

fn clear(kept: &mut Kept, asked: &Asked<'_>) -> Effect {
    let effect = tell_others(kept, asked.nexus, Attention::ReservationsPreempted);
    kept.reservation = None;
    kept.registrants.clear();
    effect
}

/// PREEMPT and PREEMPT AND ABORT (SPC-4, 5.13.11.2.4 to 5.13.11.2.6, table 72).
fn preempt(kept: &mut Kept, asked: &Asked<'_>) -> Result<Effect, Refusal> {
    let held = kept.reservation.clone();
    let takes_over = match &held {
        None => false,
        Some(held) if held.kind.all_registrants() => asked.action_key == 0,
        Some(held) => kept
            .registrants
            .iter()
            .any(|who| who.nexus == held.holder && who.key == asked.action_key),
    };
    let everyone = takes_over && asked.action_key == 0;
    if asked.action_key == 0 && !everyone {
        return Err(Refusal::NoKey);
    }
    let named = |who: &Registrant| everyone || who.key == asked.action_key;
    if !takes_over && !kept.registrants.iter().any(named) {
        return Err(Refusal::Conflict);
    }
    // Removing registrations only ignores the scope and the type.
    let kind = if takes_over { Some(scope_and_kind(asked)?) } else { None };
    let mut effect = Effect::default();
    if asked.action == Action::PreemptAndAbort {
        let named = kept.registrants.iter().filter(|who| named(who));
        effect.aborted = named.map(|who| who.nexus.clone()).collect();
    }
    // The preempting nexus stays registered if it takes over the reservation.
    kept.registrants.retain(|who| {
        let own = who.nexus == *asked.nexus;
        let stays = !named(who) || (own && takes_over);
        if !stays && !own {
            effect.told.push((who.nexus.clone(), Attention::RegistrationsPreempted));
        }
        stays
    });
    if let Some(kind) = kind {
        kept.reservation = Some(Reservation { kind, holder: asked.nexus.clone() });
        if held.is_some_and(|held| held.kind != kind) {
            let others = tell_others(kept, asked.nexus, Attention::ReservationsReleased);
            effect.told.extend(others.told);
        }
    } else if kept.registrants.is_empty() {
        kept.reservation = None; // an "all registrants" reservation ends with the last of them
    }
    Ok(effect)
}
