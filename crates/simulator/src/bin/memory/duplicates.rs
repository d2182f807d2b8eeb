//! Which duplicates are found, against the size of memory.
//!
//! Stretches of what is stored are written once more, to another volume, in writes of 32 KiB: like
//! copied files, or files that another image has as well, which come in another order, but each in
//! its original order. Where a stretch begins is random. What is found is the difference between
//! what was written and what the pool stores.

use block::{BLOCK_BYTES, DataOut, VolumeId};
use format::Handling;
use simulator::synthetic::generated_data;
use store::{Change, VolumeChange};

use crate::files::Content;
use crate::pool::{Pool, budget_bytes, mib};
use crate::{Measured, Options};

/// Blocks of a stretch, and the number of stretches.
const STRETCHES: [(u64, u64); 5] = [(1, 8192), (16, 1024), (64, 512), (256, 256), (4096, 32)];
/// Blocks of a write: 32 KiB.
const WRITE_BLOCKS: u64 = 8;
/// The size of the volume to which duplicates are written: 64 GiB.
const COPY_BLOCKS: u64 = 16 << 20;

/// Prints a line for each memory size.
pub fn table(mut pool: Pool, options: &Options) -> Measured<Pool> {
    let content = Content::examine(&options.files)?;
    if let Some(content) = &content {
        println!("the files: {content}\n");
    }
    println!(
        "| GiB/TiB | memory, MiB | refill, s | 4 KiB | 64 KiB | 256 KiB | 1 MiB | 16 MiB | \
         of files | 1 MiB, blocks/s |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (turn, &per_tib_gib) in (1..).zip(&options.per_tib_gib) {
        let memory_bytes = budget_bytes(pool.chunks, per_tib_gib);
        pool = pool.reopen(memory_bytes)?.0;
        let start = pool.seconds();
        pool.settle()?;
        let refill_s = pool.seconds() - start;
        print!("| {per_tib_gib} | {:.0} | {refill_s:.1} |", mib(memory_bytes));
        let mut rate = 0.0;
        for (blocks, count) in STRETCHES {
            let start = pool.seconds();
            print!(" {:.1}% |", 100.0 * stretches_found(&mut pool, blocks, count)?);
            if blocks == 256 {
                rate = (blocks * count) as f64 / (pool.seconds() - start);
            }
        }
        match &content {
            Some(content) => print!(" {:.1}% |", 100.0 * files_found(&pool, content, turn)?),
            None => print!(" |"),
        }
        println!(" {rate:.0} |");
        pool.store.checkpoint()?;
    }
    println!();
    Ok(pool)
}

/// Returns the fraction of the blocks that is found when stretches are written once more.
fn stretches_found(pool: &mut Pool, blocks: u64, count: u64) -> Measured<f64> {
    let starts: Vec<u64> =
        (0..count).map(|_| 1 + pool.rng.below(pool.chunks.saturating_sub(blocks).max(1))).collect();
    let written = blocks * count;
    let writes = starts.iter().flat_map(|start| {
        let end = start + blocks;
        (*start..end)
            .step_by(WRITE_BLOCKS as usize)
            .map(move |first| Ok(generated_data(first..end.min(first + WRITE_BLOCKS))))
    });
    let stored = stored_by(pool, writes)?;
    Ok(1.0 - stored as f64 / written as f64)
}

/// Returns the fraction of the files' duplicates that is found when they are written one after the
/// other.
fn files_found(pool: &Pool, content: &Content, salt: u32) -> Measured<f64> {
    let stored = stored_by(pool, content.pieces(WRITE_BLOCKS * BLOCK_BYTES, salt))?;
    Ok((content.data_blocks - stored) as f64 / content.duplicate_blocks() as f64)
}

/// Returns how many blocks the pool stores for what is written, sequentially, to a temporary
/// volume.
fn stored_by(pool: &Pool, writes: impl Iterator<Item = Measured<DataOut>>) -> Measured<u64> {
    let volume = pool.store.allocate_volume_id();
    pool.create_volume(volume, COPY_BLOCKS)?;
    // Whole blocks can be counted.
    let handling = Handling { uncompressed: true, unshared: false };
    change(pool, VolumeChange::Handling { id: volume, handling })?;
    let before = pool.store.pool_status().data_bytes;
    let mut at = 0;
    for data in writes {
        let data = data?;
        let blocks = data.len() as u64 / BLOCK_BYTES;
        pool.write(volume, at, data)?;
        pool.maintain()?;
        at += blocks;
    }
    let stored_bytes = pool.store.pool_status().data_bytes - before;
    destroy(pool, volume)?;
    Ok(stored_bytes / BLOCK_BYTES)
}

fn destroy(pool: &Pool, id: VolumeId) -> Measured<()> {
    change(pool, VolumeChange::Destroy { id })?;
    pool.settle()
}

fn change(pool: &Pool, change: VolumeChange) -> Measured<()> {
    Ok(pool.store.change(Change { volumes: vec![change], ..Change::default() })?)
}
