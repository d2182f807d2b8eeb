//! A log record before it is written: its entries, its payload, and the requests that wait for it.

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

/// Uncompressed blocks of compressed groups, by their chunks.
pub(crate) type Originals = HashMap<ChunkId, Frame, FastState>;

/// Header and entries of a record, as they are written.
#[derive(Debug, Default)]
pub(crate) struct Sealed {
    pub(crate) frames: Vec<Frame>,
    /// What the next record has a copy of ([`RecordHeader::own_part`]).
    pub(super) own: Arc<[u8]>,
    pub(crate) seal: Seal,
}

/// Entries and payload that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
    pub(crate) entries_bytes: usize,
    /// Blocks that are stored uncompressed; once it is closed, the whole payload.
    pub(crate) frames: Vec<Frame>,
    /// How many blocks of the payload reclaim or the background pass have moved.
    pub(crate) moved_blocks: usize,
    /// How many blocks of metadata it usually changes.
    pub(crate) changes_blocks: u64,
    /// Compressed groups, each of whole units of 64 bytes, until it is closed.
    packed: PackedBlocks,
    /// The uncompressed blocks of the groups.
    pub(crate) originals: Originals,
    /// Chunks that must not be freed before this record was applied, because it refers to them.
    pub(crate) pins: Vec<ChunkId>,
    pub(crate) waiting: Vec<Token>,
    /// Requests that continue once it is durable: long copies with a part or piece in it.
    pub(crate) staging: Vec<(Token, Box<Edit>)>,
    pub(crate) flush: bool,
    /// What its copies, clones and overwritten volumes read and set: nodes are replaced there, or
    /// shared.
    pub(crate) grafts: Vec<Graft>,
    /// Volumes that its entries destroy or resize: until those are applied, it is unknown which
    /// requests fit them.
    pub(crate) reshaped: Vec<VolumeId>,
    /// The cost of applying its heavy edits: see `take`.
    pub(crate) work: u64,
    /// The oldest plan of one of its changes (`plans`).
    pub(crate) plan: Option<u64>,
    /// How many nodes applying it creates, at most.
    pub(crate) nodes_max: u64,
    /// The cost of applying its light edits.
    pub(crate) light_work: u64,
    /// Whether a bulk job has joined: see `bulk`.
    pub(crate) has_bulk: bool,
    /// How many blocks of its payload are stored uncompressed, once it is closed.
    whole_blocks: u32,
    /// The number of blocks of its header, wherever it is sealed, if groups have their own columns,
    /// which must not change.
    header_blocks: Option<NonZeroU16>,
}

impl Record {
    /// Returns whether there is nothing to write and no caller waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.is_empty() && self.staging.is_empty()
    }

    /// Empties a finished record, but keeps the memory of its lists, which are bounded like
    /// records.
    pub(crate) fn emptied(self) -> Self {
        let Self { mut entries, mut frames, packed, mut originals, mut pins, mut waiting, .. } =
            self;
        debug_assert_eq!(packed.len_bytes(), 0, "compressed groups were placed");
        entries.clear();
        frames.clear();
        originals.clear();
        pins.clear();
        waiting.clear();
        Self { entries, frames, packed, originals, pins, waiting, ..Self::default() }
    }

    /// Records that a change was made with a plan.
    pub(crate) fn needs_plan(&mut self, number: u64) {
        self.plan = Some(self.plan.map_or(number, |oldest| oldest.min(number)));
    }

    /// Returns the cost of its edits of one kind.
    pub(crate) fn work_of(&mut self, light: bool) -> &mut u64 {
        if light { &mut self.light_work } else { &mut self.work }
    }

    /// Adds the entries of an edit. The state for a COMPARE AND WRITE is applied before its data
    /// becomes visible.
    pub(crate) fn add_edit(&mut self, next_chunk: &mut u64, mut edit: Box<Edit>) {
        self.entries.extend(edit.take_compared());
        for step in edit.steps {
            self.add_step(next_chunk, step);
        }
    }

    /// Adds the entries of a step; new chunks get their ids.
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

    /// Adds the new data of a put, as it was packed, and then the entries that map its blocks.
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
        debug_assert!(data.next().is_none(), "every new block was packed");
        self.add_map(put.volume, put.start, &entries);
    }

    /// Adds entries that map blocks, one for each run.
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

    /// Adds the blocks of a part, and returns the entries that map them.
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

    /// Adds blocks to the payload uncompressed, and returns their first chunk.
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

    /// Adds compressed bytes, and returns their offset among those (see [`Record::close`]).
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

    /// Returns the units of 64 bytes of compressed groups so far.
    fn packed_units(&self) -> u32 {
        (self.packed.len_bytes() as u64 / PLACE_UNIT_BYTES) as u32
    }

    /// Returns the 4 KiB blocks of payload so far.
    pub(crate) fn payload_blocks(&self) -> usize {
        self.frames.len() + self.packed.len_bytes().div_ceil(FRAME_BYTES)
    }

    /// Returns the number of blocks of its header, with a copy of the previous record.
    pub(crate) fn header_blocks(&self, before: &[u8]) -> u32 {
        let laid_behind = self.header_blocks.map(|blocks| u32::from(blocks.get()));
        laid_behind.unwrap_or_else(|| header_blocks(self.entries_bytes, before.len()))
    }

    /// Encodes header and entries, with the copy of the previous record.
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
        // This is not the record before it when it was closed, but a longer one.
        let before = if needs(before) > header { &[] } else { before };
        assert!(needs(before) <= header, "a header fits its reserved room");
        let header_bytes = header as usize * BLOCK_BYTES as usize;
        let mut bytes = Vec::with_capacity(header_bytes);
        bytes.resize(RECORD_HEADER_BYTES, 0);
        self.entries.iter().for_each(|entry| version.add(entry, &mut bytes));
        let behind = RECORD_HEADER_BYTES + entries_bytes;
        assert_eq!(bytes.len(), behind, "the record has its estimated size");
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

/// Returns an entry that maps blocks to `first` and the following chunks, or all of them to the
/// same.
fn run_entry(volume: VolumeId, start: u64, count: u64, first: MapEntry) -> Entry {
    match first {
        MapEntry::Chunk(first) => Entry::Map { volume, start, count: count as u32, first },
        entry => Entry::Fill { volume, start, count, entry },
    }
}
