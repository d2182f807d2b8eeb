//! A log record before it is written: its entries, its payload, and who waits for it.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::Arc;

use block::{BLOCK_BYTES, BlockNumber, BlockRange, FRAME_BYTES, Frame, FrameMut, VolumeId};
use format::geometry::UNITS_PER_BLOCK;
use format::log::{RECORD_HEADER_BYTES, header_blocks};
use format::row::GROUP_BLOCKS_MAX;
use format::{
    ChunkId, Entry, Fingerprint, LogPosition, MapEntry, PLACE_UNIT_BYTES, RecordHeader,
    RecordVersion, Seal, StoreFlags,
};

use crate::Token;
use crate::chunks::medium::Medium;
use crate::chunks::pack::Packed;
use crate::chunks::pages::FastState;
use crate::edits::classify::Class;
use crate::edits::edit::{Edit, Step};
use crate::edits::entries::{entry_runs, repeated};
use crate::edits::grafts::Graft;
use crate::edits::put::Put;
use crate::edits::stage::{LinkedRun, run_starts};
use crate::log::packed_blocks::PackedBlocks;
use crate::log::relocation::Relocation;

mod closing;

/// Blocks of compressed groups as they were written, by their chunks.
pub(crate) type Originals = HashMap<ChunkId, Frame, FastState>;

/// Header and entries of a record, as they are written.
#[derive(Debug, Default)]
pub(crate) struct Sealed {
    pub(crate) frames: Vec<Frame>,
    /// What the next record has a copy of ([`RecordHeader::own_part`]).
    pub(super) own: Arc<[u8]>,
    pub(crate) seal: Seal,
}

/// Entries and payload that wait for the device.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
    pub(crate) entries_bytes: usize,
    /// Blocks that are stored as they are; once it is closed, all of the payload.
    pub(crate) frames: Vec<Frame>,
    /// How much of the payload was moved, by reclaim or the background pass.
    pub(crate) moved_blocks: usize,
    /// Blocks of metadata that it will change, as a rule.
    pub(crate) changes_blocks: u64,
    /// Compressed groups, each of whole units of 64 bytes, until it is closed.
    packed: PackedBlocks,
    /// What the blocks of compressed groups are.
    pub(crate) originals: Originals,
    /// Chunks that are not to be freed before this record was applied, because it names them.
    pub(crate) pins: Vec<ChunkId>,
    pub(crate) waiting: Vec<Token>,
    /// Requests that go on once it is durable: long copies whose part or piece it holds.
    pub(crate) staging: Vec<(Token, Box<Edit>)>,
    pub(crate) flush: bool,
    /// What its copies, clones and overwritten volumes read and set: nodes come to stand there, or
    /// are shared.
    pub(crate) grafts: Vec<Graft>,
    /// Volumes that its entries end, or give another size: until they are applied, nobody knows
    /// what fits them.
    pub(crate) reshaped: Vec<VolumeId>,
    /// What its heavy edits cost to apply: see `take`.
    pub(crate) work: u64,
    /// The oldest plan that one of its changes was made with (`plans`).
    pub(crate) plan: Option<u64>,
    /// Nodes that applying it makes, at most.
    pub(crate) nodes_max: u64,
    /// What its light ones cost.
    pub(crate) light_work: u64,
    /// Whether a job joined that brings much: see `bulk`.
    pub(crate) has_bulk: bool,
    /// Blocks of its payload that are stored as they are, once it is closed.
    whole_blocks: u32,
    /// How many blocks its header has, wherever it is sealed: where groups have a column each,
    /// which must stay theirs.
    header_blocks: Option<NonZeroU16>,
}

impl Record {
    /// Whether there is nothing to write and nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.is_empty() && self.staging.is_empty()
    }

    /// One that is over, emptied, with the memory of its lists: they are bounded as records are.
    pub(crate) fn emptied(self) -> Self {
        let Self { mut entries, mut frames, packed, mut originals, mut pins, mut waiting, .. } =
            self;
        debug_assert_eq!(packed.len_bytes(), 0, "it was closed");
        entries.clear();
        frames.clear();
        originals.clear();
        pins.clear();
        waiting.clear();
        Self { entries, frames, packed, originals, pins, waiting, ..Self::default() }
    }

    /// A change joins that was made with a plan.
    pub(crate) fn needs_plan(&mut self, number: u64) {
        self.plan = Some(self.plan.map_or(number, |oldest| oldest.min(number)));
    }

    /// What its edits of one kind cost.
    pub(crate) fn work_of(&mut self, light: bool) -> &mut u64 {
        if light { &mut self.light_work } else { &mut self.work }
    }

    /// Adds what an edit says. What is known of a COMPARE AND WRITE is applied before what it
    /// writes can be seen.
    pub(crate) fn add_edit(&mut self, next_chunk: &mut u64, mut edit: Box<Edit>) {
        self.entries.extend(edit.take_compared());
        for step in edit.steps {
            self.add_step(next_chunk, step);
        }
    }

    /// Adds what a step says; new chunks get their ids.
    fn add_step(&mut self, next_chunk: &mut u64, step: Step) {
        match step {
            Step::Fill { volume, range, entry } => self.entries.push(Entry::Fill {
                volume,
                start: range.start.0,
                count: range.count.0,
                entry,
            }),
            Step::Copy { source, from, destination, to } => {
                let taken = BlockRange { start: from, count: to.count };
                self.grafts.extend(Graft::of_copy((source, taken), (destination, to)));
                self.entries.push(Entry::Copy {
                    source,
                    source_start: from.0,
                    destination,
                    destination_start: to.start.0,
                    count: to.count.0,
                });
            }
            Step::Linked { volume, range, runs } => {
                for (start, run) in run_starts(range.start, &runs) {
                    self.entries.push(run_entry(volume, start, run.count, run.entry));
                }
            }
            Step::Repeat { volume, range, frame, fingerprint, handling } => {
                let flags = StoreFlags { handling, staged: false };
                let first = self.add_data(next_chunk, 1, [(fingerprint, frame)], flags);
                self.entries.push(Entry::Fill {
                    volume,
                    start: range.start.0,
                    count: range.count.0,
                    entry: MapEntry::Chunk(first),
                });
            }
            Step::Put(put) => self.add_put(next_chunk, put),
        }
    }

    /// Adds what is new of a put, as it was packed, and then what its blocks are.
    fn add_put(&mut self, next_chunk: &mut u64, put: Put) {
        let entries = put.entries(ChunkId(*next_chunk));
        let mut data = put
            .classes
            .iter()
            .zip(put.frames)
            .filter_map(|(class, frame)| Some((class.fingerprint()?, frame)));
        let flags = StoreFlags { handling: put.handling, staged: false };
        for pack in put.packs {
            let blocks = data.by_ref().take(pack.blocks);
            match pack.packed {
                None => drop(self.add_data(next_chunk, pack.blocks, blocks, flags)),
                Some(packed) => self.add_group(next_chunk, blocks, packed, flags),
            }
        }
        debug_assert!(data.next().is_none(), "what is new was packed");
        self.add_map(put.volume, put.start, &entries);
    }

    /// Adds entries that say what blocks are, one for each run.
    fn add_map(&mut self, volume: VolumeId, start: BlockNumber, entries: &[MapEntry]) {
        let mut at = start.0;
        for run in entry_runs(entries) {
            let count = run.len() as u64;
            self.entries.push(match repeated(run) {
                Some(entry) => Entry::Fill { volume, start: at, count, entry },
                None => run_entry(volume, at, count, run[0]),
            });
            at += count;
        }
    }

    /// Adds the blocks of a part, and says what names them.
    pub(crate) fn add_part(
        &mut self,
        next_chunk: &mut u64,
        frames: Vec<Frame>,
        classes: &[Class],
    ) -> Vec<LinkedRun> {
        let mut runs: Vec<LinkedRun> = Vec::new();
        let flags = StoreFlags { staged: true, ..StoreFlags::default() };
        let mut frames = frames.into_iter();
        let same = |a: &Class, b: &Class| match (a, b) {
            (Class::Data(_), Class::Data(_)) => true,
            (a, b) => a == b,
        };
        for run in classes.chunk_by(same) {
            let mine = frames.by_ref().take(run.len());
            let entry = match run[0] {
                Class::Uniform(entry) => {
                    mine.for_each(drop);
                    entry
                }
                _ => {
                    let data = run.iter().filter_map(Class::fingerprint).zip(mine);
                    MapEntry::Chunk(self.add_data(next_chunk, run.len(), data, flags))
                }
            };
            runs.push(LinkedRun { count: run.len() as u64, entry });
        }
        runs
    }

    /// Adds so many blocks to the payload as they are, and says what their first chunk is.
    fn add_data(
        &mut self,
        next_chunk: &mut u64,
        count: usize,
        blocks: impl IntoIterator<Item = (Fingerprint, Frame)>,
        flags: StoreFlags,
    ) -> ChunkId {
        let first = ChunkId(*next_chunk);
        let payload_units = self.frames.len() as u32 * UNITS_PER_BLOCK;
        let mut fingerprints = Vec::with_capacity(count);
        for (fingerprint, frame) in blocks {
            fingerprints.push(fingerprint);
            self.frames.push(frame);
        }
        *next_chunk += fingerprints.len() as u64;
        self.entries.push(Entry::Store { first, payload_units, flags, fingerprints });
        first
    }

    /// Adds a compressed group.
    fn add_group(
        &mut self,
        next_chunk: &mut u64,
        blocks: impl IntoIterator<Item = (Fingerprint, Frame)>,
        packed: Packed,
        flags: StoreFlags,
    ) {
        let first = ChunkId(*next_chunk);
        let mut fingerprints = Vec::with_capacity(usize::from(GROUP_BLOCKS_MAX));
        for (fingerprint, frame) in blocks {
            self.originals.insert(ChunkId(*next_chunk), frame);
            fingerprints.push(fingerprint);
            *next_chunk += 1;
        }
        let (codec, stored_units) = (packed.codec, packed.units());
        let payload_units = self.add_packed(&packed);
        self.entries.push(Entry::StoreGroup {
            first,
            payload_units,
            stored_units,
            codec,
            flags,
            fingerprints,
        });
    }

    /// Adds compressed bytes, and says where they are among those (see [`Record::close`]).
    fn add_packed(&mut self, packed: &Packed) -> u32 {
        let units = self.packed_units();
        self.packed.push(&packed.bytes);
        units
    }

    /// Adds chunks that move.
    pub(crate) fn add_relocation(&mut self, relocation: &mut Relocation) {
        self.moved_blocks += relocation.payload_blocks();
        let (frames, packed) = (self.frames.len() as u32 * UNITS_PER_BLOCK, self.packed_units());
        for entry in &mut relocation.entries {
            match entry {
                Entry::Relocate { payload_units, .. } => *payload_units += frames,
                Entry::RelocateGroup { payload_units, .. } => *payload_units += packed,
                _ => {}
            }
        }
        self.entries.append(&mut relocation.entries);
        self.frames.append(&mut relocation.frames);
        self.packed.push(&std::mem::take(&mut relocation.packed));
        self.originals.extend(relocation.originals.drain());
    }

    /// Units of 64 bytes that compressed groups take so far.
    fn packed_units(&self) -> u32 {
        (self.packed.len_bytes() as u64 / PLACE_UNIT_BYTES) as u32
    }

    /// 4 KiB blocks of payload so far.
    pub(crate) fn payload_blocks(&self) -> usize {
        self.frames.len() + self.packed.len_bytes().div_ceil(FRAME_BYTES)
    }

    /// How many blocks its header has if the record before is copied to it.
    pub(crate) fn header_blocks(&self, before: &[u8]) -> u32 {
        let laid_behind = self.header_blocks.map(|blocks| u32::from(blocks.get()));
        laid_behind.unwrap_or_else(|| header_blocks(self.entries_bytes, before.len()))
    }

    /// Header and entries, with what is copied of the record before.
    pub(crate) fn seal(
        &self,
        medium: &Medium,
        position: &LogPosition,
        (epoch, flushed_lsn): (u64, u64),
        before: &[u8],
    ) -> Sealed {
        let version = medium.version().records();
        let entries_bytes = version.entries_bytes(self.entries_bytes, self.entries.len());
        let before = if version == RecordVersion::V2 { &[] } else { before };
        let needs = |before: &[u8]| header_blocks(entries_bytes, before.len());
        let header = self.header_blocks.map_or_else(|| needs(before), |it| it.get().into());
        // Another record than the one that it was closed behind, and a longer one.
        let before = if needs(before) > header { &[] } else { before };
        assert!(needs(before) <= header, "a header keeps its room");
        let header_bytes = header as usize * BLOCK_BYTES as usize;
        let mut bytes = Vec::with_capacity(header_bytes);
        bytes.resize(RECORD_HEADER_BYTES, 0);
        self.entries.iter().for_each(|entry| version.add(entry, &mut bytes));
        let behind = RECORD_HEADER_BYTES + entries_bytes;
        assert_eq!(bytes.len(), behind, "the record has the room that was counted for it");
        bytes.extend_from_slice(before);
        bytes.resize(header_bytes, 0);
        let fields = RecordHeader {
            version,
            lsn: position.lsn,
            epoch,
            flushed_lsn,
            previous: position.previous,
            header_blocks: header as u16,
            payload_blocks: self.frames.len() as u32,
            entries_bytes: entries_bytes as u32,
            entry_count: self.entries.len() as u32,
            next_segment: position.next_segment,
            copied_bytes: before.len() as u32,
            seal: Seal::default(),
        };
        let seal = fields.seal(&mut bytes, &medium.keys);
        let frames = bytes
            .chunks_exact(BLOCK_BYTES as usize)
            .map(|block| FrameMut::from_bytes(block).freeze())
            .collect();
        Sealed { frames, own: bytes[..behind].into(), seal }
    }
}

/// Says that blocks are what `first` is: consecutive chunks from there on, or all alike.
fn run_entry(volume: VolumeId, start: u64, count: u64, first: MapEntry) -> Entry {
    match first {
        MapEntry::Chunk(first) => Entry::Map { volume, start, count: count as u32, first },
        entry => Entry::Fill { volume, start, count, entry },
    }
}
