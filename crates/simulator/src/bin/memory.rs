//! The curve of throughput against memory, over a pool of distinct chunks that no disk holds.
//!
//! ```text
//! memory [--chunks N] [--per-tib GIB,GIB,...] [--seconds S] [--dir DIR]
//! ```
//!
//! Fills a pool with N distinct chunks, then opens it again with each budget (in GiB for a TiB
//! stored), and measures. The device generates data from seeds in memory, and keeps metadata in a
//! sparse file in DIR, through the page cache: so the times are the processor's, and what a real
//! device would add is the `reads` column times its latency.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use block::{
    BLOCK_BYTES, Frame, FrameMut, SectorCount, SectorRange, VolumeError, VolumeId, VolumeRequest,
};
use simulator::rng::Rng;
use simulator::synthetic::{SyntheticDisk, generated_data};
use store::{Change, Commit, OpenOptions, Outcome, Sink, Started, Store, Token, VolumeChange};
use sys::{Clock, Disk};

/// As in the array: the C library's allocator takes twice the memory for a frame.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: memory [--chunks N] [--per-tib GIB,GIB,...] [--seconds S] [--dir DIR]";
/// Random requests that are under way together.
const DEPTH: u64 = 32;
/// Blocks of a sequential write: 1 MiB.
const RUN_BLOCKS: u64 = 256;
/// The least budget that is measured: below it a store is always the same.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

struct Options {
    chunks: u64,
    per_tib_gib: Vec<f64>,
    seconds: f64,
    dir: PathBuf,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let per_tib_gib = vec![0.125, 0.25, 0.5, 1.0, 4.0, 16.0];
    let mut options =
        Options { chunks: 1_000_000, per_tib_gib, seconds: 3.0, dir: std::env::temp_dir() };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--chunks" => options.chunks = value.parse().ok().filter(|count| *count >= 10_000)?,
            "--per-tib" => {
                let parsed: Result<_, _> = value.split(',').map(str::parse).collect();
                options.per_tib_gib = parsed.ok()?;
            }
            "--seconds" => options.seconds = value.parse().ok()?,
            "--dir" => options.dir = value.into(),
            _ => return None,
        }
    }
    Some(options)
}

/// A sparse file that vanishes with the process.
struct SparseFile(File, u64);

impl SparseFile {
    fn create(dir: &Path, len_bytes: u64) -> io::Result<Self> {
        let path = dir.join(format!("holdfast-memory-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        file.set_len(len_bytes)?;
        Ok(Self(file, len_bytes))
    }
}

impl Disk for SparseFile {
    fn len_bytes(&self) -> u64 {
        self.1
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let offsets = (offset_bytes..).step_by(BLOCK_BYTES as usize);
        frames
            .iter_mut()
            .zip(offsets)
            .try_for_each(|(frame, at)| self.0.read_exact_at(&mut frame[..], at))
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let offsets = (offset_bytes..).step_by(BLOCK_BYTES as usize);
        frames.iter().zip(offsets).try_for_each(|(frame, at)| self.0.write_all_at(&frame[..], at))
    }

    fn flush(&self) -> io::Result<()> {
        // Nothing of it survives the process.
        Ok(())
    }
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

/// An open pool, and how it is driven: one thread does all, checkpoints too.
struct Bench {
    disk: Arc<SyntheticDisk>,
    store: Store,
    volume: VolumeId,
    chunks: u64,
    next_seed: u64,
    rng: Rng,
    clock: Clock,
}

type Measured<T> = Result<T, Box<dyn std::error::Error>>;

impl Bench {
    fn write_run(&mut self, first: u64, blocks: u64) -> Measured<()> {
        let range = SectorRange::new(first * 8, blocks * 8);
        let data = generated_data(self.next_seed..self.next_seed + blocks);
        self.next_seed += blocks;
        let write = VolumeRequest::Write { volume: self.volume, range, data, fua: false };
        self.store.execute(write)?;
        self.maintain()
    }

    fn maintain(&self) -> Measured<()> {
        if self.store.maintenance_due() {
            self.store.maintain()?;
        }
        Ok(())
    }

    /// Writes every block once, in order; blocks a second.
    fn fill(&mut self) -> Measured<f64> {
        let start = self.clock.now();
        let mut told = start;
        for first in (0..self.chunks).step_by(RUN_BLOCKS as usize) {
            self.write_run(first, RUN_BLOCKS.min(self.chunks - first))?;
            let now = self.clock.now();
            if (now - told).as_secs() >= 5 {
                told = now;
                let percent = 100 * first / self.chunks;
                let rate = first as f64 / (now - start).as_secs_f64();
                eprint!("\rfilling: {percent}% of {} chunks, {rate:.0}/s  ", self.chunks);
                io::stderr().flush()?;
            }
        }
        eprintln!();
        Ok(self.chunks as f64 / (self.clock.now() - start).as_secs_f64())
    }

    /// Overwrites in order; blocks a second.
    fn overwrite(&mut self, seconds: f64) -> Measured<f64> {
        let start = self.clock.now();
        let mut first = 0;
        let mut blocks = 0;
        while (self.clock.now() - start).as_secs_f64() < seconds {
            self.write_run(first, RUN_BLOCKS)?;
            blocks += RUN_BLOCKS;
            first = (first + RUN_BLOCKS) % (self.chunks - RUN_BLOCKS);
        }
        Ok(blocks as f64 / (self.clock.now() - start).as_secs_f64())
    }

    fn random_block(&mut self) -> SectorRange {
        SectorRange::new(self.rng.below(self.chunks) * 8, 8)
    }

    /// Overwrites single blocks anywhere, [`DEPTH`] under way; blocks a second.
    fn overwrite_randomly(&mut self, seconds: f64) -> Measured<f64> {
        let answers = Arc::<Answers>::default();
        let sink = self.store.register_sink(answers.clone());
        let start = self.clock.now();
        let mut count = 0;
        while (self.clock.now() - start).as_secs_f64() < seconds {
            for _ in 0..DEPTH {
                let range = self.random_block();
                let data = generated_data(self.next_seed..self.next_seed + 1);
                self.next_seed += 1;
                let write = VolumeRequest::Write { volume: self.volume, range, data, fua: false };
                match self.store.start(write, Token { sink, id: count }) {
                    Started::Queued => count += 1,
                    other => return Err(format!("a write: {other:?}").into()),
                }
            }
            while answers.done.load(Relaxed) < count {
                while let Some(commit) = self.store.take_commit() {
                    self.finish(commit);
                }
                self.maintain()?;
                if answers.failed.load(Relaxed) > 0 {
                    return Err(VolumeError::WriteFailed.into());
                }
            }
        }
        Ok(count as f64 / (self.clock.now() - start).as_secs_f64())
    }

    fn finish(&self, commit: Commit) {
        let written = self.disk.write(commit.offset_bytes, &commit.frames);
        self.store.finish_commit(commit, written);
    }

    /// Reads single blocks anywhere; blocks a second, and pages and nodes read for each.
    fn read_randomly(&mut self, seconds: f64) -> Measured<(f64, f64)> {
        let misses = self.store.memory_status().misses;
        let start = self.clock.now();
        let mut count = 0;
        while (self.clock.now() - start).as_secs_f64() < seconds {
            for _ in 0..DEPTH {
                let range = self.random_block();
                self.store.execute(VolumeRequest::Read { volume: self.volume, range })?;
                count += 1;
            }
        }
        let seconds = (self.clock.now() - start).as_secs_f64();
        let misses = self.store.memory_status().misses - misses;
        Ok((count as f64 / seconds, misses as f64 / count as f64))
    }
}

/// Memory of this process that is in use, in bytes: without what the disk keeps.
fn resident_bytes(disk: &SyntheticDisk) -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (pages * 4096).saturating_sub(disk.memory_bytes())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn options_for(options: &Options, per_tib_gib: f64) -> OpenOptions {
    let stored_bytes = options.chunks * BLOCK_BYTES;
    let memory_bytes = (stored_bytes as f64 / 1024.0 * per_tib_gib) as u64;
    OpenOptions { memory_bytes: memory_bytes.max(MEMORY_BYTES_MIN), ..OpenOptions::default() }
}

/// Makes the pool, and fills it with the largest budget.
fn make(options: &Options) -> Measured<Bench> {
    // Overwrites must not wait for reclaim, which is another measurement.
    let stored_bytes = options.chunks * BLOCK_BYTES;
    let len_bytes = (stored_bytes * 2 + (8 << 30)).next_multiple_of(1 << 30);
    let disk = Arc::new(SyntheticDisk::new(Arc::new(SparseFile::create(&options.dir, len_bytes)?)));
    Store::create(&*disk, &[7; 64])?;
    let most = options.per_tib_gib.iter().copied().fold(0.0, f64::max);
    let store = Store::open(disk.clone(), options_for(options, most))?;
    let volume = store.allocate_volume_id();
    let size = SectorCount(options.chunks.next_multiple_of(RUN_BLOCKS) * 8);
    let volumes = vec![VolumeChange::Create { id: volume, size }];
    store.change(Change { volumes, ..Change::default() })?;
    let (chunks, rng, clock) = (options.chunks, Rng::new(1), Clock::start());
    let mut bench = Bench { disk, store, volume, chunks, next_seed: 1, rng, clock };
    let rate = bench.fill()?;
    let memory = bench.store.memory_status();
    println!(
        "{chunks} distinct chunks, {:.1} GiB, filled at {rate:.0} chunks/s with {:.0} MiB; \
         resident {:.0} MiB",
        stored_bytes as f64 / f64::from(1 << 30),
        mib(options_for(options, most).memory_bytes),
        mib(resident_bytes(&bench.disk)),
    );
    println!(
        "metadata took {:.1} of {:.1} MiB\n",
        mib(memory.metadata_bytes),
        mib(memory.metadata_limit_bytes)
    );
    bench.store.checkpoint()?;
    Ok(bench)
}

/// Measures one budget: a line of the table.
fn measure(mut bench: Bench, options: &Options, per_tib_gib: f64) -> Measured<Bench> {
    let opening = options_for(options, per_tib_gib);
    let memory_bytes = opening.memory_bytes;
    let Bench { disk, store, volume, chunks, next_seed, rng, clock } = bench;
    drop(store);
    let (read_before, start) = (disk.read_bytes(), clock.now());
    let store = Store::open(disk.clone(), opening)?;
    let opened_ms = (clock.now() - start).as_secs_f64() * 1e3;
    let opened_bytes = disk.read_bytes() - read_before;
    bench = Bench { disk, store, volume, chunks, next_seed, rng, clock };
    // Once to warm up: what is measured is the steady state.
    bench.read_randomly(options.seconds)?;
    let (reads, misses) = bench.read_randomly(options.seconds)?;
    let sequential = bench.overwrite(options.seconds)?;
    let random = bench.overwrite_randomly(options.seconds)?;
    let memory = bench.store.memory_status();
    let resident = resident_bytes(&bench.disk);
    let start = bench.clock.now();
    bench.store.checkpoint()?;
    let checkpoint_ms = (bench.clock.now() - start).as_secs_f64() * 1e3;
    println!(
        "{per_tib_gib:>9.3} {:>10.1} {:>9.1} {:>9.1} {:>9.0} {sequential:>10.0} {random:>10.0} \
         {reads:>10.0} {misses:>6.2} {checkpoint_ms:>10.0} {opened_ms:>8.1} {:>9.1}",
        mib(memory_bytes),
        mib(memory.metadata_limit_bytes),
        mib(memory.metadata_bytes),
        mib(resident),
        mib(opened_bytes),
    );
    Ok(bench)
}

fn run(options: &Options) -> Measured<()> {
    let mut bench = make(options)?;
    println!(
        "{:>9} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>6} {:>10} {:>8} {:>9}",
        "GiB/TiB",
        "memory",
        "metadata",
        "held",
        "resident",
        "sequential",
        "random",
        "random",
        "reads",
        "checkpoint",
        "open",
        "open",
    );
    println!(
        "{:>9} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>6} {:>10} {:>8} {:>9}",
        "",
        "MiB",
        "MiB",
        "MiB",
        "MiB",
        "writes/s",
        "writes/s",
        "reads/s",
        "each",
        "ms",
        "ms",
        "MiB",
    );
    for &per_tib_gib in &options.per_tib_gib {
        bench = measure(bench, options, per_tib_gib)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory: {error}");
            ExitCode::FAILURE
        }
    }
}
