//! The locations of chunks, from the log and from the rows of the checkpoint.
//!
//! A location where a chunk once was keeps its bytes until no checkpoint needs it. So all known
//! locations are tried, and the fingerprint decides which is right.

use std::collections::HashMap;

use block::{BLOCK_BYTES, Frame};
use format::geometry::UNITS_PER_BLOCK;
use format::{
    ChunkId, ChunkRow, Codec, Entry, Fingerprint, PLACE_UNIT_BYTES, Place, RecordPlaces, Shape,
};
use smallvec::SmallVec;

use super::LossReason;
use crate::chunks::copies::{Wanted, right_copy};
use crate::chunks::groups::GroupReader;
use crate::chunks::pages::FastState;
use crate::world::World;

/// The maximum bytes that are read ahead at once.
const AHEAD_BYTES_MAX: u64 = 1 << 20;
/// The longest path from an alias to the chunk with its content; in a sound pool there is one step.
const ALIAS_STEPS_MAX: usize = 16;

/// What the log says about a chunk.
#[derive(Debug, Default)]
struct Told {
    fingerprint: Option<Fingerprint>,
    /// The newest last.
    places: SmallVec<[(Place, Shape); 1]>,
    originals: SmallVec<[ChunkId; 0]>,
}

/// What the log says about chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks(HashMap<ChunkId, Told, FastState>);

/// Everything known about a chunk.
#[derive(Debug, Default)]
struct Known {
    fingerprint: Option<Fingerprint>,
    places: SmallVec<[(Place, Shape); 2]>,
    originals: SmallVec<[ChunkId; 1]>,
}

impl Chunks {
    /// Adds an entry of a record whose payload is at these locations.
    pub(super) fn apply(&mut self, entry: &Entry, places: RecordPlaces) {
        for brought in entry.brought() {
            let told = self.0.entry(brought.chunk).or_default();
            told.fingerprint = Some(brought.fingerprint);
            told.places.push((places.payload(brought.payload_units), brought.shape));
        }
        if let Entry::Alias { chunk, original } = entry {
            self.0.entry(*chunk).or_default().originals.push(*original);
        }
    }

    /// Returns everything known about a chunk.
    fn known(&self, world: &World, id: ChunkId) -> Known {
        let mut known = Known::default();
        if let Some(told) = self.0.get(&id) {
            known.fingerprint = told.fingerprint;
            known.places.extend(told.places.iter().rev().copied());
            known.originals.extend(told.originals.iter().rev().copied());
        }
        let row = world.chunks.get(&world.medium, id.0, ChunkRow::decode);
        if let Ok(Some(row)) = row {
            known.fingerprint = known.fingerprint.or(Some(row.fingerprint));
            match row.original {
                Some(original) => known.originals.push(original),
                None if !row.place.is_none() => known.places.push((row.place, row.shape())),
                None => {}
            }
        }
        known
    }

    /// Returns the content of some chunks.
    pub(super) fn read(
        &self,
        world: &World,
        reader: &mut GroupReader,
        ids: &[ChunkId],
    ) -> Vec<Result<Frame, LossReason>> {
        let known: Vec<Known> = ids.iter().map(|id| self.known(world, *id)).collect();
        let mut behind = 0;
        let mut contents = Vec::with_capacity(ids.len());
        for (index, (id, one)) in ids.iter().zip(&known).enumerate() {
            if index >= behind {
                behind = index + read_ahead(world, reader, &known[index..]);
            }
            contents.push(self.read_one(world, reader, *id, one));
        }
        contents
    }

    fn read_one(
        &self,
        world: &World,
        reader: &mut GroupReader,
        id: ChunkId,
        known: &Known,
    ) -> Result<Frame, LossReason> {
        let Some(fingerprint) = known.fingerprint else { return Err(LossReason::ChunkRow) };
        if let Some(frame) = stored(world, reader, known, (id, fingerprint)) {
            return Ok(frame);
        }
        let mut originals = known.originals.clone();
        let mut reason = LossReason::Data;
        for _ in 0..ALIAS_STEPS_MAX {
            // Originals are older, so this terminates.
            let Some(original) = originals.pop().filter(|original| *original < id) else { break };
            let other = self.known(world, original);
            if let Some(frame) = stored(world, reader, &other, (original, fingerprint)) {
                return Ok(frame);
            }
            if other.fingerprint.is_none() {
                reason = LossReason::ChunkRow;
            }
            originals.extend(other.originals);
        }
        Err(reason)
    }
}

/// Returns the content from the first of a chunk's locations that matches the fingerprint.
fn stored(
    world: &World,
    reader: &mut GroupReader,
    known: &Known,
    (chunk, fingerprint): (ChunkId, Fingerprint),
) -> Option<Frame> {
    known.places.iter().find_map(|(place, shape)| {
        // An alias has no location.
        if shape.codec == Codec::Alias {
            return None;
        }
        let read = reader.read(&world.medium, *place, *shape).ok().flatten();
        let wanted = Wanted { chunk, place: *place, shape: *shape, fingerprint };
        read.filter(|frame| world.is_intact(frame, fingerprint))
            .or_else(|| right_copy(&world.medium, &wanted))
    })
}

/// Reads the content of the first of some chunks, and of those after it that are contiguous, with
/// one operation. Returns how many chunks that are, at least one.
fn read_ahead(world: &World, reader: &mut GroupReader, chunks: &[Known]) -> usize {
    let span = |known: &Known| {
        let (place, shape) = known.places.first().copied()?;
        let bytes = u64::from(shape.stored_units) * PLACE_UNIT_BYTES;
        let units = place.offset_units.checked_add(u32::from(shape.stored_units))?;
        world.medium.contains(place, bytes).then_some((place, units))
    };
    let Some((first, mut end_units)) = chunks.first().and_then(span) else { return 1 };
    let start_units = first.offset_units / UNITS_PER_BLOCK * UNITS_PER_BLOCK;
    let mut count = 1;
    for known in &chunks[1..] {
        let Some((place, end)) = span(known) else { break };
        let bytes = u64::from(end.saturating_sub(start_units)) * PLACE_UNIT_BYTES;
        if place.segment != first.segment
            || place.offset_units < start_units
            || bytes > AHEAD_BYTES_MAX
        {
            break;
        }
        end_units = end_units.max(end);
        count += 1;
    }
    if count > 1 {
        let place = Place { offset_units: start_units, ..first };
        let length_bytes = u64::from(end_units - start_units) * PLACE_UNIT_BYTES;
        let frames = length_bytes.div_ceil(BLOCK_BYTES) as usize;
        reader.read_ahead(&world.medium, place, frames);
    }
    count
}
