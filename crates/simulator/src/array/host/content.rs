//! What hosts write: blocks of 4 KiB from which the tag, and whether they are whole, can be
//! determined.

use crate::rng::mix;

/// Bytes in a block.
pub(super) const BLOCK_BYTES: usize = 4096;

/// A tag with this bit is for blocks with equal sectors, as WRITE SAME writes them.
pub(super) const PATTERN: u64 = 1 << 62;

/// The number of contents that are written again and again, so that blocks repeat.
pub(super) const COMMON_TAGS: u64 = 8;

/// Returns whether only one command writes this.
pub(super) fn is_own(tag: u64) -> bool {
    tag > COMMON_TAGS && tag & PATTERN == 0
}

/// Words in a sector.
const SECTOR_WORDS: u64 = 64;

/// Returns the content of a tag. 0 is zeros; a third of the others is half zeros, so that it
/// compresses.
pub(super) fn content(tag: u64) -> Vec<u8> {
    if tag & PATTERN != 0 {
        return pattern(tag).repeat(BLOCK_BYTES / (SECTOR_WORDS as usize * 8));
    }
    let words = if tag % 3 == 1 { 256 } else { 512 };
    let word = |at: u64| match at {
        0 => tag,
        at if tag == 0 || at >= words => 0,
        at => mix(tag ^ at << 40),
    };
    (0..512).flat_map(|at| word(at).to_le_bytes()).collect()
}

/// Returns the sector of a pattern; every other one repeats a single word.
pub(super) fn pattern(tag: u64) -> Vec<u8> {
    let word = |at: u64| if at == 0 || tag % 2 == 1 { tag } else { mix(tag ^ at << 40) };
    (0..SECTOR_WORDS).flat_map(|at| word(at).to_le_bytes()).collect()
}

/// Returns the tag of a block; `None` if no host has ever written it.
pub(super) fn tag_of(block: &[u8]) -> Option<u64> {
    let tag = u64::from_le_bytes(*block.first_chunk()?);
    (content(tag) == block).then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intact_block_yields_its_tag() {
        for tag in [0, 1, 2, 77, PATTERN | 1, PATTERN | 2] {
            let mut block = content(tag);
            assert_eq!((block.len(), tag_of(&block)), (BLOCK_BYTES, Some(tag)));
            block[4000] ^= 1;
            assert_eq!(tag_of(&block), None);
        }
    }
}
