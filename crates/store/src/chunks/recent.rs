//! What was written near recent duplicates, for an index that can't hold all fingerprints.

use std::sync::atomic::{AtomicU64, Ordering};

use format::ChunkId;
use format::page::ROWS_PER_PAGE;

use crate::StoreError;
use crate::chunks::index::Index;

/// Fingerprints of what was written near recent duplicates.
pub(crate) struct Recent {
    index: Index,
    /// The last loaded row pages, by their number modulo the length.
    pages: Vec<AtomicU64>,
}

/// Memory for fingerprints near recent duplicates, about 200,000 of them.
const RECENT_BYTES: u64 = 2 << 20;
const RECENT_PAGES: usize = 1024;
/// Within this many rows of a page's end, the next page is loaded as well.
const NEXT_PAGE_ROWS: u64 = 32;

impl Recent {
    pub(crate) fn new() -> Self {
        let mut pages = Vec::new();
        pages.resize_with(RECENT_PAGES, || AtomicU64::new(u64::MAX));
        Self { index: Index::new(RECENT_BYTES), pages }
    }

    /// Returns the index of these fingerprints.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Loads what was written near a duplicate. `index_page` adds the rows of a page to an index.
    pub(crate) fn bring_in(
        &self,
        chunk: ChunkId,
        index_page: &impl Fn(&Index, u64) -> Result<(), StoreError>,
    ) {
        let page = chunk.0 / ROWS_PER_PAGE;
        let at = chunk.0 % ROWS_PER_PAGE;
        self.bring_in_page(index_page, page);
        if at >= ROWS_PER_PAGE - NEXT_PAGE_ROWS {
            self.bring_in_page(index_page, page + 1);
        } else if at < NEXT_PAGE_ROWS && page > 0 {
            self.bring_in_page(index_page, page - 1);
        }
    }

    fn bring_in_page(
        &self,
        index_page: &impl Fn(&Index, u64) -> Result<(), StoreError>,
        page: u64,
    ) {
        let known = &self.pages[page as usize % RECENT_PAGES];
        if known.swap(page, Ordering::Relaxed) == page {
            return;
        }
        if index_page(&self.index, page).is_err() {
            // It is being read, or can't be read.
            known.store(u64::MAX, Ordering::Relaxed);
        }
    }
}
