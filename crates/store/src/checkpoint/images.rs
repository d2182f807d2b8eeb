//! The blocks that a checkpoint writes.

use std::io;
use std::sync::Arc;

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::Place;
use format::map::{NODE_BYTES, Node};

use crate::chunks::medium::Medium;

/// The maximum number of blocks in one write.
const WRITE_BLOCKS_MAX: usize = 256;

/// An object to be written in whole blocks.
pub(crate) enum Image {
    Page(Frame),
    Nodes(Vec<Arc<Node>>),
    Bytes(Vec<u8>),
}

impl Image {
    /// Returns how many blocks it takes.
    fn blocks(&self) -> u64 {
        match self {
            Image::Page(_) | Image::Nodes(_) => 1,
            Image::Bytes(bytes) => bytes.len().div_ceil(BLOCK_BYTES as usize) as u64,
        }
    }

    fn frames(&self) -> Vec<Frame> {
        match self {
            Image::Page(frame) => vec![frame.clone()],
            Image::Nodes(nodes) => {
                let mut frame = FrameMut::zeroed();
                for (index, node) in nodes.iter().enumerate() {
                    node.encode(&mut frame[index * NODE_BYTES..(index + 1) * NODE_BYTES]);
                }
                vec![frame.freeze()]
            }
            Image::Bytes(bytes) => bytes
                .chunks(BLOCK_BYTES as usize)
                .map(|part| FrameMut::from_bytes(part).freeze())
                .collect(),
        }
    }
}

/// Returns the bytes of whole blocks of images, each counted once.
pub(crate) fn images_bytes(images: &[(Place, Image)]) -> u64 {
    images.iter().map(|(_, image)| image.blocks()).sum::<u64>() * BLOCK_BYTES
}

/// Writes images, contiguous ones together; returns the number of bytes. Calls `written` with their
/// progress, and `begun` with the segment of each write.
pub(crate) fn write_images(
    medium: &Medium,
    images: &[(Place, Image)],
    begun: &mut u32,
    written: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut start = Place::NONE;
    let mut written_blocks = 0;
    let mut batch: Vec<Frame> = Vec::new();
    for (place, image) in images {
        let follows = *place == start.plus_blocks(batch.len() as u32);
        if !batch.is_empty() && (!follows || batch.len() >= WRITE_BLOCKS_MAX) {
            write_batch(medium, start, &batch)?;
            written(batch.len() as u64 * BLOCK_BYTES);
            batch.clear();
        }
        if batch.is_empty() {
            start = *place;
            *begun = place.segment;
        }
        let frames = image.frames();
        written_blocks += frames.len() as u64;
        batch.extend(frames);
    }
    if !batch.is_empty() {
        write_batch(medium, start, &batch)?;
        written(batch.len() as u64 * BLOCK_BYTES);
    }
    let copies = if medium.version().mirrors_metadata() { 2 } else { 1 };
    Ok(copies * written_blocks * BLOCK_BYTES)
}

/// If there are second copies, a batch is in the first half of one segment, and contiguous in the
/// second half as well.
fn write_batch(medium: &Medium, start: Place, batch: &[Frame]) -> io::Result<()> {
    medium.disk.append(start, batch)?;
    if !medium.version().mirrors_metadata() {
        return Ok(());
    }
    let copy = medium.geometry_of(start.segment).copy_of(start, batch.len() as u64 * BLOCK_BYTES);
    let copy = copy.expect("metadata is placed in the first half of a segment");
    medium.disk.append(copy, batch)
}
