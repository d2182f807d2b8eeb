//! Bounded memory: what is evicted, what is read again, and what must not be trusted.

use std::sync::atomic::AtomicBool;

use block::Frame;
use format::{ChunkId, MapEntry};

use super::*;
use crate::Outcome;
use crate::{Durability, Sink, Started, Token};

/// The least memory a store can have: 16 pages of metadata and 16 blocks.
fn tiny(durability: Durability) -> OpenOptions {
    OpenOptions { durability, memory_bytes: 0, ..OpenOptions::default() }
}

/// Runs after a read, before its caller gets the data.
type Hook = Box<dyn FnOnce(&mut [FrameMut]) + Send>;

/// A disk that runs a hook while a read is in progress.
struct HookedDisk {
    below: Arc<MemoryDisk>,
    hook: Mutex<Option<Hook>>,
}

impl sys::Disk for HookedDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.below.read(offset_bytes, frames)?;
        let hook = self.hook.lock().take();
        if let Some(hook) = hook {
            hook(frames);
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.below.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}

struct Hooked {
    disk: Arc<HookedDisk>,
    store: Arc<Store>,
    volume: VolumeId,
}

/// A volume of 4 MiB, written and checkpointed.
fn hooked() -> Hooked {
    let disk = Arc::new(HookedDisk { below: MemoryDisk::new(256 << 20), hook: Mutex::new(None) });
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Arc::new(Store::open(disk.clone(), tiny(Durability::Commit)).unwrap());
    let volume = volume(&store, 4 * MIB);
    write(&store, volume, 0, &distinct(MIB, 1)).unwrap();
    write(&store, volume, MIB, &distinct(MIB, 2)).unwrap();
    store.checkpoint().unwrap();
    Hooked { disk, store, volume }
}

/// Evicts everything that can be evicted.
pub(super) fn evict_all(store: &Store) {
    let world = &store.world;
    loop {
        let before = world.memory_status();
        if let Some(writer) = store.writer.try_lock() {
            world.memory.plans.want();
            writer.turn_plans(world);
        }
        // The clock hand passes twice before a used page is evicted.
        (0..100).for_each(|_| world.memory.make_room(1 << 30));
        if world.memory_status() == before {
            return;
        }
    }
}

fn leaf_of(store: &Store, volume: VolumeId, index: usize) -> format::NodeId {
    let map = store.world.map_of(volume).unwrap();
    let MapEntry::Node(root) = map.root else { panic!("the map is empty") };
    let (node, level) = store.world.nodes.find(&store.world.medium, root).unwrap();
    match node.get(index) {
        MapEntry::Node(id) if level > 1 => id,
        other => panic!("no leaf: {other:?}"),
    }
}

#[test]
fn evicted_metadata_is_read_again() {
    let Hooked { store, volume, .. } = hooked();
    evict_all(&store);
    let status = store.world.memory_status();
    assert_eq!((status.page_count, status.node_count), (0, 0), "{status:?}");
    assert_eq!((status.metadata_bytes, status.dirty_bytes, status.writing_bytes), (0, 0, 0));
    assert_eq!(read(&store, volume, 0, MIB), distinct(MIB, 1));
    assert_eq!(read(&store, volume, MIB, MIB), distinct(MIB, 2));
    let again = store.pool_status().memory;
    assert!(again.misses > status.misses && again.metadata_bytes > 0);
    assert_sound(&store);
}

#[test]
fn changed_metadata_is_not_evicted_before_it_is_written() {
    let Hooked { disk, store, volume } = hooked();
    write(&store, volume, 8, &distinct(8, 3)).unwrap();
    evict_all(&store);
    let status = store.world.memory_status();
    assert!(status.dirty_bytes > 0 && status.metadata_bytes >= status.dirty_bytes, "{status:?}");
    // While the checkpoint reads an evicted directory, what it has captured stays in memory.
    let inside = store.clone();
    *disk.hook.lock() = Some(Box::new(move |_| evict_all(&inside)));
    store.checkpoint().unwrap();
    assert!(disk.hook.lock().is_none(), "the checkpoint has read nothing");
    evict_all(&store);
    assert_eq!(store.world.memory_status().metadata_bytes, 0);
    let mut expected = distinct(MIB, 1);
    expected[8 * 512..16 * 512].copy_from_slice(&distinct(8, 3));
    assert_eq!(read(&store, volume, 0, MIB), expected);
    assert_sound(&store);
}

/// While a reader reads a page of the chunk table, the writer loads and changes it, a checkpoint
/// writes it, and it is evicted: the reader then has an old version.
#[test]
fn an_old_version_of_a_page_is_not_taken_for_the_newest() {
    let Hooked { disk, store, volume } = hooked();
    let MapEntry::Chunk(id) = first_entry(&store, volume) else { panic!("no data") };
    let known = store.world.chunk(id).unwrap();
    // So that the directories are in memory, and the page is the next read.
    evict_row_page(&store, id);
    let inside = store.clone();
    *disk.hook.lock() = Some(Box::new(move |_| {
        reference_and_evict(&inside, id);
    }));
    let row = store.world.chunk(id).unwrap();
    assert!(disk.hook.lock().is_none(), "nothing was read");
    assert_eq!(row.reference_count, known.reference_count + 1);
    assert_eq!(store.world.chunk(id).unwrap(), row);
}

/// The same, and the old version's segment already holds something else.
#[test]
fn new_content_at_an_old_versions_location_is_not_damage() {
    let Hooked { disk, store, volume } = hooked();
    let MapEntry::Chunk(id) = first_entry(&store, volume) else { panic!("no data") };
    let known = store.world.chunk(id).unwrap();
    evict_row_page(&store, id);
    let inside = store.clone();
    *disk.hook.lock() = Some(Box::new(move |frames| {
        reference_and_evict(&inside, id);
        frames[0].fill(0xa5);
    }));
    let row = store.world.chunk(id).unwrap();
    assert_eq!(row.reference_count, known.reference_count + 1);
    // If nothing has replaced it this is damage, and it stays out of memory.
    evict_row_page(&store, id);
    let second = disk.clone();
    *disk.hook.lock() = Some(Box::new(move |frames| {
        frames[0].fill(0xa5);
        *second.hook.lock() = Some(Box::new(|frames| frames[0].fill(0xa5)));
    }));
    assert!(store.world.chunk(id).is_err());
    assert_eq!(store.world.chunk(id).unwrap(), row);
}

/// The same for nodes: a leaf is changed while a reader reads it.
#[test]
fn an_old_version_of_a_node_is_not_taken_for_the_newest() {
    for garbage in [false, true] {
        let Hooked { disk, store, volume } = hooked();
        let id = leaf_of(&store, volume, 0);
        let world = &store.world;
        evict_all(&store);
        // Its row is in memory, the node is not.
        let row = world.nodes.row(&world.medium, id).unwrap();
        let inside = store.clone();
        *disk.hook.lock() = Some(Box::new(move |frames| {
            write(&inside, volume, 0, &distinct(8, 9)).unwrap();
            inside.checkpoint().unwrap();
            evict_all(&inside);
            if garbage {
                frames[0].fill(0xa5);
            }
        }));
        let (node, _) = world.nodes.find(&world.medium, id).unwrap();
        assert!(disk.hook.lock().is_none(), "nothing was read");
        assert_ne!(world.nodes.row(&world.medium, id).unwrap().place, row.place);
        assert_eq!(node.get(0), first_entry(&store, volume));
        let mut expected = distinct(MIB, 1);
        expected[..8 * 512].copy_from_slice(&distinct(8, 9));
        assert!(read(&store, volume, 0, MIB) == expected);
        assert_sound(&store);
    }
}

fn first_entry(store: &Store, volume: VolumeId) -> MapEntry {
    let map = store.world.map_of(volume).unwrap();
    crate::map::walk::entry_of((&store.world).into(), &map, 0).unwrap()
}

/// Evicts the page of a chunk's row, and loads the directories above it.
fn evict_row_page(store: &Store, id: ChunkId) {
    let world = &store.world;
    evict_all(store);
    // A row that never existed, below the same directory.
    assert!(world.chunk(ChunkId(id.0 + 128 * 200)).is_err());
}

/// Changes a row, writes a checkpoint, and evicts everything.
fn reference_and_evict(store: &Store, id: ChunkId) {
    store.world.reference_chunks(std::iter::once(id)).unwrap();
    store.checkpoint().unwrap();
    evict_all(store);
}

#[derive(Default)]
struct Answered(Mutex<Vec<(u64, Outcome)>>);

impl Sink for Answered {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.0.lock().push((id, outcome));
    }

    fn commit_wanted(&self) {}
}

/// If all of the budget is dirty, a job waits for the checkpoint, and completes after it.
#[test]
fn a_write_waits_for_the_checkpoint_when_memory_is_full() {
    for durability in [Durability::Commit, Durability::Flush] {
        let disk = MemoryDisk::new(256 << 20);
        Store::create(&*disk, &[7; 64]).unwrap();
        let store = Store::open(disk, tiny(durability)).unwrap();
        let volume = volume(&store, 64 * MIB);
        let answered = Arc::<Answered>::default();
        let sink = store.register_sink(answered.clone());
        let start = |id: u64| {
            // A leaf of its own each.
            let range = SectorRange::new(id * MIB, 8);
            let data = DataOut::from_bytes(&distinct(8, id + 1), 0);
            let request = VolumeRequest::Write { volume, range, data, fua: false };
            store.start(request, Token { sink, id })
        };
        let work = || while store.commit_here() {};
        let mut done = 0;
        while !store.world.memory.is_full() {
            if matches!(start(done), Started::Done(Ok(_))) {
                answered.complete(done, Outcome::Reply(Ok(VolumeReply::Done)));
            }
            work();
            done += 1;
            assert!(done < 64, "memory is never full");
        }
        assert_eq!(answered.0.lock().len() as u64, done);
        assert!(matches!(start(done), Started::Queued));
        work();
        assert_eq!(answered.0.lock().len() as u64, done, "it did not wait");
        assert!(store.checkpoint_due() && store.maintenance_due());
        store.checkpoint().unwrap();
        work();
        assert_eq!(answered.0.lock().len() as u64, done + 1, "it waits forever");
        assert!(!store.world.memory.is_full());
        for id in 0..=done {
            assert_eq!(read(&store, volume, id * MIB, 8), distinct(8, id + 1));
        }
        assert_sound(&store);
    }
}

/// Blocking callers write the checkpoint themselves: no other thread does here.
#[test]
fn a_store_without_a_background_thread_stays_within_its_memory() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { memory_bytes: 1 << 19, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let volume = volume(&store, 512 * MIB);
    let mut most = 0;
    let block_of = |index: u64| index * 7919 % (128 * 256);
    for index in 0..6_000 {
        write(&store, volume, block_of(index) * 8, &distinct(8, index + 1)).unwrap();
        most = most.max(store.pool_status().memory.metadata_bytes);
    }
    let memory = store.pool_status().memory;
    assert!(memory.evictions > 100 && store.pool_status().checkpoint_count > 1, "{memory:?}");
    // What the last write before the checkpoint added.
    let slack = 16 * 4096;
    assert!(most <= memory.metadata_limit_bytes + slack, "{most} bytes; {memory:?}");
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, options).unwrap();
    for index in 0..6_000 {
        assert!(read(&store, volume, block_of(index) * 8, 8) == distinct(8, index + 1));
    }
}

/// Threads write, check what they read, and write checkpoints, in the least possible memory.
#[test]
fn threads_agree_on_the_content_during_constant_eviction() {
    const BLOCKS: u64 = 32 * 256;
    let disk = Arc::new(YieldingDisk(MemoryDisk::new(512 << 20)));
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk, tiny(Durability::Commit)).unwrap();
    let id = volume(&store, BLOCKS * 8);
    // Each block of a stripe belongs to one writer, and holds a number that only increases.
    let written: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let number_in = |block: u64| {
        let bytes = read(&store, id, block * 8, 8);
        let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert!(number == 0 || bytes[8..16] == block.to_le_bytes(), "block {block} differs");
        number
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let (store, written) = (&store, &written);
                scope.spawn(move || {
                    let mut random = writer + 1;
                    for number in 1..800u64 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let block = (random >> 33) % (BLOCKS / 2) * 2 + writer;
                        let mut bytes = distinct(8, random);
                        bytes[..8].copy_from_slice(&number.to_le_bytes());
                        bytes[8..16].copy_from_slice(&block.to_le_bytes());
                        write(store, id, block * 8, &bytes).unwrap();
                        written[block as usize].store(number, Ordering::Release);
                    }
                })
            })
            .collect();
        for reader in 0..2u64 {
            let (written, stop) = (&written, &stop);
            scope.spawn(move || {
                let mut random = reader + 77;
                while !stop.load(Ordering::Relaxed) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let block = (random >> 33) % BLOCKS;
                    let before = written[block as usize].load(Ordering::Acquire);
                    let number = number_in(block);
                    assert!(number >= before, "block {block}: {number} after {before}");
                }
            });
        }
        let (background, stop) = (&store, &stop);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                background.checkpoint().unwrap();
                background.maintain().unwrap();
            }
        });
        let failed = writers.into_iter().any(|writer| writer.join().is_err());
        stop.store(true, Ordering::Relaxed);
        assert!(!failed);
    });
    for block in 0..BLOCKS {
        assert_eq!(number_in(block), written[block as usize].load(Ordering::Relaxed));
    }
    let status = store.pool_status();
    assert!(status.memory.evictions > 200, "{status:?}");
    assert_sound(&store);
}

/// A disk that yields to other threads before and after each read.
struct YieldingDisk(Arc<MemoryDisk>);

impl sys::Disk for YieldingDisk {
    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        std::thread::yield_now();
        let result = self.0.read(offset_bytes, frames);
        std::thread::yield_now();
        result
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.0.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.0.flush_failures()
    }
}
