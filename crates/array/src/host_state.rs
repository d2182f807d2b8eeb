//! What the target keeps of hosts for each volume: registrations, reservations, access states. The
//! array stores it with the volume, without knowing what it means, and says which *incarnation* of
//! the pool has written it: that changes with each power on, and not when another controller
//! takes over. The store counts them, and needs no commit for that.
//!
//! Earlier programs have counted starts in a key of their own. It is a lower bound: what they have
//! written is of no later incarnation than it says. It goes with the next state that is kept; a
//! pool of version 2, which such a program may open again, says there what it has come to.
//!
//! Pools of earlier versions have reservations as JSON. These are read, and replaced when the
//! volume's state changes.

use std::collections::HashMap;

use block::VolumeId;
use format::target_state::{NexusName, Registration, decode_incarnation, encode_incarnation};
use format::{HostState, StateKey};
use store::{Change, Incarnation};

use crate::record::{self, ReservationPart};
use crate::state::State;
use crate::{Array, Error};

/// The most registrations kept for a volume: they must fit one change of the store.
pub const REGISTRATIONS_MAX: usize = format::target_state::REGISTRATIONS_MAX;

const INCARNATION: StateKey = StateKey::Incarnation;

/// A key of the store, and its new value; `None` removes it.
type Row = (Vec<u8>, Option<Vec<u8>>);

/// The stored states of existing volumes.
#[derive(Debug, Default)]
pub(crate) struct HostStates {
    incarnation: u64,
    /// What the key of earlier programs says, if it is there.
    noted_incarnation: Option<u64>,
    volumes: HashMap<VolumeId, StoredState>,
}

/// The stored state of a volume, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredState {
    state: HostState,
    keys: Vec<Vec<u8>>,
}

impl HostStates {
    pub(crate) fn load_incarnation(&mut self, value: &[u8]) -> Result<(), Error> {
        let found = decode_incarnation(value);
        self.noted_incarnation = Some(found.map_err(|error| Error::Damaged(error.to_string()))?);
        Ok(())
    }

    /// The incarnation of the pool.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The pool is of this incarnation, or the one that was noted.
    pub(crate) fn set_incarnation(&mut self, number: u64) {
        self.incarnation = number.max(self.noted_incarnation.unwrap_or(0));
    }

    /// What the key of earlier programs is to say from the next change on, if that is not what it
    /// says.
    fn next_note(&self, incarnation: Incarnation) -> Option<Option<u64>> {
        let next = (!incarnation.is_stored).then_some(self.incarnation);
        (next != self.noted_incarnation).then_some(next)
    }

    pub(crate) fn load(&mut self, volume: VolumeId, stored: StoredState) {
        self.volumes.insert(volume, stored);
    }

    pub(crate) fn remove(&mut self, volume: VolumeId) {
        self.volumes.remove(&volume);
    }

    /// The target ports over which somebody is registered, or holds a volume by RESERVE.
    pub(crate) fn named_ports(&self) -> impl Iterator<Item = u16> {
        let in_force = |stored: &&StoredState| {
            stored.state.aptpl || stored.state.incarnation == self.incarnation
        };
        self.volumes.values().filter(in_force).flat_map(|stored| {
            let registered = stored.state.registrations.iter().map(|who| &who.nexus);
            registered.chain(&stored.state.exclusive).map(|nexus| nexus.target_port)
        })
    }
}

impl StoredState {
    /// From its parts, in their order; `None` if they do not fit.
    pub(crate) fn from_parts(volume: VolumeId, parts: &[Vec<u8>]) -> Option<Self> {
        let state = HostState::decode(parts.iter().map(|part| &part[..])).ok()?;
        Some(Self { keys: keys(volume, &state), state })
    }

    /// From reservations as earlier versions have stored them: they are kept through a loss of
    /// power. `None` if they do not fit.
    pub(crate) fn from_reservations(volume: VolumeId, parts: Vec<ReservationPart>) -> Option<Self> {
        let first = parts.first()?;
        let (type_code, holder) = (first.type_code, first.holder);
        let fits = |part: &ReservationPart| {
            (part.parts, part.type_code, part.holder) == (parts.len(), type_code, holder)
        };
        if !parts.iter().all(fits) {
            return None;
        }
        let keys = (0..parts.len()).map(|part| record::reservation_key(volume, part)).collect();
        let registrations: Vec<_> = parts.into_iter().flat_map(|p| p.registrations).collect();
        let is_held = holder.is_none_or(|holder| holder < registrations.len());
        let fits = is_held && registrations.len() <= REGISTRATIONS_MAX;
        let holder = holder.and_then(|holder| u16::try_from(holder).ok());
        let (aptpl, none) = (true, HostState::default());
        fits.then_some(Self {
            state: HostState { aptpl, type_code, holder, registrations, ..none },
            keys,
        })
    }
}

/// A registration as earlier versions have stored it.
pub(crate) fn registration(
    host: String,
    isid: [u8; 6],
    target_port: u16,
    key: u64,
) -> Registration {
    let mut id = [0; 16];
    id[..6].copy_from_slice(&isid);
    Registration { nexus: NexusName { target_port, id, host }, key }
}

fn keys(volume: VolumeId, state: &HostState) -> Vec<Vec<u8>> {
    (0..state.part_count()).map(|part| StateKey::Volume { volume, part }.encode()).collect()
}

/// The removal of all that is stored of a volume.
pub(crate) fn removal(state: &State, volume: VolumeId) -> Vec<Row> {
    let stored = state.host_states.volumes.get(&volume);
    stored.into_iter().flat_map(|stored| &stored.keys).map(|key| (key.clone(), None)).collect()
}

impl Array {
    /// The array was started, and no other controller has gone on: nothing that was kept before is
    /// of this incarnation. Opening the pool has begun it, durably, and this commits nothing.
    ///
    /// # Errors
    /// Those of the device, where an earlier program has counted further than the pool.
    pub fn power_on(&self) -> Result<(), Error> {
        let _turn = self.turn.lock();
        let noted = self.state.read().host_states.noted_incarnation;
        if let Some(noted) = noted {
            self.backing.raise_incarnation(noted.saturating_add(1))?;
        }
        self.state.write().host_states.set_incarnation(self.backing.incarnation().number);
        Ok(())
    }

    /// The incarnation of the pool: that of the last power on.
    pub fn incarnation(&self) -> u64 {
        self.state.read().host_states.incarnation
    }

    /// What is kept, by the volumes it belongs to, with the incarnations that have written it.
    pub fn host_states(&self) -> Vec<(VolumeId, HostState)> {
        let state = self.state.read();
        let stored = state.host_states.volumes.iter();
        let mut all: Vec<_> = stored.map(|(id, stored)| (*id, stored.state.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Stores what is kept of a volume, replacing what was, as this incarnation's; durable when it
    /// returns. Does nothing if the volume no longer exists.
    ///
    /// # Errors
    /// `limit_reached`, and those of the store.
    pub fn keep_host_state(&self, volume: VolumeId, kept: Option<HostState>) -> Result<(), Error> {
        if kept.as_ref().is_some_and(|kept| kept.registrations.len() > REGISTRATIONS_MAX) {
            return Err(Error::Limit { what: "registrations", limit: REGISTRATIONS_MAX });
        }
        let of_pool = self.backing.incarnation();
        let plan = |state: &State| {
            let mut change = Change::default();
            let mut note = None;
            let incarnation = state.host_states.incarnation;
            let stored = kept.map(|kept| {
                let state = HostState { incarnation, ..kept };
                StoredState { keys: keys(volume, &state), state }
            });
            if state.volumes.contains_key(&volume)
                && state.host_states.volumes.get(&volume) != stored.as_ref()
            {
                let new = stored.as_ref();
                let kept = |key: &Vec<u8>| new.is_some_and(|new| new.keys.contains(key));
                let gone = removal(state, volume).into_iter().filter(|(key, _)| !kept(key));
                change.config = gone.collect();
                if let Some(StoredState { state, keys }) = new {
                    let values = state.encode().into_iter().map(Some);
                    change.config.extend(keys.iter().cloned().zip(values));
                }
                note = state.host_states.next_note(of_pool);
                let row = |note: Option<u64>| (INCARNATION.encode(), note.map(encode_incarnation));
                change.config.extend(note.map(row));
            }
            Ok((change, (stored, note)))
        };
        self.change(plan, |state, (stored, note)| {
            if let Some(note) = note {
                state.host_states.noted_incarnation = note;
            }
            match stored {
                Some(stored) if state.volumes.contains_key(&volume) => {
                    state.host_states.load(volume, stored);
                }
                _ => state.host_states.remove(volume),
            }
        })
    }
}
