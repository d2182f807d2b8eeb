//! Administrative changes in a history: volumes are created, destroyed, resized, snapshotted
//! together, cloned and restored, with requests to them in flight. Each change is one commit, with
//! an increasing number, so that after a crash all of it is present or nothing.

use std::sync::Arc;

use block::{SectorCount, VolumeError, VolumeId};
use format::Handling;
use store::{Change, Store, StoreError, VolumeChange};

use super::opening::read_volume;
use super::{History, locked};
use crate::content::Tag;
use crate::desk::Desk;
use crate::model::{Changing, Effect, ModelVolume};

/// A change of volumes, for the store and for the model.
#[derive(Default)]
struct Planned {
    volumes: Vec<VolumeChange>,
    effects: Vec<Effect>,
}

/// Creates a snapshot of each volume, in slots after all existing ones.
pub(super) fn first_snapshots(
    store: &Store,
    volumes: &mut Vec<ModelVolume>,
    live: usize,
) -> Result<(), StoreError> {
    let mut change = Change::default();
    for slot in 0..live {
        let (id, source) = (store.allocate_volume_id(), volumes[slot].clone());
        change.volumes.push(VolumeChange::Clone { source: source.id, id, snapshot: true });
        volumes.push(ModelVolume { id, ..source });
    }
    store.change(change)
}

impl Planned {
    /// Gives a slot the content of another one.
    fn take(&mut self, desk: &Desk, slot: usize, id: VolumeId, from: usize) {
        let tags = desk.model.now.volumes[from].tags.clone();
        self.effects.push(Effect::Replace { slot, id, tags, source: Some(from) });
    }

    /// Replaces the volume in a slot by a clone or a snapshot.
    fn clone_into(&mut self, store: &Store, desk: &Desk, slot: usize, from: usize, snapshot: bool) {
        let now = &desk.model.now.volumes;
        let (id, source) = (store.allocate_volume_id(), now[from].id);
        let new = VolumeChange::Clone { source, id, snapshot };
        self.volumes.extend([new, VolumeChange::Destroy { id: now[slot].id }]);
        self.take(desk, slot, id, from);
    }

    /// Sets the content of a slot, which is taken from nowhere.
    fn set(&mut self, slot: usize, id: VolumeId, tags: Vec<Tag>) {
        self.effects.push(Effect::Replace { slot, id, tags, source: None });
    }

    /// Returns the slots whose volumes change, and those that they are copied from.
    fn slots(&self) -> (Vec<usize>, Vec<usize>) {
        let replaced = self.effects.iter().filter_map(|effect| match effect {
            Effect::Replace { slot, source, .. } => Some((*slot, *source)),
            _ => None,
        });
        let (replaced, sources): (Vec<_>, Vec<_>) = replaced.unzip();
        (replaced, sources.into_iter().flatten().collect())
    }
}

impl History {
    /// Makes an administrative change: a number in the configuration, and something with volumes.
    /// Requests continue meanwhile, except to what it replaces.
    pub(super) fn change(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let desk = self.desk.clone();
        let mut desk = locked(&desk);
        // It takes the writer's role itself, and waits for earlier holders.
        desk.finish_commits(store)?;
        if self.disk.has_failed() {
            return Ok(());
        }
        desk.look_at_torn(store)?;
        if self.disk.has_failed() {
            return Ok(());
        }
        self.config += 1;
        let number = self.config;
        let Planned { volumes, mut effects } = self.plan_change(store, &desk);
        let (replaced, sources) = Planned { volumes: Vec::new(), effects: effects.clone() }.slots();
        self.done.taken_busy += u64::from(sources.iter().any(|slot| desk.is_written(*slot)));
        effects.push(Effect::Config(number));
        // A full pool refuses what may create metadata, as a whole.
        let grows = |volume: &VolumeChange| {
            use VolumeChange::{Clone, Create, Resize};
            matches!(volume, Create { .. } | Clone { .. } | Resize { .. })
        };
        let may_be_refused = self.plan.may_be_full && volumes.iter().any(grows);
        let notes = self.kept.change(store.config(), number);
        let change = Change { volumes, notes, ..Change::default() };
        self.disk.note(&format!("change {number}: {:?}", change.volumes));
        desk.time += 1;
        let started = desk.time;
        desk.begin_change(replaced);
        drop(desk);
        let result = self.act(store, Desk::step_beside, |store| store.change(change))?;
        locked(&self.desk).collect()?;
        let racing = locked(&self.desk).end_change();
        let changing = Changing { effects, started, by_block: false, racing };
        match result {
            Ok(()) => self.changed(store, changing),
            Err(_) if self.disk.has_failed() => {
                locked(&self.desk).model.unknown(changing);
                Ok(())
            }
            Err(StoreError::Volume(VolumeError::NoSpace)) if may_be_refused => {
                self.config -= 1;
                Ok(())
            }
            Err(error) => Err(format!("changing volumes: {error}")),
        }
    }

    /// Handles an acknowledged change: reads what it took of volumes in use, to know its content.
    fn changed(&mut self, store: &Store, mut changing: Changing) -> Result<(), String> {
        self.done.changes += 1;
        let desk = self.desk.clone();
        let mut desk = locked(&desk);
        desk.time += 1;
        let time = desk.time;
        if !changing.racing.is_empty() {
            let mut found = desk.model.now.clone();
            found.config = self.config;
            for effect in &changing.effects {
                let Effect::Replace { slot, id, tags, .. } = effect else { continue };
                let read = read_volume(store, *id, tags.len() as u64);
                if self.disk.has_failed() {
                    desk.model.owed(changing);
                    return Ok(());
                }
                found.volumes[*slot] = ModelVolume { id: *id, tags: read? };
            }
            changing.effects =
                changing.seen(&found).map_err(|reason| format!("changing volumes: {reason}"))?;
            changing.racing = Vec::new();
        }
        desk.model.answered(time, changing, true);
        Ok(())
    }

    fn plan_change(&mut self, store: &Store, desk: &Desk) -> Planned {
        let (live, all) = (desk.model.now.live, desk.model.now.volumes.len());
        let slot = self.rng.below(live as u64) as usize;
        let other = self.rng.below(all as u64) as usize;
        let now = &desk.model.now.volumes;
        let mut planned = Planned::default();
        match self.rng.weighted(&[2, 2, 4, 2, 3, 2, 2]) {
            1 if !desk.is_busy(slot) => {
                let (id, size) = (store.allocate_volume_id(), desk.size(slot));
                planned.volumes = vec![
                    VolumeChange::Destroy { id: now[slot].id },
                    VolumeChange::Create { id, size },
                ];
                planned.set(slot, id, vec![0; size.0 as usize]);
            }
            // Snapshots of all volumes at one point in time, in place of those of a generation.
            2 => {
                let first = live * self.rng.between(1, self.plan.generations as u64) as usize;
                if !(first..first + live).any(|slot| desk.is_busy(slot)) {
                    for source in 0..live {
                        planned.clone_into(store, desk, first + source, source, true);
                    }
                }
            }
            // A clone of a snapshot or of another volume, in place of a volume.
            3 if !desk.is_busy(slot) && slot != other => {
                planned.clone_into(store, desk, slot, other, false);
            }
            // A volume is overwritten with a snapshot or another volume.
            4 if !desk.is_busy(slot) && slot != other => {
                let (source, destination) = (now[other].id, now[slot].id);
                planned.volumes.push(VolumeChange::Overwrite { source, destination });
                planned.take(desk, slot, destination, other);
            }
            5 if !desk.is_busy(slot) => self.plan_resize(desk, slot, &mut planned),
            6 => {
                let (uncompressed, unshared) = (self.rng.chance(50), self.rng.chance(50));
                let handling = Handling { uncompressed, unshared };
                planned.volumes.push(VolumeChange::Handling { id: now[slot].id, handling });
            }
            _ => {}
        }
        planned
    }

    /// Plans a new size in whole blocks: what is beyond it is gone, and new blocks are zeros.
    fn plan_resize(&mut self, desk: &Desk, slot: usize, planned: &mut Planned) {
        let volume = &desk.model.now.volumes[slot];
        let blocks = self.rng.between(1, self.plan.volume_sectors * 5 / 4 / 8);
        let size = SectorCount(blocks * 8);
        planned.volumes.push(VolumeChange::Resize { id: volume.id, size });
        let mut tags = volume.tags.clone();
        tags.resize(size.0 as usize, 0);
        planned.set(slot, volume.id, tags);
    }
}
