//! Reading the log ahead while its records are applied.
//!
//! The log is contiguous in a few segments, and all of it is read. So its next windows are read
//! while the previous ones are applied. What fails, or was not foreseen, is read again when it is
//! needed ([`crate::log::log_reader::LogReader`]), and only then does an error count.

use std::collections::VecDeque;

use block::FrameMut;
use format::Place;
use format::geometry::UNITS_PER_BLOCK;

use crate::chunks::medium::Medium;
use crate::chunks::reads::Reads;

/// How much of the log is read at once: 1 MiB.
pub(crate) const WINDOW_BLOCKS: u32 = 256;
/// How many such windows are in flight or waiting for use.
const WINDOWS_AHEAD: usize = 4;

/// Returns the number of blocks of a window that begins at a place: it ends with the first column,
/// in which records begin.
pub(super) fn window_blocks(medium: &Medium, place: Place) -> usize {
    let left = medium.geometry().rows().saturating_sub(place.offset_units / UNITS_PER_BLOCK);
    left.min(WINDOW_BLOCKS) as usize
}

/// Windows that are read ahead.
pub(super) struct Ahead {
    reads: Reads,
    /// The begin of each, its number of blocks, and the number of its read.
    windows: VecDeque<(Place, usize, u64)>,
    /// Memory of windows that were used.
    spare: Vec<FrameMut>,
}

impl Ahead {
    /// `None` if the medium can't read in parallel. `more` is the number of other reads in parallel
    /// with those of windows.
    pub(super) fn of(medium: &Medium, more: u32) -> Option<Self> {
        let reads = Reads::of(medium, WINDOWS_AHEAD as u32 + more)?;
        Some(Self { reads, windows: VecDeque::new(), spare: Vec::new() })
    }

    /// Reads single blocks in parallel, and waits for them; returns those that could be read.
    pub(super) fn blocks(&mut self, places: impl Iterator<Item = Place>) -> Vec<Option<FrameMut>> {
        let queue = |place| self.reads.queue(place, vec![FrameMut::stale()]);
        let numbers: Vec<u64> = places.map(queue).collect();
        self.reads.start();
        let read = |number| self.reads.end(number).and_then(|mut frames| frames.pop());
        numbers.into_iter().map(read).collect()
    }

    /// Returns the memory of a window for reuse.
    pub(super) fn give_back(&mut self, window: Vec<FrameMut>) {
        self.spare = window;
    }

    /// Returns the window that contains a block, if it was read ahead, and where it begins. Drops
    /// those before it, or all if none contains it.
    pub(super) fn take(&mut self, place: Place) -> Option<(Place, Vec<FrameMut>)> {
        while let Some((begin, blocks, number)) = self.windows.pop_front() {
            let frames = self.reads.end(number);
            if (begin..begin.plus_blocks(blocks as u32)).contains(&place) {
                return frames.map(|frames| (begin, frames));
            }
        }
        None
    }

    /// Reads ahead after a window and, after the end of its segment, in the one that `follows`.
    pub(super) fn read_behind(
        &mut self,
        medium: &Medium,
        window: (Place, usize),
        follows: Option<u32>,
    ) {
        let mut last = self.windows.back().map_or(window, |(begin, blocks, _)| (*begin, *blocks));
        let own = window.0.segment;
        while self.windows.len() < WINDOWS_AHEAD {
            let mut begin = last.0.plus_blocks(last.1 as u32);
            if window_blocks(medium, begin) == 0 {
                // The next segment is not known yet.
                let Some(segment) = follows.filter(|_| begin.segment == own) else { break };
                begin = Place::of_block(segment, 0);
            }
            let blocks = window_blocks(medium, begin);
            let mut frames = std::mem::take(&mut self.spare);
            frames.resize_with(blocks, FrameMut::stale);
            let number = self.reads.queue(begin, frames);
            self.windows.push_back((begin, blocks, number));
            last = (begin, blocks);
        }
        self.reads.start();
    }
}
