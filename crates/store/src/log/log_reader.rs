//! Reading the log's records at known positions, or wherever they are.
//!
//! A record has a copy of the header and entries of the previous one. So one with a bad header is
//! found through the next record. That is looked for only if a header is bad, or the log ends.

use std::sync::Arc;

use block::{FRAME_BYTES, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::log::LogPosition;
use format::{Entry, Place, RecordHeader, RecordPlaces, Seal};

use crate::StoreError;
use crate::chunks::groups::Image;
use crate::chunks::medium::Medium;
use crate::log::ahead::{Ahead, WINDOW_BLOCKS, window_blocks};
use crate::log::copied_header::{header_in_copy, places_of};

/// The number of locations at which the first record of a segment can be.
const ENTRIES: u32 = 4;
/// The size of header and entries of most records, at most.
const HEADER_WINDOW_BLOCKS: usize = 4;

/// Returns the rows of a segment at which its first record can be, in order.
pub(crate) fn entry_blocks(segment_rows: u32) -> impl Iterator<Item = u32> + Clone {
    (0..ENTRIES).map(move |part| part * (segment_rows / ENTRIES))
}

/// A record that was found.
#[derive(Clone, Debug)]
pub(crate) struct ReadRecord {
    pub(crate) header: RecordHeader,
    pub(crate) entries: Vec<Entry>,
    /// What the next record has a copy of.
    pub(super) own: Arc<[u8]>,
}

impl ReadRecord {
    /// Decodes a record that is validated by its own seal, or by that of the next one. So we have
    /// written these bytes: if they are invalid, that is an error.
    fn of(header: RecordHeader, own: &[u8]) -> Result<Self, StoreError> {
        let entries =
            header.entries(own).map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Self { header, entries, own: own.into() })
    }
}

/// Reads the log in large windows.
pub(crate) struct LogReader<'a> {
    pub(super) medium: &'a Medium,
    window: Vec<FrameMut>,
    /// Where the window begins.
    window_place: Place,
    /// The size of windows, in blocks.
    window_blocks: usize,
    /// Reads ahead, if enabled.
    ahead: Option<Ahead>,
    /// The copy that is read; `None`: whichever is available.
    pub(super) copy: Option<u32>,
    /// A segment in which the log may continue, and the content of the locations where its first
    /// record can be.
    next: Option<(u32, Vec<Entrance>)>,
    /// Where the log is known to end.
    pub(crate) end: Option<LogPosition>,
}

/// The content of a location where the first record of a segment can be.
#[derive(Clone, Debug)]
struct Entrance {
    block: u32,
    /// The LSN of the record that seems to begin there, and the seal of the previous one: in any
    /// copy.
    follows: Vec<(u64, Seal)>,
    unreadable: bool,
}

impl<'a> LogReader<'a> {
    pub(crate) fn new(medium: &'a Medium) -> Self {
        let (window, window_place) = (Vec::new(), Place::NONE);
        let window_blocks = WINDOW_BLOCKS as usize;
        let (ahead, copy, next, end) = (None, None, None, None);
        Self { medium, window, window_place, window_blocks, ahead, copy, next, end }
    }

    /// A reader of headers and entries only, in small reads, which leaves the device to others.
    pub(crate) fn of_headers(medium: &'a Medium) -> Self {
        Self { window_blocks: HEADER_WINDOW_BLOCKS, ..Self::new(medium) }
    }

    /// Switches to small reads.
    pub(super) fn read_headers_only(&mut self) {
        self.window_blocks = HEADER_WINDOW_BLOCKS;
    }

    /// A reader for a caller that processes each record: the device reads ahead, if it can.
    pub(crate) fn reading_ahead(medium: &'a Medium) -> Self {
        Self { ahead: Ahead::of(medium, ENTRIES), ..Self::new(medium) }
    }

    /// Returns the medium.
    pub(crate) fn medium(&self) -> &'a Medium {
        self.medium
    }

    /// A reader with data that was read of a segment, from its beginning on.
    pub(crate) fn over(medium: &'a Medium, segment: u32, read: Vec<FrameMut>) -> Self {
        let window_place = Place::of_block(segment, 0);
        Self { window: read, window_place, ..Self::new(medium) }
    }

    /// Returns the last window: a whole segment, if it was read at once and nothing else was read
    /// since.
    pub(crate) fn into_image(self) -> Image {
        let frames = self.window.into_iter().map(FrameMut::freeze).collect();
        Image { place: self.window_place, frames }
    }

    /// Returns the first `count` blocks of a record, as bytes.
    fn blocks(&mut self, places: RecordPlaces, count: u32) -> Result<Vec<u8>, StoreError> {
        let mut out = Vec::with_capacity(count as usize * FRAME_BYTES);
        for number in 0..count {
            let place = places.block(number);
            if number < places.rows() || self.is_in_window(place) {
                out.extend_from_slice(&self.frame(place)?[..]);
                continue;
            }
            // The window is kept when blocks of other columns are read.
            let mut frame = [FrameMut::stale()];
            self.medium.disk.read_patiently(place, &mut frame)?;
            out.extend_from_slice(&frame[0][..]);
        }
        Ok(out)
    }

    fn is_in_window(&self, place: Place) -> bool {
        let end = self.window_place.plus_blocks(self.window.len() as u32);
        (self.window_place..end).contains(&place)
    }

    /// Returns a block within a segment.
    pub(super) fn frame(&mut self, place: Place) -> Result<&FrameMut, StoreError> {
        if !self.is_in_window(place) {
            let mut before = std::mem::take(&mut self.window);
            let ahead = self.ahead.as_mut().and_then(|ahead| ahead.take(place));
            (self.window_place, self.window) = match ahead {
                Some(window) => {
                    self.ahead
                        .iter_mut()
                        .for_each(|ahead| ahead.give_back(std::mem::take(&mut before)));
                    window
                }
                None => (place, self.read_window(place, before)?),
            };
            self.read_ahead();
        }
        let units = place.offset_units - self.window_place.offset_units;
        Ok(&self.window[(units / UNITS_PER_BLOCK) as usize])
    }

    /// Reads a window that begins at a block.
    fn read_window(
        &self,
        place: Place,
        mut window: Vec<FrameMut>,
    ) -> Result<Vec<FrameMut>, StoreError> {
        let blocks = window_blocks(self.medium, place).min(self.window_blocks);
        window.resize_with(blocks, FrameMut::stale);
        let disk = &self.medium.disk;
        let read = match self.copy {
            Some(copy) => disk.read_copy(place, copy, &mut window),
            None => disk.read(place, &mut window),
        };
        if read.is_err() {
            // A bad block must not hide its neighbors.
            window.truncate(1);
            match self.copy {
                Some(copy) => disk.read_copy(place, copy, &mut window)?,
                None => disk.read_patiently(place, &mut window)?,
            }
        }
        Ok(window)
    }

    /// Starts reading ahead after the window: in its segment, and then in the next one of the log.
    fn read_ahead(&mut self) {
        let Some(ahead) = &mut self.ahead else { return };
        let window = (self.window_place, self.window.len());
        let segment = self.window_place.segment;
        let follows = self.next.as_ref().map(|(next, _)| *next).filter(|next| *next != segment);
        ahead.read_behind(self.medium, window, follows);
    }

    /// Examines the locations of a segment's first record, once as long as that segment is the
    /// next.
    fn entrances(&mut self, segment: u32) -> Vec<Entrance> {
        if let Some((known, entrances)) = &self.next
            && *known == segment
        {
            return entrances.clone();
        }
        let blocks = entry_blocks(self.medium.geometry().rows());
        let places = blocks.clone().map(|block| Place::of_block(segment, block));
        let ahead = self.ahead.as_mut();
        let mut read = ahead.map(|ahead| ahead.blocks(places)).unwrap_or_default().into_iter();
        let looked_at = |block| self.entrance(segment, block, read.next().flatten());
        let entrances: Vec<Entrance> = blocks.map(looked_at).collect();
        self.next = Some((segment, entrances.clone()));
        entrances
    }

    /// Examines one location of a segment's first record, which may have been read already.
    fn entrance(&self, segment: u32, block: u32, read: Option<FrameMut>) -> Entrance {
        let is_read = read.is_some();
        let mut frames = [read.unwrap_or_else(FrameMut::stale)];
        let place = Place::of_block(segment, block);
        let unreadable = !is_read && self.medium.disk.read_patiently(place, &mut frames).is_err();
        let follows_in = |frame: &FrameMut| {
            let header = RecordHeader::decode(&frame[..]).ok()?;
            Some((header.lsn, header.previous))
        };
        let mut follows = Vec::from_iter(follows_in(&frames[0]).filter(|_| !unreadable));
        let disk = &self.medium.disk;
        let copies = disk.copies();
        for copy in (0..copies).filter(|_| copies > 1) {
            if disk.read_copy(place, copy, &mut frames).is_ok() {
                follows.extend(follows_in(&frames[0]));
            }
        }
        Entrance { block, follows, unreadable }
    }

    /// Returns the locations at which the next record can be, in order: after the last one, and at
    /// the beginning of the next segment, if what is there seems to be it or can't be read.
    pub(crate) fn places(&mut self, position: &LogPosition) -> Vec<LogPosition> {
        let mut places = vec![*position];
        let follows = (position.lsn, position.previous);
        let entrances = self.entrances(position.next_segment);
        let blocks = entrances
            .into_iter()
            .filter(|entrance| entrance.unreadable || entrance.follows.contains(&follows))
            .map(|entrance| entrance.block);
        let segment = position.next_segment;
        places.extend(blocks.map(|block| LogPosition { segment, block, ..*position }));
        places
    }

    /// Returns the locations at which a record with a bad header can be: after the last one, and at
    /// the beginning of the next segment. What follows a link is in a segment that only the link
    /// names.
    pub(crate) fn places_of_copies(position: &LogPosition) -> [LogPosition; 2] {
        [*position, LogPosition { segment: position.next_segment, block: 0, ..*position }]
    }

    /// Returns the record at a position, if it is the one that must be there, and of this epoch or
    /// a later one: from the device that is read first, or from another.
    pub(crate) fn record(
        &mut self,
        at: &LogPosition,
        epoch: u64,
    ) -> Result<Option<ReadRecord>, StoreError> {
        let is_it = |header: &RecordHeader| {
            header.lsn == at.lsn && header.previous == at.previous && header.epoch >= epoch
        };
        let found = self.record_at(at.segment, at.block);
        let is_over = match &found {
            Ok(found) => found.as_ref().is_some_and(|found| is_it(&found.header)),
            Err(error) => matches!(error, StoreError::Damaged(_)),
        };
        if is_over {
            return found;
        }
        match self.record_in_copies(at.segment, at.block, is_it)? {
            Some(found) => Ok(Some(found)),
            None => found.map(|_| None),
        }
    }

    /// Returns a record that another device has, if the one that is read first has none, or a
    /// different one.
    fn record_in_copies(
        &self,
        segment: u32,
        block: u32,
        is_it: impl Fn(&RecordHeader) -> bool,
    ) -> Result<Option<ReadRecord>, StoreError> {
        let copies = self.medium.disk.copies();
        let geometry = self.medium.geometry();
        let is_there = (1..geometry.segment_count).contains(&segment) && block < geometry.rows();
        if copies <= 1 || !is_there {
            return Ok(None);
        }
        let place = Place::of_block(segment, block);
        let mut found = (0..copies).filter_map(|copy| header_in_copy(self.medium, place, copy));
        match found.find(|(header, _)| is_it(header)) {
            Some((header, bytes)) => ReadRecord::of(header, header.own_part(&bytes)).map(Some),
            None => Ok(None),
        }
    }

    /// Returns any record of this pool that begins at a block, from its header or from the copy in
    /// the next record.
    pub(crate) fn record_or_copy_at(
        &mut self,
        segment: u32,
        block: u32,
    ) -> Result<Option<ReadRecord>, StoreError> {
        let by_header = self.record_at(segment, block);
        if matches!(by_header, Ok(Some(_)) | Err(StoreError::Damaged(_))) {
            return by_header;
        }
        if let Some(found) = self.record_in_copies(segment, block, |_| true)? {
            return Ok(Some(found));
        }
        for behind in self.blocks_behind(segment, block) {
            if let Some(found) = self.record_before(block, segment, (segment, behind))? {
                return Ok(Some(found));
            }
        }
        by_header
    }

    /// Returns where the record after one that begins at `block` can be in the same segment.
    pub(super) fn blocks_behind(&self, segment: u32, block: u32) -> std::ops::Range<u32> {
        let geometry = self.medium.geometry_of(segment);
        let (most, end) = (self.medium.tuning.record_rows_max(geometry), geometry.rows());
        block.saturating_add(1)..end.min(block.saturating_add(most).saturating_add(1))
    }

    /// Returns the record that begins at a block of a segment, from the copy in the one at another
    /// location, if that is the next one.
    pub(super) fn record_before(
        &mut self,
        block: u32,
        segment: u32,
        next: (u32, u32),
    ) -> Result<Option<ReadRecord>, StoreError> {
        // What can't be read proves nothing.
        let Ok(Some((header, bytes))) = self.bytes_at(next.0, next.1) else { return Ok(None) };
        let Ok(Some((before, own))) = header.record_before(&bytes) else { return Ok(None) };
        let geometry = self.medium.geometry_of(segment);
        let behind = u64::from(block) + geometry.rows_for(before.total_blocks());
        let follows = match next.0 == segment {
            true => behind == u64::from(next.1),
            false => behind <= u64::from(geometry.rows()),
        };
        if header.lsn != before.lsn + 1 || !follows || before.next_segment == segment {
            return Ok(None);
        }
        ReadRecord::of(before, own).map(Some)
    }

    /// Returns any record of this pool that begins at a block.
    pub(crate) fn record_at(
        &mut self,
        segment: u32,
        block: u32,
    ) -> Result<Option<ReadRecord>, StoreError> {
        match self.bytes_at(segment, block)? {
            Some((header, bytes)) => ReadRecord::of(header, header.own_part(&bytes)).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the header of any record of this pool that begins at a block.
    pub(super) fn header_at(
        &mut self,
        segment: u32,
        block: u32,
    ) -> Result<Option<RecordHeader>, StoreError> {
        Ok(self.bytes_at(segment, block)?.map(|(header, _)| header))
    }

    /// Returns the header and entries of any record of this pool that begins at a block, with the
    /// copy of the previous record.
    fn bytes_at(
        &mut self,
        segment: u32,
        block: u32,
    ) -> Result<Option<(RecordHeader, Vec<u8>)>, StoreError> {
        let geometry = self.medium.geometry_of(segment);
        if !(1..geometry.segment_count).contains(&segment) || block >= geometry.rows() {
            return Ok(None);
        }
        let first = self.frame(Place::of_block(segment, block))?;
        let Ok(header) = RecordHeader::decode(&first[..]) else { return Ok(None) };
        let Some(places) = places_of(geometry, (segment, block), &header) else { return Ok(None) };
        let bytes = self.blocks(places, header.header_blocks.into())?;
        Ok(header.verify(&bytes, &self.medium.keys).then_some((header, bytes)))
    }
}
