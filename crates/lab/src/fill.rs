//! Data for loads: distinct in every 4 KiB block, compressible by a known share.

use crate::random::Random;

/// Deduplication works on blocks of this size.
const BLOCK_BYTES: usize = 4096;

/// Makes write buffers distinct from block to block at the price of eight bytes each.
#[derive(Debug)]
pub struct Stamper {
    next: u64,
}

impl Stamper {
    /// A stamper whose marks differ from those of other seeds.
    pub fn new(seed: u64) -> Self {
        Self { next: Random::new(seed).next_u64() }
    }

    /// Marks each 4 KiB of the buffer (and a shorter tail) with a number never used before.
    pub fn stamp(&mut self, buffer: &mut [u8]) {
        for block in buffer.chunks_mut(BLOCK_BYTES) {
            self.next = self.next.wrapping_add(1);
            if let Some(mark) = block.first_chunk_mut::<8>() {
                *mark = self.next.to_le_bytes();
            }
        }
    }
}

/// A buffer whose blocks are random at their beginning, and one repeated byte for
/// `compressible_percent` of them behind.
pub fn buffer(bytes: usize, compressible_percent: u32, random: &mut Random) -> Vec<u8> {
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
    use super::*;

    #[test]
    fn blocks_differ_and_half_is_noise() {
        let mut random = Random::new(1);
        let mut data = buffer(8192, 50, &mut random);
        let mut stamper = Stamper::new(1);
        stamper.stamp(&mut data);
        let first = data.clone();
        stamper.stamp(&mut data);
        assert_ne!(first[..4096], data[..4096]);
        assert_ne!(data[..4096], data[4096..]);
        assert!(data[2048..4096].iter().all(|byte| *byte == 0x5A));
        assert!(data[8..2048].iter().any(|byte| *byte != 0x5A));
    }
}
