//! The content of sectors: eight bytes, the *tag*, determine a whole sector, so that models are
//! small and a torn sector can be distinguished from every whole one. Some compress, and some are
//! repeated.

use block::SECTOR_BYTES;

use crate::rng::mix;

/// Determines the content of a sector. 0 is zeros; a tag whose halves are equal is a repeated
/// pattern of four bytes; any other is followed by bytes derived from it.
pub type Tag = u64;

const WORDS: usize = SECTOR_BYTES as usize / 8;

/// Returns a tag that no other number gives, and that is no pattern.
pub fn unique_tag(number: u64) -> Tag {
    // The halves differ: the upper one has its first bit set, and the lower one does not.
    mix(number) & 0xffff_ffff_7fff_ffff | 1 << 63
}

/// Returns a tag that no other number gives, whose sector compresses to a fraction.
pub fn packed_tag(number: u64) -> Tag {
    mix(number) & 0x7fff_ffff_ffff_ffff | 1 << 31
}

/// Returns a tag of one of a few blocks that are written again and again: sector `at` of block
/// `of`.
pub fn repeated_tag(of: u64, at: u64) -> Tag {
    let number = u64::MAX - (of * 8 + at);
    if of.is_multiple_of(2) { packed_tag(number) } else { unique_tag(number) }
}

/// Returns a tag whose sector is a pattern of four bytes.
pub fn pattern_tag(bits: u32) -> Tag {
    u64::from(bits) << 32 | u64::from(bits)
}

fn word(tag: Tag, index: usize) -> u64 {
    if index == 0 || (tag >> 32) as u32 == tag as u32 {
        return tag;
    }
    // Among tags that are no pattern, only those of compressible sectors have these two bits.
    if tag >> 63 == 0 && tag >> 31 & 1 == 1 {
        return tag ^ (index as u64 & 3);
    }
    mix(tag ^ index as u64)
}

/// Appends the sector of `tag`.
pub fn push_sector(tag: Tag, out: &mut Vec<u8>) {
    for index in 0..WORDS {
        out.extend_from_slice(&word(tag, index).to_le_bytes());
    }
}

/// Returns the sectors of `tags`.
pub fn bytes_of(tags: &[Tag]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tags.len() * SECTOR_BYTES as usize);
    tags.iter().for_each(|&tag| push_sector(tag, &mut out));
    out
}

/// Returns the tags of some sectors, or the index of one that is no whole sector ever written.
pub fn tags_of(bytes: &[u8]) -> Result<Vec<Tag>, usize> {
    let mut tags = Vec::with_capacity(bytes.len() / SECTOR_BYTES as usize);
    for (at, sector) in bytes.chunks(SECTOR_BYTES as usize).enumerate() {
        let (words, rest) = sector.as_chunks::<8>();
        let tag = words.first().map(|first| u64::from_le_bytes(*first)).ok_or(at)?;
        if words.len() != WORDS || !rest.is_empty() {
            return Err(at);
        }
        for (index, found) in words.iter().enumerate() {
            if u64::from_le_bytes(*found) != word(tag, index) {
                return Err(at);
            }
        }
        tags.push(tag);
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_and_a_torn_sector_is_detected() {
        let tags = [0, unique_tag(1), pattern_tag(7), packed_tag(2), repeated_tag(1, 2)];
        let mut bytes = bytes_of(&tags);
        assert_eq!(tags_of(&bytes), Ok(tags.to_vec()));
        bytes[3 * 512 + 77] ^= 1;
        assert_eq!(tags_of(&bytes), Err(3));
    }
}
