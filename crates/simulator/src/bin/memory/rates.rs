//! The speed of reads and writes of a pool, against its memory.

use crate::pool::{Pool, RUN_BLOCKS, budget_bytes, mib};
use crate::{Measured, Options};

/// Prints a line for each memory size. Consumes the pool.
pub fn table(mut pool: Pool, options: &Options) -> Measured<()> {
    println!(
        "| GiB/TiB | memory, MiB | metadata, MiB | resident, MiB | sequential writes/s | \
         random writes/s | random reads/s | pages read for each | checkpoint, ms |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for &per_tib_gib in &options.per_tib_gib {
        let memory_bytes = budget_bytes(pool.chunks, per_tib_gib);
        pool = pool.reopen(memory_bytes)?.0;
        pool.settle()?;
        // Once to warm up, because the steady state is measured.
        read_randomly(&mut pool, options.seconds)?;
        let (reads, misses) = read_randomly(&mut pool, options.seconds)?;
        let sequential = overwrite(&mut pool, options.seconds)?;
        let random = overwrite_randomly(&mut pool, options.seconds)?;
        let metadata = pool.store.memory_status().metadata_bytes;
        let resident = pool.resident_bytes();
        let start = pool.seconds();
        pool.store.checkpoint()?;
        let checkpoint_ms = (pool.seconds() - start) * 1e3;
        println!(
            "| {per_tib_gib} | {:.0} | {:.0} | {:.0} | {sequential:.0} | {random:.0} | \
             {reads:.0} | {misses:.2} | {checkpoint_ms:.0} |",
            mib(memory_bytes),
            mib(metadata),
            mib(resident),
        );
    }
    println!();
    Ok(())
}

/// Reads random single blocks; returns blocks per second, and pages and nodes read for each.
fn read_randomly(pool: &mut Pool, seconds: f64) -> Measured<(f64, f64)> {
    let misses = pool.store.memory_status().misses;
    let start = pool.seconds();
    let mut count = 0;
    while pool.seconds() - start < seconds {
        let range = pool.random_block();
        pool.read(range)?;
        count += 1;
    }
    let rate = f64::from(count) / (pool.seconds() - start);
    let misses = pool.store.memory_status().misses - misses;
    Ok((rate, misses as f64 / f64::from(count)))
}

/// Overwrites sequentially; returns blocks per second.
fn overwrite(pool: &mut Pool, seconds: f64) -> Measured<f64> {
    let start = pool.seconds();
    let mut first = 0;
    let mut blocks = 0;
    while pool.seconds() - start < seconds {
        pool.write_new(first, RUN_BLOCKS)?;
        pool.maintain()?;
        blocks += RUN_BLOCKS;
        first = (first + RUN_BLOCKS) % (pool.chunks - RUN_BLOCKS);
    }
    Ok(blocks as f64 / (pool.seconds() - start))
}

/// Overwrites random single blocks, several in flight; returns blocks per second.
fn overwrite_randomly(pool: &mut Pool, seconds: f64) -> Measured<f64> {
    let mut overwriter = pool.overwriter();
    let start = pool.seconds();
    while pool.seconds() - start < seconds {
        pool.begin_batch(&mut overwriter)?;
        while !pool.commit(&overwriter)? {
            pool.maintain()?;
        }
        pool.maintain()?;
    }
    Ok(overwriter.count as f64 / (pool.seconds() - start))
}
