//! Changes by an administrator: whole volumes, and the key-value space of the layer above.
//!
//! A [`Change`] is one record. So snapshots that are taken together are of one point in time: what
//! joined the log before that record is in all of them, and what comes later is in none.

use std::collections::BTreeSet;

use block::{BLOCK_BYTES, SectorCount, VolumeError, VolumeId};
use format::Entry;
use format::target_state::TARGET_STATE_KEY;

use crate::edits::grafts::touched_by;
use crate::edits::preload;
use crate::sync::yield_now;
use crate::upkeep::Store;
use crate::world::World;
use crate::world::view::View;
use crate::writer::job::{Job, Submitted};
use crate::{Change, StoreError, Token, VolumeChange};

/// The maximum bytes of entries of one administrative change.
pub(crate) const CHANGE_BYTES_MAX: usize = 256 << 10;

impl Store {
    /// Makes a change; durable when it returns. Blocks.
    pub fn change(&self, change: Change) -> Result<(), StoreError> {
        let (entries, grows) = self.entries_of(change)?;
        if entries.is_empty() {
            return Ok(());
        }
        self.commit(entries, grows)
    }

    /// Commits entries that need no check; durable when it returns. Blocks.
    pub(crate) fn commit_entries(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        self.commit(entries, false)
    }

    fn commit(&self, entries: Vec<Entry>, grows: bool) -> Result<(), StoreError> {
        let token = self.waiting_token();
        let submitted = self.submit_change(token, entries, grows)?;
        self.conclude(submitted, token)?;
        Ok(())
    }

    /// Submits entries once nothing is in flight because of which they could touch metadata that
    /// was not read.
    fn submit_change(
        &self,
        token: Token,
        entries: Vec<Entry>,
        grows: bool,
    ) -> Result<Submitted, StoreError> {
        let touched = touched_by(&entries, self.world.medium.tuning.fanout);
        loop {
            let seen = self.world.grafts();
            let plan = self.world.memory.plans.hold();
            let view = View::from(&self.world).planning(plan.number);
            let looked = preload::entries(view, &entries);
            let mut writer = self.writer.lock();
            if looked.is_err() {
                // As for a host's edit (`submit_edit`).
                preload::entries(view, &entries).map_err(StoreError::Volume)?;
            }
            let unsettled = writer.awaits_grafts(&self.world, &touched)
                || writer.was_grafted(&self.world, &touched, seen);
            if !unsettled || writer.has_failed() {
                let job = Job::Entries { entries, grows, wait: None, plan };
                return Ok(writer.submit(&self.world, token, job));
            }
            drop(writer);
            if !self.commit_here() && !self.world.medium.disk.give_way() {
                // Another thread has the writer's role, but not for long.
                yield_now();
            }
        }
    }

    /// Checks a change, and converts it to entries; also returns whether it adds configuration.
    /// Changes come from one administrator at a time (the layer above makes sure of that), so what
    /// was checked here still holds when they are applied.
    fn entries_of(&self, change: Change) -> Result<(Vec<Entry>, bool), StoreError> {
        let writer = self.writer.lock();
        let (next_volume, grows) =
            (writer.state.next_volume, writer.adds_to_config(&change.config));
        drop(writer);
        let mut planner = Planner {
            world: &self.world,
            next_volume,
            named: BTreeSet::new(),
            created: BTreeSet::new(),
        };
        let mut entries = Vec::with_capacity(change.volumes.len() + change.config.len());
        for volume in change.volumes {
            entries.push(planner.entry(volume)?);
        }
        for (key, value) in change.config.into_iter().chain(change.notes) {
            let too_long = value
                .as_ref()
                .is_some_and(|value| value.len() > format::entry::CONFIG_VALUE_BYTES_MAX);
            if key.is_empty() || key.len() > 255 || too_long {
                return Err(invalid("a key has 1 to 255 bytes, and a value up to 64 KiB"));
            }
            entries.push(match key[0] {
                TARGET_STATE_KEY => Entry::TargetState { key, value },
                _ => Entry::Config { key, value },
            });
        }
        if entries.iter().map(Entry::encoded_bytes).sum::<usize>() > CHANGE_BYTES_MAX {
            return Err(invalid("the change is too long for one commit"));
        }
        Ok((entries, grows))
    }

    /// Returns an unused volume id (durable once it was used in a change).
    pub fn allocate_volume_id(&self) -> VolumeId {
        // Its row is read before the lock is taken.
        let next = self.writer.lock().state.next_volume;
        let _ = self.world.volume_table.get(&self.world.medium, next, |_| ());
        let mut writer = self.writer.lock();
        let next = &mut writer.state.next_volume;
        // A row in an unreadable page could not be created: the remaining ids in it are skipped. If
        // none is found, the change reports it.
        let mut free = *next;
        if self.world.volume_table.find_rows(&self.world.medium, &mut free, 1) {
            *next = free;
        }
        let id = VolumeId(*next);
        *next += 1;
        id
    }
}

fn invalid(text: impl Into<String>) -> StoreError {
    StoreError::Invalid(text.into())
}

fn size_blocks(size: SectorCount) -> Result<u64, StoreError> {
    let bytes = size.bytes().unwrap_or(u64::MAX);
    let valid = bytes > 0
        && bytes <= block::request::limits::VOLUME_BYTES_MAX
        && bytes.is_multiple_of(BLOCK_BYTES);
    valid
        .then_some(bytes / BLOCK_BYTES)
        .ok_or_else(|| invalid("a volume's size is a multiple of 4 KiB, up to 64 TiB"))
}

/// Checks the parts of one change against the world, and against each other.
struct Planner<'a> {
    world: &'a World,
    next_volume: u64,
    /// The volumes that earlier parts create, destroy, resize or overwrite: their state for later
    /// parts is not known yet.
    named: BTreeSet<VolumeId>,
    /// Those of them that are new and empty: their handling can be set at once.
    created: BTreeSet<VolumeId>,
}

impl Planner<'_> {
    fn entry(&mut self, change: VolumeChange) -> Result<Entry, StoreError> {
        match change {
            VolumeChange::Create { id, size } => {
                self.make(id)?;
                self.created.insert(id);
                Ok(Entry::VolumeCreate { volume: id, size_blocks: size_blocks(size)? })
            }
            VolumeChange::Clone { source, id, snapshot } => {
                self.known(source)?;
                self.make(id)?;
                Ok(Entry::VolumeClone { source, volume: id, snapshot })
            }
            VolumeChange::Resize { id, size } => {
                self.change(id)?;
                Ok(Entry::VolumeResize { volume: id, size_blocks: size_blocks(size)? })
            }
            VolumeChange::Overwrite { source, destination } => {
                self.known(source)?;
                self.change(destination)?;
                if source == destination {
                    return Err(invalid(format!("volume {source} can't overwrite itself")));
                }
                Ok(Entry::VolumeOverwrite { source, volume: destination })
            }
            VolumeChange::Handling { id, handling } => {
                if !self.created.contains(&id) && self.known(id)? {
                    return Err(VolumeError::Snapshot(id).into());
                }
                Ok(Entry::VolumeHandling { volume: id, handling })
            }
            VolumeChange::Destroy { id } => {
                self.known(id)?;
                self.named.insert(id);
                Ok(Entry::VolumeDestroy { volume: id })
            }
        }
    }

    /// Checks that a volume exists, and that no other part of the change touches it. Returns
    /// whether it is a snapshot.
    fn known(&self, id: VolumeId) -> Result<bool, StoreError> {
        if self.named.contains(&id) {
            return Err(invalid(format!("volume {id} is changed twice in one change")));
        }
        let row = self.world.map_of(id).ok_or_else(|| self.world.missing(id))?;
        Ok(row.snapshot)
    }

    fn change(&mut self, id: VolumeId) -> Result<(), StoreError> {
        if self.known(id)? {
            return Err(VolumeError::Snapshot(id).into());
        }
        self.named.insert(id);
        Ok(())
    }

    fn make(&mut self, id: VolumeId) -> Result<(), StoreError> {
        let is_given = id.0 > 0 && id.0 < self.next_volume;
        if !is_given || self.world.volume(id).is_some() || !self.named.insert(id) {
            return Err(invalid(format!("volume id {id} was not allocated for a new volume")));
        }
        Ok(())
    }
}
