//! Scrubbing chunks: each in all of its copies.

use format::{ChunkId, ChunkRow};

use super::pages::StoredTree;
use super::repair::Rescued;
use super::{Repair, Step, What};
use crate::chunks::copies::{Wanted, mend_copies};
use crate::chunks::groups::{GroupReader, Image};
use crate::chunks::verify::{Stored, find_wrong_copies, read_chunk, read_chunks};

impl Step<'_> {
    /// Reads the chunks of some row pages; returns the next page.
    pub(super) fn chunks(&mut self, mut from: u64) -> Option<u64> {
        let store = self.store;
        let mut tree = StoredTree::new(0, self.checkpointer.superblock().chunks);
        while !self.is_spent() {
            let (number, page) = tree.page(self, from)?;
            let key = (0, number);
            // What is in memory is newer, and used by readers.
            let page = store.world.chunks.in_memory(key).or(page);
            if let Some(page) = page {
                self.chunk_rows(number, &page[..]);
            }
            from = number + 1;
        }
        Some(from)
    }

    fn chunk_rows(&mut self, page: u64, bytes: &[u8]) {
        let world = &self.store.world;
        let rows = bytes.chunks_exact(format::row::ROW_BYTES).enumerate();
        let ids = rows.map(|(at, raw)| (page * format::page::ROWS_PER_PAGE + at as u64, raw));
        let mut chunks: Vec<Stored> = ids
            .filter_map(|(id, raw)| Some(Stored { id: ChunkId(id), row: ChunkRow::decode(raw)? }))
            .filter(|chunk| !chunk.row.place.is_none())
            .collect();
        chunks.retain(|chunk| !world.unplaced.contains(chunk.id));
        chunks.sort_unstable_by_key(|chunk| (chunk.row.place, chunk.row.group_index));
        let units: u64 = chunks.iter().map(|chunk| u64::from(chunk.row.share_units())).sum();
        let unit = u64::from(format::geometry::UNITS_PER_BLOCK);
        let mut suspects: Vec<Stored> = Vec::new();
        // In stripes there is one, and parity is counted with the records.
        let copies = match world.medium.geometry().has_stripes() {
            true => 1,
            false => u64::from(world.medium.disk.copies()),
        };
        match copies {
            0 | 1 => read_chunks(&world.medium, &chunks, &Image::default(), &mut |chunk, found| {
                if found.is_err() {
                    suspects.push(*chunk);
                }
            }),
            _ => find_wrong_copies(&world.medium, &chunks, &mut |chunk| suspects.push(*chunk)),
        }
        suspects.sort_unstable_by_key(|chunk| chunk.id);
        suspects.dedup_by_key(|chunk| chunk.id);
        self.count(units.div_ceil(unit) * copies.max(1));
        for chunk in suspects {
            self.suspect(chunk.id, &chunk.row);
        }
    }

    /// Checks a chunk that was not right again: is it still wrong, and is it still there?
    fn suspect(&mut self, id: ChunkId, row: &ChunkRow) {
        let world = &self.store.world;
        let Ok(now) = world.chunk(id) else { return };
        // First the location, then whether its bytes are in flight: the reverse order of readers.
        if now.place != row.place || world.unplaced.contains(id) {
            return;
        }
        let stored = Stored { id, row: now };
        let copies = mend_copies(&world.medium, &Wanted::of_row(id, &now));
        if copies.mended > 0 {
            let offset_bytes = self.offset_bytes(now.place);
            self.find(What::Chunk(id.0), offset_bytes, Repair::Done);
        }
        if copies.frame.is_some()
            || read_chunk(&world.medium, &mut GroupReader::default(), &stored).is_ok()
        {
            return;
        }
        let offset_bytes = self.offset_bytes(now.place);
        self.find(What::Chunk(id.0), offset_bytes, Repair::Impossible);
        if let Some(frame) = world.cached_chunk(id)
            && world.is_intact(&frame, now.fingerprint)
        {
            self.pass.rescued.push(Rescued { id, fingerprint: now.fingerprint, frame });
        }
    }
}
