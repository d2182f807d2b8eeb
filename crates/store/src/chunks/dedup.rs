//! Deduplication on the way in: blocks that some chunk holds already are named, not stored.
//!
//! Done by the front end before an edit joins a record. The index says where a fingerprint was
//! seen; the chunk's content is read, from the cache or the device, and compared byte for byte.
//! While the record is on its way the chunk is pinned (`State::pins`), so that it can't be freed
//! before it is named. If it went before that, the edit is looked at again.

use std::sync::atomic::{AtomicU64, Ordering};

use format::page::ROWS_PER_PAGE;
use format::{ChunkId, ChunkRow, Fingerprint};

use crate::api::Pending;
use crate::asking::{Then, View};
use crate::chunks::index::Index;
use crate::edits::classify::Class;
use crate::edits::edit::Edit;
use crate::edits::put::Candidate;
use crate::fetch::{Content, Fetch};
use crate::store::Store;
use crate::world::World;
use crate::{ReadOperation, Started, StoreError, Token};

/// What was written around chunks that were found lately, for an index that can't name all.
pub(crate) struct Recent {
    index: Index,
    /// The row pages that were brought in last, by their number modulo the length.
    pages: Vec<AtomicU64>,
}

/// Bytes of fingerprints around recent hits: some 200,000.
const RECENT_BYTES: u64 = 2 << 20;
const RECENT_PAGES: usize = 1024;
/// Rows from a page's end on that bring in the next page as well.
const NEXT_PAGE_ROWS: u64 = 32;

impl Recent {
    pub(crate) fn new() -> Self {
        let mut pages = Vec::new();
        pages.resize_with(RECENT_PAGES, || AtomicU64::new(u64::MAX));
        Self { index: Index::new(RECENT_BYTES), pages }
    }

    /// A chunk was found: brings in what was written around it.
    fn bring_in(&self, world: View<'_>, chunk: ChunkId) {
        let page = chunk.0 / ROWS_PER_PAGE;
        let at = chunk.0 % ROWS_PER_PAGE;
        self.bring_in_page(world, page);
        if at >= ROWS_PER_PAGE - NEXT_PAGE_ROWS {
            self.bring_in_page(world, page + 1);
        } else if at < NEXT_PAGE_ROWS && page > 0 {
            self.bring_in_page(world, page - 1);
        }
    }

    fn bring_in_page(&self, world: View<'_>, page: u64) {
        let known = &self.pages[page as usize % RECENT_PAGES];
        if known.swap(page, Ordering::Relaxed) == page {
            return;
        }
        if world.index_page(&self.index, page).is_err() {
            // It was asked for, or can't be read.
            known.store(u64::MAX, Ordering::Relaxed);
        }
    }
}

/// Row pages that one turn brings back into the index: some 100 us, if they are in memory.
const REFILL_PAGES: u64 = 16;

impl World {
    /// The index is empty behind a start: from here on the rows of chunks below `end` are brought
    /// back, in the background, so that a start takes no longer for a larger pool.
    pub(crate) fn begin_refill(&self, end: u64) {
        *self.refill.lock() = 0..end.div_ceil(ROWS_PER_PAGE);
    }

    /// Whether rows are left to be brought back.
    pub(crate) fn refill_due(&self) -> bool {
        !self.refill.lock().is_empty()
    }

    /// Brings some rows back into the index; whether more are left.
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
    /// Puts the rows of a page into an index. One that can't be read brings nothing: it is told by
    /// whoever needs it.
    fn index_page(self, index: &Index, page: u64) -> Result<(), StoreError> {
        let first = page * ROWS_PER_PAGE;
        self.chunks.rows_of_page(self.medium, first, |at, raw| {
            if let Some(row) = ChunkRow::decode(raw).filter(|row| !row.handling.unshared) {
                index.insert(row.fingerprint, ChunkId(first + at));
            }
        })
    }

    /// A chunk that has this fingerprint and may be named.
    fn find_chunk(self, fingerprint: Fingerprint) -> Option<ChunkId> {
        let found = self.index.find(fingerprint).find(|id| self.may_share(*id, fingerprint));
        if !self.index.is_lossy() {
            return found;
        }
        if let Some(chunk) = found {
            self.recent.bring_in(self, chunk);
            return found;
        }
        self.recent.index.find(fingerprint).find(|id| self.may_share(*id, fingerprint))
    }

    /// Whether a chunk has this fingerprint, and may be named by one more entry.
    pub(crate) fn may_share(self, chunk: ChunkId, fingerprint: Fingerprint) -> bool {
        let row = self.chunks.get(self.medium, chunk.0, ChunkRow::decode);
        row.ok().flatten().is_some_and(|row| row.fingerprint == fingerprint && is_shareable(&row))
    }
}

/// Whether reduction may let one more name a chunk, or take it for an alias.
pub(crate) fn is_shareable(row: &ChunkRow) -> bool {
    !row.handling.unshared && (1..REFERENCES_MAX).contains(&row.reference_count)
}

/// More entries than this do not come to name one chunk by deduplication, so that copies, which
/// have to, always can.
pub(crate) const REFERENCES_MAX: u32 = 1 << 30;

impl Store {
    /// Looks at what an edit brings: finds what need not be stored, and compresses the rest.
    pub(crate) fn reduce(&self, mut edit: Box<Edit>, token: Token) -> Started {
        let world = &self.world;
        edit.classify(&world.medium.keys, |volume| {
            world.map_of(volume).map(|map| map.handling).unwrap_or_default()
        });
        let asked = std::mem::take(&mut edit.asked);
        let view = View::asking(world, &asked);
        let candidates = candidates(view, &edit);
        let mut fetch = Fetch::default();
        fetch.locate_chunks(view, candidates.iter().map(|candidate| candidate.chunk));
        if asked.is_waiting() {
            return asked.wait(world, Then::Reduce(edit));
        }
        edit.asked = asked;
        if candidates.is_empty() {
            return self.enter(edit, token);
        }
        // Under pressure the device has better things to do: the background pass finds it.
        if fetch.wants_reads() && self.writer.lock().queues.is_pressed() {
            fetch.drop_reads();
        }
        let reads = fetch.take_reads();
        if reads.is_empty() {
            return self.compared(edit, &candidates, &fetch, token);
        }
        let pending = Pending::Compare { fetch, candidates, edit };
        Started::Read(Box::new(ReadOperation { reads, pending }))
    }

    /// The candidates' content is there as far as it is to be had.
    pub(crate) fn compared(
        &self,
        mut edit: Box<Edit>,
        candidates: &[Candidate],
        fetch: &Fetch,
        token: Token,
    ) -> Started {
        let mut found = candidates.iter().zip(&fetch.blocks).peekable();
        for (step, put) in edit.puts_mut() {
            while let Some((candidate, fetched)) = found.next_if(|(c, _)| c.step == step) {
                let Content::Ready(held) = &fetched.content else { continue };
                let Some(class) = put.classes.get_mut(candidate.block) else { continue };
                if let Some(sum) = class.fingerprint()
                    && put.frames[candidate.block] == *held
                {
                    *class = Class::Known(sum, candidate.chunk);
                }
            }
        }
        self.enter(edit, token)
    }

    /// Decides how the rest is stored, and submits the edit.
    fn enter(&self, mut edit: Box<Edit>, token: Token) -> Started {
        for (_, put) in edit.puts_mut() {
            if put.packs.is_empty() {
                put.pack();
            }
        }
        self.submit_edit(edit, token)
    }
}

/// The blocks of an edit whose fingerprint was seen, and where.
fn candidates(world: View<'_>, edit: &Edit) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (step, put) in edit.puts() {
        // What was packed was looked at already.
        if put.handling.unshared || !put.packs.is_empty() {
            continue;
        }
        for (block, class) in put.classes.iter().enumerate() {
            let chunk = class.fingerprint().and_then(|sum| world.find_chunk(sum));
            candidates.extend(chunk.map(|chunk| Candidate { step, block, chunk }));
        }
    }
    candidates
}
