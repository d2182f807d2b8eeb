//! The persistent state of hosts: conversion between the target's form and the stored form.

use array::Array;
use block::VolumeId;
use format::HostState;
use format::target_state::tokens::{StoredToken, StoredTokenMaker};
use format::target_state::{EVENTS, NexusName, Registration};
use scsi::DeviceServer;
use target::{
    AccessState, Attention, HostPort, Kept, KeptRod, KeptRods, KeptState, Kind, NexusId, Nonsense,
    Registrant, Reservation, SaveError, Start, TokenKey, TokenMaker, UnsavedRods,
};

// Each counted event has a field in the stored form.
const _: () = assert!(Attention::KEPT.len() == EVENTS);

/// The reason why the stored state of hosts could not be restored.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The start of the array could not be made durable, and why.
    #[error("{0}")]
    Start(String),
    /// The stored reservations of a volume are invalid.
    #[error("the stored reservations of volume {0} are invalid")]
    Nonsense(VolumeId),
    /// The stored ROD tokens are invalid.
    #[error("the stored ROD tokens are invalid: {0}")]
    Tokens(&'static str),
}

/// Storage of the target's persistent state.
pub trait TargetRecords: Send + Sync {
    /// Begins serving: returns the kind of start, and all stored state.
    ///
    /// # Errors
    /// If the start can't be made durable, or the stored state is invalid.
    fn load(&self) -> Result<(Start, KeptState), LoadError>;

    /// Stores the state of a volume, or deletes it if `None`. It is durable on return. Blocks.
    ///
    /// # Errors
    /// If nothing was changed.
    fn save(&self, volume: VolumeId, kept: Option<&Kept>) -> Result<(), SaveError>;

    /// Stores changes of ROD tokens. They are durable on return. Blocks.
    ///
    /// # Errors
    /// If nothing was changed.
    fn save_tokens(&self, unsaved: &UnsavedRods) -> Result<(), SaveError>;
}

/// Returns all stored state that is in force; a power on has ended the rest.
pub(crate) fn all_kept(array: &Array) -> Result<KeptState, LoadError> {
    let now = array.incarnation();
    let one = |(volume, stored): (VolumeId, HostState)| {
        Ok((volume, in_force(now, stored).ok_or(LoadError::Nonsense(volume))?))
    };
    let volumes = array.host_states().into_iter().map(one).collect::<Result<_, LoadError>>()?;
    let rods = array.tokens().map(|(maker, tokens)| KeptRods {
        maker: TokenMaker { key: TokenKey(maker.key), next_id: maker.next_id },
        rods: tokens.into_iter().map(|(id, token)| rod_of_stored(id, token)).collect(),
    });
    Ok(KeptState { volumes, rods })
}

fn rod_of_stored(id: u64, stored: StoredToken) -> KeptRod {
    let StoredToken { source, inactivity_s, token, initiator, pieces, .. } = stored;
    KeptRod { id, token, initiator, source, pieces, inactivity_s }
}

/// Converts to the stored form, to which the array adds its incarnation.
fn rod_to_stored(rod: &KeptRod) -> StoredToken {
    let KeptRod { token, initiator, source, pieces, inactivity_s, .. } = rod.clone();
    StoredToken { incarnation: 0, source, inactivity_s, token, initiator, pieces }
}

/// Stores the target's unsaved changes of tokens.
pub(crate) fn keep_tokens(array: &Array, unsaved: &UnsavedRods) -> Result<(), array::Error> {
    let maker = unsaved.maker.map(|TokenMaker { key, next_id }| StoredTokenMaker {
        incarnation: 0,
        key: key.0,
        next_id,
    });
    let rows = unsaved.rows.iter();
    let rows = rows.map(|(id, row)| (*id, row.as_ref().map(rod_to_stored)));
    array.keep_tokens(maker, rows.collect())
}

/// Returns the part of a stored state that is in force in this incarnation; `None` if it is
/// invalid.
fn in_force(incarnation: u64, stored: HostState) -> Option<Kept> {
    let is_of_now = stored.incarnation == incarnation;
    let kept = of_stored(stored)?;
    Some(if is_of_now { kept } else { kept.after_power_on() })
}

/// Returns `None` if the type or the state is invalid, or no registrant could hold the reservation.
fn of_stored(stored: HostState) -> Option<Kept> {
    let nexus = |name: NexusName| NexusId {
        host: HostPort { name: name.host, id: name.id },
        target_port: name.target_port,
    };
    let registrant = |who: Registration| Registrant { nexus: nexus(who.nexus), key: who.key };
    let registrants: Vec<_> = stored.registrations.into_iter().map(registrant).collect();
    let reservation = match stored.type_code {
        None => None,
        Some(code) => {
            let kind = Kind::from_code(code)?;
            // For the "all registrants" types every registrant holds the reservation.
            let any = kind.all_registrants().then_some(0);
            let holder = registrants.get(usize::from(stored.holder.or(any)?))?;
            Some(Reservation { kind, holder: holder.nexus.clone() })
        }
    };
    let access = |(group, code): (u16, u8)| Some((group, AccessState::from_code(code)?));
    Some(Kept {
        generation: stored.generation,
        registrants,
        reservation,
        aptpl: stored.aptpl,
        exclusive: stored.exclusive.map(nexus),
        access: stored.access.into_iter().map(access).collect::<Option<_>>()?,
        attentions: stored.events,
    })
}

/// Converts to the stored form, to which the array adds its incarnation.
pub(crate) fn to_stored(kept: &Kept) -> HostState {
    let name = |nexus: &NexusId| NexusName {
        target_port: nexus.target_port,
        id: nexus.host.id,
        host: nexus.host.name.clone(),
    };
    let held = kept.reservation.as_ref();
    let holder = held.filter(|held| !held.kind.all_registrants()).and_then(|held| {
        let at = kept.registrants.iter().position(|who| who.nexus == held.holder)?;
        u16::try_from(at).ok()
    });
    let registration = |who: &Registrant| Registration { nexus: name(&who.nexus), key: who.key };
    HostState {
        incarnation: 0,
        aptpl: kept.aptpl,
        generation: kept.generation,
        events: kept.attentions,
        type_code: held.map(|held| held.kind as u8),
        holder,
        exclusive: kept.exclusive.as_ref().map(name),
        access: kept.access.iter().map(|(group, state)| (*group, *state as u8)).collect(),
        registrations: kept.registrants.iter().map(registration).collect(),
    }
}

/// Restores the stored state, before any session.
///
/// # Errors
/// See [`TargetRecords::load`].
pub(crate) fn put_in_force(
    scsi: &DeviceServer,
    records: &dyn TargetRecords,
) -> Result<(), LoadError> {
    let (start, all) = records.load()?;
    scsi.restore(start, all).map_err(|what| match what {
        Nonsense::Volume(volume, _) => LoadError::Nonsense(volume),
        Nonsense::Rods(why) => LoadError::Tokens(why),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn nexus(number: u8) -> NexusId {
        let host = HostPort { name: format!("iqn.{number}"), id: [number; 16] };
        NexusId { host, target_port: number.into() }
    }

    fn registrant(number: u8) -> Registrant {
        Registrant { nexus: nexus(number), key: u64::from(number) << 60 }
    }

    #[test]
    fn stored_state_round_trips() {
        let held = |kind, number| Some(Reservation { kind, holder: nexus(number) });
        let (narrow, wide) = (Kind::WriteExclusive, Kind::ExclusiveAccessAllRegistrants);
        for reservation in [None, held(narrow, 15), held(wide, 1)] {
            let kept = Kept {
                generation: 7,
                registrants: vec![registrant(1), registrant(15)],
                reservation,
                aptpl: true,
                exclusive: None,
                access: [(1, AccessState::Standby), (2, AccessState::ActiveNonOptimized)].into(),
                attentions: [1, 2, 3, 4],
            };
            assert_eq!(of_stored(to_stored(&kept)), Some(kept));
        }
        let kept = Kept { exclusive: Some(nexus(3)), ..Kept::default() };
        assert_eq!(of_stored(to_stored(&kept)), Some(kept));
    }

    #[test]
    fn state_of_an_earlier_incarnation_is_in_force_as_far_as_a_power_on_keeps_it() {
        let access = [(1, AccessState::Standby)].into();
        let registrants = vec![registrant(1)];
        let kept = Kept { registrants, aptpl: true, access, ..Kept::default() };
        for all in [kept.clone(), Kept { aptpl: false, ..kept }] {
            let stored = HostState { incarnation: 7, ..to_stored(&all) };
            assert_eq!(in_force(7, stored.clone()), Some(all.clone()), "a takeover");
            assert_eq!(in_force(8, stored), Some(all.after_power_on()));
        }
    }

    #[test]
    fn invalid_stored_state_is_refused() {
        let good = to_stored(&Kept { registrants: vec![registrant(1)], ..Kept::default() });
        assert!(of_stored(good.clone()).is_some());
        let bad = [
            HostState { type_code: Some(2), holder: Some(0), ..good.clone() },
            HostState { type_code: Some(1), holder: None, ..good.clone() },
            HostState { type_code: Some(1), holder: Some(1), ..good.clone() },
            HostState { access: vec![(1, 4)], ..good },
            HostState { type_code: Some(7), ..HostState::default() },
        ];
        for stored in bad {
            assert_eq!(of_stored(stored.clone()), None, "{stored:?}");
        }
    }

    #[test]
    fn an_invalid_record_prevents_the_array_from_starting() {
        struct Bad;
        impl TargetRecords for Bad {
            fn load(&self) -> Result<(Start, KeptState), LoadError> {
                let reservation = Reservation { kind: Kind::WriteExclusive, holder: nexus(1) };
                let kept = Kept { reservation: Some(reservation), ..Kept::default() };
                let volumes = vec![(VolumeId(9), kept)];
                Ok((Start::PowerOn, KeptState { volumes, rods: None }))
            }

            fn save_tokens(&self, _: &UnsavedRods) -> Result<(), SaveError> {
                Err(SaveError::Failed)
            }

            fn save(&self, _: VolumeId, _: Option<&Kept>) -> Result<(), SaveError> {
                Err(SaveError::Failed)
            }
        }
        let identity = block::ArrayIdentity {
            vendor: String::new(),
            product: String::new(),
            revision: String::new(),
            target_name: String::new(),
        };
        let size = block::SectorCount(0);
        let rods = scsi::RodVolume { id: VolumeId(99), size, key: TokenKey([0; 32]) };
        let counters = crate::Counters::new(1, vec![1]);
        let scsi = DeviceServer::new(identity, Vec::new(), rods, Arc::new(counters));
        assert!(matches!(put_in_force(&scsi, &Bad), Err(LoadError::Nonsense(VolumeId(9)))));
    }
}
