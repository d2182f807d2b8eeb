//! Applying redo entries: the one place where the state changes, live and in recovery alike.

use block::{Frame, VolumeId};
use format::{
    ChunkId, ChunkRow, Codec, Entry, Fingerprint, MapEntry, Place, VolumeRow,
    geometry::UNITS_PER_BLOCK,
};

use crate::StoreError;
use crate::map::{Editor, Value};
use crate::volumes;
use crate::world::{State, World};

/// Where the payload of the record is that an entry came with.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    /// Its first byte; nowhere while the record waits in memory.
    pub(crate) place: Place,
    /// Its blocks, if they are in memory.
    pub(crate) frames: &'a [Frame],
}

impl Payload<'_> {
    fn place_of(&self, units: u32) -> Place {
        if self.place.is_none() {
            return Place::NONE;
        }
        Place { offset_units: self.place.offset_units + units, ..self.place }
    }

    fn frame_of(&self, units: u32, index: usize) -> Option<&Frame> {
        self.frames.get((units / UNITS_PER_BLOCK) as usize + index)
    }
}

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

/// Applies one entry, but for what it sets in a map.
fn apply(
    world: &World,
    state: &mut State,
    entry: &Entry,
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    match entry {
        Entry::Store { first, payload_units, staged, fingerprints } => {
            let group = Group { codec: Codec::Raw, stored_units: UNITS_PER_BLOCK as u16 };
            let stored = Stored { first: *first, units: *payload_units, group, staged: *staged };
            store_chunks(world, state, stored, fingerprints, payload)?;
        }
        Entry::StoreGroup { first, payload_units, stored_units, codec, staged, fingerprints } => {
            let group = Group { codec: *codec, stored_units: *stored_units };
            let stored = Stored { first: *first, units: *payload_units, group, staged: *staged };
            store_chunks(world, state, stored, fingerprints, payload)?;
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
        Entry::Config { key, value } => match value {
            Some(value) => drop(state.config.insert(key.clone(), value.clone())),
            None => drop(state.config.remove(key)),
        },
        Entry::Relocate { first, payload_units, fingerprints } => {
            relocate(world, state, *first, *payload_units, fingerprints, payload)?;
        }
        Entry::Release { first, count } => {
            unstage(state, *first, *count);
            for id in first.0..first.0 + u64::from(*count) {
                world.free_unnamed_chunk(&mut state.segments, ChunkId(id))?;
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Group {
    codec: Codec,
    stored_units: u16,
}

#[derive(Clone, Copy)]
struct Stored {
    first: ChunkId,
    units: u32,
    group: Group,
    staged: bool,
}

fn store_chunks(
    world: &World,
    state: &mut State,
    stored: Stored,
    fingerprints: &[Fingerprint],
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    let raw = stored.group.codec == Codec::Raw;
    for (index, fingerprint) in fingerprints.iter().enumerate() {
        let units = stored.units + if raw { index as u32 * UNITS_PER_BLOCK } else { 0 };
        let row = ChunkRow {
            place: payload.place_of(units),
            stored_units: stored.group.stored_units,
            codec: stored.group.codec,
            group_index: if raw { 0 } else { index as u8 },
            group_blocks: if raw { 1 } else { fingerprints.len() as u8 },
            reference_count: 0,
            fingerprint: *fingerprint,
        };
        let id = ChunkId(stored.first.0 + index as u64);
        world.chunks.update(&world.medium, id.0, |raw| row.encode(raw))?;
        if !row.place.is_none() {
            state.segments.add_live(row.place, row.share_units())?;
        }
        if raw && let Some(frame) = payload.frame_of(stored.units, index) {
            if row.place.is_none() {
                world.unplaced.write().insert(id, frame.clone());
            } else {
                world.keep_chunk(id, frame.clone());
            }
        }
    }
    let end = stored.first.0 + fingerprints.len() as u64;
    state.next_chunk = state.next_chunk.max(end);
    if stored.staged {
        state.staged.insert(stored.first.0, fingerprints.len() as u32);
    }
    Ok(())
}

/// Chunks are named now, or released: they are not staged any more. They leave the list as they
/// came, whole.
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

/// Changes a volume's map under its lock, and stores its row if that has changed.
pub(crate) fn with_map<T>(
    world: &World,
    volume: VolumeId,
    change: impl FnOnce(&mut VolumeRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let Some(volume) = world.volume(volume) else { return Ok(None) };
    let mut guard = volume.map.write();
    let Some(map) = guard.as_mut() else { return Ok(None) };
    let before = *map;
    let result = change(map)?;
    if *map != before {
        let after = *map;
        world.volume_table.update(&world.medium, volume.id.0, |raw| after.encode(raw))?;
    }
    Ok(Some(result))
}

fn fits(map: &VolumeRow, start: u64, count: u64) -> bool {
    start.checked_add(count).is_some_and(|end| end <= map.size_blocks)
}

/// What an entry sets in a map: the volume, the first block, how many, and to what.
fn set_by(entry: &Entry) -> Option<(VolumeId, u64, u64, Value<'static>)> {
    match entry {
        Entry::Map { volume, start, count, first } => {
            let value = Value::Run { first: *first, counted: false };
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

/// How many of the entries at the front are one stroke, which readers see wholly or not at all: a
/// write is a row of entries, one for each run of data, of zeros or of a pattern, that set blocks
/// which follow each other. Two writes that do so too may be one stroke; that harms nobody.
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

/// Sets what a stroke sets, under one lock of its volume. `false`: the volume is gone, or not so
/// long any more, so that chunks of this record may be named by nothing.
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
    let fitting = |id: VolumeId, start: u64| world.map_of(id).filter(|map| fits(map, start, count));
    // The writer is the only one that changes maps, so what was read stays true.
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
    Ok(())
}

fn relocate(
    world: &World,
    state: &mut State,
    first: ChunkId,
    units: u32,
    fingerprints: &[Fingerprint],
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    for (index, fingerprint) in fingerprints.iter().enumerate() {
        let id = ChunkId(first.0 + index as u64);
        let place = payload.place_of(units + index as u32 * UNITS_PER_BLOCK);
        let moved = world.chunks.update(&world.medium, id.0, |raw| {
            // Freed or replaced since it was read: then there is nothing to move.
            let mut row = ChunkRow::decode(raw).filter(|row| row.fingerprint == *fingerprint)?;
            let old = (row.place, row.share_units());
            row = ChunkRow {
                place,
                stored_units: UNITS_PER_BLOCK as u16,
                codec: Codec::Raw,
                group_index: 0,
                group_blocks: 1,
                ..row
            };
            row.encode(raw);
            Some((old, row.share_units()))
        })?;
        let Some(((old_place, old_units), new_units)) = moved else { continue };
        if !old_place.is_none() {
            state.segments.sub_live(old_place, old_units)?;
        }
        if !place.is_none() {
            state.segments.add_live(place, new_units)?;
        } else if let Some(frame) = payload.frame_of(units, index) {
            world.unplaced.write().insert(id, frame.clone());
        }
    }
    Ok(())
}

/// Frees the chunks of a record that nothing names, but for the staged ones.
fn free_unnamed(world: &World, state: &mut State, entries: &[Entry]) -> Result<(), StoreError> {
    for entry in entries {
        let (first, count) = match entry {
            Entry::Store { first, staged: false, fingerprints, .. } => (first, fingerprints.len()),
            Entry::StoreGroup { first, staged: false, fingerprints, .. } => {
                (first, fingerprints.len())
            }
            _ => continue,
        };
        for id in first.0..first.0 + count as u64 {
            world.free_unnamed_chunk(&mut state.segments, ChunkId(id))?;
        }
    }
    Ok(())
}
