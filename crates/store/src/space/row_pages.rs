//! The pages of the segment table with rows that have changed since a checkpoint captured them.
//! Updated with each change of a row, at almost no cost.

use format::SegmentRow;
use format::page::PAGE_BYTES;
use format::segment_row::{SEGMENT_ROW_BYTES, SEGMENT_ROWS_PER_PAGE};

use crate::StoreError;
use crate::space::segments::Segments;

const ROWS: u64 = SEGMENT_ROWS_PER_PAGE as u64;
const BITS: usize = u64::BITS as usize;

/// The changed pages of rows.
#[derive(Debug, Default)]
pub(crate) struct RowPages {
    /// In the order in which they have changed first.
    changed: Vec<u64>,
    /// A bit for each page: whether it is among these.
    is_changed: Vec<u64>,
}

impl RowPages {
    /// Records that the row of a segment has changed.
    pub(crate) fn change(&mut self, segment: u32) {
        self.change_page(u64::from(segment / SEGMENT_ROWS_PER_PAGE));
    }

    fn change_page(&mut self, page: u64) {
        let (word, bit) = (page as usize / BITS, 1 << (page as usize % BITS));
        if self.is_changed.len() <= word {
            self.is_changed.resize(word + 1, 0);
        }
        if self.is_changed[word] & bit == 0 {
            self.is_changed[word] |= bit;
            self.changed.push(page);
        }
    }

    fn is_changed(&self, page: u64) -> bool {
        let word = self.is_changed.get(page as usize / BITS);
        word.is_some_and(|word| word & 1 << (page as usize % BITS) != 0)
    }

    /// Returns how many have changed.
    pub(crate) fn changed_count(&self) -> u64 {
        self.changed.len() as u64
    }

    /// Takes those that have changed.
    pub(crate) fn take(&mut self) -> Vec<u64> {
        for page in &self.changed {
            self.is_changed[*page as usize / BITS] &= !(1 << (*page as usize % BITS));
        }
        std::mem::take(&mut self.changed)
    }
}

impl Segments {
    /// Switches checkpoints to pages of rows. Those that are in a stream must all be written.
    pub(crate) fn divide(&mut self) {
        if self.pages.is_some() {
            return;
        }
        let mut pages = RowPages::default();
        if self.is_in_stream() {
            let used = self.all_rows().filter(|(_, row)| *row != SegmentRow::default());
            used.for_each(|(segment, _)| pages.change(segment));
        }
        self.pages = Some(pages);
    }

    /// Marks a page to be rewritten.
    pub(crate) fn change_page(&mut self, page: u64) {
        if let Some(pages) = &mut self.pages {
            pages.change_page(page);
        }
    }

    /// Returns how many pages hold all rows.
    pub(crate) fn page_count(&self) -> u64 {
        u64::from(self.count()).div_ceil(ROWS)
    }

    /// Takes the pages that have changed.
    pub(crate) fn take_changed_pages(&mut self) -> Vec<u64> {
        self.pages.as_mut().map_or_else(Vec::new, RowPages::take)
    }

    /// Returns whether a page has a row that is not zeros.
    pub(crate) fn uses_page(&self, page: u64) -> bool {
        self.rows_of_page(page).iter().any(|row| row.state != format::SegmentState::Free)
    }

    fn rows_of_page(&self, page: u64) -> &[SegmentRow] {
        self.rows_in(page * ROWS..(page + 1) * ROWS)
    }

    /// Encodes a page into `out`, which has its size.
    pub(crate) fn encode_page(&self, page: u64, out: &mut [u8]) {
        out.fill(0);
        let rows = self.rows_of_page(page).iter().zip((page * ROWS) as u32..);
        for ((row, segment), out) in rows.zip(out.chunks_exact_mut(SEGMENT_ROW_BYTES)) {
            row.encode(segment, out);
        }
    }

    /// Returns whether this is the content of a page, unless that has changed.
    pub(crate) fn is_page(&self, page: u64, stored: &[u8]) -> bool {
        let mut held = [0; PAGE_BYTES];
        self.encode_page(page, &mut held);
        held == *stored || self.pages.as_ref().is_some_and(|pages| pages.is_changed(page))
    }

    /// Loads a page of a checkpoint.
    ///
    /// # Errors
    /// If a row is impossible, unknown, or of a segment that does not exist.
    pub(crate) fn decode_page(
        &mut self,
        geometry: format::Geometry,
        page: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        for (segment, raw) in (page * ROWS..).zip(bytes.chunks_exact(SEGMENT_ROW_BYTES)) {
            let damaged = |text: &str| {
                let text = format!("the row of segment {segment} in the segment table: {text}");
                StoreError::Damaged(text)
            };
            let row = SegmentRow::decode(raw, segment as u32);
            let row = row.map_err(|error| damaged(&error.to_string()))?;
            if row == SegmentRow::default() {
                continue;
            }
            if segment >= u64::from(self.count()) {
                return Err(damaged("the pool does not have this segment"));
            }
            self.read(geometry, segment as u32, row)?;
        }
        Ok(())
    }
}
