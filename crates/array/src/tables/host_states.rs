//! The states of hosts that the target keeps for each volume: registrations, reservations, access
//! states. The array stores them with the volume without interpreting them, and records which
//! *incarnation* of the pool wrote them. The incarnation changes with each power on, but not when
//! another controller takes over. The store counts incarnations, and needs no commit for that.
//!
//! Earlier programs counted starts in a separate key. Its number is a lower bound: their states are
//! of no later incarnation. The key is removed when the next state is stored. A pool of version 2,
//! which such a program may open again, keeps the key, with the current incarnation.
//!
//! Pools of earlier versions have reservations as JSON. These are read, and replaced when the
//! volume's state changes.

use std::collections::HashMap;

use block::VolumeId;
use format::target_state::{decode_incarnation, encode_incarnation};
use format::{HostState, StateKey};
use store::Incarnation;

use crate::error::Error;
use crate::record::{self, ReservationPart, Row};

/// The maximum number of registrations kept for a volume: they must fit one change of the store.
pub const REGISTRATIONS_MAX: usize = format::target_state::REGISTRATIONS_MAX;

/// The stored states of existing volumes.
#[derive(Debug, Default)]
pub(crate) struct HostStates {
    incarnation: u64,
    /// The number in the key of earlier programs, if there is one.
    noted_incarnation: Option<u64>,
    volumes: HashMap<VolumeId, StoredState>,
}

/// The stored state of a volume, and the keys under which it is stored.
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

    /// Returns the incarnation of the pool.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Sets the incarnation of the pool: this one, or the one in the key of earlier programs if
    /// that is later.
    pub(crate) fn set_incarnation(&mut self, number: u64) {
        self.incarnation = number.max(self.noted_incarnation.unwrap_or(0));
    }

    /// Returns the new value of the key of earlier programs in the next change (`Some(None)`:
    /// removed); `None` if it does not change.
    pub(crate) fn next_note(&self, incarnation: Incarnation) -> Option<Option<u64>> {
        let next = (!incarnation.is_stored).then_some(self.incarnation);
        (next != self.noted_incarnation).then_some(next)
    }

    pub(crate) fn load(&mut self, volume: VolumeId, stored: StoredState) {
        self.volumes.insert(volume, stored);
    }

    pub(crate) fn remove(&mut self, volume: VolumeId) {
        self.volumes.remove(&volume);
    }

    /// Returns the target ports that registrations or a RESERVE in force name.
    pub(crate) fn named_ports(&self) -> impl Iterator<Item = u16> {
        let in_force = |stored: &&StoredState| {
            stored.state.aptpl || stored.state.incarnation == self.incarnation
        };
        self.volumes.values().filter(in_force).flat_map(|stored| {
            let registered = stored.state.registrations.iter().map(|who| &who.nexus);
            registered.chain(&stored.state.exclusive).map(|nexus| nexus.target_port)
        })
    }

    /// Returns the number in the key of earlier programs, if there is one.
    pub(crate) fn noted_incarnation(&self) -> Option<u64> {
        self.noted_incarnation
    }

    /// Records a change of the key of earlier programs.
    pub(crate) fn set_note(&mut self, note: Option<u64>) {
        self.noted_incarnation = note;
    }

    /// Returns the states of all volumes that have one, in the order of their ids.
    pub(crate) fn all(&self) -> Vec<(VolumeId, HostState)> {
        let stored = self.volumes.iter();
        let mut all: Vec<_> = stored.map(|(id, stored)| (*id, stored.state.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Returns the rows that remove the stored state of a volume.
    pub(crate) fn removal(&self, volume: VolumeId) -> Vec<Row> {
        let stored = self.volumes.get(&volume);
        stored.into_iter().flat_map(|stored| &stored.keys).map(|key| (key.clone(), None)).collect()
    }

    /// Returns the rows that replace the stored state of a volume; `None` if it does not change.
    pub(crate) fn replacement(
        &self,
        volume: VolumeId,
        new: Option<&StoredState>,
    ) -> Option<Vec<Row>> {
        if self.volumes.get(&volume) == new {
            return None;
        }
        let stays = |key: &Vec<u8>| new.is_some_and(|new| new.keys.contains(key));
        let gone = self.removal(volume).into_iter().filter(|(key, _)| !stays(key));
        let mut rows: Vec<Row> = gone.collect();
        if let Some(StoredState { state, keys }) = new {
            rows.extend(keys.iter().cloned().zip(state.encode().into_iter().map(Some)));
        }
        Some(rows)
    }
}

impl StoredState {
    pub(crate) fn new(volume: VolumeId, state: HostState) -> Self {
        Self { keys: keys(volume, &state), state }
    }

    /// Decodes a state from its parts, in their order; `None` if they are inconsistent.
    pub(crate) fn from_parts(volume: VolumeId, parts: &[Vec<u8>]) -> Option<Self> {
        let state = HostState::decode(parts.iter().map(|part| &part[..])).ok()?;
        Some(Self::new(volume, state))
    }

    /// Converts reservations that earlier versions stored, which survive a loss of power. `None` if
    /// the parts are inconsistent.
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

fn keys(volume: VolumeId, state: &HostState) -> Vec<Vec<u8>> {
    (0..state.part_count()).map(|part| StateKey::Volume { volume, part }.encode()).collect()
}

/// Returns the row of the key of earlier programs.
pub(crate) fn note_row(note: Option<u64>) -> Row {
    (StateKey::Incarnation.encode(), note.map(encode_incarnation))
}
