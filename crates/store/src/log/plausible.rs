//! Checks by recovery of numbers with valid checksums, before it uses them, and of payload. We have
//! written such bytes; if they are invalid nevertheless, the pool is damaged, but nothing panics.

use block::request::limits::VOLUME_BYTES_MAX;
use block::{BLOCK_BYTES, Frame};
use format::geometry::UNITS_PER_BLOCK;
use format::log::{LogPosition, RECORD_ENTRIES_BYTES_MAX};
use format::{
    Brought, ChunkId, Entry, Geometry, RecordHeader, RecordPlaces, SegmentState, Shape, Superblock,
};

use crate::StoreError;
use crate::chunks::copies::Wanted;
use crate::chunks::groups::GroupReader;
use crate::chunks::medium::{Medium, metadata_blocks};
use crate::space::segments::Segments;

/// Ids have 60 bits in the map. No real id, nor anything else that is counted, comes near half of
/// that, so ids that are assigned from here on fit as well.
pub(crate) const ID_END: u64 = 1 << 59;
/// The maximum number of blocks of one entry, and so of a staged run: a fingerprint takes 16 bytes.
const RUN_BLOCKS_MAX: u64 = (RECORD_ENTRIES_BYTES_MAX / 16) as u64;

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(what.to_string())
}

fn segment_exists(geometry: Geometry, segment: u32) -> bool {
    (1..geometry.segment_count).contains(&segment)
}

/// Checks a position where the log can continue.
fn position(geometry: Geometry, at: &LogPosition) -> bool {
    segment_exists(geometry, at.segment)
        && segment_exists(geometry, at.next_segment)
        && at.block <= geometry.rows()
        && (1..ID_END).contains(&at.lsn)
}

/// Checks the superblock with which a pool is opened.
pub(crate) fn check_superblock(superblock: &Superblock) -> Result<(), StoreError> {
    let geometry = superblock.geometry;
    let counters = [
        superblock.sequence,
        superblock.epoch,
        superblock.incarnation,
        superblock.next_chunk.0,
        superblock.next_node.0,
        superblock.next_volume.0,
    ];
    let metadata = superblock.metadata_segment < geometry.segment_count
        && superblock.metadata_block <= metadata_blocks(geometry, superblock.version);
    if metadata
        && position(geometry, &superblock.log)
        && counters.iter().all(|counter| *counter < ID_END)
    {
        return Ok(());
    }
    Err(damaged("the superblock has an impossible value"))
}

/// Checks that the segment in which the next checkpoint continues is a metadata segment; 0 if there
/// is none.
pub(crate) fn check_metadata_segment(
    superblock: &Superblock,
    segments: &Segments,
) -> Result<(), StoreError> {
    let segment = superblock.metadata_segment;
    if segment == 0 {
        return Ok(());
    }
    let row = segments.row(segment);
    if row.state != SegmentState::Metadata {
        let text = "the next checkpoint would continue in a segment without metadata";
        return Err(damaged(text));
    }
    if row.mirrored != superblock.version.mirrors_metadata() {
        let text = "the next checkpoint would continue in a segment of another version";
        return Err(damaged(text));
    }
    let written_units = superblock.metadata_block.saturating_mul(UNITS_PER_BLOCK);
    if row.live_units > written_units {
        return Err(damaged("the next checkpoint would overwrite live metadata in its segment"));
    }
    Ok(())
}

/// Checks that the current and the next segment of the log are log segments, and that nothing is
/// live where it will be written.
pub(crate) fn check_log_segments(
    at: &LogPosition,
    segments: &Segments,
    columns: u8,
) -> Result<(), StoreError> {
    let written_units = at.block.saturating_mul(u32::from(columns) * UNITS_PER_BLOCK);
    let may_go_on = |segment: u32, written_units: u32| {
        let row = segments.row(segment);
        row.state == SegmentState::Log && row.live_units <= written_units
    };
    if at.segment != at.next_segment
        && may_go_on(at.segment, written_units)
        && may_go_on(at.next_segment, 0)
    {
        return Ok(());
    }
    Err(damaged("the log would continue over live data"))
}

/// Checks a run of staged chunks.
pub(crate) fn check_run(first: u64, count: u32) -> Result<(), StoreError> {
    if first < ID_END && u64::from(count) <= RUN_BLOCKS_MAX {
        return Ok(());
    }
    Err(damaged("an impossible run of chunks"))
}

/// Checks a record that was found at its location.
pub(crate) fn check_record(
    geometry: Geometry,
    header: &RecordHeader,
    entries: &[Entry],
) -> Result<(), StoreError> {
    if !segment_exists(geometry, header.next_segment) {
        return Err(damaged("a record names a next segment that the pool does not have"));
    }
    entries.iter().try_for_each(|entry| check_entry(header, entry))
}

fn check_entry(header: &RecordHeader, entry: &Entry) -> Result<(), StoreError> {
    let volume = |ids: &[block::VolumeId]| ids.iter().all(|id| id.0 < ID_END);
    let fits = match entry {
        Entry::Store { first, payload_units, fingerprints, .. }
        | Entry::Relocate { first, payload_units, fingerprints } => {
            check_run(first.0, fingerprints.len() as u32)?;
            blocks_fit(header, *payload_units, fingerprints.len())
        }
        Entry::StoreGroup { first, payload_units, stored_units, fingerprints, .. } => {
            check_run(first.0, fingerprints.len() as u32)?;
            group_fits(header, *payload_units, *stored_units)
        }
        Entry::RelocateGroup { payload_units, stored_units, chunks, .. } => {
            chunks.iter().try_for_each(|(id, _)| check_run(id.0, 1))?;
            group_fits(header, *payload_units, *stored_units)
        }
        Entry::Alias { chunk, .. } => chunk.0 < ID_END,
        Entry::VolumeHandling { volume: id, .. } => volume(&[*id]),
        Entry::Map { volume: id, first: ChunkId(first), .. } => volume(&[*id]) && *first < ID_END,
        Entry::Fill { volume: id, .. } | Entry::VolumeDestroy { volume: id } => volume(&[*id]),
        Entry::Copy { source, destination, .. } => volume(&[*source, *destination]),
        Entry::VolumeCreate { volume: id, size_blocks }
        | Entry::VolumeResize { volume: id, size_blocks } => {
            volume(&[*id]) && *size_blocks <= VOLUME_BYTES_MAX / BLOCK_BYTES
        }
        Entry::VolumeClone { source, volume: id, .. }
        | Entry::VolumeOverwrite { source, volume: id } => volume(&[*source, *id]),
        Entry::Compared(compared) => volume(&[compared.volume]) && compared.start < ID_END,
        Entry::Config { .. } | Entry::TargetState { .. } => true,
        Entry::Release { first, count } => return check_run(first.0, *count),
    };
    if fits { Ok(()) } else { Err(damaged("a record has an impossible entry")) }
}

/// Returns whether whole blocks from `units` on are within the record's payload.
fn blocks_fit(header: &RecordHeader, units: u32, blocks: usize) -> bool {
    let end = u64::from(units) + blocks as u64 * u64::from(UNITS_PER_BLOCK);
    units.is_multiple_of(UNITS_PER_BLOCK) && units_fit(header, end)
}

/// Returns whether a group is within the record's payload.
fn group_fits(header: &RecordHeader, units: u32, stored_units: u16) -> bool {
    stored_units > 0 && units_fit(header, u64::from(units) + u64::from(stored_units))
}

fn units_fit(header: &RecordHeader, end: u64) -> bool {
    end <= u64::from(header.payload_blocks) * u64::from(UNITS_PER_BLOCK)
}

/// Returns whether every block of the record matches its fingerprint, in any copy.
pub(crate) fn payload_is_intact(
    medium: &Medium,
    places: RecordPlaces,
    entries: &[Entry],
) -> Result<bool, StoreError> {
    let mut reader = GroupReader::default();
    let place_of = |brought: &Brought| places.payload(brought.payload_units);
    for entry in entries {
        if let Some(first) = entry.brought().next().filter(|first| first.shape == Shape::RAW) {
            let count = places.in_a_row(first.payload_units) as usize;
            reader.read_ahead(medium, place_of(&first), entry.brought().count().min(count));
        }
        for brought in entry.brought() {
            let read = reader.read(medium, place_of(&brought), brought.shape);
            let is_it = |frame: &Frame| medium.is_intact(frame, brought.fingerprint);
            if matches!(&read, Ok(Some(frame)) if is_it(frame)) {
                continue;
            }
            if Wanted::of_brought(places, &brought).right_bytes(medium).is_none() {
                return read.map(|_| false);
            }
        }
    }
    Ok(true)
}
