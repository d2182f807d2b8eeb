//! Decompressing groups: blocks that were compressed together ([`pack`](super::pack)), as far as
//! needed.

use std::cell::RefCell;

use block::{BLOCK_BYTES, FRAME_BYTES, Frame, FrameMut};
use format::{Codec, PLACE_UNIT_BYTES, Shape};
use lzzzz::lz4;

thread_local! {
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
    /// The buffers of the thread's last [`Unpacked`]: of the right size, and in the processor's
    /// cache.
    static SPARE: RefCell<Buffers> = const { RefCell::new(Buffers::NONE) };
}

/// Decompresses the first `blocks` blocks of a stored group into `plain`; returns `false` if the
/// bytes are not such a group.
fn unpack(stored: &[u8], shape: Shape, blocks: usize, plain: &mut Vec<u8>) -> bool {
    let whole_bytes = usize::from(shape.group_blocks) * FRAME_BYTES;
    // Zstandard decompresses a group as a whole.
    let blocks_bytes = match shape.codec {
        Codec::Lz4 => whole_bytes.min(blocks * FRAME_BYTES),
        _ => whole_bytes,
    };
    plain.resize(blocks_bytes, 0);
    let packed = match stored {
        [low, high, rest @ ..] => rest.get(..usize::from(u16::from_le_bytes([*low, *high]))),
        _ => None,
    };
    let Some(packed) = packed else { return false };
    let unpacked = match shape.codec {
        Codec::Lz4 if blocks_bytes < whole_bytes => {
            lz4::decompress_partial(packed, plain, whole_bytes).ok()
        }
        Codec::Lz4 => lz4::decompress(packed, plain).ok(),
        Codec::Zstd => UNPACKER.with_borrow_mut(|unpacker| {
            let unpacker = match unpacker {
                Some(unpacker) => unpacker,
                None => unpacker.insert(zstd::bulk::Decompressor::new().ok()?),
            };
            unpacker.decompress_to_buffer(packed, &mut plain[..]).ok()
        }),
        Codec::Raw | Codec::Alias => None,
    };
    unpacked == Some(plain.len())
}

/// Extracts a block from the stored bytes of its group, or of itself.
pub(crate) fn block_in(stored: &[u8], shape: Shape) -> Option<Frame> {
    if shape.codec == Codec::Raw {
        return (stored.len() == FRAME_BYTES).then(|| FrameMut::from_bytes(stored).freeze());
    }
    let mut plain = Vec::new();
    let start = usize::from(shape.group_index) * FRAME_BYTES;
    let is_group = unpack(stored, shape, usize::from(shape.group_index) + 1, &mut plain);
    let block = plain.get(start..start + FRAME_BYTES).filter(|_| is_group)?;
    Some(FrameMut::from_bytes(block).freeze())
}

/// The last decompressed group and its key, because its blocks are needed one after another.
pub(crate) struct Unpacked<K> {
    held: Option<(K, Shape)>,
    buffers: Buffers,
}

/// The bytes of a group, stored and decompressed.
#[derive(Debug)]
struct Buffers {
    stored: Vec<u8>,
    plain: Vec<u8>,
}

impl Buffers {
    const NONE: Self = Self { stored: Vec::new(), plain: Vec::new() };
}

impl<K> Default for Unpacked<K> {
    fn default() -> Self {
        Self { held: None, buffers: SPARE.replace(Buffers::NONE) }
    }
}

impl<K> Drop for Unpacked<K> {
    fn drop(&mut self) {
        // Buffers are not kept at the end of a thread.
        let _ = SPARE.try_with(|spare| {
            spare.replace(std::mem::replace(&mut self.buffers, Buffers::NONE));
        });
    }
}

impl<K: PartialEq> Unpacked<K> {
    /// Returns whether it has this group, up to this block.
    pub(crate) fn holds(&self, key: &K, shape: Shape) -> bool {
        let whole = Shape { group_index: 0, ..shape };
        self.held.as_ref().is_some_and(|(held, of)| held == key && *of == whole)
            && self.buffers.plain.len() > usize::from(shape.group_index) * FRAME_BYTES
    }

    /// Decompresses a group from the blocks that contain it, beginning at byte `skip`: at least up
    /// to its block `last`. If it is damaged, and can't be decompressed so far, only up to the
    /// block of `shape`.
    pub(crate) fn unpack(&mut self, key: K, shape: Shape, last: u8, frames: &[Frame], skip: usize) {
        let Buffers { stored, plain } = &mut self.buffers;
        stored_bytes(frames, skip, shape, stored);
        let whole = Shape { group_index: 0, ..shape };
        let is_group = [last, shape.group_index]
            .into_iter()
            .any(|last| unpack(stored, shape, usize::from(last) + 1, plain));
        self.held = is_group.then_some((key, whole));
    }

    /// Returns a block of the group; `None` if it could not be decompressed.
    pub(crate) fn block(&self, shape: Shape) -> Option<Frame> {
        self.held.as_ref()?;
        let start = usize::from(shape.group_index) * FRAME_BYTES;
        let block = self.buffers.plain.get(start..start + FRAME_BYTES)?;
        Some(FrameMut::from_bytes(block).freeze())
    }
}

/// Returns the blocks that contain stored units: their number, and the bytes before the units in
/// the first.
pub(crate) fn covering_blocks(offset_units: u32, stored_units: u16) -> (usize, usize) {
    let start = u64::from(offset_units) * PLACE_UNIT_BYTES;
    let skip = start % BLOCK_BYTES;
    let bytes = skip + u64::from(stored_units) * PLACE_UNIT_BYTES;
    (bytes.div_ceil(BLOCK_BYTES) as usize, skip as usize)
}

/// Extracts the bytes of a group from the blocks that contain it.
fn stored_bytes(frames: &[Frame], skip: usize, shape: Shape, stored: &mut Vec<u8>) {
    stored.clear();
    let mut left = usize::from(shape.stored_units) * PLACE_UNIT_BYTES as usize;
    let mut skip = skip;
    for frame in frames {
        let here = &frame[skip..FRAME_BYTES.min(skip + left)];
        stored.extend_from_slice(here);
        left -= here.len();
        skip = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::pack::compress;
    use crate::tests::reduction::prose;

    fn text(seed: u64) -> Frame {
        FrameMut::from_bytes(&prose(8, seed)).freeze()
    }

    #[test]
    fn both_codecs_round_trip_groups() {
        for codec in [Codec::Lz4, Codec::Zstd] {
            for blocks in 1..=8u8 {
                let frames: Vec<Frame> = (0..u64::from(blocks)).map(text).collect();
                let group: Vec<&Frame> = frames.iter().collect();
                let packed = compress(&group, codec).expect("text is shortened");
                let shape = Shape {
                    codec,
                    stored_units: packed.units(),
                    group_index: 0,
                    group_blocks: blocks,
                };
                let mut plain = Vec::new();
                for first in 1..=usize::from(blocks) {
                    assert!(unpack(&packed.bytes, shape, first, &mut plain));
                    assert!(plain.len() >= first * FRAME_BYTES);
                    for (frame, block) in frames.iter().zip(plain.chunks(FRAME_BYTES)) {
                        assert!(frame[..] == *block);
                    }
                }
                let whole = usize::from(blocks);
                // Other bytes are no group, or one with different content, but never cause a panic.
                for cut in 0..packed.bytes.len() {
                    assert!(
                        cut > packed.bytes.len() - 64
                            || !unpack(&packed.bytes[..cut], shape, whole, &mut plain)
                    );
                }
            }
        }
    }

    #[test]
    fn a_group_is_decompressed_only_as_far_as_requested() {
        let frames: Vec<Frame> = (0..8).map(text).collect();
        let packed = compress(&frames.iter().collect::<Vec<_>>(), Codec::Lz4).unwrap();
        let stored: Vec<Frame> = packed
            .bytes
            .chunks(FRAME_BYTES)
            .map(|part| FrameMut::from_bytes(part).freeze())
            .collect();
        let shape = |group_index| Shape {
            codec: Codec::Lz4,
            stored_units: packed.units(),
            group_index,
            group_blocks: 8,
        };
        let mut group = Unpacked::default();
        for last in [2, 7, 0] {
            group.unpack((), shape(0), last, &stored, 0);
            for index in 0..8 {
                assert_eq!(group.holds(&(), shape(index)), index <= last, "{index} of {last}");
                let block = group.block(shape(index));
                assert!(block.is_none_or(|block| block[..] == frames[usize::from(index)][..]));
            }
        }
    }
}
