//! Log entries about volumes, and their ranges.

use block::{BlockNumber, BlockRange, VolumeId};
use format::compared::COMPARED_BYTES;
use format::entry::ENTRY_LENGTH_BYTES;
use format::{Entry, MapEntry};

use crate::edits::edit::{Edit, Step};
use crate::tuning::LINKED_RUN_BYTES_MAX;

/// Splits blocks into runs that one log entry can describe: equal ones, or consecutive chunks.
pub(crate) fn entry_runs(mut entries: &[MapEntry]) -> impl Iterator<Item = &[MapEntry]> {
    let same: fn(&MapEntry, &MapEntry) -> bool = |a, b| a == b;
    let next: fn(&MapEntry, &MapEntry) -> bool = |a, b| match (a, b) {
        (MapEntry::Chunk(a), MapEntry::Chunk(b)) => a.0 + 1 == b.0,
        _ => false,
    };
    std::iter::from_fn(move || {
        let [first, rest @ ..] = entries else { return None };
        let joins = if rest.first() == Some(first) { same } else { next };
        let (run, rest) = entries.split_at(entries.chunk_by(joins).next()?.len());
        entries = rest;
        Some(run)
    })
}

/// Returns the value of all blocks of a run, if one entry can set any number of them.
pub(crate) fn repeated(run: &[MapEntry]) -> Option<MapEntry> {
    let first = *run.first()?;
    (first.is_uniform() || run.get(1) == Some(&first)).then_some(first)
}

pub(crate) fn overlap(a: BlockRange, b: BlockRange) -> bool {
    a.start < b.end() && b.start < a.end()
}

pub(crate) fn contains(range: BlockRange, block: BlockNumber) -> bool {
    block >= range.start && block < range.end()
}

/// Returns the volumes that some entries destroy or resize.
pub(crate) fn reshaped(entries: &[Entry]) -> impl Iterator<Item = VolumeId> + '_ {
    entries.iter().filter_map(|entry| match entry {
        Entry::VolumeResize { volume, .. }
        | Entry::VolumeDestroy { volume }
        | Entry::VolumeOverwrite { volume, .. } => Some(*volume),
        _ => None,
    })
}

/// Returns what an entry changes.
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

/// Returns an upper bound of the size of an edit's entries in a record.
pub(crate) fn entries_bytes_max(edit: &Edit) -> usize {
    let steps = edit.steps.iter().map(|step| match step {
        // A block may be a group of its own, and have its own map entry.
        Step::Put(put) => 64 + put.frames.len() * 72,
        Step::Linked { runs, .. } => runs.len() * LINKED_RUN_BYTES_MAX,
        _ => 128,
    });
    let is_compared = edit.compare.as_ref().is_some_and(|compare| compare.compared.is_some());
    steps.sum::<usize>() + usize::from(is_compared) * (1 + ENTRY_LENGTH_BYTES + COMPARED_BYTES)
}
