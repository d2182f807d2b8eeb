//! The order of a checkpoint's writes: nothing that a superblock may still refer to is overwritten.

use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::*;
use crate::Tuning;

/// Runs just before a superblock is written.
type Hook = Box<dyn FnMut() + Send>;

/// A disk that runs a hook before each write of a superblock.
struct Superblocks {
    below: Arc<MemoryDisk>,
    hook: Mutex<Option<Hook>>,
}

impl sys::Disk for Superblocks {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.below.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        if SUPERBLOCK_OFFSETS_BYTES.contains(&offset_bytes)
            && let Some(hook) = &mut *self.hook.lock()
        {
            hook();
        }
        self.below.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}

/// Sectors of one write.
const WRITTEN: u64 = 64;
/// How many of them are side by side.
const PLACES: u64 = 8;
/// Free segments left for the checkpoint, so that no write waits for it.
const LEFT: u32 = 24;

/// Overwrites the same blocks until few segments are free. Advances `seed`.
fn use_up(store: &Store, id: VolumeId, seed: &mut u64) {
    while store.writer.lock().state.segments.free_count() > LEFT {
        *seed += 1;
        write(store, id, *seed % PLACES * WRITTEN, &distinct(WRITTEN, *seed)).unwrap();
    }
}

/// The log laps all free segments while a checkpoint waits for its superblocks. The power fails
/// before the first is written, and before the second: the pool is as it was each time.
#[test]
fn no_segment_is_reused_while_a_superblock_refers_to_it() {
    let disk = MemoryDisk::new(24 << 20);
    let device = Arc::new(Superblocks { below: disk.clone(), hook: Mutex::new(None) });
    Store::create_with_segments(&*device, &[7; 64], 64 << 10).unwrap();
    let options = OpenOptions { tuning: Tuning::SMALL, ..OpenOptions::default() };
    let store = Arc::new(Store::open(device.clone(), options.clone()).unwrap());
    let id = volume(&store, PLACES * WRITTEN);
    let mut seed = 0;
    // Half of the pool is log after the last checkpoint, and dead except for its end.
    for _ in 0..60 {
        seed += 1;
        write(&store, id, seed % PLACES * WRITTEN, &distinct(WRITTEN, seed)).unwrap();
    }
    let begun = seed;
    let crashed = Arc::<Mutex<Vec<(Arc<MemoryDisk>, u64)>>>::default();
    let (inside, kept) = (Arc::downgrade(&store), crashed.clone());
    *device.hook.lock() = Some(Box::new(move || {
        use_up(&inside.upgrade().unwrap(), id, &mut seed);
        kept.lock().push((disk.copy(), seed));
    }));
    store.checkpoint().unwrap();
    *device.hook.lock() = None;
    let free = store.writer.lock().state.segments.free_count();
    assert!(free > LEFT + 40, "{free} are free: no segment could be reused too early");
    let crashed = std::mem::take(&mut *crashed.lock());
    assert!(crashed.len() == 2 && crashed[0].1 > begun + 20, "the log continued meanwhile");
    for (disk, last) in crashed {
        let store = Store::open(disk, options.clone()).unwrap();
        for seed in last + 1 - PLACES..=last {
            let at = seed % PLACES * WRITTEN;
            assert!(read(&store, id, at, WRITTEN) == distinct(WRITTEN, seed), "write {seed}");
        }
        assert_sound(&store);
    }
}
