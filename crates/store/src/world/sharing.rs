//! Which chunks may get another reference: fingerprints that were seen, and what rows say about
//! them.

use format::page::ROWS_PER_PAGE;
use format::{ChunkId, ChunkRow, Fingerprint};

use crate::StoreError;
use crate::chunks::index::Index;
use crate::world::World;
use crate::world::view::View;

/// The number of row pages that one turn reloads into the index: about 100 us, if they are in
/// memory.
const REFILL_PAGES: u64 = 16;

impl World {
    /// Begins to refill the index, which is empty after a start: the rows of chunks below `end` are
    /// reloaded in the background, so that a start takes no longer for a larger pool.
    pub(crate) fn begin_refill(&self, end: u64) {
        *self.refill.lock() = 0..end.div_ceil(ROWS_PER_PAGE);
    }

    /// Returns whether rows are left to be reloaded.
    pub(crate) fn refill_due(&self) -> bool {
        !self.refill.lock().is_empty()
    }

    /// Reloads some rows into the index; returns whether more are left.
    pub(crate) fn refill_index(&self) -> bool {
        let (pages, more) = {
            let mut left = self.refill.lock();
            let first = left.start;
            left.start = left.end.min(first + REFILL_PAGES);
            (first..left.start, !left.is_empty())
        };
        pages.for_each(|page| drop(View::from(self).index_page(&self.index, page)));
        more
    }
}

impl View<'_> {
    /// Adds the rows of a page to an index. An unreadable page adds nothing: whoever needs it
    /// reports that.
    fn index_page(self, index: &Index, page: u64) -> Result<(), StoreError> {
        let first = page * ROWS_PER_PAGE;
        self.chunks.rows_of_page(self.medium, first, |at, raw| {
            if let Some(row) = ChunkRow::decode(raw).filter(|row| !row.handling.unshared) {
                index.insert(row.fingerprint, ChunkId(first + at));
            }
        })
    }

    /// Returns a chunk that has this fingerprint and may get another reference.
    pub(crate) fn find_chunk(self, fingerprint: Fingerprint) -> Option<ChunkId> {
        let found = self.index.find(fingerprint).find(|id| self.may_share(*id, fingerprint));
        if !self.index.is_lossy() {
            return found;
        }
        if let Some(chunk) = found {
            self.recent.bring_in(chunk, &|index, page| self.index_page(index, page));
            return found;
        }
        self.recent.index().find(fingerprint).find(|id| self.may_share(*id, fingerprint))
    }

    /// Returns whether a chunk has this fingerprint, and may get another reference.
    pub(crate) fn may_share(self, chunk: ChunkId, fingerprint: Fingerprint) -> bool {
        let row = self.chunks.get(self.medium, chunk.0, ChunkRow::decode);
        row.ok().flatten().is_some_and(|row| row.fingerprint == fingerprint && is_shareable(&row))
    }
}

/// Returns whether reduction may add a reference to a chunk, or make it an alias.
pub(crate) fn is_shareable(row: &ChunkRow) -> bool {
    !row.handling.unshared && (1..REFERENCES_MAX).contains(&row.reference_count)
}

/// Deduplication does not add references beyond this number, so that copies, which must, always
/// can.
pub(crate) const REFERENCES_MAX: u32 = 1 << 30;
