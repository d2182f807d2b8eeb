//! The data that guests write: recognizable, half of it compressible, verified by generating it
//! again.

use crate::random::Random;

/// The unit in which guests read and write.
pub const GUEST_BLOCK_BYTES: usize = 4096;

/// Fills one 4 KiB block with the content that a disk with this seed has there after this many
/// writes to it. The first half is noise, the second one letter, so that it compresses like a file
/// system's content, by about two.
pub fn fill_block(seed: u64, block: u64, version: u32, bytes: &mut [u8]) {
    let (noise, rest) = bytes.split_at_mut(GUEST_BLOCK_BYTES / 2);
    let version = u64::from(version);
    let mut random = Random::new(seed ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version << 40);
    random.fill(noise);
    noise[..8].copy_from_slice(&block.to_le_bytes());
    noise[8..16].copy_from_slice(&seed.to_le_bytes());
    noise[16..24].copy_from_slice(&version.to_le_bytes());
    rest.fill(b'h');
}

/// Fills a buffer with the initial content of the blocks from `first_block` on.
pub fn fill(seed: u64, first_block: u64, bytes: &mut [u8]) {
    for (block, chunk) in (first_block..).zip(bytes.chunks_exact_mut(GUEST_BLOCK_BYTES)) {
        fill_block(seed, block, 0, chunk);
    }
}

/// Returns one block of a datastore, as [`fill`] generates it.
pub fn datastore_block(seed: u64, block: u64) -> Vec<u8> {
    let mut bytes = vec![0; crate::datastore::BLOCK_BYTES as usize];
    fill(seed, block * (bytes.len() / GUEST_BLOCK_BYTES) as u64, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_differ_by_seed_place_and_version() {
        let mut seen = std::collections::HashSet::new();
        for (seed, block, version) in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)] {
            let mut bytes = vec![0; GUEST_BLOCK_BYTES];
            fill_block(seed, block, version, &mut bytes);
            assert!(seen.insert(bytes));
        }
        let whole = datastore_block(7, 3);
        let mut one = vec![0; GUEST_BLOCK_BYTES];
        fill_block(7, 3 * 256 + 5, 0, &mut one);
        assert_eq!(whole[5 * GUEST_BLOCK_BYTES..6 * GUEST_BLOCK_BYTES], one);
    }
}
