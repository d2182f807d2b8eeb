//! The cost of opening a pool after a shutdown and after crashes, against its size.

use crate::pool::{Opened, Pool, RUN_BLOCKS, make, mib};
use crate::{Measured, Options};

/// The memory with which pools are filled.
const FILL_BYTES: u64 = 1 << 30;
/// The maximum number of pages and nodes on the path to a block that the log has changed: leaf,
/// inner nodes and their rows, the row of the old chunk, and the directories above all of these.
const PAGES_PER_BLOCK_MAX: u64 = 6;
/// Pages that are read for any log.
const PAGES_MAX: u64 = 64;
/// Bytes that are read in addition to the log and its pages: the rest of the segment in which it
/// ends and all of the next one, where a later record would prove that one was lost, and the tables
/// of segments and volumes.
const OTHER_BYTES_MAX: u64 = 96 << 20;

/// How the pool was left.
#[derive(Clone, Copy)]
enum Left {
    Shutdown,
    /// With as much log as possible, of sequential writes.
    CrashBehindRuns,
    /// The same, of random single blocks.
    CrashBehindScatter,
}

impl Left {
    fn name(self) -> &'static str {
        match self {
            Left::Shutdown => "shutdown",
            Left::CrashBehindRuns => "crash, written in order",
            Left::CrashBehindScatter => "crash, written at random",
        }
    }
}

/// The log after the last checkpoint.
struct Log {
    bytes: u64,
    blocks: u64,
}

/// Prints a line for each pool, memory size, and way in which it was left. Returns whether each has
/// read no more than its log requires.
pub fn table(options: &Options) -> Measured<bool> {
    let (mut passed, mut failed) = (0, 0);
    for &chunks in &options.chunks {
        let mut pool = make(&options.dir, chunks, FILL_BYTES)?;
        println!(
            "| memory, MiB | left by | log, MiB | blocks | opened in, ms | reads | read, MiB | \
             pages and nodes | metadata, MiB |"
        );
        println!("|---:|---|---:|---:|---:|---:|---:|---:|---:|");
        for &memory_mib in &options.memory_mib {
            pool = pool.reopen(memory_mib << 20)?.0;
            for left in [Left::Shutdown, Left::CrashBehindRuns, Left::CrashBehindScatter] {
                let log = leave(&mut pool, left)?;
                let (reopened, opened) = pool.reopen(memory_mib << 20)?;
                pool = reopened;
                let good = tell(&pool, memory_mib, left, &log, &opened);
                passed += u64::from(good);
                failed += u64::from(!good);
            }
        }
        println!();
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    Ok(failed == 0 && passed > 0)
}

/// Brings the pool into the state in which it will be found.
fn leave(pool: &mut Pool, left: Left) -> Measured<Log> {
    pool.store.checkpoint()?;
    let blocks = match left {
        Left::Shutdown => 0,
        Left::CrashBehindRuns => write_runs(pool)?,
        Left::CrashBehindScatter => scatter(pool)?,
    };
    Ok(Log { bytes: pool.store.pool_status().log_bytes, blocks })
}

/// Writes sequentially until a checkpoint is due; returns the number of blocks.
fn write_runs(pool: &mut Pool) -> Measured<u64> {
    let mut blocks = 0;
    while !pool.store.checkpoint_due() {
        pool.write_new(blocks % (pool.chunks - RUN_BLOCKS), RUN_BLOCKS)?;
        blocks += RUN_BLOCKS;
    }
    Ok(blocks)
}

/// Writes randomly until a checkpoint is due; returns the number of blocks.
fn scatter(pool: &mut Pool) -> Measured<u64> {
    let mut overwriter = pool.overwriter();
    while !pool.store.checkpoint_due() {
        pool.begin_batch(&mut overwriter)?;
        while !pool.commit(&overwriter)? {}
    }
    Ok(overwriter.count)
}

/// Prints what was measured; returns whether it is within what the log requires, and within the
/// memory.
fn tell(pool: &Pool, memory_mib: u64, left: Left, log: &Log, opened: &Opened) -> bool {
    let memory = pool.store.memory_status();
    let pages_max = PAGES_MAX + PAGES_PER_BLOCK_MAX * log.blocks;
    let bytes_max = log.bytes + 4096 * memory.misses + OTHER_BYTES_MAX;
    let good = memory.misses <= pages_max
        && opened.read_bytes <= bytes_max
        && memory.metadata_bytes <= memory.metadata_limit_bytes;
    println!(
        "| {memory_mib} | {} | {:.0} | {} | {:.0} | {} | {:.1} | {} | {:.1} |{}",
        left.name(),
        mib(log.bytes),
        log.blocks,
        opened.ms,
        opened.reads,
        mib(opened.read_bytes),
        memory.misses,
        mib(memory.metadata_bytes),
        if good { "" } else { " FAILED" },
    );
    good
}
