//! A disk for large pools: it keeps a few bytes of each block whose content is derived from them.
//!
//! For a block that is the expansion of its first eight bytes ([`generated`]) only those are kept;
//! every write is checked for that. Everything else (records' headers, metadata) goes to a disk
//! below, at the same location. So a pool of 200 GB of distinct blocks takes 400 MB of memory and,
//! on the disk below, which may be sparse, the size of its metadata.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use block::{BLOCK_BYTES, DataOut, Frame, FrameMut};

use crate::rng::mix;

/// Blocks whose seeds are kept together: 64 MiB of the disk.
const REGION_BLOCKS: u64 = 16_384;

/// The seed of blocks that are not generated. Nothing is generated from it.
const KEPT_BELOW: u64 = 0;

/// Returns the content derived from a seed, which is not 0. No two seeds give the same.
pub fn generated(seed: u64) -> Frame {
    let mut frame = FrameMut::stale();
    expand(seed, &mut frame[..]);
    frame.freeze()
}

/// Returns consecutive generated blocks, to be written.
pub fn generated_data(seeds: Range<u64>) -> DataOut {
    let blocks = seeds.end - seeds.start;
    let mut data = DataOut::new((blocks * BLOCK_BYTES) as usize, 0);
    let len = data.len();
    seeds.zip(data.slices_mut(0, len)).for_each(|(seed, block)| expand(seed, block));
    data
}

fn expand(seed: u64, block: &mut [u8]) {
    let (first, rest) = block.split_at_mut(8);
    first.copy_from_slice(&seed.to_le_bytes());
    let state = mix(seed);
    rest.chunks_exact_mut(8)
        .zip(1..)
        .for_each(|(to, index)| to.copy_from_slice(&word(state, index).to_le_bytes()));
}

/// Returns the word after the seed at each index. No word depends on the previous one: pools of 200
/// GB are made of them.
fn word(state: u64, index: u64) -> u64 {
    let mixed = state.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Returns the seed of a block, or [`KEPT_BELOW`].
fn seed_of(frame: &Frame) -> u64 {
    let (first, rest) = frame.split_at(8);
    let seed = u64::from_le_bytes(first.try_into().expect("eight bytes"));
    let state = mix(seed);
    let mut pieces = rest.chunks_exact(8).zip(1..);
    let follows = pieces.all(|(piece, index)| *piece == word(state, index).to_le_bytes());
    if follows { seed } else { KEPT_BELOW }
}

/// The disk. It counts what it has read and written, so that tests can limit it.
pub struct SyntheticDisk {
    below: Arc<dyn sys::Disk>,
    regions: Vec<OnceLock<Box<[AtomicU64]>>>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
}

impl SyntheticDisk {
    /// Creates a disk as long as the one below.
    pub fn new(below: Arc<dyn sys::Disk>) -> Self {
        let regions = below.len_bytes().div_ceil(REGION_BLOCKS * BLOCK_BYTES);
        Self {
            below,
            regions: (0..regions).map(|_| OnceLock::new()).collect(),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the number of reads since it was created, of any length.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Returns the bytes that were read since it was created.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Relaxed)
    }

    /// Returns the bytes that were written since it was created.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Relaxed)
    }

    /// Returns the bytes of memory that the seeds take.
    pub fn memory_bytes(&self) -> u64 {
        let regions = self.regions.iter().filter(|region| region.get().is_some()).count() as u64;
        regions * REGION_BLOCKS * 8
    }

    fn seed(&self, block: u64) -> u64 {
        let region = self.regions[(block / REGION_BLOCKS) as usize].get();
        region.map_or(KEPT_BELOW, |seeds| seeds[(block % REGION_BLOCKS) as usize].load(Relaxed))
    }

    fn set_seed(&self, block: u64, seed: u64) {
        let region = &self.regions[(block / REGION_BLOCKS) as usize];
        if seed == KEPT_BELOW && region.get().is_none() {
            return;
        }
        let made = || (0..REGION_BLOCKS).map(|_| AtomicU64::new(KEPT_BELOW)).collect();
        region.get_or_init(made)[(block % REGION_BLOCKS) as usize].store(seed, Relaxed);
    }
}

/// Returns the next run of blocks from `at` on that are all kept below, or all generated.
fn run_of(seeds: &[u64], at: usize) -> usize {
    let below = seeds[at] == KEPT_BELOW;
    seeds[at..].iter().take_while(|seed| (**seed == KEPT_BELOW) == below).count()
}

impl sys::Disk for SyntheticDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let first = offset_bytes / BLOCK_BYTES;
        let seeds: Vec<u64> = (first..).take(frames.len()).map(|block| self.seed(block)).collect();
        let mut at = 0;
        while at < frames.len() {
            let run = at..at + run_of(&seeds, at);
            if seeds[at] == KEPT_BELOW {
                self.below.read((first + at as u64) * BLOCK_BYTES, &mut frames[run.clone()])?;
            } else {
                frames[run.clone()]
                    .iter_mut()
                    .zip(&seeds[run.clone()])
                    .for_each(|(frame, seed)| expand(*seed, &mut frame[..]));
            }
            at = run.end;
        }
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(frames.len() as u64 * BLOCK_BYTES, Relaxed);
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let first = offset_bytes / BLOCK_BYTES;
        let seeds: Vec<u64> = frames.iter().map(seed_of).collect();
        let mut at = 0;
        while at < frames.len() {
            let run = at..at + run_of(&seeds, at);
            if seeds[at] == KEPT_BELOW {
                self.below.write((first + at as u64) * BLOCK_BYTES, &frames[run.clone()])?;
            }
            for index in run.clone() {
                self.set_seed(first + index as u64, seeds[index]);
            }
            at = run.end;
        }
        self.written_bytes.fetch_add(frames.len() as u64 * BLOCK_BYTES, Relaxed);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}

#[cfg(test)]
mod tests {
    use sys::Disk;

    use super::*;
    use crate::disk::SimDisk;

    #[test]
    fn generated_and_other_data_read_back_as_written() {
        let below = Arc::new(SimDisk::new(128 << 20, 1));
        let disk = SyntheticDisk::new(below.clone());
        let odd = FrameMut::from_bytes(b"no seed gives this").freeze();
        let frames = [generated(1), odd.clone(), odd.clone(), generated(1 << 60), generated(7)];
        disk.write(64 << 20, &frames).unwrap();
        let read = |count: usize| {
            let mut read: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
            disk.read(64 << 20, &mut read).unwrap();
            read.into_iter().map(FrameMut::freeze).collect::<Vec<_>>()
        };
        assert!(read(5).iter().zip(&frames).all(|(a, b)| a[..] == b[..]));
        assert_eq!(disk.memory_bytes(), 8 * REGION_BLOCKS);
        // One is overwritten by the other kind, both ways; and a byte makes the difference.
        let mut nearly = generated(9).into_mut();
        nearly[4095] ^= 1;
        let frames = [odd, generated(2), nearly.freeze()];
        disk.write(64 << 20, &frames).unwrap();
        assert!(read(3).iter().zip(&frames).all(|(a, b)| a[..] == b[..]));
        assert_eq!((disk.read_bytes(), disk.written_bytes()), (8 << 12, 8 << 12));
        assert_eq!(disk.reads(), 2);
    }
}
