//! The commands whose cost is counted, as hosts send them (SBC-4, SPC-4). The n-th of a kind goes
//! to a random location within a part of the volume that was written before.

use simulator::rng::Rng;

use super::world::{Command, World};

const SECTOR_BYTES: usize = 512;
const BLOCK_BYTES: usize = 4096;
/// Logical blocks of 512 bytes in a block of 4 KiB.
const SECTORS: u64 = 8;
/// Blocks of 4 KiB in a MiB.
const MIB_BLOCKS: u64 = 256;
/// Blocks written first, from the volume's start on: four times what memory holds.
const FILLED_BLOCKS: u64 = 64 * MIB_BLOCKS;
/// Blocks in the range that commands write, after the filled ones.
const WRITTEN_BLOCKS: u64 = 64 * MIB_BLOCKS;
/// Blocks that are read repeatedly.
const CACHED_BLOCKS: u64 = 64;
/// Blocks of one write while the volume is filled.
const FILL_STEP_BLOCKS: u64 = 64;
/// The first block that an offload changes, of a MiB of its own.
const OFFLOADED_BLOCK: u64 = FILLED_BLOCKS + WRITTEN_BLOCKS;

/// A CDB of 10 bytes: operation, address, length; in blocks of 4 KiB.
fn ten(operation: u8, block: u64, count: u64) -> Vec<u8> {
    let [a, b, c, d] = ((block * SECTORS) as u32).to_be_bytes();
    let [high, low] = ((count * SECTORS) as u16).to_be_bytes();
    vec![operation, 0, a, b, c, d, 0, high, low, 0]
}

fn without_data(cdb: Vec<u8>) -> Command {
    Command { cdb, data_out: None, data_in_bytes: 0 }
}

fn bringing(cdb: Vec<u8>, data: Vec<u8>) -> Command {
    Command { cdb, data_out: Some(data), data_in_bytes: 0 }
}

fn read(block: u64) -> Command {
    Command { cdb: ten(0x28, block, 1), data_out: None, data_in_bytes: BLOCK_BYTES as u32 }
}

fn write(block: u64, data: Vec<u8>) -> Command {
    bringing(ten(0x2a, block, (data.len() / BLOCK_BYTES) as u64), data)
}

/// Returns incompressible bytes; always the same for one seed.
fn incompressible(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..bytes / 8).flat_map(|_| rng.draw().to_le_bytes()).collect()
}

/// Returns the content of a block of the filled part.
fn filled(block: u64) -> Vec<u8> {
    incompressible(block, BLOCK_BYTES)
}

/// Returns bytes that were never written before.
fn fresh(world: &mut World, bytes: usize) -> Vec<u8> {
    incompressible(world.rng.draw(), bytes)
}

/// Returns a random location for `blocks` blocks in the part that commands write.
fn place(world: &mut World, blocks: u64) -> u64 {
    FILLED_BLOCKS + world.rng.below(WRITTEN_BLOCKS / blocks) * blocks
}

/// Writes all that the commands below expect to find.
pub fn fill(world: &mut World) {
    let end = OFFLOADED_BLOCK + MIB_BLOCKS;
    for first in (0..end).step_by(FILL_STEP_BLOCKS as usize) {
        let data = (first..first + FILL_STEP_BLOCKS).flat_map(filled).collect();
        world.command(write(first, data));
    }
}

pub fn test_unit_ready(_: &mut World, _: u64) -> Command {
    without_data(vec![0; 6])
}

pub fn read_cached(_: &mut World, nth: u64) -> Command {
    read(nth % CACHED_BLOCKS)
}

/// In order, so that a block was evicted long before it is read again.
pub fn read_from_device(_: &mut World, nth: u64) -> Command {
    read(FILLED_BLOCKS / 2 + nth % (FILLED_BLOCKS / 2))
}

pub fn write_incompressible(world: &mut World, _: u64) -> Command {
    let data = fresh(world, BLOCK_BYTES);
    write(place(world, 1), data)
}

pub fn write_half_compressible(world: &mut World, _: u64) -> Command {
    let mut data = fresh(world, BLOCK_BYTES / 2);
    data.resize(BLOCK_BYTES, 0x20);
    write(place(world, 1), data)
}

pub fn write_duplicate(world: &mut World, _: u64) -> Command {
    let original = world.rng.below(FILLED_BLOCKS);
    write(place(world, 1), filled(original))
}

fn write_long(world: &mut World, blocks: u64) -> Command {
    let data = fresh(world, blocks as usize * BLOCK_BYTES);
    write(place(world, blocks), data)
}

pub fn write_64_kib(world: &mut World, _: u64) -> Command {
    write_long(world, 16)
}

pub fn write_256_kib(world: &mut World, _: u64) -> Command {
    write_long(world, 64)
}

/// Writes a MiB again that an offload has replaced.
fn refill(world: &mut World) {
    for step in 0..MIB_BLOCKS / FILL_STEP_BLOCKS {
        let data = fresh(world, FILL_STEP_BLOCKS as usize * BLOCK_BYTES);
        world.command(write(OFFLOADED_BLOCK + step * FILL_STEP_BLOCKS, data));
    }
}

pub fn write_same(world: &mut World, _: u64) -> Command {
    refill(world);
    bringing(ten(0x41, OFFLOADED_BLOCK, MIB_BLOCKS), vec![0; SECTOR_BYTES])
}

pub fn unmap(world: &mut World, _: u64) -> Command {
    refill(world);
    let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
    list.extend_from_slice(&(OFFLOADED_BLOCK * SECTORS).to_be_bytes());
    list.extend_from_slice(&((MIB_BLOCKS * SECTORS) as u32).to_be_bytes());
    list.extend_from_slice(&[0; 4]);
    bringing(vec![0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], list)
}

/// EXTENDED COPY (LID1) of one segment within the volume.
pub fn extended_copy(world: &mut World, _: u64) -> Command {
    let inquiry = vec![0x12, 1, 0x83, 2, 0, 0];
    let inquiry = Command { cdb: inquiry, data_out: None, data_in_bytes: 512 };
    let naa = naa_of(&world.command(inquiry).1).expect("page 83h has an NAA designator");
    let source_block = world.rng.below(FILLED_BLOCKS / MIB_BLOCKS) * MIB_BLOCKS;
    let mut list = vec![0; 16];
    list[1] = 0x18;
    list[3] = 64;
    list[11] = 28;
    for _ in 0..2 {
        list.extend_from_slice(&[0xe4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend_from_slice(&naa);
        list.extend_from_slice(&[0, 0, 0, 0, 0, 0, 2, 0]);
    }
    let [high, low] = ((MIB_BLOCKS * SECTORS) as u16).to_be_bytes();
    list.extend_from_slice(&[2, 0, 0, 0x18, 0, 0, 0, 1, 0, 0, high, low]);
    list.extend_from_slice(&(source_block * SECTORS).to_be_bytes());
    list.extend_from_slice(&(OFFLOADED_BLOCK * SECTORS).to_be_bytes());
    let mut cdb = vec![0; 16];
    cdb[0] = 0x83;
    cdb[13] = list.len() as u8;
    bringing(cdb, list)
}

/// Returns the NAA designator of the logical unit in page 83h (SPC-4, 7.8.6).
fn naa_of(page: &[u8]) -> Option<[u8; 16]> {
    let mut rest = page.get(4..)?;
    while let [code, kind, _, length, more @ ..] = rest {
        let designator = more.get(..usize::from(*length))?;
        if code & 0x0f == 1 && kind & 0x3f == 3 {
            return designator.try_into().ok();
        }
        rest = more.get(usize::from(*length)..)?;
    }
    None
}

/// Of one logical block, as a lock is taken: it expects the last content written.
pub fn compare_and_write(world: &mut World, nth: u64) -> Command {
    let block = FILLED_BLOCKS - 1;
    let lock = |nth: u64| incompressible(u64::MAX - nth, SECTOR_BYTES);
    if nth == 0 {
        let mut data = filled(block);
        data[..SECTOR_BYTES].copy_from_slice(&lock(0));
        world.command(write(block, data));
    }
    let mut cdb = vec![0; 16];
    cdb[0] = 0x89;
    cdb[2..10].copy_from_slice(&(block * SECTORS).to_be_bytes());
    cdb[13] = 1;
    bringing(cdb, [lock(nth), lock(nth + 1)].concat())
}
