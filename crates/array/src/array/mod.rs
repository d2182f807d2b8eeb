//! The array, and the only way to change its objects.
//!
//! A change is planned on the state, committed, and only then applied in memory: see
//! [`Array::change`]. Changes wait for each other; reads never wait for a commit. The first commit
//! of a user's request contains its entry of the audit log.
//!
//! Only two things are changed before they are durable: alerts, which must not wait for the store,
//! and the time.

mod audit;
mod clock;
mod deed;
pub(crate) mod distinct;
mod releases;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::{SectorCount, VolumeId};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::Change;

use crate::backing::Backing;
use crate::error::Error;
use crate::objects::volumes::TOKEN_VOLUME_SIZE;
use crate::record;
use crate::state::State;
use crate::tables::agenda::Turns;

/// The number of objects of a list that are read while a lock is held.
pub(crate) const LOOKED_AT_ONCE: usize = 250;

/// The objects of an array. Shared by all threads; changes wait for each other, but readers never
/// wait for a commit.
pub struct Array {
    backing: Arc<dyn Backing>,
    state: RwLock<State>,
    /// Held from checking a change until it is applied in memory, so that changes are serialised.
    turn: Mutex<()>,
    /// See [`Array::token_volume`].
    token_volume: VolumeId,
    /// The newest generation in `state`, readable without its lock.
    generation: AtomicU64,
    /// Eradicated volumes that the front end has not fetched yet.
    gone: Mutex<Vec<VolumeId>>,
    /// The state of [`Array::run_due`].
    turns: Mutex<Turns>,
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

/// The numbers of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Volumes that are not destroyed.
    pub volumes: usize,
    /// Snapshots that are not destroyed.
    pub snapshots: usize,
    /// Volumes and snapshots that are destroyed and not eradicated yet.
    pub destroyed: usize,
    /// Hosts.
    pub hosts: usize,
    /// Connections, of hosts and of host groups.
    pub connections: usize,
}

impl Array {
    /// Loads the array from its store. `write_cache` (reported as WCE for every volume): whether
    /// the store acknowledges writes before they are durable.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the stored objects contradict each other, or were written by a newer
    /// version; those of the store if a new pool is prepared.
    pub fn open(backing: Arc<dyn Backing>, write_cache: bool) -> Result<Self, Error> {
        let state = State::load(backing.as_ref(), write_cache)?;
        state.keep_adopted(backing.as_ref())?;
        let token_volume = match state.token_volume() {
            Some(id) => id,
            None => State::make_token_volume(backing.as_ref())?,
        };
        let generation = AtomicU64::new(state.generation());
        let (state, turn, gone) = (RwLock::new(state), Mutex::new(()), Mutex::default());
        let turns = Mutex::default();
        Ok(Self { backing, state, turn, token_volume, generation, gone, turns })
    }

    /// Returns the names of all volumes, including destroyed ones, after the checks of
    /// [`Array::open`]. Nothing is written, not even what [`Array::open`] prepares in a new pool.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the stored objects contradict each other, or were written by a newer
    /// version.
    pub fn volume_names(backing: &dyn Backing) -> Result<BTreeMap<VolumeId, String>, Error> {
        let state = State::load(backing, false)?;
        let names = state.volumes().iter();
        Ok(names.map(|(id, entry)| (*id, entry.record.name.to_string())).collect())
    }

    /// Returns a number that increases with every change that an initiator could notice: a cheap
    /// way to detect whether any [`Array::lun_map`] may have changed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the array's own volume, and its size: it contains the data of ROD tokens. Its
    /// content is meaningless after a power on.
    pub fn token_volume(&self) -> (VolumeId, SectorCount) {
        (self.token_volume, TOKEN_VOLUME_SIZE)
    }

    /// Returns the numbers of objects.
    pub fn counts(&self) -> Counts {
        let state = self.state.read();
        Counts {
            volumes: state.live_volumes().count(),
            snapshots: state.live_volumes().map(|volume| state.live_snapshots(volume)).sum(),
            destroyed: state.doomed().len(),
            hosts: state.hosts().len(),
            connections: state.connection_count(),
        }
    }

    /// Returns the volumes that were eradicated since the last call, so that callers can drop what
    /// they keep for these ids. Ids are never reused.
    pub fn take_gone(&self) -> Vec<VolumeId> {
        std::mem::take(&mut *self.gone.lock())
    }

    /// Records that volumes are eradicated: see [`Array::take_gone`].
    pub(crate) fn add_gone(&self, volumes: Vec<VolumeId>) {
        self.gone.lock().extend(volumes);
    }

    /// Returns the store.
    pub(crate) fn backing(&self) -> &dyn Backing {
        self.backing.as_ref()
    }

    /// Locks all objects for reading.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Locks all objects for a change without a commit: only for what is kept in memory alone, or
    /// is already durable.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Waits for the turn of a change that does not use [`Array::change`].
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Returns whether a change is in progress.
    #[cfg(test)]
    pub(crate) fn is_changing(&self) -> bool {
        self.turn.is_locked()
    }

    /// Locks the state of [`Array::run_due`].
    pub(crate) fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock()
    }

    /// Checks a change, commits it, and applies it in memory: the only way to change anything.
    ///
    /// `plan` reads the state and returns what to commit; `show` applies the same to the state once
    /// it is durable, and can't fail.
    pub(crate) fn change<P, R>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Change, P), Error>,
        show: impl FnOnce(&mut State, P) -> R,
    ) -> Result<R, Error> {
        let _turn = self.turn.lock();
        let (mut change, planned) = plan(&self.state.read())?;
        let (mut entry, mut time, mut is_stored) = (None, None, false);
        let mut released = Vec::new();
        if !change.is_empty() {
            released = releases::account(&self.state.read(), &mut change)?;
            entry = deed::account(&self.state.read().audit, &mut change)?;
            time = self.state.read().time.due_record();
            change.notes.extend(time.map(record::time_row).transpose()?);
            change.config.extend(self.state.read().retired.iter().map(|key| (key.clone(), None)));
            self.backing.change(change)?;
            is_stored = true;
        }
        let mut state = self.state.write();
        if is_stored {
            state.retired = Vec::new();
        }
        if let Some(time) = time {
            state.time.stored(time);
        }
        if let Some(entry) = entry {
            deed::entered(&mut state.audit, entry);
        }
        released.into_iter().for_each(|update| state.releases.set(update));
        let shown = show(&mut state, planned);
        self.generation.store(state.generation(), Ordering::Release);
        Ok(shown)
    }

    /// Makes several changes of one kind in one commit. Each is planned on the state before the
    /// commit, with the number of changes before it, so no two may concern the same object.
    pub(crate) fn change_all<T, P, R>(
        &self,
        all: impl IntoIterator<Item = T>,
        plan: impl Fn(&State, usize, T) -> Result<(Change, P), Error>,
        show: impl Fn(&mut State, P) -> R,
    ) -> Result<Vec<R>, Error> {
        let plan_all = |state: &State| {
            let (mut whole, mut planned) = (Change::default(), Vec::new());
            for (before, one) in all.into_iter().enumerate() {
                let (change, one) = plan(state, before, one)?;
                whole.volumes.extend(change.volumes);
                whole.config.extend(change.config);
                planned.push(one);
            }
            Ok((whole, planned))
        };
        self.change(plan_all, |state, planned: Vec<P>| {
            planned.into_iter().map(|one| show(state, one)).collect()
        })
    }
}
