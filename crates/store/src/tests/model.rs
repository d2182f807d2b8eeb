//! Random requests against a naive model, with checkpoints and reopening in between.

use std::collections::BTreeMap;

use block::FrameMut;
use proptest::prelude::*;

use super::reduction::prose;
use super::*;

const SECTORS: u64 = 3 * MIB;

#[derive(Clone, Debug)]
pub(super) enum Action {
    Write {
        volume: usize,
        start: u64,
        count: u64,
        seed: u64,
    },
    Zero {
        volume: usize,
        start: u64,
        count: u64,
    },
    Fill {
        volume: usize,
        start: u64,
        count: u64,
        byte: u8,
        uniform: bool,
    },
    Unmap {
        volume: usize,
        ranges: Vec<(u64, u64)>,
    },
    Copy {
        from: usize,
        start: u64,
        to: usize,
        at: u64,
        count: u64,
    },
    CompareAndWrite {
        volume: usize,
        start: u64,
        count: u64,
        seed: u64,
        right: bool,
    },
    Recreate {
        volume: usize,
    },
    /// Of both volumes, in one change.
    Snapshot,
    /// From a snapshot, in place.
    Restore {
        volume: usize,
        snapshot: usize,
    },
    /// From the other volume.
    Overwrite {
        volume: usize,
    },
    /// A clone of a snapshot replaces the volume.
    Clone {
        volume: usize,
        snapshot: usize,
    },
    /// From a snapshot, or what a write to it would do.
    CopySnapshot {
        snapshot: usize,
        volume: usize,
        start: u64,
        at: u64,
        count: u64,
    },
    DropSnapshot {
        snapshot: usize,
    },
    /// Shares duplicates; then the store forgets what it has seen, so that more follow.
    Optimize,
    Checkpoint,
    Reopen,
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    let start = prop_oneof![
        0..SECTORS,
        (0..SECTORS / 8).prop_map(|block| block * 8),
        (0..3u64).prop_map(|mib| mib * MIB)
    ];
    let count =
        prop_oneof![1..40u64, (1..600u64).prop_map(|b| b * 8), (1..4u64).prop_map(|m| m * MIB)];
    (start, count).prop_map(|(start, count)| (start, count.min(SECTORS - start)))
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let v = 0..2usize;
    prop_oneof![
        4 => (v.clone(), range(), any::<u64>()).prop_map(|(volume, (start, count), seed)| {
            Action::Write { volume, start, count: count.min(300), seed }
        }),
        1 => (v.clone(), range()).prop_map(|(volume, (start, count))| {
            Action::Zero { volume, start, count }
        }),
        2 => (v.clone(), range(), any::<u8>(), any::<bool>()).prop_map(
            |(volume, (start, count), byte, uniform)| {
                Action::Fill { volume, start, count, byte, uniform }
            }
        ),
        2 => (v.clone(), proptest::collection::vec(range(), 1..4)).prop_map(|(volume, ranges)| {
            Action::Unmap { volume, ranges }
        }),
        5 => (v.clone(), range(), v.clone(), range(), any::<bool>()).prop_map(
            |(from, (start, a), to, (at, b), phase)| {
                let at = if phase { at / 8 * 8 + start % 8 } else { at };
                let room = (SECTORS - start).min(SECTORS.saturating_sub(at));
                // Only copies that keep the phase may be long: the others move data.
                let limit = if at % 8 == start % 8 { SECTORS } else { 500 };
                Action::Copy { from, start, to, at, count: a.min(b).min(room).min(limit) }
            }
        ),
        2 => (v.clone(), range(), any::<u64>(), any::<bool>()).prop_map(
            |(volume, (start, count), seed, right)| {
                let count = count.min(100);
                Action::CompareAndWrite { volume, start, count, seed, right }
            }
        ),
        1 => v.clone().prop_map(|volume| Action::Recreate { volume }),
        3 => Just(Action::Snapshot),
        2 => (v.clone(), any::<usize>())
            .prop_map(|(volume, snapshot)| Action::Restore { volume, snapshot }),
        1 => v.clone().prop_map(|volume| Action::Overwrite { volume }),
        1 => (v.clone(), any::<usize>())
            .prop_map(|(volume, snapshot)| Action::Clone { volume, snapshot }),
        2 => (any::<usize>(), v, range(), range(), any::<bool>()).prop_map(
            |(snapshot, volume, (start, a), (at, b), aligned)| {
                let at = if aligned { at / 8 * 8 + start % 8 } else { at };
                let room = (SECTORS - start).min(SECTORS.saturating_sub(at));
                let limit = if at % 8 == start % 8 { SECTORS } else { 500 };
                let count = a.min(b).min(room).min(limit);
                Action::CopySnapshot { snapshot, volume, start, at, count }
            }
        ),
        1 => any::<usize>().prop_map(|snapshot| Action::DropSnapshot { snapshot }),
        1 => Just(Action::Optimize),
        1 => Just(Action::Checkpoint),
        1 => Just(Action::Reopen),
    ]
}

/// Data to write: noise, text that compresses, and blocks out of a few that recur.
fn material(sectors: u64, seed: u64) -> Vec<u8> {
    let mut bytes = distinct(sectors, seed);
    for (index, block) in bytes.chunks_mut(4096).enumerate() {
        let kind = (seed >> 8) as usize + index;
        match kind % 4 {
            0 => {}
            1 => block.copy_from_slice(&distinct(8, seed % 3 + 1)[..block.len()]),
            2 => block.copy_from_slice(&prose(8, seed % 5 + 1)[..block.len()]),
            _ => block.copy_from_slice(&prose(8, seed ^ index as u64)[..block.len()]),
        }
    }
    bytes
}

pub(super) struct Model {
    pub(super) store: Store,
    pub(super) disk: Arc<MemoryDisk>,
    options: OpenOptions,
    pub(super) volumes: [(VolumeId, Vec<u8>); 2],
    pub(super) snapshots: Vec<(VolumeId, Vec<u8>)>,
}

fn bytes(start: u64, count: u64) -> std::ops::Range<usize> {
    start as usize * 512..(start + count) as usize * 512
}

impl Model {
    pub(super) fn new(options: OpenOptions) -> Self {
        let disk = MemoryDisk::new(512 << 20);
        Store::create(&*disk, &[3; 64]).unwrap();
        let store = Self::open(&disk, &options);
        let volumes = [(); 2].map(|()| (volume(&store, SECTORS), vec![0; SECTORS as usize * 512]));
        Self { store, disk, options, volumes, snapshots: Vec::new() }
    }

    fn open(disk: &Arc<MemoryDisk>, options: &OpenOptions) -> Store {
        Store::open(disk.clone(), options.clone()).unwrap()
    }

    pub(super) fn run(&mut self, action: &Action) {
        match *action {
            Action::Write { volume, start, count, seed } => {
                let data = material(count, seed);
                let (id, model) = &mut self.volumes[volume];
                write(&self.store, *id, start, &data).unwrap();
                model[bytes(start, count)].copy_from_slice(&data);
            }
            Action::Zero { volume, start, count } => {
                let (id, model) = &mut self.volumes[volume];
                let range = SectorRange::new(start, count);
                let request = VolumeRequest::Zero { volume: *id, range, fua: false };
                self.store.execute(request).unwrap();
                model[bytes(start, count)].fill(0);
            }
            Action::Fill { volume, start, count, byte, uniform } => {
                let (id, model) = &mut self.volumes[volume];
                let mut pattern = FrameMut::stale();
                for (at, slot) in pattern.iter_mut().enumerate() {
                    *slot = if uniform { byte } else { byte.wrapping_add((at / 7) as u8) };
                }
                let pattern = pattern.freeze();
                let range = SectorRange::new(start, count);
                for at in bytes(start, count) {
                    model[at] = pattern[at % 4096];
                }
                let request = VolumeRequest::Fill { volume: *id, range, pattern, fua: false };
                self.store.execute(request).unwrap();
            }
            Action::Unmap { volume, ref ranges } => {
                let (id, model) = &mut self.volumes[volume];
                ranges.iter().for_each(|&(start, count)| model[bytes(start, count)].fill(0));
                let ranges = ranges.iter().map(|&(s, c)| SectorRange::new(s, c)).collect();
                self.store.execute(VolumeRequest::Unmap { volume: *id, ranges }).unwrap();
            }
            Action::Copy { from, start, to, at, count } => {
                let data = self.volumes[from].1[bytes(start, count)].to_vec();
                let segments =
                    vec![segment(self.volumes[from].0, start, self.volumes[to].0, at, count)];
                self.store.execute(VolumeRequest::Copy { segments }).unwrap();
                self.volumes[to].1[bytes(at, count)].copy_from_slice(&data);
            }
            Action::CompareAndWrite { volume, start, count, seed, right } => {
                self.compare_and_write(volume, start, count, seed, right);
            }
            Action::Recreate { volume: index } => {
                let id = self.volumes[index].0;
                let volumes = vec![VolumeChange::Destroy { id }];
                self.store.change(Change { volumes, ..Change::default() }).unwrap();
                self.volumes[index] =
                    (volume(&self.store, SECTORS), vec![0; SECTORS as usize * 512]);
            }
            Action::Snapshot
            | Action::Restore { .. }
            | Action::Overwrite { .. }
            | Action::Clone { .. }
            | Action::CopySnapshot { .. }
            | Action::DropSnapshot { .. } => self.snapshots(action),
            Action::Optimize => super::space::optimize_and_forget(&self.store),
            Action::Checkpoint => self.store.checkpoint().unwrap(),
            Action::Reopen => {
                let volume = self.volumes[0].0;
                self.store.execute(VolumeRequest::Flush { volume }).unwrap();
                self.store = Self::open(&self.disk, &self.options);
            }
        }
    }

    fn change(&self, volumes: Vec<VolumeChange>) {
        self.store.change(Change { volumes, ..Change::default() }).unwrap();
    }

    fn snapshots(&mut self, action: &Action) {
        let count = self.snapshots.len();
        match *action {
            Action::Snapshot => {
                let made = self.volumes.each_ref().map(|(source, content)| {
                    let id = self.store.allocate_volume_id();
                    let change = VolumeChange::Clone { source: *source, id, snapshot: true };
                    (change, (id, content.clone()))
                });
                self.change(made.iter().map(|(change, _)| *change).collect());
                self.snapshots.extend(made.into_iter().map(|(_, snapshot)| snapshot));
            }
            Action::Overwrite { volume } => {
                let (source, content) = self.volumes[1 - volume].clone();
                let destination = self.volumes[volume].0;
                self.change(vec![VolumeChange::Overwrite { source, destination }]);
                self.volumes[volume].1 = content;
            }
            _ if count == 0 => {}
            Action::Restore { volume, snapshot } => {
                let (source, content) = self.snapshots[snapshot % count].clone();
                let destination = self.volumes[volume].0;
                self.change(vec![VolumeChange::Overwrite { source, destination }]);
                self.volumes[volume].1 = content;
            }
            Action::Clone { volume, snapshot } => {
                let (source, content) = self.snapshots[snapshot % count].clone();
                let (gone, id) = (self.volumes[volume].0, self.store.allocate_volume_id());
                self.change(vec![
                    VolumeChange::Clone { source, id, snapshot: false },
                    VolumeChange::Destroy { id: gone },
                ]);
                self.volumes[volume] = (id, content);
            }
            Action::CopySnapshot { snapshot, volume, start, at, count: sectors } => {
                let (source, content) = &self.snapshots[snapshot % count];
                let (id, model) = &mut self.volumes[volume];
                let segments = vec![segment(*source, start, *id, at, sectors)];
                self.store.execute(VolumeRequest::Copy { segments }).unwrap();
                model[bytes(at, sectors)].copy_from_slice(&content[bytes(start, sectors)]);
                let back = vec![segment(*id, at, *source, start, sectors)];
                let refused = self.store.execute(VolumeRequest::Copy { segments: back });
                assert!(sectors == 0 || refused.unwrap_err() == VolumeError::Snapshot(*source));
            }
            Action::DropSnapshot { snapshot } => {
                let (id, _) = self.snapshots.swap_remove(snapshot % count);
                self.change(vec![VolumeChange::Destroy { id }]);
            }
            _ => unreachable!(),
        }
    }

    fn compare_and_write(&mut self, volume: usize, start: u64, count: u64, seed: u64, right: bool) {
        let (id, model) = &mut self.volumes[volume];
        let mut expected = model[bytes(start, count)].to_vec();
        let wrong_at = (seed % expected.len() as u64) as usize;
        if !right {
            expected[wrong_at] ^= 0x40;
        }
        let data = material(count, seed);
        let range = SectorRange::new(start, count);
        let phase = range.start.offset_in_block_bytes();
        let result = self.store.execute(VolumeRequest::CompareAndWrite {
            volume: *id,
            range,
            expected: DataOut::from_bytes(&expected, phase),
            data: DataOut::from_bytes(&data, phase),
            fua: false,
            sender: None,
        });
        if right {
            result.unwrap();
            model[bytes(start, count)].copy_from_slice(&data);
        } else {
            let miss = VolumeError::Miscompare { offset_bytes: wrong_at };
            assert_eq!(result.unwrap_err(), miss);
        }
    }

    fn assert_same(&self) {
        for (id, model) in self.volumes.iter().chain(&self.snapshots) {
            for start in (0..SECTORS).step_by(MIB as usize) {
                let held = read(&self.store, *id, start, MIB);
                assert!(
                    held == model[bytes(start, MIB)],
                    "volume {id} differs at {start} or later"
                );
            }
        }
        assert_sound(&self.store);
    }
}

pub(super) fn run_all(actions: &[Action], durability: crate::Durability, tuning: crate::Tuning) {
    // In every second case with as little memory as possible.
    let memory_bytes = if actions.len().is_multiple_of(2) { 0 } else { 1 << 20 };
    let options = OpenOptions { durability, memory_bytes, tuning, ..OpenOptions::default() };
    let mut model = Model::new(options);
    for action in actions {
        model.run(action);
    }
    model.assert_same();
    model.run(&Action::Reopen);
    model.assert_same();
    let status = model.store.pool_status();
    let sizes: BTreeMap<VolumeId, u64> = model
        .volumes
        .iter()
        .map(|(id, _)| (*id, model.store.volume_status(*id).unwrap().mapped_bytes))
        .collect();
    assert_eq!(status.mapped_bytes, sizes.values().sum::<u64>());
    assert_eq!(status.provisioned_bytes, 2 * SECTORS * 512);
    assert_eq!(status.snapshot_count, model.snapshots.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_store_behaves_like_a_naive_model(
        actions in proptest::collection::vec(action(), 1..40),
    ) {
        run_all(&actions, crate::Durability::Commit, crate::Tuning::DEFAULT);
    }

    #[test]
    fn the_store_behaves_like_a_naive_model_with_early_acknowledgement(
        actions in proptest::collection::vec(action(), 1..40),
    ) {
        run_all(&actions, crate::Durability::Flush, crate::Tuning::DEFAULT);
    }
}
