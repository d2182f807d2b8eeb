//! Reading the log's records where they are said to be, or wherever they are.

use block::{BLOCK_BYTES, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::log::LogPosition;
use format::{Entry, Place, RecordHeader, Seal};

use crate::StoreError;
use crate::elsewhere::entry_blocks;
use crate::medium::Medium;

/// How much of the log is read at once: 1 MiB.
const WINDOW_BLOCKS: u64 = 256;

/// Reads the log in large pieces.
pub(crate) struct LogReader<'a> {
    pub(crate) medium: &'a Medium,
    window: Vec<FrameMut>,
    window_offset_bytes: u64,
    /// A segment that the log may go on in, and what stands where its first record can be.
    next: Option<(u32, Vec<Entrance>)>,
}

/// What stands where the first record of a segment can be.
#[derive(Clone, Copy, Debug)]
struct Entrance {
    block: u32,
    /// The record that seems to begin there, and the seal of the one before.
    follows: Option<(u64, Seal)>,
    unreadable: bool,
}

impl<'a> LogReader<'a> {
    pub(crate) fn new(medium: &'a Medium) -> Self {
        Self { medium, window: Vec::new(), window_offset_bytes: 0, next: None }
    }

    /// `count` blocks from `block` of a segment on, as bytes; `None` past the segment's end.
    pub(crate) fn blocks(
        &mut self,
        segment: u32,
        block: u32,
        count: u32,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let place = Place { segment, offset_units: block.saturating_mul(UNITS_PER_BLOCK) };
        let bytes = u64::from(count) * BLOCK_BYTES;
        if !self.medium.geometry().contains(place, bytes) {
            return Ok(None);
        }
        let offset = self.medium.geometry().offset_bytes(place);
        let mut out = Vec::with_capacity(bytes as usize);
        for index in 0..u64::from(count) {
            out.extend_from_slice(&self.frame(offset + index * BLOCK_BYTES)?[..]);
        }
        Ok(Some(out))
    }

    fn frame(&mut self, offset_bytes: u64) -> Result<&FrameMut, StoreError> {
        let end = self.window_offset_bytes + self.window.len() as u64 * BLOCK_BYTES;
        if !(self.window_offset_bytes..end).contains(&offset_bytes) {
            let left = (self.medium.disk.len_bytes() - offset_bytes) / BLOCK_BYTES;
            let mut window = std::mem::take(&mut self.window);
            window.resize_with(left.min(WINDOW_BLOCKS) as usize, FrameMut::stale);
            if self.medium.disk.read(offset_bytes, &mut window).is_err() {
                // A bad block must not stand for its neighbours.
                window.truncate(1);
                self.medium.disk.read_patiently(offset_bytes, &mut window)?;
            }
            (self.window, self.window_offset_bytes) = (window, offset_bytes);
        }
        Ok(&self.window[((offset_bytes - self.window_offset_bytes) / BLOCK_BYTES) as usize])
    }

    /// Looks at the places of a segment's first record, once for as long as the segment is next.
    fn entrances(&mut self, segment: u32) -> Vec<Entrance> {
        if let Some((known, entrances)) = &self.next
            && *known == segment
        {
            return entrances.clone();
        }
        let geometry = self.medium.geometry();
        let blocks = entry_blocks(geometry.blocks_per_segment());
        let looked_at = |block: u32| {
            let place = Place { segment, offset_units: block * UNITS_PER_BLOCK };
            let mut frames = [FrameMut::stale()];
            let read = self.medium.disk.read_patiently(geometry.offset_bytes(place), &mut frames);
            let header = RecordHeader::decode(&frames[0][..]).ok().filter(|_| read.is_ok());
            let follows = header.map(|header| (header.lsn, header.previous));
            Entrance { block, follows, unreadable: read.is_err() }
        };
        let entrances: Vec<Entrance> = blocks.map(looked_at).collect();
        self.next = Some((segment, entrances.clone()));
        entrances
    }

    /// The places at which the next record can be, in their order: behind the last one, and at the
    /// beginning of the next segment, as far as something stands there that seems to be it or that
    /// can't be read.
    pub(crate) fn places(&mut self, position: &LogPosition) -> Vec<LogPosition> {
        let mut places = vec![*position];
        let follows = Some((position.lsn, position.previous));
        let entrances = self.entrances(position.next_segment);
        let blocks = entrances
            .into_iter()
            .filter(|entrance| entrance.unreadable || entrance.follows == follows)
            .map(|entrance| entrance.block);
        let segment = position.next_segment;
        places.extend(blocks.map(|block| LogPosition { segment, block, ..*position }));
        places
    }

    /// The record at a position, if it is the one that must be there.
    pub(crate) fn record(
        &mut self,
        at: &LogPosition,
    ) -> Result<Option<(RecordHeader, Vec<Entry>)>, StoreError> {
        let found = self.record_at(at.segment, at.block)?;
        Ok(found.filter(|(header, _)| header.lsn == at.lsn && header.previous == at.previous))
    }

    /// Any record of this pool that begins at a block.
    pub(crate) fn record_at(
        &mut self,
        segment: u32,
        block: u32,
    ) -> Result<Option<(RecordHeader, Vec<Entry>)>, StoreError> {
        let place = Place { segment, offset_units: block.saturating_mul(UNITS_PER_BLOCK) };
        if !self.medium.geometry().contains(place, BLOCK_BYTES) {
            return Ok(None);
        }
        let first = self.frame(self.medium.geometry().offset_bytes(place))?;
        let Ok(header) = RecordHeader::decode(&first[..]) else { return Ok(None) };
        let count = u32::from(header.header_blocks);
        let Some(record) = self.blocks(segment, block, count)? else { return Ok(None) };
        let end = u64::from(block) + header.total_blocks();
        if !header.verify(&record, &self.medium.keys)
            || end > u64::from(self.medium.geometry().blocks_per_segment())
        {
            return Ok(None);
        }
        // The seal is right, so these are bytes that we wrote: if they make no sense, say so.
        let entries =
            header.entries(&record).map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Some((header, entries)))
    }
}
