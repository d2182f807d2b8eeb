//! A log record before it is written: its entries, its payload, and who waits for it.

use block::{BLOCK_BYTES, BlockNumber, BlockRange, Frame, FrameMut, VolumeId};
use format::geometry::UNITS_PER_BLOCK;
use format::log::RECORD_HEADER_BYTES;
use format::{ChunkId, Entry, Fingerprint, Keys, LogPosition, MapEntry, RecordHeader, Seal};

use crate::Token;
use crate::classify::Class;
use crate::edit::{Edit, Step};
use crate::stage::{LinkedRun, run_starts};

/// Entries and payload that wait for the device.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
    pub(crate) entries_bytes: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) waiting: Vec<Token>,
    /// Long copies whose part it holds.
    pub(crate) staging: Vec<(Token, Box<Edit>)>,
    pub(crate) flush: bool,
    /// Volumes that its entries end, or give another size: until they are applied, nobody knows
    /// what fits them.
    pub(crate) reshaped: Vec<VolumeId>,
}

impl Record {
    /// Whether there is nothing to write and nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.waiting.is_empty() && self.staging.is_empty()
    }

    /// Adds what a step says; new chunks get their ids.
    pub(crate) fn add_step(&mut self, next_chunk: &mut u64, step: Step) {
        match step {
            Step::Fill { volume, range, entry } => self.entries.push(Entry::Fill {
                volume,
                start: range.start.0,
                count: range.count.0,
                entry,
            }),
            Step::Copy { source, from, destination, to } => self.entries.push(Entry::Copy {
                source,
                source_start: from.0,
                destination,
                destination_start: to.start.0,
                count: to.count.0,
            }),
            Step::Linked { volume, range, runs } => {
                for (start, run) in run_starts(range.start, &runs) {
                    self.entries.push(match run.entry {
                        MapEntry::Chunk(first) => {
                            Entry::Map { volume, start, count: run.count as u32, first }
                        }
                        entry => Entry::Fill { volume, start, count: run.count, entry },
                    });
                }
            }
            Step::Repeat { volume, range, frame, fingerprint } => {
                let first = self.add_data(next_chunk, vec![fingerprint], [frame], false);
                self.entries.push(Entry::Fill {
                    volume,
                    start: range.start.0,
                    count: range.count.0,
                    entry: MapEntry::Chunk(first),
                });
            }
            Step::Put { volume, start, frames, classes } => {
                self.add_put(next_chunk, volume, start, frames, &classes);
            }
        }
    }

    fn add_put(
        &mut self,
        next_chunk: &mut u64,
        volume: VolumeId,
        start: BlockNumber,
        frames: Vec<Frame>,
        classes: &[Class],
    ) {
        debug_assert_eq!(frames.len(), classes.len());
        let mut frames = frames.into_iter();
        let mut at = 0;
        while at < classes.len() {
            let first_block = start.0 + at as u64;
            match classes[at] {
                Class::Uniform(entry) => {
                    let same = classes[at..].iter().take_while(|class| **class == classes[at]);
                    let count = same.count();
                    frames.by_ref().take(count).for_each(drop);
                    self.entries.push(Entry::Fill {
                        volume,
                        start: first_block,
                        count: count as u64,
                        entry,
                    });
                    at += count;
                }
                Class::Data(_) => {
                    let sums: Vec<Fingerprint> =
                        classes[at..].iter().map_while(Class::fingerprint).collect();
                    let count = sums.len();
                    let first = self.add_data(next_chunk, sums, frames.by_ref().take(count), false);
                    self.entries.push(Entry::Map {
                        volume,
                        start: first_block,
                        count: count as u32,
                        first,
                    });
                    at += count;
                }
            }
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
        let mut frames = frames.into_iter();
        let same = |a: &Class, b: &Class| match (a, b) {
            (Class::Data(_), Class::Data(_)) => true,
            (a, b) => a == b,
        };
        for run in classes.chunk_by(same) {
            let mine = frames.by_ref().take(run.len());
            let sums: Vec<Fingerprint> = run.iter().filter_map(Class::fingerprint).collect();
            let entry = match run[0] {
                Class::Uniform(entry) => {
                    mine.for_each(drop);
                    entry
                }
                Class::Data(_) => MapEntry::Chunk(self.add_data(next_chunk, sums, mine, true)),
            };
            runs.push(LinkedRun { count: run.len() as u64, entry });
        }
        runs
    }

    /// Adds blocks to the payload, and says what their first chunk is.
    fn add_data(
        &mut self,
        next_chunk: &mut u64,
        fingerprints: Vec<Fingerprint>,
        frames: impl IntoIterator<Item = Frame>,
        staged: bool,
    ) -> ChunkId {
        let first = ChunkId(*next_chunk);
        *next_chunk += fingerprints.len() as u64;
        let payload_units = self.frames.len() as u32 * UNITS_PER_BLOCK;
        self.frames.extend(frames);
        self.entries.push(Entry::Store { first, payload_units, staged, fingerprints });
        first
    }

    pub(crate) fn seal(
        &self,
        keys: &Keys,
        position: &LogPosition,
        (epoch, flushed_lsn): (u64, u64),
        header: u32,
    ) -> (Vec<Frame>, Seal) {
        let mut bytes = vec![0; header as usize * BLOCK_BYTES as usize];
        let mut entries = Vec::with_capacity(self.entries_bytes);
        self.entries.iter().for_each(|entry| entry.encode(&mut entries));
        debug_assert_eq!(entries.len(), self.entries_bytes);
        bytes[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + entries.len()].copy_from_slice(&entries);
        let fields = RecordHeader {
            lsn: position.lsn,
            epoch,
            flushed_lsn,
            previous: position.previous,
            header_blocks: header as u16,
            payload_blocks: self.frames.len() as u32,
            entries_bytes: entries.len() as u32,
            entry_count: self.entries.len() as u32,
            next_segment: position.next_segment,
            seal: Seal::default(),
        };
        let seal = fields.seal(&mut bytes, keys);
        let frames = bytes
            .chunks_exact(BLOCK_BYTES as usize)
            .map(|block| FrameMut::from_bytes(block).freeze())
            .collect();
        (frames, seal)
    }
}

pub(crate) fn contains(range: BlockRange, block: BlockNumber) -> bool {
    block >= range.start && block < range.end()
}

/// The volumes that some entries end, or give another size.
pub(crate) fn reshaped(entries: &[Entry]) -> impl Iterator<Item = VolumeId> + '_ {
    entries.iter().filter_map(|entry| match entry {
        Entry::VolumeResize { volume, .. }
        | Entry::VolumeDestroy { volume }
        | Entry::VolumeOverwrite { volume, .. } => Some(*volume),
        _ => None,
    })
}

/// What an entry changes.
pub(crate) fn entry_target(entry: &Entry) -> Option<(VolumeId, BlockRange)> {
    Some(match entry {
        Entry::Map { volume, start, count, .. } => {
            (*volume, BlockRange::new(*start, u64::from(*count)))
        }
        Entry::Fill { volume, start, count, .. } => (*volume, BlockRange::new(*start, *count)),
        Entry::Copy { destination, destination_start, count, .. } => {
            (*destination, BlockRange::new(*destination_start, *count))
        }
        Entry::VolumeResize { volume, .. }
        | Entry::VolumeDestroy { volume }
        | Entry::VolumeOverwrite { volume, .. } => (*volume, BlockRange::new(0, u64::MAX)),
        _ => return None,
    })
}

/// A bound on what an edit's entries take in a record.
pub(crate) fn entries_bytes_max(edit: &Edit) -> usize {
    edit.steps
        .iter()
        .map(|step| match step {
            Step::Put { frames, .. } => 64 + frames.len() * 64,
            Step::Linked { runs, .. } => runs.len() * 40,
            _ => 128,
        })
        .sum()
}
