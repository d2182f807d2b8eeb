//! Pools that are nearly full, of data or of metadata: they never stop.

use std::collections::BTreeMap;

use super::*;
use crate::{Next, Outcome, Sink, Started, StoreError, Token};

const POOL_BYTES: u64 = 256 << 20;

/// Answers of writes that were started together.
#[derive(Default)]
struct Answers(Mutex<BTreeMap<u64, Result<VolumeReply, VolumeError>>>);

impl Sink for Answers {
    fn complete(&self, id: u64, outcome: Outcome) {
        match outcome {
            Outcome::Reply(reply) => drop(self.0.lock().insert(id, reply)),
            Outcome::Again(_) => panic!("a write of whole blocks needs nothing read"),
        }
    }

    fn commit_wanted(&self) {}
}

/// Blocks that compress to almost nothing, each identified by a number.
fn stamp(number: u64) -> Vec<u8> {
    let mut block = vec![0; 4096];
    block[..8].copy_from_slice(&number.to_le_bytes());
    block[8] = 1;
    block
}

/// A thin volume with one small block in each MiB: as much metadata as possible for little data.
struct Thin {
    answers: Arc<Answers>,
    sink: crate::SinkId,
    id: VolumeId,
    model: BTreeMap<u64, u64>,
    next: u64,
}

impl Thin {
    fn new(store: &Store, leaves: u64) -> Self {
        let answers = Arc::<Answers>::default();
        let sink = store.register_sink(answers.clone());
        let id = volume(store, leaves * MIB);
        Self { answers, sink, id, model: BTreeMap::new(), next: 1 }
    }

    fn reopened(&mut self, store: &Store) {
        self.sink = store.register_sink(self.answers.clone());
    }

    /// Writes a block in each of several leaves in one commit, as hosts with many writes in flight
    /// do. Calls `upkeep` until all have completed.
    fn write(&mut self, store: &Store, leaves: &[u64], mut upkeep: impl FnMut(&Store)) -> usize {
        let mut pending = BTreeMap::new();
        for leaf in leaves {
            let (number, range) = (self.next, SectorRange::new(leaf * MIB, 8));
            self.next += 1;
            let data = DataOut::from_bytes(&stamp(number), 0);
            let request = VolumeRequest::Write { volume: self.id, range, data, fua: false };
            let token = Token { sink: self.sink, id: number };
            let mut started = store.start(request, token);
            while let Started::Read(mut operation) = started {
                store.perform(&mut operation);
                started = store.resume(operation, token);
            }
            assert!(matches!(started, Started::Queued), "{started:?}");
            pending.insert(number, *leaf);
        }
        let mut refused = 0;
        for round in 0.. {
            store.commit_here();
            upkeep(store);
            for (number, reply) in std::mem::take(&mut *self.answers.0.lock()) {
                let leaf = pending.remove(&number).unwrap();
                match reply {
                    Ok(_) => drop(self.model.insert(leaf, number)),
                    Err(error) => {
                        assert_eq!(error, VolumeError::NoSpace);
                        refused += 1;
                    }
                }
            }
            if pending.is_empty() {
                break;
            }
            assert!(round < 10_000, "{} writes never complete", pending.len());
        }
        refused
    }

    fn assert_holds(&self, store: &Store) {
        for (leaf, number) in &self.model {
            assert!(read(store, self.id, leaf * MIB, 8) == stamp(*number), "leaf {leaf}");
        }
    }
}

/// What a background thread does in one turn.
fn maintain(store: &Store) {
    while store.maintain().unwrap() == Next::AtOnce {}
}

/// Fills `mib` MiB of a volume with data that is neither compressed nor shared.
fn fill(store: &Store, mib: u64) -> VolumeId {
    let id = volume(store, mib.max(1) * MIB);
    for at in 0..mib {
        write(store, id, at * MIB, &distinct(MIB, at + 1)).unwrap();
    }
    id
}

/// Returns each leaf once, in an order far from that of their rows.
fn scattered(leaves: u64) -> Vec<u64> {
    (0..leaves).map(|index| index * 7919 % leaves).collect()
}

fn free_count(store: &Store) -> u32 {
    store.writer.lock().state.segments.free_count()
}

/// Some 50 MiB of metadata, both copies included, all of which changes repeatedly, in a pool of 240
/// MiB.
const LEAVES: u64 = 12_007;
const STUCK_LEAVES: u64 = 18_013;
const COLD_MIB: u64 = 40;

/// The first finding: only memory limited dirty metadata, and a checkpoint of all of it did not fit
/// in the space that hosts had left free.
#[test]
fn scattered_overwrites_never_stop_a_pool_with_room() {
    let (disk, store) = pool(POOL_BYTES);
    let mut store = store;
    let cold = fill(&store, COLD_MIB);
    let mut thin = Thin::new(&store, LEAVES);
    for round in 0..3 {
        for leaves in scattered(LEAVES).chunks(512) {
            let refused = thin.write(&store, leaves, maintain);
            assert_eq!(refused, 0, "round {round}, {} free", free_count(&store));
        }
        // Opening it again finds all acknowledged writes, from the last checkpoint and the log.
        drop(store);
        store = Store::open(disk.copy(), OpenOptions::default()).unwrap();
        assert_sound(&store);
        drop(store);
        store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        thin.reopened(&store);
    }
    thin.assert_holds(&store);
    for at in 0..COLD_MIB {
        assert!(read(&store, cold, at * MIB, MIB) == distinct(MIB, at + 1), "MiB {at}");
    }
    store.checkpoint().unwrap();
    assert_sound(&store);
}

/// A pool as earlier code left it: so much has changed since the last checkpoint that the next one
/// does not fit in the free space. All of these changes are in the log only.
fn stuck_pool() -> (Arc<MemoryDisk>, Thin) {
    let (disk, store) = pool(POOL_BYTES);
    fill(&store, COLD_MIB / 4);
    let mut thin = Thin::new(&store, STUCK_LEAVES);
    for leaves in scattered(STUCK_LEAVES).chunks(512) {
        assert_eq!(thin.write(&store, leaves, maintain), 0);
    }
    while store.maintain().unwrap() != Next::Nothing {}
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    store.writer.lock().next_checkpoint.claims_nothing = true;
    let more = volume(&store, 8 * MIB);
    let mut at = 0;
    for leaves in scattered(STUCK_LEAVES).chunks(512) {
        assert_eq!(thin.write(&store, leaves, |_| ()), 0);
    }
    while free_count(&store) > 4 {
        // Overwrites: most of the old data is dead.
        write(&store, more, at % 8 * MIB, &distinct(MIB, 1000 + at)).unwrap();
        at += 1;
    }
    {
        let mut writer = store.writer.lock();
        writer.next_checkpoint.claims_nothing = false;
        let needed = writer.exact_claim(&store.world).segments;
        let free = writer.state.segments.free_count();
        assert!(needed > free, "a checkpoint takes {needed} segments, and {free} are free");
    }
    (disk, thin)
}

#[test]
fn a_pool_without_space_for_the_next_checkpoint_reopens_and_continues() {
    let (disk, mut thin) = stuck_pool();
    // It can be inspected without writing anything.
    drop(Store::load(disk.clone(), OpenOptions::default()).unwrap());
    for crash_after in [0, 1, 40, 100, 300, 900, 1500] {
        let crashed = disk.copy();
        crashed.fail_after(crash_after);
        let opened = Store::open(crashed.clone(), OpenOptions::default());
        let is_whole = opened.is_ok();
        drop(opened);
        crashed.fail_after(u64::MAX);
        let store = Store::open(crashed, OpenOptions::default()).unwrap();
        assert_sound(&store);
        if is_whole {
            break;
        }
    }
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    thin.assert_holds(&store);
    assert_sound(&store);
    thin.reopened(&store);
    for leaves in scattered(LEAVES).chunks(512) {
        assert_eq!(thin.write(&store, leaves, maintain), 0);
    }
    thin.assert_holds(&store);
    store.checkpoint().unwrap();
    assert_sound(&store);
}

#[test]
fn a_stopped_pool_grows_and_uses_its_new_segments_first() {
    let (disk, thin) = stuck_pool();
    let wrong = Store::open_grown(disk.clone(), OpenOptions::default(), POOL_BYTES);
    assert!(matches!(wrong, Err(StoreError::Size(_))));
    for crash_after in 0.. {
        let crashed = disk.copy();
        crashed.fail_after(crash_after * 97);
        let grown = Store::open_grown(crashed.clone(), OpenOptions::default(), 2 * POOL_BYTES);
        let is_grown = grown.is_ok();
        if let Ok(store) = &grown {
            assert_eq!(store.pool_status().capacity_bytes, 2 * POOL_BYTES - (16 << 20));
            crashed.fail_after(u64::MAX);
            thin.assert_holds(store);
            fill(store, 64);
            assert_sound(store);
        }
        drop(grown);
        crashed.fail_after(u64::MAX);
        let store = Store::open(crashed, OpenOptions::default()).unwrap();
        assert_sound(&store);
        if is_grown {
            break;
        }
    }
}

/// A checkpoint that does not fit has changed nothing, and is tried again when it does.
#[test]
fn a_checkpoint_that_does_not_fit_is_retried() {
    let (_disk, store) = pool(POOL_BYTES);
    let mut thin = Thin::new(&store, 2048);
    for leaves in scattered(2048).chunks(512) {
        assert_eq!(thin.write(&store, leaves, maintain), 0);
    }
    let held = take_all_free(&store);
    let refused = store.checkpoint().unwrap_err();
    assert!(matches!(refused, StoreError::NoRoom { .. }), "{refused}");
    assert!(matches!(store.maintain(), Err(StoreError::NoRoom { .. })));
    assert!(!store.has_failed());
    assert_eq!(thin.write(&store, &[1], |store| drop(store.maintain())), 1, "it is refused");
    thin.assert_holds(&store);
    for segment in held {
        store.writer.lock().state.segments.free_dead_one(segment);
    }
    store.checkpoint().unwrap();
    assert_eq!(thin.write(&store, &[1], maintain), 0);
    thin.assert_holds(&store);
    assert_sound(&store);
}

/// A checkpoint that looked for holes skipped segments to be emptied, but admission counted all
/// holes: no checkpoint found room then, and jobs that waited for one waited forever.
#[test]
fn compaction_gives_its_holes_to_a_checkpoint_that_needs_them() {
    let (_disk, store) = pool(POOL_BYTES);
    let mut thin = Thin::new(&store, 2048);
    for leaves in scattered(2048).chunks(128).cycle().take(64) {
        assert_eq!(thin.write(&store, leaves, maintain), 0);
        store.checkpoint().unwrap();
    }
    assert_eq!(thin.write(&store, &[1, 700, 1400], maintain), 0);
    let held = take_all_free(&store);
    {
        let mut writer = store.writer.lock();
        let rows = writer.state.segments.rows();
        let metadata = rows.filter(|(_, row)| row.state == format::SegmentState::Metadata);
        let metadata = metadata.map(|(segment, _)| segment).collect();
        writer.supply.begin_compaction(metadata);
        let holes_blocks = writer.next_checkpoint.holes_blocks();
        assert!(holes_blocks > 64, "{holes_blocks} holes");
    }
    store.checkpoint().unwrap();
    assert!(store.writer.lock().supply.compacted().is_empty(), "it continues without gain");
    for segment in held {
        store.writer.lock().state.segments.free_dead_one(segment);
    }
    store.checkpoint().unwrap();
    thin.assert_holds(&store);
    assert_sound(&store);
}

fn clone_of(store: &Store, source: VolumeId) -> VolumeId {
    let id = store.allocate_volume_id();
    let clone = VolumeChange::Clone { source, id, snapshot: false };
    store.change(Change { volumes: vec![clone], ..Change::default() }).unwrap();
    id
}

/// The second finding: each UNMAP of a block in a clone makes a leaf, and soon these exceed the
/// free space. UNMAPs are accepted as long as they fit; deleting clones always is.
#[test]
fn trimming_clones_in_a_full_pool_is_refused_and_never_stops_it() {
    let (disk, store) = pool(POOL_BYTES);
    let mut store = store;
    let mut mib = 0;
    let origin = volume(&store, 512 * MIB);
    while write(&store, origin, mib * MIB, &distinct(MIB, mib + 1)).is_ok() {
        mib += 1;
    }
    let clones: Vec<VolumeId> = (0..400).map(|_| clone_of(&store, origin)).collect();
    let mut trimmed = 0;
    'clones: for id in &clones {
        for at in 0..mib {
            let ranges = vec![SectorRange::new(at * MIB + 8, 8)];
            match store.execute(VolumeRequest::Unmap { volume: *id, ranges }) {
                Ok(_) => trimmed += 1,
                Err(error) => {
                    assert_eq!(error, VolumeError::NoSpace);
                    break 'clones;
                }
            }
            if trimmed % 97 == 0 {
                maintain(&store);
            }
        }
    }
    assert!(trimmed > 1000, "{trimmed} leaves were made");
    assert!(!store.has_failed());
    store.checkpoint().unwrap();
    drop(store);
    store = Store::open(disk.copy(), OpenOptions::default()).unwrap();
    assert_sound(&store);
    drop(store);
    store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    for id in clones {
        let change = Change { volumes: vec![VolumeChange::Destroy { id }], ..Change::default() };
        store.change(change).unwrap();
        maintain(&store);
    }
    while store.maintain().unwrap() != Next::Nothing {}
    store.checkpoint().unwrap();
    assert_sound(&store);
    // Blocks that are not shared are always unmapped and written again.
    let ranges = vec![SectorRange::new(0, 2 * MIB)];
    store.execute(VolumeRequest::Unmap { volume: origin, ranges }).unwrap();
    write(&store, origin, 0, &distinct(MIB, 1)).unwrap();
    for at in 2..mib {
        assert!(read(&store, origin, at * MIB, MIB) == distinct(MIB, at + 1), "MiB {at}");
    }
    assert_sound(&store);
}

/// A full pool accepts overwrites: reclaim recovers the blocks that they leave dead.
#[test]
fn overwrites_continue_in_a_full_pool() {
    let (_disk, store) = pool(POOL_BYTES);
    let id = volume(&store, 512 * MIB);
    let mut mib = 0;
    while write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).is_ok() {
        mib += 1;
    }
    let new = write(&store, id, mib * MIB, &distinct(MIB, 50_000));
    assert_eq!(new, Err(VolumeError::NoSpace));
    let mut model = BTreeMap::new();
    // As much as the whole reserve, and more.
    for round in 0..96 * 64 {
        let block = round * 7919 % (mib * 256);
        let result = write(&store, id, block * 8, &distinct(8, 100_000 + round));
        assert_eq!(result, Ok(()), "overwrite {round}, {} free", free_count(&store));
        model.insert(block, 100_000 + round);
    }
    // New data is still refused.
    let new = (0..64).map(|at| write(&store, id, (mib + at) * MIB, &distinct(MIB, 60_000 + at)));
    assert!(new.into_iter().any(|result| result == Err(VolumeError::NoSpace)));
    for (block, seed) in model {
        assert!(read(&store, id, block * 8, 8) == distinct(8, seed), "block {block}");
    }
    assert_sound(&store);
}
