//! The cost of overwriting a pool that has been full for long: bytes written to the device per byte
//! of the hosts, by purpose. These depend only on the histories, not on the machine; the rates are
//! the processor's, because the device takes no time.
//!
//! Blocks are overwritten randomly. A pass is a quarter of the pool's data. The first passes find
//! segments that were never used; the last shows what a user has after a month.

use block::BLOCK_BYTES;
use store::{Next, WrittenBytes};

use crate::pool::{self, Pool, mib};
use crate::{Measured, Options};

/// All metadata is in memory, as on a machine that was chosen for the pool.
const MEMORY_BYTES: u64 = 4 << 30;
/// The maximum number of turns of maintenance after a batch of hosts' writes: it is a thread of its
/// own, but not a faster one.
const TURNS_MAX: usize = 4;

/// Prints a line for each pass over a pool that is so full, of one size.
pub fn table(options: &Options, chunks: u64) -> Measured<()> {
    for percent in &options.full_percent {
        let data_bytes = chunks * BLOCK_BYTES;
        let len_bytes = (data_bytes * 100 / percent).next_multiple_of(16 << 20);
        let mut pool = pool::make_of(&options.dir, chunks, MEMORY_BYTES, len_bytes)?;
        println!("{percent}% full, {:.0} MiB\n", mib(len_bytes));
        println!(
            "| pass | writes/s | longest batch, ms | written for a byte of the hosts' | log | \
             moved | checkpoints | checkpoints, count | free, % |"
        );
        println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
        for pass in 1..=options.passes {
            overwrite(&mut pool, pass)?;
        }
        println!();
    }
    Ok(())
}

fn overwrite(pool: &mut Pool, pass: u64) -> Measured<()> {
    let before = pool.store.pool_status();
    let (start, mut longest) = (pool.seconds(), 0.0f64);
    let mut overwriter = pool.overwriter();
    while overwriter.count < pool.chunks / 4 {
        let begun = pool.seconds();
        pool.begin_batch(&mut overwriter)?;
        loop {
            let is_done = pool.commit(&overwriter)?;
            for _ in 0..TURNS_MAX {
                if !pool.store.maintenance_due() || pool.store.maintain()? != Next::AtOnce {
                    break;
                }
            }
            if is_done {
                break;
            }
        }
        longest = longest.max(pool.seconds() - begun);
    }
    let after = pool.store.pool_status();
    let rate = overwriter.count as f64 / (pool.seconds() - start);
    let hosts_bytes = after.written.hosts_bytes - before.written.hosts_bytes;
    let each = |bytes: fn(&WrittenBytes) -> u64| {
        (bytes(&after.written) - bytes(&before.written)) as f64 / hosts_bytes as f64
    };
    let moved = each(|written| written.moved_bytes);
    let log = each(|written| written.log_bytes) - moved;
    let checkpoints = each(|written| written.checkpoint_bytes);
    println!(
        "| {pass} | {rate:.0} | {:.1} | {:.2} | {log:.2} | {moved:.2} | {checkpoints:.2} | {} | \
         {:.1} |",
        longest * 1e3,
        log + moved + checkpoints,
        after.checkpoint_count - before.checkpoint_count,
        100.0 - 100.0 * after.allocated_bytes as f64 / after.capacity_bytes as f64,
    );
    Ok(())
}
