//! Data for loads: the fraction of it that is duplicate, and how far the rest is compressible.

use crate::random::Random;

/// Deduplication works on blocks of this size.
const BLOCK_BYTES: usize = 4096;
/// The number of distinct bodies of blocks, 4 MiB: far more than any store compresses together, so
/// that neighbors have only in common what `compressible_percent` says.
const BODIES: usize = 1024;

/// The written data: blocks of 4 KiB, each with a number in its first eight bytes and a
/// pregenerated body, at the cost of eight bytes per block, and of one copy if some repeat.
#[derive(Debug)]
pub struct Content {
    /// The number of the first block.
    first: u64,
    /// How many distinct blocks were written.
    distinct: u64,
    duplicate_percent: u32,
    compressible_percent: u32,
    /// If blocks repeat, the body of each numbered block; otherwise empty, and buffers keep their
    /// bodies.
    bodies: Vec<u8>,
    random: Random,
}

impl Content {
    /// Creates data of which `duplicate_percent` percent of the blocks repeat earlier ones (any of
    /// them, with equal probability), and of which `compressible_percent` is one repeated byte.
    /// Data from different seeds has no block in common.
    pub fn new(seed: u64, duplicate_percent: u32, compressible_percent: u32) -> Self {
        let mut random = Random::new(seed);
        let first = random.next_u64();
        let bodies = match duplicate_percent {
            0 => Vec::new(),
            _ => bodies(BODIES * BLOCK_BYTES, compressible_percent, &mut random),
        };
        Self { first, distinct: 0, duplicate_percent, compressible_percent, bodies, random }
    }

    /// Returns a buffer for [`Content::put`].
    pub fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        bodies(bytes, self.compressible_percent, &mut self.random)
    }

    /// Fills each 4 KiB of the buffer (and a shorter tail) with the next data.
    pub fn put(&mut self, buffer: &mut [u8]) {
        for block in buffer.chunks_mut(BLOCK_BYTES) {
            let number = self.next_number();
            if !self.bodies.is_empty() {
                let at = number as usize % BODIES * BLOCK_BYTES;
                block.copy_from_slice(&self.bodies[at..at + block.len()]);
            }
            if let Some(mark) = block.first_chunk_mut::<8>() {
                *mark = self.first.wrapping_add(number).to_le_bytes();
            }
        }
    }

    /// Returns the number of the next block: a new one, or that of an earlier one.
    fn next_number(&mut self) -> u64 {
        if self.distinct > 0 && self.random.percent(self.duplicate_percent) {
            return self.random.below(self.distinct);
        }
        self.distinct += 1;
        self.distinct - 1
    }
}

/// Returns blocks that begin with random bytes, and end with `compressible_percent` of one repeated
/// byte.
fn bodies(bytes: usize, compressible_percent: u32, random: &mut Random) -> Vec<u8> {
    let mut buffer = vec![0x5A; bytes];
    let percent = 100 - compressible_percent.min(100) as usize;
    for block in buffer.chunks_mut(BLOCK_BYTES) {
        let noise = block.len() * percent / 100;
        random.fill(&mut block[..noise]);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Returns successive writes of 32 KiB as one sequence.
    fn written(content: &mut Content, writes: usize) -> Vec<u8> {
        let mut buffer = content.buffer(8 * BLOCK_BYTES);
        let mut all = Vec::new();
        for _ in 0..writes {
            content.put(&mut buffer);
            all.extend_from_slice(&buffer);
        }
        all
    }

    fn distinct(data: &[u8]) -> HashSet<&[u8]> {
        data.chunks(BLOCK_BYTES).collect()
    }

    #[test]
    fn blocks_repeat_as_often_as_requested() {
        for percent in [0, 50, 90] {
            let data = written(&mut Content::new(1, percent, 0), 2500);
            let repeated = 20_000 - distinct(&data).len();
            let asked = 20_000 * percent as usize / 100;
            assert!(repeated.abs_diff(asked) <= asked / 50, "{repeated} at {percent}%");
        }
    }

    #[test]
    fn repeated_blocks_are_drawn_evenly() {
        let data = written(&mut Content::new(1, 90, 0), 2500);
        let mut counts = std::collections::HashMap::new();
        for block in data.chunks(BLOCK_BYTES).skip(10_000) {
            *counts.entry(block).or_insert(0) += 1;
        }
        // 9,000 draws from at least 1,000 blocks: none is drawn much more often than others.
        assert!(counts.values().all(|count| *count <= 30));
    }

    #[test]
    fn other_seeds_give_other_blocks() {
        let one = written(&mut Content::new(1, 50, 50), 250);
        let two = written(&mut Content::new(2, 50, 50), 250);
        assert!(distinct(&one).is_disjoint(&distinct(&two)));
    }

    #[test]
    fn data_is_compressible_as_requested() {
        for (percent, least, most) in [(0, 0.99, 1.01), (50, 1.9, 2.0), (75, 3.7, 4.0)] {
            for duplicates in [0, 50] {
                let data = written(&mut Content::new(3, duplicates, percent), 250);
                // What is left if each block is kept once.
                let mut seen = HashSet::new();
                let kept: Vec<&[u8]> =
                    data.chunks(BLOCK_BYTES).filter(|block| seen.insert(*block)).collect();
                let packed: usize = kept
                    .chunks(8)
                    .map(|group| lz4_flex::block::compress(&group.concat()).len())
                    .sum();
                let ratio = (kept.len() * BLOCK_BYTES) as f64 / packed as f64;
                assert!((least..=most).contains(&ratio), "{percent}%, {duplicates}%: {ratio}");
            }
        }
    }
}
