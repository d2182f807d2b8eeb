//! The header of a record in one of several copies.

use block::{BLOCK_BYTES, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::log::LogPosition;
use format::{Geometry, Place, RecordHeader, RecordPlaces};

use crate::chunks::medium::Medium;

/// Reads the header blocks of any record of this pool that begins at a place, from one copy:
/// header, entries, the copy of the previous record, and zeros.
pub(super) fn header_in_copy(
    medium: &Medium,
    place: Place,
    copy: u32,
) -> Option<(RecordHeader, Vec<u8>)> {
    let read = |place: Place, count: u32| {
        let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
        medium.disk.read_copy(place, copy, &mut frames).ok()?;
        Some(frames)
    };
    let row = place.offset_units / UNITS_PER_BLOCK;
    let first = read(place, 1)?;
    let header = RecordHeader::decode(&first.first()?[..]).ok()?;
    let places = places_of(medium.geometry_of(place.segment), (place.segment, row), &header)?;
    let count = u32::from(header.header_blocks);
    let frames = match count {
        1 => first,
        // From the first block on, because only that determines the device.
        _ if count <= places.rows() => read(place, count)?,
        _ => {
            let read = |number| read(places.block(number), 1)?.pop();
            (0..count).map(read).collect::<Option<_>>()?
        }
    };
    let mut bytes = Vec::with_capacity(frames.len() * BLOCK_BYTES as usize);
    frames.iter().for_each(|frame| bytes.extend_from_slice(&frame[..]));
    let is_right = header.verify(&bytes, &medium.keys);
    header.clear_padding(&mut bytes);
    is_right.then_some((header, bytes))
}

/// Returns where the blocks of a record are that seems to begin in a row of a segment; `None` if it
/// would not end in that segment.
pub(crate) fn places_of(
    geometry: Geometry,
    (segment, row): (u32, u32),
    header: &RecordHeader,
) -> Option<RecordPlaces> {
    let rows = geometry.rows_for(header.total_blocks());
    let fits = u64::from(row) + rows <= u64::from(geometry.rows());
    let at = LogPosition { segment, block: row, ..LogPosition::default() };
    let blocks = (header.header_blocks.into(), header.payload_blocks);
    fits.then(|| RecordPlaces::new(geometry, &at, blocks))
}
