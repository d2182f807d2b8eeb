//! Reading metadata from the device, and verifying its checksum.
//!
//! Metadata has two copies ([`Geometry::copy_of`]). If the first can't be read, or is not what was
//! written, the reader takes the second, and records that both are to be rewritten (`repairs`). On
//! several devices each of them has both copies, and all are tried before metadata counts as lost.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use block::{BLOCK_BYTES, FRAME_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::map::{NODE_BYTES, Node};
use format::page::{PAGE_BYTES, PageRef, StreamRef, decode_stream_piece};
use format::{
    Features, Fingerprint, FormatVersion, Geometry, Keys, PLACE_UNIT_BYTES, Place, Superblock,
};
use segments::Shared;

use crate::chunks::copies::Mends;
use crate::{StoreError, Tuning};

mod division;

use division::Widths;

/// The device, its division, and the keys of its checksums.
pub(crate) struct Medium {
    pub(crate) disk: Shared,
    part_bytes: u64,
    columns: u8,
    widths: Widths,
    /// Increases when the pool grows, before anything is placed in the new segments.
    segment_count: AtomicU32,
    /// The version and features with which the pool was opened.
    version: FormatVersion,
    features: Features,
    /// Whether the pool was upgraded since to the latest version, with all features.
    upgraded: AtomicBool,
    pub(crate) keys: Keys,
    pub(crate) tuning: Tuning,
    /// Repairs of copies that were found wrong.
    pub(crate) mends: Mends,
}

/// Metadata that was read.
#[derive(Clone, Debug)]
pub(crate) struct Copied<T> {
    pub(crate) content: T,
    /// Whether only its second copy was right.
    pub(crate) is_second: bool,
}

/// Where to read: a place, on the device that is read first, or on a given one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    place: Place,
    copy: Option<u32>,
}

impl At {
    /// A place on the device with this copy, see [`segments::Segments::copies`].
    pub(crate) fn on(place: Place, copy: u32) -> Self {
        Self { place, copy: Some(copy) }
    }

    pub(crate) fn place(self) -> Place {
        self.place
    }
}

impl From<Place> for At {
    fn from(place: Place) -> Self {
        Self { place, copy: None }
    }
}

fn damaged(what: &str, place: Place) -> StoreError {
    let Place { segment, offset_units } = place;
    let bytes = u64::from(offset_units) * PLACE_UNIT_BYTES;
    StoreError::Damaged(format!("{what} in segment {segment} at byte {bytes}"))
}

/// Returns how many blocks of a segment a checkpoint can fill.
pub(crate) fn metadata_blocks(geometry: Geometry, version: FormatVersion) -> u32 {
    match version.mirrors_metadata() {
        true => geometry.mirrored_blocks(),
        false => geometry.blocks_per_segment(),
    }
}

/// Returns the bytes before an object in its first block, and its number of blocks.
pub(crate) fn covering(place: Place, length_bytes: usize) -> (usize, usize) {
    let skip_units = place.offset_units % UNITS_PER_BLOCK;
    let skip = skip_units as usize * PLACE_UNIT_BYTES as usize;
    (skip, (skip + length_bytes).div_ceil(BLOCK_BYTES as usize))
}

/// Reads something, or changes what must be read for that, and retries once: an error that does not
/// repeat is not damage.
pub(crate) fn twice<T>(mut read: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    read().or_else(|_| read())
}

impl Medium {
    /// Returns whether `frame` has this fingerprint.
    pub(crate) fn is_intact(&self, frame: &Frame, fingerprint: Fingerprint) -> bool {
        self.keys.fingerprint(&frame[..]) == fingerprint
    }

    /// Returns an error unless the device still reads a superblock.
    pub(crate) fn answers(&self) -> Result<(), StoreError> {
        if self.disk.root_copies().iter().any(Result::is_ok) {
            return Ok(());
        }
        Err(StoreError::Io(std::io::Error::other("no superblock is readable")))
    }

    pub(crate) fn new(disk: Shared, superblock: &Superblock, tuning: Tuning) -> Self {
        let Geometry { part_bytes, segment_count, columns } = superblock.geometry;
        let segment_count = AtomicU32::new(segment_count);
        let Superblock { version, features, .. } = *superblock;
        let upgraded = AtomicBool::new(false);
        let keys = Keys::derive(&superblock.root_key);
        let widths = Widths::new(columns);
        let medium = Self {
            disk,
            part_bytes,
            columns,
            widths,
            segment_count,
            version,
            features,
            upgraded,
            keys,
            tuning,
            mends: Mends::default(),
        };
        medium.look_at_widths();
        medium
    }

    /// Returns the version of the format of the pool.
    pub(crate) fn version(&self) -> FormatVersion {
        match self.upgraded.load(Ordering::Acquire) {
            true => FormatVersion::default(),
            false => self.version,
        }
    }

    /// Returns the pool's features beyond that version.
    pub(crate) fn features(&self) -> Features {
        match self.upgraded.load(Ordering::Acquire) {
            true => self.features.with_known(),
            false => self.features,
        }
    }

    /// Switches to the latest version with all features: everything written from here on has it.
    pub(crate) fn upgraded(&self) {
        self.upgraded.store(true, Ordering::Release);
    }

    /// Reads the first copy; if it is not what was written, the second, and then both on each
    /// device that has them. The error is that of the first.
    fn read_either<T>(
        &self,
        place: Place,
        length_bytes: usize,
        read: impl Fn(At) -> Result<T, StoreError>,
    ) -> Result<Copied<T>, StoreError> {
        let error = match read(place.into()) {
            Ok(content) => return Ok(Copied { content, is_second: false }),
            Err(error) => error,
        };
        let second = self.geometry_of(place.segment).copy_of(place, length_bytes as u64);
        if let Some(Ok(content)) = second.map(|place| read(place.into())) {
            return Ok(Copied { content, is_second: true });
        }
        let devices = self.disk.copies();
        let on_devices = (0..devices).filter(|_| devices > 1).flat_map(|copy| {
            [Some(place), second].into_iter().flatten().map(move |place| At::on(place, copy))
        });
        for at in on_devices {
            // It was not where it is read first, so it is rewritten, as if it were a second copy.
            if let Ok(content) = read(at) {
                return Ok(Copied { content, is_second: true });
            }
        }
        Err(error)
    }

    fn read_frames_at(&self, at: At, frames: &mut [FrameMut]) -> Result<(), StoreError> {
        match at.copy {
            None => self.disk.read_patiently(at.place, frames)?,
            Some(copy) => self.disk.read_copy(at.place, copy, frames)?,
        }
        Ok(())
    }

    /// Reads `length_bytes` bytes from `place` on.
    pub(crate) fn read_bytes(
        &self,
        at: impl Into<At>,
        length_bytes: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let At { place, copy } = at.into();
        if !self.contains(place, length_bytes as u64) {
            return Err(damaged("a reference beyond the end of the pool", place));
        }
        let (skip, count) = covering(place, length_bytes);
        let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
        self.read_frames_at(At { place: place.block_start(), copy }, &mut frames)?;
        let mut bytes: Vec<u8> = Vec::with_capacity(count * BLOCK_BYTES as usize);
        frames.iter().for_each(|frame| bytes.extend_from_slice(&frame[..]));
        bytes.drain(..skip);
        bytes.truncate(length_bytes);
        Ok(bytes)
    }

    /// Reads a page of a table.
    pub(crate) fn read_page(&self, page: PageRef) -> Result<Copied<Frame>, StoreError> {
        self.read_either(page.place, PAGE_BYTES, |at| self.read_page_at(page, at))
    }

    /// Reads one copy of a page of a table.
    pub(crate) fn read_page_at(
        &self,
        page: PageRef,
        at: impl Into<At>,
    ) -> Result<Frame, StoreError> {
        let at = at.into();
        self.page_span(at.place)?;
        let mut frame = [FrameMut::stale()];
        self.read_frames_at(at, &mut frame)?;
        let [frame] = frame;
        self.page_in(frame, page)
    }

    /// Returns the block of a page, which fills exactly one.
    pub(crate) fn page_span(&self, place: Place) -> Result<(Place, usize, usize), StoreError> {
        if !self.contains(place, PAGE_BYTES as u64)
            || !place.offset_units.is_multiple_of(UNITS_PER_BLOCK)
        {
            return Err(damaged("a reference beyond the end of the pool", place));
        }
        Ok((place, 0, 1))
    }

    /// Verifies a frame as a page.
    pub(crate) fn page_in(&self, frame: FrameMut, page: PageRef) -> Result<Frame, StoreError> {
        if self.keys.page_sum(&frame[..]) != page.checksum {
            return Err(damaged("wrong checksum of a page", page.place));
        }
        Ok(frame.freeze())
    }

    /// Reads a node of the map.
    pub(crate) fn read_node(&self, page: PageRef, level: u8) -> Result<Copied<Node>, StoreError> {
        self.read_either(page.place, NODE_BYTES, |at| self.read_node_at(page, level, at))
    }

    /// Reads one copy of a node of the map.
    pub(crate) fn read_node_at(
        &self,
        page: PageRef,
        level: u8,
        at: impl Into<At>,
    ) -> Result<Node, StoreError> {
        self.node_of(&self.read_bytes(at, NODE_BYTES)?, page, level)
    }

    /// Returns the first block of a node, how many bytes come before it in that block, and its
    /// number of blocks.
    pub(crate) fn node_span(&self, place: Place) -> Result<(Place, usize, usize), StoreError> {
        if !self.contains(place, NODE_BYTES as u64) {
            return Err(damaged("a reference beyond the end of the pool", place));
        }
        let (skip, count) = covering(place, NODE_BYTES);
        Ok((place.block_start(), skip, count))
    }

    /// Extracts and verifies a node from the blocks with which it was read.
    pub(crate) fn node_in(
        &self,
        frames: &[FrameMut],
        page: PageRef,
        level: u8,
    ) -> Result<Node, StoreError> {
        // A copy has the same offset in its block.
        let (_, skip, _) = self.node_span(page.place)?;
        if let [frame] = frames
            && let Some(bytes) = frame.get(skip..skip + NODE_BYTES)
        {
            return self.node_of(bytes, page, level);
        }
        let mut bytes = Vec::with_capacity(frames.len() * FRAME_BYTES);
        frames.iter().for_each(|frame| bytes.extend_from_slice(&frame[..]));
        let bytes = bytes.get(skip..skip + NODE_BYTES);
        let bytes = bytes.ok_or_else(|| damaged("incomplete read of a node", page.place))?;
        self.node_of(bytes, page, level)
    }

    fn node_of(&self, bytes: &[u8], page: PageRef, level: u8) -> Result<Node, StoreError> {
        if self.keys.page_sum(bytes) != page.checksum {
            return Err(damaged("wrong checksum of a node", page.place));
        }
        Node::decode(bytes, level).map_err(|error| damaged(&error.to_string(), page.place))
    }

    /// Reads a piece of a stream: the reference to the next one, and its content.
    pub(crate) fn read_piece(
        &self,
        piece: StreamRef,
    ) -> Result<Copied<(StreamRef, Vec<u8>)>, StoreError> {
        let (place, length_bytes) = (piece.page.place, piece.length_bytes as usize);
        self.read_either(place, length_bytes, |at| self.read_piece_at(piece, at))
    }

    /// Reads one copy of a piece of a stream.
    pub(crate) fn read_piece_at(
        &self,
        piece: StreamRef,
        at: impl Into<At>,
    ) -> Result<(StreamRef, Vec<u8>), StoreError> {
        let (at, place) = (at.into(), piece.page.place);
        let bytes = self.read_bytes(at, piece.length_bytes as usize)?;
        if self.keys.page_sum(&bytes) != piece.page.checksum {
            return Err(damaged("wrong checksum of a stream", place));
        }
        let (behind, part) =
            decode_stream_piece(&bytes).map_err(|error| damaged(&error.to_string(), place))?;
        Ok((behind, part.to_vec()))
    }

    /// Reads a whole stream; `placed` gets the location of each piece, and its length in units of
    /// 64 bytes.
    pub(crate) fn read_stream(
        &self,
        first: StreamRef,
        placed: &mut Vec<(Place, u32)>,
    ) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        let mut next = first;
        while next.length_bytes > 0 {
            let (behind, part) = self.read_piece(next)?.content;
            content.extend(part);
            let units = u64::from(next.length_bytes).div_ceil(PLACE_UNIT_BYTES) as u32;
            placed.push((next.page.place, units));
            next = behind;
        }
        Ok(content)
    }
}
