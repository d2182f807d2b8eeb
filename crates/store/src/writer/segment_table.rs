//! What a checkpoint takes at most for the segment table in pages.

use format::page::REFS_PER_DIRECTORY;

use crate::world::World;
use crate::writer::Writer;

impl Writer {
    /// Blocks that a checkpoint writes of the segment table, at most, if it writes so many others,
    /// and so many more rows change before.
    pub(crate) fn segment_table_blocks(&self, world: &World, others: u64, more_rows: u64) -> u64 {
        let segments = &self.state.segments;
        let Some(pages) = &segments.pages else { return 0 };
        let table = &world.segment_table;
        let marked = table.dirty.lock().len() as u64;
        let changed = pages.changed_count() + marked + more_rows;
        let metadata = segments.tally().metadata.len() as u64;
        let height = table.root.read().height;
        let size = Size { all: segments.page_count(), height };
        size.blocks_max(changed + metadata, others, self.next_checkpoint.segment_blocks().into())
    }
}

/// How large the table is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Pages of rows.
    all: u64,
    /// Directories above each, at least.
    height: u8,
}

impl Size {
    /// Blocks that a capture places of the table, at most. `known` are the pages of rows that have
    /// changed, and those of segments in which there is metadata: something may be released from
    /// any of these. Beside them rows change of segments that are opened: for these pages, the
    /// directories above them and `others`. Each may have its row in a page of its own, and long
    /// pieces of streams leave up to half of each empty.
    pub(crate) fn blocks_max(self, known: u64, others: u64, per_segment: u64) -> u64 {
        let mut pages = known.min(self.all);
        while pages < self.all {
            let placed = others + pages + self.directories_max(pages);
            let opened = (2 * placed).div_ceil(per_segment) + 1;
            let more = (known + opened).min(self.all);
            if more <= pages {
                break;
            }
            pages = more;
        }
        pages + self.directories_max(pages)
    }

    /// Directories above so many pages, at most.
    fn directories_max(self, pages: u64) -> u64 {
        let (mut here, mut all, mut sum, mut level) = (pages, self.all, 0, 0);
        while all > 1 || level < self.height {
            all = all.div_ceil(REFS_PER_DIRECTORY);
            here = here.min(all);
            sum += here;
            level += 1;
        }
        sum
    }
}
