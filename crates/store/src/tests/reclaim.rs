//! Reclaim: a pool that is overwritten repeatedly keeps accepting what it has room for.

use std::collections::BTreeMap;

use format::Entry;

use super::*;
use crate::log::relocation::Relocation;
use crate::writer::job::Job;
use crate::{Durability, Next, Started};

/// Blocks whose bytes look random, identified by a number in each: cheap to make and to check.
pub(super) struct Stamps {
    noise: Vec<u8>,
    next: u64,
}

impl Stamps {
    pub(super) fn new() -> Self {
        Self { noise: distinct(8, 1), next: 1 }
    }

    fn block(&self, stamp: u64) -> Vec<u8> {
        let mut block = self.noise.clone();
        block[..8].copy_from_slice(&stamp.to_le_bytes());
        block
    }

    /// Writes blocks, and records them in `model` unless that was refused.
    pub(super) fn write(
        &mut self,
        store: &Store,
        volume: VolumeId,
        blocks: std::ops::Range<u64>,
        model: &mut BTreeMap<u64, u64>,
    ) -> Result<(), VolumeError> {
        let first = self.next;
        self.next += blocks.end - blocks.start;
        let bytes = (first..self.next).map(|stamp| self.block(stamp)).collect::<Vec<_>>().concat();
        write(store, volume, blocks.start * 8, &bytes)?;
        model.extend(blocks.zip(first..));
        Ok(())
    }

    /// Writes blocks from the volume's first one on, `at_once` with each request.
    pub(super) fn fill(
        &mut self,
        store: &Store,
        volume: VolumeId,
        (blocks, at_once): (u64, u64),
    ) -> BTreeMap<u64, u64> {
        let mut model = BTreeMap::new();
        for first in (0..blocks).step_by(at_once as usize) {
            self.write(store, volume, first..first + at_once, &mut model).unwrap();
        }
        model
    }

    pub(super) fn assert_holds(&self, store: &Store, volume: VolumeId, model: &BTreeMap<u64, u64>) {
        for (block, stamp) in model {
            assert!(read(store, volume, block * 8, 8) == self.block(*stamp), "block {block}");
        }
    }
}

pub(super) fn number(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) % below
}

fn unmap(store: &Store, volume: VolumeId, blocks: std::ops::Range<u64>) {
    let range = SectorRange::new(blocks.start * 8, (blocks.end - blocks.start) * 8);
    store.execute(VolumeRequest::Unmap { volume, ranges: vec![range] }).unwrap();
}

fn settle(store: &Store) {
    while store.maintain().unwrap() != Next::Nothing {}
}

fn small_pool(durability: Durability) -> (Arc<MemoryDisk>, OpenOptions, Store) {
    let disk = MemoryDisk::new(256 << 20);
    Store::create(&*disk, &[5; 64]).unwrap();
    let options = OpenOptions { durability, memory_bytes: 1 << 20, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    (disk, options, store)
}

/// Overwrites random blocks of a volume that takes nine tenths of the pool, without background
/// work: requests that wait for space reclaim it.
fn overwrites(durability: Durability) {
    let (disk, options, store) = small_pool(durability);
    let blocks = (104 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let mut stamps = Stamps::new();
    let mut model = stamps.fill(&store, id, (blocks, 64));
    let mut state = 9;
    while store.pool_status().written.hosts_bytes < 288 << 20 {
        let first = number(&mut state, blocks - 8);
        let count = 1 + number(&mut state, 8);
        stamps.write(&store, id, first..first + count, &mut model).unwrap();
    }
    assert_sound(&store);
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    drop(store);
    let store = Store::open(disk, options).unwrap();
    stamps.assert_holds(&store, id, &model);
    assert_sound(&store);
}

/// Each live block was read separately, one after the other, and then all of them twice, for the
/// records and for the data: reclaim waited for the device most of the time, and hosts for reclaim.
#[test]
fn a_segment_is_read_as_a_whole_to_move_its_live_data() {
    let (disk, _options, store) = small_pool(Durability::Commit);
    let blocks = (24 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let mut stamps = Stamps::new();
    let mut model = stamps.fill(&store, id, (blocks, 512));
    for block in (0..blocks).step_by(2) {
        stamps.write(&store, id, block..block + 1, &mut model).unwrap();
    }
    store.checkpoint().unwrap();
    let (reads, moved_bytes) = (disk.reads(), store.pool_status().written.moved_bytes);
    assert!(store.reclaim_segment().unwrap());
    let reads = disk.reads() - reads;
    let moved_blocks = (store.pool_status().written.moved_bytes - moved_bytes) / 4096;
    // The segment in pieces of 1 MiB, once: the same reads return records and data.
    assert!(moved_blocks > 1500 && reads < 20, "{reads} for {moved_blocks}");
    stamps.assert_holds(&store, id, &model);
    assert_sound(&store);
}

/// All of the next segment was read before anything was moved from it, and hosts that waited for
/// the gain of moves got nothing meanwhile.
#[test]
fn a_segment_is_read_while_the_one_before_it_is_emptied() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[5; 64]).unwrap();
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    let blocks = (600 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let mut stamps = Stamps::new();
    let mut model = stamps.fill(&store, id, (blocks, 256));
    let (mut state, mut reads_of_turns) = (11, Vec::new());
    while store.written().moved_bytes < 128 << 20 {
        for _ in 0..64 {
            let block = number(&mut state, blocks);
            stamps.write(&store, id, block..block + 1, &mut model).unwrap();
        }
        let (reads, checkpoints) = (disk.reads(), store.pool_status().checkpoint_count);
        store.maintain().unwrap();
        if store.pool_status().checkpoint_count == checkpoints {
            reads_of_turns.push(disk.reads() - reads);
        }
    }
    // A segment has 16 pieces of 1 MiB; the first one was read at once.
    reads_of_turns.sort_unstable();
    let last = reads_of_turns.len() - 2;
    assert!(reads_of_turns[last] <= 8, "{:?}", &reads_of_turns[last..]);
    assert_sound(&store);
}

/// While nothing else was worth emptying, each moved batch searched all rows for it again.
#[test]
fn the_next_victim_is_searched_once_per_segment() {
    let (_, _, store) = small_pool(Durability::Commit);
    let blocks = (104 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let (mut stamps, mut model) = (Stamps::new(), BTreeMap::new());
    for first in (0..blocks).step_by(256) {
        stamps.write(&store, id, first..first + 256, &mut model).unwrap();
    }
    // Only one segment has many dead blocks.
    for block in (0..3072).step_by(2) {
        stamps.write(&store, id, block..block + 1, &mut model).unwrap();
    }
    store.checkpoint().unwrap();
    let walks = || store.writer.lock().state.segments.walks.get();
    let (before, mut batches) = (walks(), 0);
    while batches < 4 {
        let moved = store.written().moved_bytes;
        store.maintain().unwrap();
        batches += u32::from(store.written().moved_bytes > moved);
    }
    assert!(walks() <= before + 2, "{} walks for {batches} batches", walks() - before);
}

#[test]
fn overwrites_never_fill_a_pool_with_room() {
    overwrites(Durability::Commit);
}

#[test]
fn overwrites_never_fill_a_pool_with_early_acknowledgement() {
    overwrites(Durability::Flush);
}

#[test]
fn a_full_pool_refuses_writes_until_something_is_deleted() {
    let (_, _, store) = small_pool(Durability::Commit);
    let blocks = (256 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let mut stamps = Stamps::new();
    let mut model = BTreeMap::new();
    let mut state = 3;
    for round in 0..10 {
        let mut first = round * 7 % blocks;
        let refused = loop {
            let next = first + 16;
            // The first round fills the pool; later ones find room only for what was deleted.
            if let Err(error) = stamps.write(&store, id, first..next, &mut model) {
                break error;
            }
            first = next % (blocks - 16);
        };
        assert_eq!(refused, VolumeError::NoSpace);
        let (used, capacity) = store.space_use();
        assert_eq!(used, capacity, "hosts are refused, round {round}");
        assert!(store.pool_status().data_bytes > 100 << 20, "round {round}");
        // Requests that need no space succeed.
        unmap(&store, id, 0..0);
        let gone = number(&mut state, blocks - 2048);
        unmap(&store, id, gone..gone + 2048);
        model.retain(|block, _| !(gone..gone + 2048).contains(block));
    }
    stamps.assert_holds(&store, id, &model);
    assert_sound(&store);
}

#[test]
fn a_pool_survives_writes_of_twenty_times_its_size_and_ends_empty() {
    let (disk, options, store) = small_pool(Durability::Commit);
    let blocks = (48 << 20) / 4096;
    let mut stamps = Stamps::new();
    let mut state = 77;
    let mut volumes: Vec<(VolumeId, BTreeMap<u64, u64>)> =
        (0..2).map(|_| (volume(&store, blocks * 8), BTreeMap::new())).collect();
    let mut snapshots: Vec<(VolumeId, BTreeMap<u64, u64>)> = Vec::new();
    while store.pool_status().written.hosts_bytes < 20 * (256 << 20) {
        let at = number(&mut state, 2) as usize;
        let first = number(&mut state, blocks - 256);
        let count = 1 + number(&mut state, 256);
        let (id, model) = &mut volumes[at];
        match number(&mut state, 200) {
            0 if snapshots.len() < 2 && model.len() < 4000 => {
                let snapshot = store.allocate_volume_id();
                let clone = VolumeChange::Clone { source: *id, id: snapshot, snapshot: true };
                store.change(Change { volumes: vec![clone], ..Change::default() }).unwrap();
                snapshots.push((snapshot, model.clone()));
            }
            1 | 2 if !snapshots.is_empty() => {
                let (snapshot, model) = snapshots.remove(0);
                stamps.assert_holds(&store, snapshot, &model);
                destroy(&store, snapshot);
            }
            3..=20 => {
                let end = blocks.min(first + count * 16);
                unmap(&store, *id, first..end);
                model.retain(|block, _| !(first..end).contains(block));
            }
            _ => stamps.write(&store, *id, first..first + count, model).unwrap(),
        }
    }
    let written = store.pool_status().written;
    assert!(written.amplification().unwrap() < 3.0, "{written:?}");
    for (id, model) in volumes.iter().chain(&snapshots) {
        stamps.assert_holds(&store, *id, model);
    }
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, options).unwrap();
    for (id, model) in volumes.iter().chain(&snapshots) {
        stamps.assert_holds(&store, *id, model);
        destroy(&store, *id);
    }
    settle(&store);
    // To the byte: only the metadata of an empty pool is live.
    assert_eq!(store.pool_status().data_bytes, 0);
    store.checkpoint().unwrap();
    assert_sound(&store);
}

fn destroy(store: &Store, id: VolumeId) {
    let change = Change { volumes: vec![VolumeChange::Destroy { id }], ..Change::default() };
    store.change(change).unwrap();
}

/// The background pass may have joined moved data to a record that is not sealed yet, while reclaim
/// computes what hosts have written: the log's bytes, less those moved.
#[test]
fn moved_data_counts_when_its_record_is_sealed() {
    let (_, _, store) = small_pool(Durability::Commit);
    let frame = block::FrameMut::zeroed().freeze();
    let moved = Entry::Relocate {
        first: format::ChunkId(1),
        payload_units: 0,
        fingerprints: vec![format::Fingerprint::default()],
    };
    let relocation =
        Relocation { entries: vec![moved], frames: vec![frame], ..Relocation::default() };
    let token = store.waiting_token();
    store.writer.lock().submit(&store.world, token, Job::Relocate(relocation));
    assert_eq!(store.pool_status().written.moved_bytes, 0);
    assert!(store.commit_here());
    let written = store.pool_status().written;
    assert_eq!((written.moved_bytes, written.log_bytes), (4096, 8192));
}

/// While space is short a host's write waits for what reclaim gains, bit by bit; a request that
/// needs no space does not.
#[test]
fn hosts_write_as_fast_as_space_is_recovered() {
    let (_, _, store) = small_pool(Durability::Commit);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    {
        let mut writer = store.writer.lock();
        writer.pace.set(1000, 3, 1);
        writer.pace.spend(1 << 20);
    }
    let range = SectorRange::new(0, 8);
    let data = DataOut::from_bytes(&distinct(8, 2), 0);
    let request = VolumeRequest::Write { volume: id, range, data, fua: false };
    assert!(matches!(store.start(request, store.waiting_token()), Started::Queued));
    assert_eq!(store.writer.lock().queues.starved().len(), 1);
    unmap(&store, id, 8..16);
    assert_eq!(store.writer.lock().queues.starved().len(), 1);
    // A twelfth of the work is for hosts where segments have almost run out.
    store.moved(128 << 10);
    assert_eq!(store.writer.lock().queues.starved().len(), 0);
    while store.commit_here() {}
    assert!(read(&store, id, 0, 8) == distinct(8, 2));
    // More was taken than gained: the next one waits, until there is nothing to gain.
    assert!(store.writer.lock().is_paced_out(true));
    settle(&store);
    write(&store, id, 0, &distinct(8, 3)).unwrap();
}

/// A checkpoint frees emptied segments, and gains nothing else: paced hosts that also got their
/// whole share of its bytes wrote until almost nothing was free, and then a checkpoint was written
/// for each of their megabytes.
#[test]
fn hosts_get_half_of_recovered_space_on_moving_and_half_on_freeing() {
    let (_, _, store) = small_pool(Durability::Commit);
    let id = volume(&store, MIB);
    {
        let mut writer = store.writer.lock();
        writer.pace.set(800, 1, 1);
        writer.pace.spend((1 << 20) + (115 << 10));
    }
    let data = DataOut::from_bytes(&distinct(8, 2), 0);
    let range = SectorRange::new(0, 8);
    let request = VolumeRequest::Write { volume: id, range, data, fua: false };
    assert!(matches!(store.start(request, store.waiting_token()), Started::Queued));
    let is_fed = || store.writer.lock().queues.starved().len() == 0;
    store.checkpointed(64 << 10, 64 << 10);
    assert!(!is_fed(), "nothing was recovered yet, and a fifth of this is little");
    // This gains 140 KiB, and 101 KiB and the write are owed.
    store.moved(160 << 10);
    assert!(!is_fed(), "half of it is for the checkpoint");
    store.checkpointed(1 << 10, 4 << 10);
    assert!(!is_fed(), "a quarter of that half");
    store.checkpointed(3 << 10, 3 << 10);
    assert!(is_fed());
    while store.commit_here() {}
    assert!(read(&store, id, 0, 8) == distinct(8, 2));
}

/// There may be 65,536 segments: the accesses of each commit, turn and checkpoint are counted.
#[test]
fn the_segment_table_is_scanned_once_per_emptied_segment_only() {
    let (_, _, store) = small_pool(Durability::Commit);
    let walks = || store.writer.lock().state.segments.walks.get();
    let blocks = (64 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let (mut stamps, mut model) = (Stamps::new(), BTreeMap::new());
    for first in (0..blocks).step_by(64) {
        stamps.write(&store, id, first..first + 64, &mut model).unwrap();
        store.maintain().unwrap();
        store.pool_status();
    }
    store.checkpoint().unwrap();
    assert_eq!(walks(), 0);
    for first in (0..blocks).step_by(4) {
        stamps.write(&store, id, first..first + 1, &mut model).unwrap();
    }
    let (before, moved) = (walks(), store.written().moved_bytes);
    assert!(store.reclaim_segment().unwrap());
    assert!(store.written().moved_bytes > moved + (8 << 20), "a segment is emptied");
    assert!(walks() <= before + 1, "{} walks", walks() - before);
}
