//! A pool of distinct chunks, and its driver: one thread does everything, including checkpoints.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use block::{BLOCK_BYTES, DataOut, SectorCount, SectorRange, VolumeError, VolumeId, VolumeRequest};
use simulator::rng::Rng;
use simulator::synthetic::{SyntheticDisk, generated_data};
use store::{
    Change, Next, OpenOptions, Outcome, Sink, SinkId, Started, Store, Token, VolumeChange,
};
use sys::Clock;

use crate::Measured;
use crate::below::SparseFile;
use crate::slow::SlowDisk;

/// The number of random requests in flight.
const DEPTH: u64 = 32;
/// Blocks of a sequential write: 1 MiB.
pub const RUN_BLOCKS: u64 = 256;
/// The minimum memory that is measured: below it a store is always the same.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// An open pool. Block `n` of its volume was first written with the content of seed `n + 1`.
pub struct Pool {
    pub disk: Arc<SlowDisk>,
    pub store: Store,
    pub chunks: u64,
    pub rng: Rng,
    clock: Clock,
    pub volume: VolumeId,
    next_seed: u64,
}

/// What opening it has cost.
pub struct Opened {
    pub ms: f64,
    pub reads: u64,
    pub read_bytes: u64,
}

/// Counts answers.
#[derive(Default)]
struct Answers {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Sink for Answers {
    fn complete(&self, _id: u64, outcome: Outcome) {
        match outcome {
            Outcome::Reply(Ok(_)) => self.done.fetch_add(1, Relaxed),
            _ => self.failed.fetch_add(1, Relaxed),
        };
    }

    fn commit_wanted(&self) {}
}

/// Overwrites random single blocks, a batch at a time.
pub struct Overwriter {
    answers: Arc<Answers>,
    sink: SinkId,
    pub count: u64,
}

/// Returns the memory for this many GiB per TiB stored.
pub fn budget_bytes(chunks: u64, per_tib_gib: f64) -> u64 {
    let memory_bytes = (chunks * BLOCK_BYTES) as f64 / 1024.0 * per_tib_gib;
    (memory_bytes as u64).max(MEMORY_BYTES_MIN)
}

pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn open(disk: &Arc<SlowDisk>, memory_bytes: u64) -> Measured<Store> {
    Ok(Store::open(disk.clone(), OpenOptions { memory_bytes, ..OpenOptions::default() })?)
}

/// Creates a pool of this many chunks, in a file that is removed with the process.
pub fn make(dir: &Path, chunks: u64, memory_bytes: u64) -> Measured<Pool> {
    // Overwrites must not wait for reclaim, which is another measurement.
    let len_bytes = (chunks * BLOCK_BYTES * 2 + (8 << 30)).next_multiple_of(1 << 30);
    make_of(dir, chunks, memory_bytes, len_bytes)
}

/// The same, of a given size.
pub fn make_of(dir: &Path, chunks: u64, memory_bytes: u64, len_bytes: u64) -> Measured<Pool> {
    let below = SyntheticDisk::new(Arc::new(SparseFile::create(dir, len_bytes)?));
    let disk = Arc::new(SlowDisk::new(below));
    Store::create(&*disk, &[7; 64])?;
    let store = open(&disk, memory_bytes)?;
    let (rng, clock, volume) = (Rng::new(1), Clock::start(), store.allocate_volume_id());
    let mut pool = Pool { disk, store, volume, chunks, next_seed: 1, rng, clock };
    pool.create_volume(volume, chunks.next_multiple_of(RUN_BLOCKS))?;
    let rate = pool.fill()?;
    pool.store.checkpoint()?;
    println!(
        "{chunks} distinct chunks, {:.1} GiB, filled at {rate:.0} chunks/s with {:.0} MiB\n",
        mib(chunks * BLOCK_BYTES) / 1024.0,
        mib(memory_bytes),
    );
    Ok(pool)
}

impl Pool {
    pub fn create_volume(&self, id: VolumeId, blocks: u64) -> Measured<()> {
        let volumes = vec![VolumeChange::Create { id, size: SectorCount(blocks * 8) }];
        Ok(self.store.change(Change { volumes, ..Change::default() })?)
    }

    /// Closes it without a checkpoint, and opens it with another memory size.
    pub fn reopen(self, memory_bytes: u64) -> Measured<(Self, Opened)> {
        let Self { disk, store, volume, chunks, next_seed, rng, clock } = self;
        drop(store);
        let (start, reads, read_bytes) = (clock.now(), disk.below.reads(), disk.below.read_bytes());
        let store = open(&disk, memory_bytes)?;
        let opened = Opened {
            ms: (clock.now() - start).as_secs_f64() * 1e3,
            reads: disk.below.reads() - reads,
            read_bytes: disk.below.read_bytes() - read_bytes,
        };
        Ok((Self { disk, store, volume, chunks, next_seed, rng, clock }, opened))
    }

    /// Returns the clock of the measurements, in seconds.
    pub fn seconds(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }

    pub fn maintain(&self) -> Measured<()> {
        if self.store.maintenance_due() {
            self.store.maintain()?;
        }
        Ok(())
    }

    /// Waits until no background work is left: the index is complete again, and what was destroyed
    /// is freed.
    pub fn settle(&self) -> Measured<()> {
        while self.store.maintain()? != Next::Nothing {}
        Ok(())
    }

    /// Writes data at a block of a volume.
    pub fn write(&self, volume: VolumeId, first: u64, data: DataOut) -> Measured<()> {
        let range = SectorRange::new(first * 8, (data.len() as u64) / 512);
        self.store.execute(VolumeRequest::Write { volume, range, data, fua: false })?;
        Ok(())
    }

    /// Writes new blocks.
    pub fn write_new(&mut self, first: u64, blocks: u64) -> Measured<()> {
        let data = generated_data(self.next_seed..self.next_seed + blocks);
        self.next_seed += blocks;
        self.write(self.volume, first, data)
    }

    /// Writes every block once, sequentially; returns blocks per second.
    fn fill(&mut self) -> Measured<f64> {
        let start = self.seconds();
        let mut told = start;
        for first in (0..self.chunks).step_by(RUN_BLOCKS as usize) {
            self.write_new(first, RUN_BLOCKS.min(self.chunks - first))?;
            self.maintain()?;
            let now = self.seconds();
            if now - told >= 5.0 {
                told = now;
                let percent = 100 * first / self.chunks;
                eprint!("\rfilling: {percent}% of {} chunks  ", self.chunks);
                io::stderr().flush()?;
            }
        }
        eprintln!();
        Ok(self.chunks as f64 / (self.seconds() - start))
    }

    pub fn random_block(&mut self) -> SectorRange {
        SectorRange::new(self.rng.below(self.chunks) * 8, 8)
    }

    pub fn read(&self, range: SectorRange) -> Measured<()> {
        self.store.execute(VolumeRequest::Read { volume: self.volume, range })?;
        Ok(())
    }

    pub fn overwriter(&self) -> Overwriter {
        let answers = Arc::<Answers>::default();
        Overwriter { sink: self.store.register_sink(answers.clone()), answers, count: 0 }
    }

    /// Begins to overwrite [`DEPTH`] random blocks.
    pub fn begin_batch(&mut self, overwriter: &mut Overwriter) -> Measured<()> {
        for _ in 0..DEPTH {
            let range = self.random_block();
            let data = generated_data(self.next_seed..self.next_seed + 1);
            self.next_seed += 1;
            let write = VolumeRequest::Write { volume: self.volume, range, data, fua: false };
            let token = Token { sink: overwriter.sink, id: overwriter.count };
            let mut started = self.store.start(write, token);
            while let Started::Read(mut operation) = started {
                for read in &mut operation.reads {
                    let segments = self.store.segments();
                    read.failed = segments.read(read.place, &mut read.frames).is_err();
                }
                started = self.store.resume(operation, token);
            }
            match started {
                Started::Queued => overwriter.count += 1,
                other => return Err(format!("writing: {other:?}").into()),
            }
        }
        Ok(())
    }

    /// Writes the commits that wait; returns whether everything begun is done.
    pub fn commit(&self, overwriter: &Overwriter) -> Measured<bool> {
        while let Some(commit) = self.store.take_commit() {
            let written = self.store.segments().append(commit.place, &commit.frames);
            self.store.finish_commit(commit, written);
        }
        if overwriter.answers.failed.load(Relaxed) > 0 {
            return Err(VolumeError::WriteFailed.into());
        }
        Ok(overwriter.answers.done.load(Relaxed) == overwriter.count)
    }

    /// Returns the used memory of this process, in bytes: without what the disk keeps.
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (pages * 4096).saturating_sub(self.disk.below.memory_bytes())
    }
}
