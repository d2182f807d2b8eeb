//! Applying entries about chunks: new ones, moved ones, and duplicates.

use block::Frame;
use format::geometry::UNITS_PER_BLOCK;
use format::{Brought, ChunkId, ChunkRow, Codec, Entry, Handling, Place, RecordPlaces};

use crate::StoreError;
use crate::chunks::medium::twice;
use crate::log::record::{Originals, Record};
use crate::world::sharing::REFERENCES_MAX;
use crate::world::{State, World};

/// The location of the payload of an entry's record.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    /// The locations of its blocks; none while the record waits in memory.
    places: Option<RecordPlaces>,
    /// Its blocks, if they are in memory.
    frames: &'a [Frame],
    /// The uncompressed blocks of its groups, if they are in memory.
    originals: Option<&'a Originals>,
}

impl<'a> Payload<'a> {
    /// The payload of a record in memory or in flight.
    pub(crate) fn of(places: Option<RecordPlaces>, record: &'a Record) -> Self {
        Self { places, frames: &record.frames, originals: Some(&record.originals) }
    }

    /// The payload of a record on the medium.
    pub(crate) fn stored(places: RecordPlaces) -> Self {
        Self { places: Some(places), frames: &[], originals: None }
    }

    fn place_of(&self, units: u32) -> Place {
        self.places.map_or(Place::NONE, |places| places.payload(units))
    }

    /// Returns the content of a block of the record, if it is in memory.
    fn frame_of(&self, brought: &Brought) -> Option<&Frame> {
        match brought.shape.codec {
            Codec::Raw => self.frames.get((brought.payload_units / UNITS_PER_BLOCK) as usize),
            _ => self.originals?.get(&brought.chunk),
        }
    }
}

/// Adds the blocks of the record as new chunks.
pub(crate) fn store_chunks(
    world: &World,
    state: &mut State,
    entry: &Entry,
    handling: Handling,
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    for brought in entry.brought() {
        let Brought { chunk, fingerprint, payload_units, shape } = brought;
        let row = ChunkRow {
            place: payload.place_of(payload_units),
            stored_units: shape.stored_units,
            codec: shape.codec,
            group_index: shape.group_index,
            group_blocks: shape.group_blocks,
            handling,
            original: None,
            reference_count: 0,
            fingerprint,
        };
        let put = || world.chunks.update(&world.medium, chunk.0, |raw| row.encode(raw));
        if let Err(error) = twice(put) {
            // Without a row no lookup finds the chunk: blocks that refer to it are lost.
            world.give_up(state, error)?;
            continue;
        }
        if !row.place.is_none() {
            state.segments.add_live(row.place, row.share_units())?;
        }
        keep_content(world, row.place, &brought, payload);
        if !handling.unshared {
            world.index.insert(fingerprint, chunk);
        }
    }
    Ok(())
}

/// Keeps the content of a block of the record: in the cache or, if it has no location yet, where
/// all readers find it.
fn keep_content(world: &World, place: Place, brought: &Brought, payload: Payload<'_>) {
    let Some(frame) = payload.frame_of(brought) else { return };
    if place.is_none() {
        world.unplaced.insert(brought.chunk, frame);
    } else {
        world.keep_chunk(brought.chunk, frame.clone());
    }
}

/// Moves chunks to the record's payload.
pub(crate) fn relocate(
    world: &World,
    state: &mut State,
    entry: &Entry,
    payload: Payload<'_>,
) -> Result<(), StoreError> {
    for brought in entry.brought() {
        let place = payload.place_of(brought.payload_units);
        let moved = |raw: &mut [u8]| {
            // The chunk was freed since it was read, or is an alias: nothing to move.
            let old = ChunkRow::decode(raw)
                .filter(|row| row.fingerprint == brought.fingerprint && row.original.is_none())?;
            let new = old.moved(place, brought.shape);
            new.encode(raw);
            Some((old, new))
        };
        let chunk = brought.chunk.0;
        let moved = match twice(|| world.chunks.update(&world.medium, chunk, moved)) {
            Ok(moved) => moved,
            Err(error) => {
                // The chunk keeps its location, in a segment that stays in use.
                world.give_up(state, error)?;
                continue;
            }
        };
        let Some((old, new)) = moved else { continue };
        if !old.place.is_none() {
            state.segments.sub_live(old.place, old.share_units())?;
        }
        if !new.place.is_none() {
            state.segments.add_live(new.place, new.share_units())?;
        } else if let Some(frame) = payload.frame_of(&brought) {
            world.unplaced.insert(brought.chunk, frame);
        }
    }
    Ok(())
}

/// Makes a chunk an alias of another one, if both are still there and in use.
pub(crate) fn alias(
    world: &World,
    state: &mut State,
    chunk: ChunkId,
    original: ChunkId,
) -> Result<(), StoreError> {
    let row = |id: ChunkId| world.chunks.get(&world.medium, id.0, ChunkRow::decode);
    let rows = || Ok((row(chunk)?, row(original)?));
    let (own, other) = match twice(rows) {
        Ok((Some(own), Some(other))) => (own, other),
        Ok(_) => return Ok(()),
        // It keeps its own content.
        Err(error) => return world.give_up(state, error),
    };
    let named = 1..REFERENCES_MAX;
    let stored = |row: &ChunkRow| row.original.is_none() && named.contains(&row.reference_count);
    if own.fingerprint != other.fingerprint || !stored(&own) || !stored(&other) {
        return Ok(());
    }
    world.reference_chunks(std::iter::once(original))?;
    let row = ChunkRow {
        stored_units: 0,
        codec: Codec::Alias,
        group_index: 0,
        group_blocks: 1,
        place: Place::NONE,
        original: Some(original),
        ..own
    };
    world.chunks.update(&world.medium, chunk.0, |raw| row.encode(raw))?;
    world.forget_chunk(&mut state.segments, chunk, &own)
}
