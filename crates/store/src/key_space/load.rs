//! Reading the key-value space of a checkpoint.

use format::geometry::UNITS_PER_BLOCK;
use format::key_space::{LEAF_NUMBERS_MAX, decode_pairs};
use format::page::StreamRef;
use format::{FormatError, LeafRow, Superblock};

use super::KeySpace;
use super::leaves::{Leaves, Pairs, Piece, StoredLeaf};
use crate::StoreError;
use crate::chunks::bad_copies::BadCopies;
use crate::chunks::medium::{Copied, Medium};
use crate::chunks::table::Table;

/// The content of a leaf, and its location.
pub(crate) struct ReadLeaf {
    content: Vec<u8>,
    pieces: Vec<Piece>,
    /// Whether a part was read from its second copy.
    is_second: bool,
}

/// Reads all pieces of a leaf.
pub(crate) fn read_leaf(medium: &Medium, first: StreamRef) -> Result<ReadLeaf, StoreError> {
    let mut leaf = ReadLeaf { content: Vec::new(), pieces: Vec::new(), is_second: false };
    let mut next = first;
    while next.length_bytes > 0 {
        let Copied { content: (behind, part), is_second } = medium.read_piece(next)?;
        leaf.content.extend(part);
        leaf.pieces.push(leaf_piece(next));
        leaf.is_second |= is_second;
        next = behind;
    }
    Ok(leaf)
}

fn damaged(text: &str) -> StoreError {
    StoreError::Damaged(format!("the key-value space: {text}"))
}

/// Loads the key-value space that a superblock refers to, with the rows of leaves. `stream` is the
/// content of its stream; leaves with a bad first copy are recorded.
///
/// # Errors
/// If a part can't be read, or is invalid.
pub(crate) fn load(
    medium: &Medium,
    (rows, bad): (&Table, &BadCopies<u64>),
    superblock: &Superblock,
    stream: &[u8],
) -> Result<KeySpace, StoreError> {
    if !superblock.features.has_leaves() || superblock.config.length_bytes > 0 {
        let mut space = KeySpace::of_stream(pairs_of(stream)?);
        if superblock.features.has_leaves() {
            space.divide();
        }
        return Ok(space);
    }
    let mut decoded = Vec::new();
    let lost = rows.visit(medium, &mut |_| {}, &mut |number, raw| {
        decoded.push((number, LeafRow::decode(raw)));
    });
    if let Some(lost) = lost.into_iter().next() {
        return Err(lost.error);
    }
    let mut found = Vec::new();
    for (number, row) in decoded {
        let row = row.filter(|_| number < LEAF_NUMBERS_MAX);
        let row = row.ok_or_else(|| damaged("the row of a leaf is invalid"))?;
        let ReadLeaf { content, pieces: stored, is_second } = read_leaf(medium, row.first)?;
        if is_second {
            bad.note(number);
        }
        let pairs = pairs_of(&content)?.into_iter().collect();
        found.push(StoredLeaf { number, stored, pairs });
    }
    let stored = Leaves::stored(found);
    let (leaves, pairs) = stored.ok_or_else(|| damaged("the keys of two leaves overlap"))?;
    Ok(KeySpace { pairs, leaves: Some(leaves), is_in_stream: false })
}

fn pairs_of(bytes: &[u8]) -> Result<Pairs, StoreError> {
    let pairs = decode_pairs(bytes).map(|pair| {
        let (key, value) = pair?;
        Ok((key.to_vec(), value.to_vec()))
    });
    pairs.collect::<Result<Pairs, FormatError>>().map_err(|error| damaged(&error.to_string()))
}

/// Returns the units of a piece of a leaf, which has whole blocks.
pub(crate) fn leaf_piece(piece: StreamRef) -> Piece {
    let blocks = u64::from(piece.length_bytes).div_ceil(block::BLOCK_BYTES) as u32;
    (piece.page.place, blocks * UNITS_PER_BLOCK)
}
