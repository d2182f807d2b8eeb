//! Recovery reads what it needs in parallel where the medium has a channel.

use std::os::fd::RawFd;
use std::time::Duration;

use format::{FormatError, Geometry, Label, Place, Superblock};
use segments::{
    BadLabel, Buffers, Channel, Completion, DeviceStatus, Fence, Local, Persist, RootError,
    Segments, Shared,
};

use super::*;
use crate::LogEnd;

/// Leaves that the log changes: each has to be read.
const LEAVES: u64 = 600;

/// How reads were issued.
#[derive(Default)]
pub(super) struct Counted {
    /// Reads one at a time, by a caller that waits.
    pub(super) alone: AtomicU64,
    /// The blocks of these reads.
    pub(super) alone_blocks: AtomicU64,
    /// For each channel, the lengths in blocks of the reads that were started together.
    pub(super) together: Mutex<Vec<Vec<usize>>>,
    /// Whether reads through channels fail.
    pub(super) fails: bool,
}

impl Counted {
    /// Counts a read that a caller waits for.
    fn waits(&self, frames: &[FrameMut]) {
        self.alone.fetch_add(1, Ordering::Relaxed);
        self.alone_blocks.fetch_add(frames.len() as u64, Ordering::Relaxed);
    }

    /// Returns the number of blocks that were read.
    fn blocks(&self) -> u64 {
        let together = self.together.lock().iter().flatten().sum::<usize>() as u64;
        together + self.alone_blocks.load(Ordering::Relaxed)
    }
}

/// An in-memory disk with channels.
pub(super) struct Channelled {
    pub(super) below: Arc<Local>,
    pub(super) counted: Arc<Counted>,
}

/// Passes calls on to the segments below.
macro_rules! pass_on {
    ($(fn $name:ident($($arg:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($arg: $kind),*) -> $result {
            self.below.$name($($arg),*)
        })*
    };
}

impl Segments for Channelled {
    pass_on! {
        fn lay_out(geometry: Geometry) -> ();
        fn len_bytes() -> u64;
        fn grow(capacity_bytes: u64) -> io::Result<()>;
        fn free(segment: u32) -> io::Result<bool>;
        fn append(place: Place, frames: &[Frame]) -> io::Result<()>;
        fn append_as(place: Place, frames: &[Frame], persist: Persist) -> io::Result<()>;
        fn write_and_flush(write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
        fn flush_failures() -> u64;
        fn read_root() -> Result<Superblock, RootError>;
        fn root_copies() -> Vec<Result<Superblock, FormatError>>;
        fn swap_root(expected: u64, next: &Superblock) -> Result<(), RootError>;
        fn settle_root() -> ();
        fn mend_root(copy: usize, root: &Superblock) -> Result<(), RootError>;
        fn labels() -> Vec<Result<Label, FormatError>>;
        fn mend_labels(root: &Superblock) -> Vec<BadLabel>;
        fn fence(epoch: u64) -> io::Result<Fence>;
        fn devices() -> Vec<DeviceStatus>;
        fn has_given_up() -> bool;
        fn is_refusing() -> bool;
        fn retry_count() -> u64;
        fn give_way() -> bool;
        fn locate(place: Place) -> u64;
    }

    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.counted.waits(frames);
        self.below.read(place, frames)
    }

    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.counted.waits(frames);
        self.below.read_patiently(place, frames)
    }

    fn channel(&self, _entries: u32) -> io::Result<Box<dyn Channel>> {
        let (below, counted) = (self.below.clone(), self.counted.clone());
        let (queued, started) = Default::default();
        Ok(Box::new(TestChannel { below, counted, queued, started, may_end: false }))
    }
}

type Asked = (u64, Place, Vec<FrameMut>);

/// A channel whose reads complete only when a caller waits.
struct TestChannel {
    below: Arc<Local>,
    counted: Arc<Counted>,
    queued: Vec<Asked>,
    started: Vec<Asked>,
    may_end: bool,
}

impl Channel for TestChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        self.queued.push((user_data, place, frames));
        Ok(())
    }

    fn append(&mut self, _: u64, _: Place, _: Vec<Frame>, _: Persist) -> io::Result<()> {
        Err(io::Error::other("these tests only read here"))
    }

    fn check(&self, _: Place, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        let blocks: Vec<usize> = self.queued.iter().map(|(.., frames)| frames.len()).collect();
        if !blocks.is_empty() {
            self.counted.together.lock().push(blocks);
        }
        self.started.append(&mut self.queued);
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        if !std::mem::take(&mut self.may_end) {
            return Ok(());
        }
        // The last one first: reads complete in any order.
        while let Some((user_data, place, mut frames)) = self.started.pop() {
            let result = match self.counted.fails {
                true => Err(io::Error::other("no read of a channel succeeds")),
                false => self.below.read(place, &mut frames),
            };
            out.push(Completion { user_data, buffers: Buffers::Read(frames), result });
        }
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        self.may_end = true;
        Ok(())
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn next_retry(&self) -> Option<Duration> {
        None
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn in_flight(&self) -> usize {
        self.queued.len() + self.started.len()
    }

    fn end_retries(&self) {}

    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the start of the block written in each leaf.
fn start_of(leaf: u64) -> u64 {
    leaf * MIB + leaf % 256 * 8
}

/// A pool whose log after the checkpoint writes to each of many leaves.
fn killed() -> (Arc<MemoryDisk>, VolumeId) {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, LEAVES * MIB);
    for leaf in 0..LEAVES {
        write(&store, id, start_of(leaf), &distinct(8, 10_000 + leaf)).unwrap();
    }
    store.checkpoint().unwrap();
    for leaf in 0..LEAVES {
        write(&store, id, start_of(leaf), &distinct(8, 20_000 + leaf)).unwrap();
    }
    (disk.copy(), id)
}

/// Opens a pool over channels, and checks that all written data is present.
fn reopen(disk: Arc<MemoryDisk>, id: VolumeId, fails: bool) -> Arc<Counted> {
    let below = Arc::new(Local::over(disk));
    let counted = Arc::new(Counted { fails, ..Counted::default() });
    let segments: Arc<dyn Segments> = Arc::new(Channelled { below, counted: counted.clone() });
    let store = Store::open(Shared::from(segments), OpenOptions::default()).unwrap();
    let alone = counted.alone.load(Ordering::Relaxed);
    for leaf in 0..LEAVES {
        assert_eq!(read(&store, id, start_of(leaf), 8), distinct(8, 20_000 + leaf));
    }
    counted.alone.store(alone, Ordering::Relaxed);
    counted
}

/// Recovery reads the nodes the log changes many at a time, and reads the log ahead.
#[test]
fn recovery_reads_in_parallel_and_ahead() {
    let (disk, id) = killed();
    let counted = reopen(disk.clone(), id, false);
    let alone = counted.alone.load(Ordering::Relaxed);
    assert!(alone < LEAVES / 6, "{alone} reads were waited for one by one");
    let together = counted.together.lock();
    let most = together.iter().filter(|blocks| blocks.iter().all(|blocks| *blocks <= 2));
    let most = most.map(Vec::len).max().unwrap();
    assert!(most >= 32, "no more than {most} leaves were read together");
    let windows = together.iter().flatten().filter(|blocks| **blocks > 2).count();
    assert!(windows > 4, "the log was read ahead: {windows}");
}

/// Recovery reads by itself what a channel fails to read.
#[test]
fn recovery_repeats_failed_reads_of_a_channel() {
    let (disk, id) = killed();
    let counted = reopen(disk, id, true);
    assert!(counted.alone.load(Ordering::Relaxed) > LEAVES);
}

/// That nothing follows the log is found in one pass over the rest of its segment and the next one.
/// It was examined three times, which was most of what a takeover waited for.
#[test]
fn what_follows_the_log_is_read_once() {
    let (blocks, after) = read_by_an_opening(|_| None);
    // Besides, at most one window before the end, and the checkpoint, which is small here.
    assert!((after..after + 512).contains(&blocks), "{blocks} blocks, of {after} after the log");
}

/// In a planned switch nothing that follows the log is searched.
#[test]
fn what_follows_a_known_end_of_the_log_is_not_searched() {
    let (blocks, after) = read_by_an_opening(Store::log_end);
    // One window, in which the last record is, and four ahead of it.
    assert!(blocks < 6 * 256, "{blocks} blocks, of {after} after the log");
}

/// Opens a pool, with what `log_end` returns; returns the number of blocks that this reads, and of
/// those after the log in its segment and the next one.
fn read_by_an_opening(log_end: impl Fn(&Store) -> Option<LogEnd>) -> (u64, u64) {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    let at = store.writer.lock().log.position();
    let options = OpenOptions { log_end: log_end(&store), ..OpenOptions::default() };
    drop(store);
    let counted = Arc::new(Counted::default());
    let below = Arc::new(Local::over(disk));
    let segments: Arc<dyn Segments> = Arc::new(Channelled { below, counted: counted.clone() });
    let store = Store::open(Shared::from(segments), options).unwrap();
    let blocks = counted.blocks();
    assert_eq!(read(&store, id, 0, 8), distinct(8, 1));
    let rows = u64::from(store.world.medium.geometry().rows());
    (blocks, 2 * rows - u64::from(at.block))
}
