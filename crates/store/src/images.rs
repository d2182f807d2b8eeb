//! What a checkpoint writes, as blocks.

use std::io;
use std::sync::Arc;

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::Place;
use format::map::{NODE_BYTES, Node};

use crate::medium::Medium;

/// How much is written to the device at once.
const WRITE_BLOCKS_MAX: usize = 256;

/// Something to be written in whole blocks.
pub(crate) enum Image {
    Page(Frame),
    Nodes(Vec<Arc<Node>>),
    Bytes(Vec<u8>),
}

impl Image {
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

/// Writes images, those that stand in a row together; how many bytes that were. Tells `written` of
/// them as it goes on, and `begun` of the segment that each write goes to.
pub(crate) fn write_images(
    medium: &Medium,
    images: &[(Place, Image)],
    begun: &mut u32,
    written: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let (mut start_bytes, mut copy_bytes) = (0, None);
    let mut written_blocks = 0;
    let mut batch: Vec<Frame> = Vec::new();
    for (place, image) in images {
        let offset = medium.geometry().offset_bytes(*place);
        let follows = offset == start_bytes + batch.len() as u64 * BLOCK_BYTES;
        if !batch.is_empty() && (!follows || batch.len() >= WRITE_BLOCKS_MAX) {
            write_batch(medium, start_bytes, copy_bytes, &batch)?;
            written(batch.len() as u64 * BLOCK_BYTES);
            batch.clear();
        }
        if batch.is_empty() {
            start_bytes = offset;
            copy_bytes = copy_offset_bytes(medium, *place);
            *begun = place.segment;
        }
        let frames = image.frames();
        written_blocks += frames.len() as u64;
        batch.extend(frames);
    }
    if !batch.is_empty() {
        write_batch(medium, start_bytes, copy_bytes, &batch)?;
    }
    let copies = if medium.version().mirrors_metadata() { 2 } else { 1 };
    Ok(copies * written_blocks * BLOCK_BYTES)
}

/// Where the second copy of what is at `place` goes, if there is to be one.
fn copy_offset_bytes(medium: &Medium, place: Place) -> Option<u64> {
    if !medium.version().mirrors_metadata() {
        return None;
    }
    let geometry = medium.geometry();
    let copy = geometry.copy_of(place, BLOCK_BYTES);
    Some(geometry.offset_bytes(copy.expect("metadata is placed in the first half of a segment")))
}

/// A batch is in one segment, where there are second copies: so they stand in a row as well.
fn write_batch(
    medium: &Medium,
    start_bytes: u64,
    copy_bytes: Option<u64>,
    batch: &[Frame],
) -> io::Result<()> {
    medium.disk.write(start_bytes, batch)?;
    copy_bytes.map_or(Ok(()), |copy_bytes| medium.disk.write(copy_bytes, batch))
}
