//! Data blocks of a request, and what is found out about them on their way into a record.

use block::{BLOCK_BYTES, BlockCount, BlockNumber, BlockRange, Frame, VolumeId};
use format::row::GROUP_BLOCKS_MAX;
use format::{ChunkId, Codec, Fingerprint, Handling, Keys, MapEntry};
use smallvec::SmallVec;

use crate::chunks::pack::{FEW_BLOCKS, Pack, Packs, leave, pack};
use crate::edits::classify::{Class, classify};
use crate::edits::edit::{Edit, Step};

/// New data for blocks of a volume.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) volume: VolumeId,
    pub(crate) start: BlockNumber,
    pub(crate) frames: Vec<Frame>,
    /// The class of each, once determined.
    pub(crate) classes: SmallVec<[Class; 1]>,
    /// How those that are [`Class::Data`] are stored, in order, once decided.
    pub(crate) packs: Packs,
    pub(crate) handling: Handling,
}

/// A block of a put that some chunk may already have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The step of the edit.
    pub(crate) step: usize,
    /// The block of the step.
    pub(crate) block: usize,
    pub(crate) chunk: ChunkId,
}

impl Put {
    /// Creates one with unexamined blocks.
    pub(crate) fn new(volume: VolumeId, start: BlockNumber, frames: Vec<Frame>) -> Self {
        let handling = Handling::default();
        let (classes, packs) = Default::default();
        Self { volume, start, frames, classes, packs, handling }
    }

    /// Returns what it changes.
    pub(crate) fn range(&self) -> BlockRange {
        BlockRange { start: self.start, count: BlockCount(self.frames.len() as u64) }
    }

    /// Returns a frame to be replaced: what was found out becomes void.
    pub(crate) fn frame_mut(&mut self, index: usize) -> Option<&mut Frame> {
        self.forget();
        self.frames.get_mut(index)
    }

    /// Discards what was found out.
    pub(crate) fn forget(&mut self) {
        self.classes.clear();
        self.packs.clear();
    }

    /// Returns whether the classes were determined.
    pub(crate) fn is_classified(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Detects zeros and patterns, and fingerprints the rest.
    pub(crate) fn classify(&mut self, keys: &Keys, handling: Handling) {
        self.handling = handling;
        self.classes = self.frames.iter().map(|frame| classify(keys, frame)).collect();
        if !handling.unshared {
            self.find_twins();
        }
    }

    /// Finds blocks that equal an earlier one of these.
    fn find_twins(&mut self) {
        if self.frames.len() < 2 {
            return;
        }
        let mut first: Vec<(Fingerprint, usize)> = Vec::with_capacity(self.classes.len());
        let sums = self.classes.iter().enumerate();
        first.extend(sums.filter_map(|(at, class)| Some((class.fingerprint()?, at))));
        first.sort_unstable();
        for pair in first.chunk_by(|a, b| a.0 == b.0) {
            let (sum, original) = pair[0];
            for &(_, at) in &pair[1..] {
                if self.frames[at] == self.frames[original] {
                    self.classes[at] = Class::Twin(sum, original);
                }
            }
        }
    }

    /// Decides how the rest is stored.
    pub(crate) fn pack(&mut self) {
        let classes = self.classes.iter().zip(&self.frames);
        let data: SmallVec<[&Frame; FEW_BLOCKS]> =
            classes.filter(|(class, _)| class.fingerprint().is_some()).map(|(_, f)| f).collect();
        self.packs = match self.handling.uncompressed {
            true => leave(data.len()),
            false => pack(&data, Codec::Lz4),
        };
    }

    /// Returns how many 4 KiB blocks it takes in a record, at most.
    pub(crate) fn stored_blocks(&self) -> usize {
        match self.is_classified() {
            true => self.packs.iter().map(Pack::stored_blocks).sum(),
            false => self.frames.len(),
        }
    }

    /// Returns how many chunks it creates: groups have several in less than a block each.
    pub(crate) fn new_chunks(&self) -> usize {
        match self.is_classified() {
            true => self.classes.iter().filter_map(Class::fingerprint).count(),
            false => self.frames.len(),
        }
    }

    /// Returns the existing chunks that it refers to.
    pub(crate) fn known(&self) -> impl Iterator<Item = (ChunkId, Fingerprint)> + '_ {
        self.classes.iter().filter_map(|class| match class {
            Class::Known(sum, chunk) => Some((*chunk, *sum)),
            _ => None,
        })
    }

    /// Returns the map entry of each block, given the first id of the new chunks.
    pub(crate) fn entries(&self, first: ChunkId) -> SmallVec<[MapEntry; FEW_BLOCKS]> {
        let mut next = first;
        let mut entries = SmallVec::<[MapEntry; _]>::with_capacity(self.classes.len());
        for class in &self.classes {
            entries.push(match class {
                Class::Uniform(entry) => *entry,
                Class::Data(_) => {
                    let chunk = next;
                    next.0 += 1;
                    MapEntry::Chunk(chunk)
                }
                Class::Known(_, chunk) => MapEntry::Chunk(*chunk),
                Class::Twin(_, original) => entries[*original],
            });
        }
        entries
    }
}

impl Edit {
    /// Returns the bytes that it writes, before reduction.
    pub(crate) fn put_bytes(&self) -> u64 {
        self.puts().map(|(_, put)| put.frames.len() as u64 * BLOCK_BYTES).sum()
    }

    /// Discards what was found out about its data blocks.
    pub(crate) fn forget(mut self: Box<Self>) -> Box<Self> {
        self.puts_mut().for_each(|(_, put)| put.forget());
        self
    }

    /// Returns the steps with data blocks, and their indexes.
    pub(crate) fn puts(&self) -> impl Iterator<Item = (usize, &Put)> {
        self.steps.iter().enumerate().filter_map(|(index, step)| match step {
            Step::Put(put) => Some((index, put)),
            _ => None,
        })
    }

    /// Returns the steps like [`Edit::puts`], mutable.
    pub(crate) fn puts_mut(&mut self) -> impl Iterator<Item = (usize, &mut Put)> {
        self.steps.iter_mut().enumerate().filter_map(|(index, step)| match step {
            Step::Put(put) => Some((index, put)),
            _ => None,
        })
    }
}

const _: () = assert!(GROUP_BLOCKS_MAX == 8, "a group's index takes three bits of its row");
