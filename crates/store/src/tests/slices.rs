//! A checkpoint that is captured in slices, and what happens between them.

use block::Frame;

use super::memory::evict_all;
use super::*;
use crate::{Durability, Tuning};

/// What other threads do when a capture yields; the turns are counted from 0.
type Hook = Box<dyn FnMut(u64) + Send>;

/// A disk whose callers yield to a hook.
struct GivingDisk {
    below: Arc<MemoryDisk>,
    hook: Mutex<Option<Hook>>,
    /// Runs before the next write, once.
    before_write: Mutex<Option<Hook>>,
    turns: std::sync::atomic::AtomicU64,
}

impl sys::Disk for GivingDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.below.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let before = self.before_write.lock().take();
        if let Some(mut before) = before {
            before(0);
        }
        self.below.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }

    fn give_way(&self) -> bool {
        let turn = self.turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let hook = self.hook.lock().take();
        if let Some(mut hook) = hook {
            hook(turn);
            *self.hook.lock() = Some(hook);
        }
        false
    }
}

/// Leaves of the volume's map, of 1 MiB each.
const LEAVES: u64 = 300;
/// Nodes and pages in a slice.
const SLICE_LEN: usize = 8;

struct Bench {
    disk: Arc<GivingDisk>,
    store: Arc<Store>,
    volume: VolumeId,
}

impl Bench {
    /// A pool in which a block of each leaf has changed since the last checkpoint.
    fn new(durability: Durability) -> Self {
        let (below, hook, turns) = (MemoryDisk::new(1 << 30), Mutex::default(), Default::default());
        let before_write = Mutex::default();
        let disk = Arc::new(GivingDisk { below, hook, before_write, turns });
        Store::create(&*disk, &[7; 64]).unwrap();
        let tuning = Tuning { slice_len: SLICE_LEN, ..Tuning::DEFAULT };
        let options = OpenOptions { durability, tuning, ..OpenOptions::default() };
        let store = Arc::new(Store::open(disk.clone(), options).unwrap());
        let volume = volume(&store, LEAVES * MIB);
        store.checkpoint().unwrap();
        for leaf in 0..LEAVES {
            write(&store, volume, leaf * MIB, &distinct(8, leaf)).unwrap();
        }
        Self { disk, store, volume }
    }

    fn turns(&self) -> u64 {
        self.disk.turns.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Runs this whenever a capture yields.
    fn beside(&self, mut act: impl FnMut(&Store, VolumeId, u64) + Send + 'static) {
        let (store, volume) = (Arc::downgrade(&self.store), self.volume);
        *self.disk.hook.lock() = Some(Box::new(move |turn| {
            if let Some(store) = store.upgrade() {
                act(&store, volume, turn);
            }
        }));
    }

    /// Asserts the content of all leaves, in this pool and in one that is opened after a crash.
    fn holds(&self, of: impl Fn(u64) -> Vec<u8>) {
        let reopened = Store::open(self.disk.below.copy(), OpenOptions::default()).unwrap();
        evict_all(&self.store);
        for store in [&*self.store, &reopened] {
            for leaf in 0..LEAVES {
                assert!(read(store, self.volume, leaf * MIB, 8) == of(leaf), "leaf {leaf}");
            }
            assert_sound(store);
        }
    }
}

/// A writer during the capture of a checkpoint waits for one slice at most, and its change,
/// captured already or not, is in the checkpoint or after it.
#[test]
fn writing_continues_between_the_slices_of_a_capture() {
    for durability in [Durability::Commit, Durability::Flush] {
        let bench = Bench::new(durability);
        bench.beside(|store, volume, turn| {
            // One that was captured, mostly, and one that was not.
            for leaf in [turn % LEAVES, LEAVES - 1 - turn % LEAVES] {
                write(store, volume, leaf * MIB, &distinct(8, 1000 + leaf)).unwrap();
            }
            evict_all(store);
        });
        bench.store.checkpoint().unwrap();
        let turns = bench.turns();
        assert!(turns >= LEAVES / SLICE_LEN as u64, "{turns} turns");
        *bench.disk.hook.lock() = None;
        let touched = |leaf| leaf < turns || leaf >= LEAVES - turns;
        let of = |leaf| distinct(8, if touched(leaf) { 1000 + leaf } else { leaf });
        bench.store.execute(VolumeRequest::Flush { volume: bench.volume }).unwrap();
        bench.holds(of);
        bench.store.checkpoint().unwrap();
        bench.holds(of);
    }
}

/// What was captured stays in memory until it is written: nothing is at its locations yet.
#[test]
fn captured_slices_stay_readable_until_they_are_written() {
    let bench = Bench::new(Durability::Commit);
    let (store, volume) = (Arc::downgrade(&bench.store), bench.volume);
    *bench.disk.before_write.lock() = Some(Box::new(move |_| {
        let Some(store) = store.upgrade() else { return };
        evict_all(&store);
        for leaf in 0..LEAVES {
            assert!(read(&store, volume, leaf * MIB, 8) == distinct(8, leaf), "leaf {leaf}");
        }
    }));
    bench.store.checkpoint().unwrap();
    assert!(bench.disk.before_write.lock().is_none() && bench.turns() > 0);
    bench.holds(|leaf| distinct(8, leaf));
}

/// Space runs out half-way: the captured slices are given back, and everything is captured at once,
/// to where the last checkpoint has left room.
#[test]
fn slices_are_given_back_if_the_capture_finds_no_room() {
    let bench = Bench::new(Durability::Commit);
    bench.beside(move |store, volume, turn| {
        write(store, volume, turn * MIB, &distinct(8, 1000 + turn)).unwrap();
        if turn == 5 {
            take_all_free(store);
        }
    });
    bench.store.checkpoint().unwrap();
    assert_eq!(bench.turns(), 6);
    *bench.disk.hook.lock() = None;
    let of = |leaf| distinct(8, if leaf <= 5 { 1000 + leaf } else { leaf });
    bench.holds(of);
    bench.store.checkpoint().unwrap();
    bench.holds(of);
}
