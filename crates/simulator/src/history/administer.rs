//! What the administrator does in a history: volumes come and go, are snapshotted together, cloned
//! and restored. Each change is one commit, with a number that goes up, so that after a crash all
//! of it is there or nothing.

use block::{SectorCount, VolumeId};
use store::{Change, Store, StoreError, VolumeChange};

use super::{CONFIG_KEY, History, locked};
use crate::desk::Desk;
use crate::model::{Changing, Effect, ModelVolume};

/// What becomes of volumes, as the store and as the model know it.
#[derive(Default)]
struct Planned {
    volumes: Vec<VolumeChange>,
    effects: Vec<Effect>,
}

/// Makes a snapshot of each volume, in slots behind them.
pub(super) fn first_snapshots(
    store: &Store,
    volumes: &mut Vec<ModelVolume>,
) -> Result<(), StoreError> {
    let mut change = Change::default();
    for source in volumes.clone() {
        let id = store.allocate_volume_id();
        change.volumes.push(VolumeChange::Clone { source: source.id, id, snapshot: true });
        volumes.push(ModelVolume { id, tags: source.tags });
    }
    store.change(change)
}

impl Planned {
    /// Something new takes the place of what is in a slot.
    fn replace(&mut self, desk: &Desk, slot: usize, id: VolumeId, new: VolumeChange, from: usize) {
        let (old, tags) = (desk.model.now.volumes[slot].id, &desk.model.now.volumes[from].tags);
        self.volumes.extend([new, VolumeChange::Destroy { id: old }]);
        self.effects.push(Effect::Replace { slot, id, tags: tags.clone() });
    }
}

impl History {
    /// An administrator's change: a number in the configuration, and something with those volumes
    /// that nobody is busy with.
    pub(super) fn change(&mut self, store: &Store) -> Result<(), String> {
        let desk = self.desk.clone();
        let mut desk = locked(&desk);
        desk.finish_commits(store)?;
        if self.disk.has_failed() {
            return Ok(());
        }
        self.config += 1;
        let number = self.config;
        let mut planned = self.plan_change(store, &desk);
        planned.effects.push(Effect::Config(number));
        let value = Some(number.to_le_bytes().to_vec());
        let config = vec![(CONFIG_KEY.to_vec(), value)];
        let change = Change { volumes: planned.volumes, config };
        self.disk.note(&format!("change {number}: {:?}", change.volumes));
        desk.time += 1;
        let changing = Changing { effects: planned.effects, started: desk.time, by_block: false };
        match store.change(change) {
            Ok(()) => {
                desk.time += 1;
                let time = desk.time;
                desk.model.answered(time, changing, true);
            }
            Err(_) if self.disk.has_failed() => desk.model.unknown(changing),
            Err(error) => return Err(format!("a change: {error}")),
        }
        desk.collect()
    }

    fn plan_change(&mut self, store: &Store, desk: &Desk) -> Planned {
        let live = desk.model.now.live;
        let slot = self.rng.below(live as u64) as usize;
        let other = self.rng.below(2 * live as u64) as usize;
        let now = &desk.model.now.volumes;
        let mut planned = Planned::default();
        match self.rng.weighted(&[3, 2, 4, 2, 3]) {
            1 if !desk.is_busy(slot) => {
                let (id, size) = (store.allocate_volume_id(), desk.size(slot));
                planned.volumes = vec![
                    VolumeChange::Destroy { id: now[slot].id },
                    VolumeChange::Create { id, size: SectorCount(size.0) },
                ];
                let tags = vec![0; size.0 as usize];
                planned.effects.push(Effect::Replace { slot, id, tags });
            }
            // Of all volumes at one moment, in place of those of the last one.
            2 if !(0..2 * live).any(|slot| desk.is_busy(slot)) => {
                for (source, volume) in now.iter().enumerate().take(live) {
                    let id = store.allocate_volume_id();
                    let new = VolumeChange::Clone { source: volume.id, id, snapshot: true };
                    planned.replace(desk, live + source, id, new, source);
                }
            }
            // A clone of a snapshot or of another volume, in place of a volume.
            3 if !desk.is_busy(slot) && !desk.is_busy(other) && slot != other => {
                let id = store.allocate_volume_id();
                let new = VolumeChange::Clone { source: now[other].id, id, snapshot: false };
                planned.replace(desk, slot, id, new, other);
            }
            // A volume becomes what a snapshot is, or another volume, in place.
            4 if !desk.is_busy(slot) && !desk.is_busy(other) && slot != other => {
                let (source, destination) = (now[other].id, now[slot].id);
                planned.volumes.push(VolumeChange::Overwrite { source, destination });
                let tags = now[other].tags.clone();
                planned.effects.push(Effect::Sectors { slot, start: 0, tags });
            }
            _ => {}
        }
        planned
    }
}
