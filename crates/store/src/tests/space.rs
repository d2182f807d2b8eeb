//! Space accounting, compared with the space that is really freed.

use proptest::prelude::*;

use super::model::{Action, Model, action};
use super::*;
use crate::upkeep::accounting::Limits;
use crate::{Durability, Next, SpaceFigures, SpacePass, StoreError};

const PLENTY: Limits = Limits { nodes: 1 << 20, chunks: 1 << 20 };

/// Returns the figures of a store, computed in rounds of as much as `limits` lets it remember.
fn figures_within(store: &Store, limits: Limits) -> SpaceFigures {
    let pass = store.account_within(7, 1 << 20, limits, &mut || true).unwrap();
    assert_eq!(pass, SpacePass::Complete);
    let status = store.space_status();
    assert!(status.current && !status.pending);
    let figures = status.figures.unwrap();
    assert_eq!(figures.as_of_s, 7);
    SpaceFigures::clone(&figures)
}

fn figures(store: &Store) -> SpaceFigures {
    figures_within(store, PLENTY)
}

fn change(store: &Store, volumes: Vec<VolumeChange>) {
    store.change(Change { volumes, ..Change::default() }).unwrap();
}

fn clone_of(store: &Store, source: VolumeId, snapshot: bool) -> VolumeId {
    let id = store.allocate_volume_id();
    change(store, vec![VolumeChange::Clone { source, id, snapshot }]);
    id
}

fn copy(store: &Store, segment: CopySegment) {
    store.execute(VolumeRequest::Copy { segments: vec![segment] }).unwrap();
}

/// Shares duplicates, and makes the store forget what it has seen.
pub(super) fn optimize_and_forget(store: &Store) {
    store.optimize_with(50);
    while store.optimize_step().unwrap() {}
    store.world.index.clear();
}

fn settled(store: &Store) -> u64 {
    while store.housekeep() {}
    store.pool_status().data_bytes
}

fn reopened(disk: &MemoryDisk) -> Store {
    Store::open(disk.copy(), OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() })
        .unwrap()
}

/// Returns what deleting some volumes frees, in a copy of the pool.
fn freed_by(disk: &MemoryDisk, ids: &[VolumeId]) -> u64 {
    let store = reopened(disk);
    let before = settled(&store);
    change(&store, ids.iter().map(|id| VolumeChange::Destroy { id: *id }).collect());
    before - settled(&store)
}

/// Returns the figures, except those of metadata and their moment.
fn of_data(figures: &SpaceFigures, ids: &[VolumeId]) -> (Vec<crate::VolumeSpace>, [u64; 4]) {
    let SpaceFigures { unique_bytes, snapshots_bytes, shared_bytes, unnamed_bytes, .. } = *figures;
    let volumes = ids.iter().map(|id| *figures.volume(*id).unwrap()).collect();
    (volumes, [unique_bytes, snapshots_bytes, shared_bytes, unnamed_bytes])
}

/// Compares all figures with the truth, and returns them.
fn assert_true(
    store: &Store,
    disk: &MemoryDisk,
    volumes: &[VolumeId],
    snapshots: &[VolumeId],
) -> SpaceFigures {
    let data_bytes = settled(store);
    let figures = figures(store);
    let all = [volumes, snapshots].concat();
    for id in &all {
        let space = figures.volume(*id).unwrap();
        assert_eq!(space.unique_bytes, freed_by(disk, &[*id]), "unique to volume {id}");
        assert!(space.share_bytes >= space.unique_bytes, "{space:?}");
        let status = store.volume_status(*id).unwrap();
        assert_eq!(space.mapped_bytes, status.mapped_bytes);
        assert_eq!((space.size_bytes, space.snapshot), (status.size.0 * 512, status.snapshot));
    }
    let unique = |ids: &[VolumeId]| -> u64 {
        ids.iter().map(|id| figures.volume(*id).unwrap().unique_bytes).sum()
    };
    assert_eq!(figures.unique_bytes, unique(volumes));
    let status = store.pool_status();
    assert_eq!(figures.provisioned_bytes, status.provisioned_bytes);
    assert_eq!(figures.mapped_bytes, status.mapped_bytes);
    assert_eq!(figures.snapshots_bytes, freed_by(disk, snapshots));
    assert!(figures.snapshots_bytes >= unique(snapshots));
    // Nothing else holds data, and all of it is freed.
    assert_eq!(figures.unnamed_bytes, 0);
    assert_eq!(figures.named_bytes(), data_bytes);
    assert_eq!(figures.named_bytes(), freed_by(disk, &all));
    let sum = figures.named_bytes() + figures.system_bytes();
    assert_eq!(sum, figures.live_bytes);
    let shares: u64 = all.iter().map(|id| figures.volume(*id).unwrap().share_bytes).sum();
    assert!(shares.abs_diff(data_bytes) <= all.len() as u64, "{shares} of {data_bytes}");
    // A crash, and figures with hardly any memory: nothing differs.
    let after = figures_within(&reopened(disk), Limits { nodes: 2, chunks: 20 });
    assert_eq!(of_data(&after, &all), of_data(&figures, &all));
    assert_sound(store);
    figures
}

fn run_all(actions: &[Action], durability: Durability) {
    let options = OpenOptions { durability, memory_bytes: 1 << 20, ..OpenOptions::default() };
    let mut model = Model::new(options);
    actions.iter().for_each(|action| model.run(action));
    let volume = model.volumes[0].0;
    model.store.execute(VolumeRequest::Flush { volume }).unwrap();
    let snapshots: Vec<VolumeId> = model.snapshots.iter().map(|(id, _)| *id).collect();
    let volumes = model.volumes.each_ref().map(|(id, _)| *id);
    assert_true(&model.store, &model.disk, &volumes, &snapshots);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn space_figures_match_the_freed_space(actions in proptest::collection::vec(action(), 1..50)) {
        run_all(&actions, Durability::Commit);
    }

    #[test]
    fn figures_match_with_early_completion(actions in proptest::collection::vec(action(), 1..30)) {
        run_all(&actions, Durability::Flush);
    }
}

#[test]
fn each_kind_of_sharing_is_counted() {
    let (disk, store) = pool(1 << 30);
    let (one, other) = (volume(&store, 64 * MIB), volume(&store, 64 * MIB));
    let mib = |count: u64| count << 20;
    // Unshared, shared within itself, and shared with another.
    write(&store, one, 0, &distinct(MIB, 1)).unwrap();
    write(&store, one, MIB, &distinct(MIB, 2)).unwrap();
    copy(&store, segment(one, MIB, one, 2 * MIB, MIB));
    write(&store, other, 8, &distinct(MIB, 2)).unwrap();
    write(&store, other, 4 * MIB, &distinct(2 * MIB, 3)).unwrap();
    let figures = assert_true(&store, &disk, &[one, other], &[]);
    assert_eq!(figures.volume(one).unwrap().unique_bytes, mib(1));
    assert_eq!(figures.volume(other).unwrap().unique_bytes, mib(2));
    assert_eq!((figures.shared_bytes, figures.snapshots_bytes), (mib(1), 0));
    // A leaf that is referenced twice holds each of its chunks once: both reference the chunk
    // equally often.
    assert_eq!(figures.volume(one).unwrap().share_bytes, mib(1) + mib(1) / 2);
    assert_eq!(figures.volume(other).unwrap().share_bytes, mib(2) + mib(1) / 2);
    // What a snapshot holds is shared while its volume has it, and the snapshot's own afterwards.
    let first = clone_of(&store, other, true);
    let figures = assert_true(&store, &disk, &[one, other], &[first]);
    assert_eq!((figures.shared_bytes, figures.snapshots_bytes), (mib(3), 0));
    write(&store, other, 4 * MIB, &distinct(MIB, 4)).unwrap();
    let figures = assert_true(&store, &disk, &[one, other], &[first]);
    assert_eq!((figures.shared_bytes, figures.snapshots_bytes), (mib(2), mib(1)));
    assert_eq!(figures.volume(first).unwrap().unique_bytes, mib(1));
    // With two snapshots neither frees it alone.
    let second = clone_of(&store, first, true);
    let figures = assert_true(&store, &disk, &[one, other], &[first, second]);
    assert_eq!(figures.snapshots_bytes, mib(1));
    assert_eq!(figures.volume(first).unwrap().unique_bytes, 0);
    // And a volume makes it shared again.
    let clone = clone_of(&store, second, false);
    let figures = assert_true(&store, &disk, &[one, other, clone], &[first, second]);
    assert_eq!(figures.snapshots_bytes, 0);
    assert_eq!(figures.unique_bytes, mib(2));
}

/// Shared inner nodes, within a volume and between volumes, are then changed below.
#[test]
fn grafted_inner_nodes_are_examined_once() {
    let (disk, store) = pool(1 << 30);
    let (one, other) = (volume(&store, 2048 * MIB), volume(&store, 1024 * MIB));
    for at in 0..6u64 {
        write(&store, one, at * 40 * MIB, &distinct(64, at + 1)).unwrap();
    }
    copy(&store, segment(one, 0, one, 512 * MIB, 256 * MIB));
    let figures = assert_true(&store, &disk, &[one, other], &[]);
    assert_eq!(figures.volume(one).unwrap().unique_bytes, 6 * 64 * 512);
    copy(&store, segment(one, 0, other, 256 * MIB, 256 * MIB));
    let snapshot = clone_of(&store, other, true);
    write(&store, one, 512 * MIB, &distinct(64, 10)).unwrap();
    write(&store, other, 256 * MIB + 40 * MIB, &distinct(64, 11)).unwrap();
    let figures = assert_true(&store, &disk, &[one, other], &[snapshot]);
    assert_eq!(figures.volume(one).unwrap().unique_bytes, 64 * 512);
    assert_eq!(figures.volume(other).unwrap().unique_bytes, 64 * 512);
    assert_eq!(figures.shared_bytes, 6 * 64 * 512);
}

/// Writes a block to each leaf.
fn touch_leaves(store: &Store, id: VolumeId, leaves: std::ops::Range<u64>, seed: u64) {
    for leaf in leaves {
        write(store, id, leaf * MIB, &distinct(8, seed + leaf)).unwrap();
    }
}

/// Replaces others by a volume whose map has two thousand leaves; each of its checkpoints takes a
/// third of a metadata segment.
fn in_place_of(store: &Store, old: &[VolumeId], seed: u64) -> VolumeId {
    let id = volume(store, 2048 * MIB);
    touch_leaves(store, id, 0..2048, seed);
    change(store, old.iter().map(|id| VolumeChange::Destroy { id: *id }).collect());
    while store.housekeep() {}
    store.checkpoint().unwrap();
    id
}

/// The image is of one point in time, regardless of overwrites during the pass.
#[test]
fn a_pass_counts_one_point_in_time_during_changes() {
    let (_disk, store) = pool(512 << 20);
    let one = in_place_of(&store, &[], 1);
    let other = clone_of(&store, one, false);
    touch_leaves(&store, other, 0..500, 10_000);
    let quiet = figures(&store);
    assert_eq!(quiet.unique_bytes, 2 * 500 * 4096);
    assert_eq!(quiet.shared_bytes, 1548 * 4096);
    let mut last = None;
    let pass = store.account_within(8, 1, PLENTY, &mut || {
        // Everything the image references is dead, and its segments would be reused.
        let first = || in_place_of(&store, &[one, other], 20_000);
        let mut latest = *last.get_or_insert_with(first);
        if latest.0 < 20 {
            latest = in_place_of(&store, &[latest], latest.0 * 100_000);
        }
        last = Some(latest);
        true
    });
    assert_eq!(pass.unwrap(), SpacePass::Complete);
    let status = store.space_status();
    assert!(!status.current);
    let meanwhile = status.figures.unwrap();
    let ids = [one, other];
    assert_eq!(of_data(&meanwhile, &ids), of_data(&quiet, &ids));
    let now = figures(&store);
    assert!(now.volume(one).is_none());
    assert_eq!(now.volume(last.unwrap()).unwrap().unique_bytes, 2048 * 4096);
    assert_sound(&store);
}

/// The space that a pass holds back is given up before hosts are refused.
#[test]
fn a_pass_gives_up_when_hosts_need_its_space() {
    let (_disk, store) = pool(512 << 20);
    let filler = volume(&store, 2048 * MIB);
    let free_count = || store.writer.lock().state.segments.free_count();
    let mut id = in_place_of(&store, &[], 1);
    let mut filled = 0;
    let pass = store.account_within(8, 1 << 20, PLENTY, &mut || {
        if filled == 0 {
            // Everything the image references is dead.
            (0..6).for_each(|_| id = in_place_of(&store, &[id], id.0 * 10_000));
        }
        while free_count() >= 8 {
            write(&store, filler, filled * MIB, &distinct(MIB, filled + 1)).unwrap();
            filled += 1;
        }
        true
    });
    assert_eq!(pass.unwrap(), SpacePass::GaveWay);
    assert!(store.space_status().figures.is_none());
    let held_back = free_count();
    assert!(held_back >= 8, "{held_back} segments are free");
    store.ask_for_space_figures();
    let stopped = store.account_space(9, &mut || {
        assert!(store.space_status().pending && !store.are_space_figures_asked_for());
        false
    });
    assert_eq!(stopped.unwrap(), SpacePass::Stopped);
    figures(&store);
    assert_sound(&store);
}

/// A checkpoint has no holes while a pass reads an earlier one: requests that wait for the
/// checkpoint wait for the pass to give up, and are not refused.
#[test]
fn a_pass_gives_up_when_a_checkpoint_needs_its_space() {
    let (_disk, store) = pool(512 << 20);
    let id = volume(&store, 2048 * MIB);
    for turn in 0..48 {
        let first = turn % 16 * 128;
        touch_leaves(&store, id, first..first + 128, turn * 10_000);
        store.checkpoint().unwrap();
    }
    let mut held = Vec::new();
    let pass = store.account_within(8, 1 << 20, PLENTY, &mut || {
        assert!(held.is_empty(), "the pass continues");
        touch_leaves(&store, id, 0..1, 1 << 20);
        store.checkpoint().unwrap();
        touch_leaves(&store, id, 0..3, 1 << 21);
        held = take_all_free(&store);
        assert!(matches!(store.checkpoint(), Err(StoreError::NoRoom { .. })));
        store.world.memory.dirtied(1 << 40, 0);
        assert_eq!(store.maintain().unwrap(), Next::Soon);
        store.world.memory.drop_dirty(1 << 40);
        true
    });
    assert_eq!(pass.unwrap(), SpacePass::GaveWay);
    store.checkpoint().unwrap();
    for segment in held {
        store.writer.lock().state.segments.free_dead_one(segment);
    }
    assert_sound(&store);
}

/// `check` finds figures that do not add up: more is live than anything references.
#[test]
fn check_verifies_the_sums_of_space() {
    let (_disk, store) = pool(256 << 20);
    let id = volume(&store, 64 * MIB);
    write(&store, id, 0, &distinct(64, 1)).unwrap();
    assert_eq!(store.pool_status().data_bytes, 64 * 512);
    assert_sound(&store);
    // A check compares the sums only in a pool that is otherwise consistent, so the test calls it
    // directly.
    let place = store.world.chunk(format::ChunkId(1)).unwrap().place;
    store.writer.lock().state.segments.add_live(place, 5).unwrap();
    let writer = store.writer.lock();
    let findings = crate::upkeep::accounting::findings(&store.world, &writer.state).unwrap();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[1].starts_with("space adds up to "), "{findings:?}");
}

/// Used and free space add up to the pool only if both copies count.
#[test]
fn metadata_with_two_copies_counts_twice() {
    let [once, twice] = [format::FormatVersion::V2, format::FormatVersion::V3].map(|version| {
        let disk = MemoryDisk::new(1 << 30);
        let of = (version, format::Features::default());
        Store::create_with(&*disk, &[7; 64], 16 << 20, of).unwrap();
        let options = OpenOptions { upgrade: false, ..OpenOptions::default() };
        let store = Store::open(disk.clone(), options).unwrap();
        let id = volume(&store, 64 * MIB);
        (0..64).for_each(|mib| write(&store, id, mib * MIB, &distinct(8, mib)).unwrap());
        let figures = figures(&store);
        assert_sound(&store);
        (figures, store.space_use().0)
    });
    assert!(once.0.metadata_bytes > 32 * 4096, "{:?}", once.0);
    assert_eq!(twice.0.metadata_bytes, 2 * once.0.metadata_bytes);
    assert_eq!(twice.0.named_bytes(), once.0.named_bytes());
    for (figures, _) in [&once, &twice] {
        assert_eq!(figures.live_bytes, figures.named_bytes() + figures.system_bytes());
    }
    assert_eq!(twice.1 - once.1, once.0.metadata_bytes);
}
