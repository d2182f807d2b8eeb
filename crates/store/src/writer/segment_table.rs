//! The maximum that a checkpoint needs for a segment table in pages.

use format::page::REFS_PER_DIRECTORY;

use crate::world::World;
use crate::writer::Writer;

impl Writer {
    /// Returns how many blocks of the segment table a checkpoint writes at most, if it writes
    /// `others` other blocks, and `more_rows` more rows change first.
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

/// The size of the table.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// The number of pages of rows.
    all: u64,
    /// The minimum number of levels of directories above each.
    height: u8,
}

impl Size {
    /// Returns how many blocks of the table a capture writes at most. `known` counts the changed
    /// pages of rows, and those of segments with metadata, because a capture may release something
    /// from any of them. In addition the rows of opened segments change: for these pages, the
    /// directories above them, and `others`. Each may have its row in a page of its own, and long
    /// pieces of streams leave up to half of each segment empty.
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

    /// Returns the maximum number of directories above this many pages.
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
