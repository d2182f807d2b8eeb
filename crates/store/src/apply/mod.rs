//! Applying redo entries: the only place where the state changes, live and in recovery alike.
//!
//! * `bring`: entries that create or move chunks, `lossy`: applying over unreadable metadata.

pub(crate) mod bring;
pub(crate) mod lossy;

use block::VolumeId;
use format::{ChunkId, Entry, MapEntry, VolumeRow};

use crate::StoreError;
use crate::apply::bring::{Payload, alias, relocate, store_chunks};
use crate::map::tree::Editor;
use crate::map::value::Value;
use crate::map::volumes::{self, with_map};
use crate::world::{State, World};

/// Applies the entries of a record, in order.
pub(crate) fn apply_all(
    world: &World,
    state: &mut State,
    entries: &[Entry],
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    let (mut unnamed, mut rest) = (false, entries);
    while !rest.is_empty() {
        let (stroke, behind) = rest.split_at(stroke_length(rest));
        for entry in stroke {
            apply(world, state, entry, payload)?;
        }
        unnamed |= !set(world, state, stroke)?;
        rest = behind;
    }
    if unnamed {
        free_unnamed(world, state, entries)?;
    }
    Ok(())
}

/// Applies one entry, except for what it sets in a map.
fn apply(
    world: &World,
    state: &mut State,
    entry: &Entry,
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    world.keep_lost(state, entry)?;
    match entry {
        Entry::Store { first, flags, fingerprints, .. }
        | Entry::StoreGroup { first, flags, fingerprints, .. } => {
            store_chunks(world, state, entry, flags.handling, payload)?;
            let end = first.0 + fingerprints.len() as u64;
            state.next_chunk = state.next_chunk.max(end);
            if flags.staged {
                state.staged.insert(first.0, fingerprints.len() as u32);
            }
        }
        Entry::Map { first, count, .. } => unstage(state, *first, *count),
        Entry::Fill { .. } => {}
        Entry::Copy { source, source_start, destination, destination_start, count } => {
            let from = (*source, *source_start);
            copy(world, state, from, (*destination, *destination_start), *count)?;
        }
        Entry::VolumeCreate { volume, size_blocks } => {
            volumes::create(world, state, *volume, *size_blocks)?;
        }
        Entry::VolumeResize { volume, size_blocks } => {
            volumes::resize(world, state, *volume, *size_blocks)?;
        }
        Entry::VolumeDestroy { volume } => volumes::destroy(world, state, *volume)?,
        Entry::VolumeClone { source, volume, snapshot } => {
            volumes::clone(world, state, *source, *volume, *snapshot)?;
        }
        Entry::VolumeOverwrite { source, volume } => {
            volumes::overwrite(world, state, *source, *volume)?;
        }
        Entry::Config { key, value } | Entry::TargetState { key, value } => {
            state.config.set(key, value.as_deref());
        }
        Entry::Relocate { .. } | Entry::RelocateGroup { .. } => {
            relocate(world, state, entry, payload)?;
        }
        Entry::Compared(compared) => world.comparisons.note(compared),
        Entry::Alias { chunk, original } => alias(world, state, *chunk, *original)?,
        Entry::VolumeHandling { volume, handling } => {
            with_map(world, *volume, |map| {
                map.handling = *handling;
                Ok(())
            })?;
        }
        Entry::Release { first, count } => {
            unstage(state, *first, *count);
            for id in first.0..first.0 + u64::from(*count) {
                world.free_unnamed_chunk(state, ChunkId(id))?;
            }
        }
    }
    Ok(())
}

/// Takes chunks off the list of staged ones: they are now referenced or released. They leave the
/// list as they were added, as a whole.
fn unstage(state: &mut State, first: ChunkId, count: u32) {
    if state.staged.is_empty() {
        return;
    }
    let range = first.0..first.0 + u64::from(count);
    let gone: Vec<u64> = state.staged.range(range).map(|(first, _)| *first).collect();
    for first in gone {
        state.staged.remove(&first);
    }
}

fn fits(map: &VolumeRow, start: u64, count: u64) -> bool {
    start.checked_add(count).is_some_and(|end| end <= map.size_blocks)
}

/// Returns what an entry sets in a map: the volume, the first block, the number of blocks, and the
/// value.
fn set_by(entry: &Entry) -> Option<(VolumeId, u64, u64, Value<'static>)> {
    match entry {
        Entry::Map { volume, start, count, first } => {
            let value = Value::Run { first: *first };
            Some((*volume, *start, u64::from(*count), value))
        }
        Entry::Fill { volume, start, count, entry: MapEntry::Chunk(id) } => {
            Some((*volume, *start, *count, Value::Same(*id)))
        }
        Entry::Fill { volume, start, count, entry } => {
            Some((*volume, *start, *count, Value::Uniform(*entry)))
        }
        _ => None,
    }
}

/// Returns how many of the first entries form one stroke, which readers see completely or not at
/// all: a write consists of entries for contiguous runs of data, of zeros or of a pattern. Two
/// adjacent writes may form one stroke, which is harmless.
fn stroke_length(entries: &[Entry]) -> usize {
    let (mut length, mut next) = (1, None);
    for (index, entry) in entries.iter().enumerate() {
        match (set_by(entry), entry) {
            (Some((volume, start, count, _)), _) => {
                if next.is_some_and(|next| next != (volume, start)) {
                    break;
                }
                next = Some((volume, start.saturating_add(count)));
                length = index + 1;
            }
            (None, Entry::Store { .. } | Entry::StoreGroup { .. }) => {}
            (None, _) => break,
        }
    }
    length
}

/// Applies a stroke, under one lock of its volume. Returns `false` if the volume is gone, or was
/// shortened, so that chunks of this record may be unreferenced.
fn set(world: &World, state: &mut State, stroke: &[Entry]) -> Result<bool, StoreError> {
    let mut sets = stroke.iter().filter_map(set_by).peekable();
    let Some((volume, ..)) = sets.peek().copied() else { return Ok(true) };
    let done = with_map(world, volume, |map| {
        let mut all = true;
        for (_, start, count, value) in sets {
            if fits(map, start, count) {
                Editor { world, state }.set(map, start, count, value)?;
            } else {
                all = false;
            }
        }
        Ok(all)
    })?;
    Ok(done.unwrap_or(false))
}

fn copy(
    world: &World,
    state: &mut State,
    (source, source_start): (VolumeId, u64),
    (destination, start): (VolumeId, u64),
    count: u64,
) -> Result<(), StoreError> {
    if state.replaying && world.is_lost(source) {
        // If the source is unknown, so is the destination.
        let lost = Value::Same(ChunkId::LOST);
        with_map(world, destination, |map| match fits(map, start, count) {
            true => Editor { world, state }.set(map, start, count, lost),
            false => Ok(()),
        })?;
        return Ok(());
    }
    let fitting = |id: VolumeId, start: u64| world.map_of(id).filter(|map| fits(map, start, count));
    // Only the writer changes maps, so what was read is still valid.
    let (Some(from), Some(_)) = (fitting(source, source_start), fitting(destination, start)) else {
        return Ok(());
    };
    let pieces = Editor { world, state }.gather(&from, source_start, count, start)?;
    with_map(world, destination, |map| {
        let mut editor = Editor { world, state };
        for piece in &pieces {
            editor.set(map, piece.start, piece.count, piece.value())?;
        }
        Ok(())
    })?;
    Editor { world, state }.let_go(&pieces)
}

/// Frees the chunks of a record that nothing refers to, except staged ones.
fn free_unnamed(world: &World, state: &mut State, entries: &[Entry]) -> Result<(), StoreError> {
    for entry in entries {
        let (Entry::Store { flags, .. } | Entry::StoreGroup { flags, .. }) = entry else {
            continue;
        };
        if flags.staged {
            continue;
        }
        for brought in entry.brought() {
            world.free_unnamed_chunk(state, brought.chunk)?;
        }
    }
    Ok(())
}
