//! Compression: up to eight consecutive blocks as one group, if that saves space.
//!
//! New data is compressed with LZ4, at the speed of memory. Data that is moved later (`reclaim`) is
//! compressed with Zstandard, which is slower, compresses better, and decompresses nearly as fast.
//! Blocks with evenly distributed bytes (media, archives, encrypted data) are not tried: a
//! histogram of an eighth of the block detects them. But bytes that repeat further on in the block
//! are distributed as evenly; searching the rest of the block for a few of its words detects those.

use std::cell::RefCell;

use block::{FRAME_BYTES, Frame};
use format::row::GROUP_BLOCKS_MAX;
use format::{Codec, PLACE_UNIT_BYTES};
use lzzzz::lz4::{self, ACC_LEVEL_DEFAULT as LZ4_LEVEL};
use smallvec::{SmallVec, smallvec};

/// Bytes of the exact length before a compressed group.
const LENGTH_BYTES: usize = 2;
/// The level of Zstandard: the last one whose speed is of the order of a device's.
const ZSTD_LEVEL: i32 = 3;
/// How many bytes of a block are sampled, in pieces of [`SAMPLE_PIECE_BYTES`].
const SAMPLE_BYTES: usize = 512;
const SAMPLE_PIECE_BYTES: usize = 64;
/// The number of histograms.
const COUNTERS: usize = 4;
const _: () = assert!(SAMPLE_BYTES / COUNTERS <= u8::MAX as usize);
/// Distances at which a word is searched for again: more than a histogram covers, and at most half
/// of a block. The length of records is usually a multiple of eight.
const REPEAT_MIN_BYTES: usize = 256;
const REPEAT_MAX_BYTES: usize = FRAME_BYTES / 2;
const WORD_BYTES: usize = 8;
/// The positions of the words that are searched for: multiples of their length.
const REPEAT_ANCHORS: [usize; 3] = [0, 1016, FRAME_BYTES - REPEAT_MAX_BYTES - WORD_BYTES];

/// Lists of this many blocks need no allocation.
pub(crate) const FEW_BLOCKS: usize = 16;

/// How blocks are stored, in order: a short write is one pack.
pub(crate) type Packs = SmallVec<[Pack; 1]>;

/// Blocks that are stored together.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) blocks: usize,
    /// Their compressed form, a multiple of 64 bytes; `None`: they are stored uncompressed.
    pub(crate) packed: Option<Packed>,
}

/// A compressed group, as stored.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) codec: Codec,
    pub(crate) bytes: Vec<u8>,
}

impl Packed {
    /// Returns its length, in units of 64 bytes.
    pub(crate) fn units(&self) -> u16 {
        (self.bytes.len() as u64 / PLACE_UNIT_BYTES) as u16
    }
}

impl Pack {
    fn raw(blocks: usize) -> Self {
        Self { blocks, packed: None }
    }

    /// Returns how many 4 KiB blocks it takes in a record, rounded up.
    pub(crate) fn stored_blocks(&self) -> usize {
        let packed = self.packed.as_ref();
        packed.map_or(self.blocks, |packed| packed.bytes.len().div_ceil(FRAME_BYTES))
    }
}

/// Divides blocks, in order, into packs.
pub(crate) fn pack(frames: &[&Frame], codec: Codec) -> Packs {
    let mut packs = Packs::new();
    let mut rest = frames;
    let random: SmallVec<[bool; FEW_BLOCKS]> =
        frames.iter().map(|frame| is_hopeless(frame)).collect();
    for alike in random.chunk_by(|a, b| a == b) {
        let (run, behind) = rest.split_at(alike.len());
        rest = behind;
        if alike[0] {
            add_raw(&mut packs, run.len());
            continue;
        }
        for group in run.chunks(usize::from(GROUP_BLOCKS_MAX)) {
            match compress(group, codec) {
                Some(packed) => packs.push(Pack { blocks: group.len(), packed: Some(packed) }),
                None => add_raw(&mut packs, group.len()),
            }
        }
    }
    packs
}

/// Returns packs of uncompressed blocks.
pub(crate) fn leave(blocks: usize) -> Packs {
    if blocks == 0 { Packs::new() } else { smallvec![Pack::raw(blocks)] }
}

fn add_raw(packs: &mut Packs, blocks: usize) {
    match packs.last_mut() {
        Some(last) if last.packed.is_none() => last.blocks += blocks,
        _ => packs.push(Pack::raw(blocks)),
    }
}

/// Returns whether the block is not worth trying to compress.
fn is_hopeless(frame: &Frame) -> bool {
    looks_random(frame) && !repeats(frame)
}

/// Returns whether a block that was stored uncompressed would be shorter if it were packed now.
pub(crate) fn gains(frame: &Frame) -> bool {
    !is_hopeless(frame) && compress(&[frame], Codec::Zstd).is_some()
}

/// Returns whether some word of the block occurs in it again, at a short distance. In random bytes
/// that happens in one of 2^53 blocks.
fn repeats(frame: &Frame) -> bool {
    let (words, _) = frame.as_chunks::<WORD_BYTES>();
    REPEAT_ANCHORS.iter().any(|anchor| {
        let at = anchor / WORD_BYTES;
        let sought = u64::from_ne_bytes(words[at]);
        let near = &words[at + REPEAT_MIN_BYTES / WORD_BYTES..=at + REPEAT_MAX_BYTES / WORD_BYTES];
        // All of them: comparing several at once takes no longer than an early exit.
        near.iter().fold(false, |found, word| found | (u64::from_ne_bytes(*word) == sought))
    })
}

/// Returns whether the block's bytes are distributed so evenly that no codec saves anything. The
/// sum of squares of their counts is about 1,530 for random bytes (of 512 bytes, with a deviation
/// of 45), and at least 2,500 for anything that a codec shortens by an eighth.
fn looks_random(frame: &Frame) -> bool {
    // Successive equal bytes are counted in different tables: otherwise each count would wait for
    // the previous one.
    let mut counts = [[0u8; 256]; COUNTERS];
    let step = FRAME_BYTES / (SAMPLE_BYTES / SAMPLE_PIECE_BYTES);
    // Each at another position of its part: content that repeats every 512 bytes is sampled
    // completely.
    for (part, start) in frame.chunks_exact(step).zip((0..).step_by(SAMPLE_PIECE_BYTES)) {
        let piece = &part[start..start + SAMPLE_PIECE_BYTES];
        for bytes in piece.chunks_exact(COUNTERS) {
            for (counts, byte) in counts.iter_mut().zip(bytes) {
                counts[usize::from(*byte)] += 1;
            }
        }
    }
    let count = |byte: usize| counts.iter().map(|counts| u32::from(counts[byte])).sum::<u32>();
    let squares: u32 = (0..256).map(|byte| count(byte) * count(byte)).sum();
    squares < 1_900
}

thread_local! {
    /// Buffers for a group before and after compression.
    static GROUP: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

#[cfg(test)]
thread_local! {
    /// Groups are written in their old form.
    pub(crate) static UNPADDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns whether groups are written in their old form: only in tests of pools that contain such.
fn unpadded() -> bool {
    #[cfg(test)]
    return UNPADDED.get();
    #[cfg(not(test))]
    false
}

/// Compresses a group, if that saves at least an eighth.
pub(crate) fn compress(group: &[&Frame], codec: Codec) -> Option<Packed> {
    GROUP.with_borrow_mut(|(plain, bytes)| {
        let plain = match group {
            [block] => &block[..],
            blocks => {
                plain.clear();
                blocks.iter().for_each(|frame| plain.extend_from_slice(&frame[..]));
                plain
            }
        };
        let most = plain.len() - plain.len() / 8;
        bytes.resize(LENGTH_BYTES + lz4::max_compressed_size(plain.len()), 0);
        let length = match codec {
            Codec::Lz4 => lz4::compress(plain, &mut bytes[LENGTH_BYTES..], LZ4_LEVEL).ok()?,
            Codec::Zstd => PACKER.with_borrow_mut(|packer| {
                let packer = match packer {
                    Some(packer) => packer,
                    None => packer.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).ok()?),
                };
                packer.compress_to_buffer(plain, &mut bytes[LENGTH_BYTES..]).ok()
            })?,
            Codec::Raw | Codec::Alias => return None,
        };
        let unit = PLACE_UNIT_BYTES as usize;
        // Each block counts at least one unit; otherwise its segment could appear empty.
        let least = if unpadded() { 0 } else { group.len() * unit };
        let stored = (LENGTH_BYTES + length).next_multiple_of(unit).max(least);
        if stored > most {
            return None;
        }
        bytes[..LENGTH_BYTES].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[LENGTH_BYTES + length..stored].fill(0);
        Some(Packed { codec, bytes: bytes[..stored].to_vec() })
    })
}

#[cfg(test)]
mod tests {
    use block::FrameMut;

    use super::*;

    fn text(seed: u64) -> Frame {
        let words = ["volume ", "segment ", "log ", "chunk ", "map\n"];
        let mut state = seed | 1;
        let mut bytes = Vec::new();
        while bytes.len() < FRAME_BYTES {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.extend_from_slice(words[(state >> 33) as usize % words.len()].as_bytes());
        }
        FrameMut::from_bytes(&bytes[..FRAME_BYTES]).freeze()
    }

    fn noise(seed: u64) -> Frame {
        FrameMut::from_bytes(&crate::tests::distinct(8, seed)).freeze()
    }

    /// A frame of repetitions of `period` bytes.
    fn repeated(period: usize, seed: u64) -> Frame {
        let part = &noise(seed)[..period];
        let bytes: Vec<u8> = part.iter().copied().cycle().take(FRAME_BYTES).collect();
        FrameMut::from_bytes(&bytes).freeze()
    }

    #[test]
    fn repetition_within_a_block_is_detected() {
        for period in [264, 512, 600, 1000, 1024, 1536, 2048] {
            let frame = repeated(period, period as u64);
            let packs = pack(&[&frame], Codec::Lz4);
            let stored = packs[0].packed.as_ref().map(|packed| packed.bytes.len());
            let least = period + 256;
            assert!(stored.is_some_and(|stored| stored <= least), "{period}: {stored:?}");
            assert!(gains(&frame), "{period}");
        }
        for seed in 1..2000 {
            assert!(is_hopeless(&noise(seed)), "{seed}");
        }
    }

    #[test]
    fn a_compressed_group_has_at_least_a_unit_per_block() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            for blocks in 1..=8 {
                let frames: Vec<Frame> = (0..blocks as u64)
                    .map(|of| {
                        FrameMut::from_bytes(&(of | 1 << 40).to_le_bytes().repeat(512)).freeze()
                    })
                    .collect();
                let packed = compress(&frames.iter().collect::<Vec<_>>(), codec).unwrap();
                assert!(usize::from(packed.units()) >= blocks, "{codec:?}, {blocks} blocks");
            }
        }
    }

    #[test]
    fn incompressible_blocks_are_stored_uncompressed_and_separately() {
        let frames = [text(1), noise(2), noise(3), text(4), text(5)];
        assert!(looks_random(&frames[1]) && !looks_random(&frames[0]));
        let packs = pack(&frames.iter().collect::<Vec<_>>(), Codec::Lz4);
        let shapes: Vec<(usize, bool)> =
            packs.iter().map(|pack| (pack.blocks, pack.packed.is_some())).collect();
        assert_eq!(shapes, [(1, true), (2, false), (2, true)]);
    }

    #[test]
    fn noise_before_each_sector_does_not_hide_the_rest() {
        let mut frame = FrameMut::from_bytes(&text(1)[..]);
        for (sector, noise) in frame.chunks_exact_mut(512).zip(noise(2).chunks_exact(512)) {
            sector[..64].copy_from_slice(&noise[..64]);
        }
        assert!(!looks_random(&frame.freeze()));
    }

    #[test]
    fn noise_looks_random_and_what_compresses_does_not() {
        let random = (0..2_000).filter(|seed| looks_random(&noise(*seed))).count();
        assert_eq!(random, 2_000);
        // Base64: the most even distribution that is still worth compressing, and only by
        // Zstandard.
        let letters = |seed| {
            let mut frame = FrameMut::from_bytes(&noise(seed)[..]);
            frame.iter_mut().for_each(|byte| *byte = b'0' + *byte % 64);
            frame.freeze()
        };
        assert!((0..2_000).all(|seed| !looks_random(&letters(seed))));
    }
}
