//! Power failures, reopening the pool, and checking its content.

use std::sync::Arc;

use block::{SectorRange, VolumeId, VolumeReply, VolumeRequest};
use store::{CheckOptions, Store};

use super::kept::Kept;
use super::{History, locked, options, text};
use crate::content::{Tag, tags_of};
use crate::disk::Survival;
use crate::generate::MIB;
use crate::model::{Model, ModelVolume, State};

/// How often a crash may interrupt recovery itself before the power stays on.
const OPEN_CRASHES_MAX: u64 = 3;
/// The writes and flushes of an opening: what the crash has left is flushed, then the superblock of
/// the next epoch is written, and flushed. Reads change nothing, so a crash at one is a crash
/// between two of these.
pub const OPEN_IOS: u64 = 3;

impl History {
    /// Closes the store and opens it again without a crash. What was acknowledged from memory is
    /// flushed first, which is up to the caller that closes it.
    pub(super) fn reopen(&mut self) -> Result<(), String> {
        let store = self.store()?;
        locked(&self.desk).settle(&store)?;
        let volume = locked(&self.desk).model.now.volumes[0].id;
        let flushed = store.execute(VolumeRequest::Flush { volume });
        if self.disk.has_failed() {
            return Ok(());
        }
        flushed.map_err(|error| format!("flushing: {error}"))?;
        self.disk.note("reopen");
        {
            let mut desk = locked(&self.desk);
            desk.time += 1;
            let time = desk.time;
            desk.model.flushed(time);
        }
        drop(store);
        self.store = None;
        self.open()
    }

    /// Makes the power fail now.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        locked(&self.desk).give_up();
        self.store = None;
        self.lose_power();
        self.open()
    }

    /// Kills the process; another one opens the pool, on a device that has lost nothing yet.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        locked(&self.desk).give_up();
        self.store = None;
        self.disk.note("kill");
        self.done.kills += 1;
        self.disk.restart();
        self.open()
    }

    fn lose_power(&mut self) {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        let drawn = ANY[self.survival_rng.below(5) as usize];
        let survival = self.plan.survival.unwrap_or(drawn);
        self.done.crashes += 1;
        self.disk.note(&format!("crash, survival {survival:?}"));
        self.disk.crash(survival, &mut self.survival_rng);
    }

    fn open(&mut self) -> Result<(), String> {
        let mut left = OPEN_CRASHES_MAX;
        loop {
            let by_chance = self.plan.random_crashes && left > 0 && self.survival_rng.chance(20);
            let planned = self.plan.open_fuses.get(self.openings_struck).copied().flatten();
            self.openings_struck += 1;
            if let Some(io) = planned {
                self.disk.set_fuse(Some(self.disk.io_count() + io));
            } else if by_chance {
                left -= 1;
                let io = self.survival_rng.between(1, OPEN_IOS);
                self.disk.set_fuse(Some(self.disk.io_count() + io));
            }
            let options = options(&self.plan, self.openings_struck as u64);
            match self.pursuit.open_store(self.disk.clone(), options) {
                // It did not need its last write, the second superblock.
                Ok(store) if self.disk.is_dead() => {
                    drop(store);
                    self.done.recovery_crashes += 1;
                    self.lose_power();
                }
                Ok(store) => {
                    self.disk.set_fuse(None);
                    return self.recovered(store);
                }
                Err(_) if self.disk.has_failed() => {
                    self.done.recovery_crashes += 1;
                    self.lose_power();
                }
                Err(error) => return Err(format!("recovery: {error}")),
            }
        }
    }

    /// Checks an opened store: it must be consistent, and its content must be possible.
    fn recovered(&mut self, store: Store) -> Result<(), String> {
        let report = store.check(CheckOptions { data: true }).map_err(text)?;
        if let Some(first) = report.findings.first() {
            return Err(format!("check: {first} (and {} more)", report.findings.len() - 1));
        }
        self.check_capacity(&store)?;
        self.check_version(&store)?;
        self.done.checks += 1;
        let mut desk = locked(&self.desk);
        let found = read_state(&store, &desk.model, self.kept)?;
        self.config = self.config.max(found.config);
        desk.model.resolve(found).map_err(|reason| format!("after recovery: {reason}"))?;
        desk.mailbox = Arc::default();
        desk.sink = store.register_sink(desk.mailbox.clone());
        drop(desk);
        self.store = Some(Arc::new(store));
        Ok(())
    }

    /// Checks that the pool has its previous size, or the one that it was growing to when the power
    /// failed.
    fn check_capacity(&mut self, store: &Store) -> Result<(), String> {
        let found = store.pool_status().capacity_bytes;
        let next = self.capacity_bytes_next.take();
        if found != self.capacity_bytes && Some(found) != next {
            let had = self.capacity_bytes;
            return Err(format!(
                "the pool of {had} bytes has {found} (its new size may be {next:?})"
            ));
        }
        self.capacity_bytes = found;
        Ok(())
    }
}

/// Reads the whole content of the pool through the store.
pub(crate) fn read_state(store: &Store, model: &Model, kept: Kept) -> Result<State, String> {
    let mut volumes = Vec::new();
    for slot in 0..model.now.volumes.len() {
        let mut candidates = model.candidates(slot);
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|(id, sectors)| {
            store.volume_status(*id).is_some_and(|status| status.size.0 == *sectors)
        });
        let [(id, sectors)] = candidates[..] else {
            return Err(format!("slot {slot} has {} volumes", candidates.len()));
        };
        volumes.push(ModelVolume { id, tags: read_volume(store, id, sectors)? });
    }
    Ok(State { volumes, live: model.now.live, config: kept.number(store.config())? })
}

/// Reads the whole content of a volume through the store.
pub(super) fn read_volume(
    store: &Store,
    volume: VolumeId,
    sectors: u64,
) -> Result<Vec<Tag>, String> {
    let mut tags = Vec::with_capacity(sectors as usize);
    for start in (0..sectors).step_by(MIB as usize) {
        let range = SectorRange::new(start, MIB.min(sectors - start));
        match store.execute(VolumeRequest::Read { volume, range }) {
            Ok(VolumeReply::Data(data)) => {
                let read = tags_of(&data.to_vec());
                tags.extend(read.map_err(|at| {
                    format!("volume {volume}: sector {} was never written", start + at as u64)
                })?);
            }
            other => return Err(format!("reading volume {volume} at {start}: {other:?}")),
        }
    }
    Ok(tags)
}
