//! Locations for a checkpoint in metadata segments, and the layout of its streams. What is placed
//! in the first half of a segment is also written to the same location of the second half, which is
//! reserved for it ([`format::Geometry::copy_of`]).

use block::BLOCK_BYTES;
use format::page::{PAGE_BYTES, PageRef, STREAM_HEADER_BYTES, StreamRef, encode_stream_piece};
use format::{Compared, NodeId, PLACE_UNIT_BYTES, Place, SegmentState};

use crate::StoreError;
use crate::checkpoint::captures::PagePlacer;
use crate::checkpoint::holes::Holes;
use crate::checkpoint::images::Image;
use crate::chunks::medium::Medium;
use crate::space::segments::Segments;

const PAGE_UNITS: u32 = (PAGE_BYTES as u64 / PLACE_UNIT_BYTES) as u32;

/// Allocates locations in metadata segments.
pub(crate) struct Placer<'a> {
    pub(super) segments: &'a mut Segments,
    /// The usable blocks of a segment.
    pub(super) blocks_per_segment: u32,
    pub(super) medium: &'a Medium,
    pub(super) lsn: u64,
    pub(crate) segment: u32,
    pub(crate) block: u32,
    /// Segments that were opened for it.
    pub(crate) opened: Vec<u32>,
    /// If segments are short: blocks that no checkpoint needs, and how many segments may be opened
    /// before these are used.
    pub(super) holes: Option<(Holes, u32)>,
}

impl Placer<'_> {
    /// Allocates `units` contiguous units of 64 bytes, from the start of a block.
    pub(crate) fn place(&mut self, units: u32) -> Result<Place, StoreError> {
        let units_per_block = format::geometry::UNITS_PER_BLOCK;
        let blocks = units.div_ceil(units_per_block);
        if self.segment == 0 || self.block + blocks > self.blocks_per_segment {
            if let Some((holes, 0)) = &mut self.holes
                && let Some(place) = holes.take(blocks)
            {
                self.segments.add_live(place, units)?;
                return Ok(place);
            }
            let opened = self.segments.open(SegmentState::Metadata, self.lsn);
            // The whole checkpoint was found to fit before its first part was placed.
            self.segment = opened.ok_or_else(|| {
                StoreError::Damaged("a checkpoint is larger than estimated".into())
            })?;
            self.opened.push(self.segment);
            self.block = 0;
            if let Some((_, openings)) = &mut self.holes {
                *openings = openings.saturating_sub(1);
            }
        }
        let first_block = self.medium.geometry_of(self.segment).first_metadata_block();
        let place = Place::of_block(self.segment, first_block + self.block);
        self.block += blocks;
        self.segments.add_live(place, units)?;
        Ok(place)
    }

    pub(crate) fn release(&mut self, place: Place, units: u32) -> Result<(), StoreError> {
        if place.is_none() {
            return Ok(());
        }
        self.segments.sub_live(place, units)
    }

    /// Returns the maximum bytes of content of a piece of a stream: a hole may be one block.
    fn piece_bytes_max(&self, medium: &Medium) -> usize {
        match self.holes {
            Some(_) => BLOCK_BYTES as usize - STREAM_HEADER_BYTES,
            None => medium.tuning.stream_piece_bytes_max,
        }
    }
}

impl PagePlacer for Placer<'_> {
    fn place_page(&mut self, old: PageRef) -> Result<Place, StoreError> {
        self.release(old.place, PAGE_UNITS)?;
        self.place(PAGE_UNITS)
    }

    fn release_page(&mut self, old: PageRef) -> Result<(), StoreError> {
        self.release(old.place, PAGE_UNITS)
    }
}

/// What of a piece of a stream counts as live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounded {
    /// Its units of 64 bytes.
    ToUnits,
    /// Its blocks: the live bytes of a segment then say how many of its blocks are unused.
    ToBlocks,
}

/// Places a stream, its last piece first, because each has the location of the next one.
pub(crate) fn add_stream(
    medium: &Medium,
    placer: &mut Placer<'_>,
    content: &[u8],
    rounded: Rounded,
    images: &mut Vec<(Place, Image)>,
    placed: &mut Vec<(Place, u32)>,
) -> Result<StreamRef, StoreError> {
    let mut next = StreamRef::default();
    let piece_bytes_max = placer.piece_bytes_max(medium);
    let pieces: Vec<&[u8]> = content.chunks(piece_bytes_max).collect();
    for part in pieces.into_iter().rev() {
        let units = match rounded {
            Rounded::ToUnits => stream_units(part.len()),
            Rounded::ToBlocks => stream_units(part.len()).next_multiple_of(PAGE_UNITS),
        };
        let place = placer.place(units)?;
        placed.push((place, units));
        next = push_piece(medium, place, next, part, images);
    }
    Ok(next)
}

fn stream_units(content_bytes: usize) -> u32 {
    let bytes = content_bytes + format::page::STREAM_HEADER_BYTES;
    bytes.div_ceil(PLACE_UNIT_BYTES as usize) as u32
}

fn push_piece(
    medium: &Medium,
    place: Place,
    next: StreamRef,
    part: &[u8],
    images: &mut Vec<(Place, Image)>,
) -> StreamRef {
    let piece = encode_stream_piece(next, part);
    let page = PageRef { place, checksum: medium.keys.page_sum(&piece) };
    let reference = StreamRef { page, length_bytes: piece.len() as u32 };
    images.push((place, Image::Bytes(piece)));
    reference
}

/// Places the segment table of a pool that has it in a stream. The table describes the segments to
/// which it is itself written: so it is placed first, and encoded when nothing changes anymore.
pub(crate) fn add_segment_stream(
    medium: &Medium,
    placer: &mut Placer<'_>,
    images: &mut Vec<(Place, Image)>,
    placed: &mut Vec<(Place, u32)>,
) -> Result<StreamRef, StoreError> {
    let length = placer.segments.encoded_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < length {
        let bytes = (length - at).min(placer.piece_bytes_max(medium));
        let units = stream_units(bytes);
        let place = placer.place(units)?;
        placed.push((place, units));
        parts.push((place, at..at + bytes));
        at += bytes;
    }
    let content = placer.segments.encode();
    let mut next = StreamRef::default();
    for (place, range) in parts.into_iter().rev() {
        next = push_piece(medium, place, next, &content[range], images);
    }
    Ok(next)
}

/// Instead of the first chunk of a staged run: commands follow. A version that does not know them
/// refuses it as an invalid chunk.
pub(crate) const NO_CHUNK: u64 = u64::MAX;

/// Encodes: the number of nodes (8 bytes), their ids (8 each); then the first chunk (8) and the
/// count (4) of each staged run. Then, if there are any, [`NO_CHUNK`] (8), the number of COMPARE
/// AND WRITE commands (4), and these.
pub(crate) fn encode_pending(
    pending: &[NodeId],
    staged: &std::collections::BTreeMap<u64, u32>,
    compared: &[Compared],
) -> Vec<u8> {
    if pending.is_empty() && staged.is_empty() && compared.is_empty() {
        return Vec::new();
    }
    let mut out = (pending.len() as u64).to_le_bytes().to_vec();
    pending.iter().for_each(|id| out.extend_from_slice(&id.0.to_le_bytes()));
    for (first, count) in staged {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
    }
    if !compared.is_empty() {
        out.extend_from_slice(&NO_CHUNK.to_le_bytes());
        out.extend_from_slice(&(compared.len() as u32).to_le_bytes());
        compared.iter().for_each(|compared| compared.encode(&mut out));
    }
    out
}
