//! Checkpoints: the whole state is written to the medium from time to time, so that recovery has
//! little to replay and segments of the log become free.
//!
//! 1. Under the writer's lock, *capture*: every changed node and page gets its next location,
//!    bottom up, so that parents have locations and checksums. What is captured is shared, not
//!    copied: the first change after the capture copies the page. Most of it is captured before, in
//!    slices between which writing continues (`slices`).
//! 2. Without the lock, write all of it into metadata segments, and flush.
//! 3. Write the superblock over the older of the two copies, and flush. From here on it is the
//!    valid one. Then write it over the other copy as well, and flush: then no bit flip in one of
//!    them leads back to an earlier state.
//! 4. Free the segments in which nothing was live at the capture.
//!
//! Before step 1 it is checked that all of it fits (`room`): a checkpoint either is written or has
//! changed nothing. The same holds if the device refuses a part of it (`recapture`). If it would
//! leave too few segments free, it uses holes first (`holes`), so that metadata does not spread
//! when space is short.
//!
//! * `above`, `slices`, `captures`, `capture_leaves`, `segment_table`: capturing,
//! * `placer`, `holes`: allocating locations; `images`: writing; `recapture`: refused writes,
//! * `load`: reading a checkpoint.
//!
//! Invariants:
//! 1. What a checkpoint refers to is durable before the root refers to the checkpoint.
//! 2. What the last checkpoint needs stays where it is until the next one is durable.

pub(crate) mod above;
pub(crate) mod capture_leaves;
pub(crate) mod captures;
pub(crate) mod holes;
pub(crate) mod images;
pub(crate) mod load;
pub(crate) mod placer;
pub(crate) mod recapture;
pub(crate) mod segment_table;
pub(crate) mod slices;

use std::collections::BTreeSet;
use std::sync::Arc;

use block::BLOCK_BYTES;
use format::{NodeId, Place, Superblock};

use crate::StoreError;
use crate::checkpoint::captures::capture_nodes;
use crate::checkpoint::holes::{Holes, make_sure_it_fits};
use crate::checkpoint::images::write_images;
use crate::checkpoint::placer::{Rounded, add_segment_stream, add_stream, encode_pending};
use crate::checkpoint::recapture::{Before, Refused};
use crate::checkpoint::slices::Captured;
use crate::chunks::table_name::TableName;
use crate::log::checkpointer::Checkpointer;
use crate::log::tail::Since;
use crate::world::World;
use crate::writer::Writer;

/// What a checkpoint writes and frees.
pub(crate) struct Capture {
    pub(crate) captured: Captured,
    superblock: Superblock,
    streams: [Vec<(Place, u32)>; 3],
    before: Before,
    dead: Vec<u32>,
    log_segments: BTreeSet<u32>,
    /// Leaves that were removed.
    gone_leaves: Vec<u64>,
}

/// A checkpoint on the medium, and what it frees.
pub(crate) struct Written {
    pub(crate) bytes: u64,
    /// Whether both superblocks refer to it.
    pub(crate) in_both: bool,
    pub(crate) dead: Vec<u32>,
    log_segments: BTreeSet<u32>,
    gone_leaves: Vec<u64>,
}

/// Captures all changes that were not captured yet, or nothing if they do not fit the free space.
pub(crate) fn capture(
    world: &World,
    writer: &mut Writer,
    checkpointer: &Checkpointer,
    holes: Option<Holes>,
    begun: &mut Captured,
) -> Result<Capture, StoreError> {
    let holes = make_sure_it_fits(world, writer, holes)?;
    let old = checkpointer.superblock();
    let position = writer.log.position();
    let mut captured = std::mem::take(begun);
    let mut placer = captured.placer(world, &mut writer.state.segments, position.lsn, checkpointer);
    placer.holes = holes;
    world.memory.begin_capture();
    capture_nodes(world, &mut placer, world.nodes.take_changed(usize::MAX), &mut captured)?;
    let gone_leaves = writer.state.config.capture(world, &mut placer, &mut captured)?;
    let mut roots = [old.chunks, old.nodes, old.volumes, old.leaves];
    for (root, name) in roots.iter_mut().zip(TableName::ALL) {
        let (new, pages) = world.table(name).capture(&world.medium, &mut placer)?;
        *root = new;
        captured.add_pages(name, pages);
    }
    let images = &mut captured.images;
    for (place, units) in checkpointer.streams.iter().flatten() {
        placer.release(*place, *units)?;
    }
    let mut streams: [Vec<(Place, u32)>; 3] = Default::default();
    let config = writer.state.config.encode();
    writer.next_checkpoint.note_config(config.len() as u64);
    let (medium, units) = (&world.medium, Rounded::ToUnits);
    let config = add_stream(medium, &mut placer, &config, units, images, &mut streams[0])?;
    let unnamed = [&writer.state.pending[..], &writer.state.stuck[..]].concat();
    let pending = encode_pending(&unnamed, &writer.state.staged, &world.comparisons.all());
    let pending = add_stream(medium, &mut placer, &pending, units, images, &mut streams[1])?;
    let segments = add_segment_stream(medium, &mut placer, images, &mut streams[2])?;
    let segment_table = segment_table::capture(world, &mut placer, &mut captured)?;
    let (metadata_segment, metadata_block) = (placer.segment, placer.block);
    captured.opened.append(&mut placer.opened);
    captured.open = Some((metadata_segment, metadata_block));
    writer.next_checkpoint.note_open((metadata_segment, metadata_block));
    let holes_blocks = writer.note_holes(world, metadata_segment);
    let before = Before { log: keep_log(writer), holes_blocks };
    let mut keep = writer.log.segments().clone();
    keep.insert(metadata_segment);
    let dead = writer.state.segments.dead(&keep);
    let superblock = Superblock {
        sequence: old.sequence + 1,
        metadata_segment,
        metadata_block,
        next_chunk: format::ChunkId(writer.state.next_chunk),
        next_node: NodeId(writer.state.next_node),
        next_volume: block::VolumeId(writer.state.next_volume),
        log: position,
        chunks: roots[0],
        nodes: roots[1],
        volumes: roots[2],
        segments,
        config,
        pending,
        leaves: roots[3],
        segment_table,
        ..old.clone()
    };
    let log_segments = writer.log.segments().clone();
    Ok(Capture { captured, superblock, streams, before, dead, log_segments, gone_leaves })
}

/// The log may have continued after what is applied, also through segments without live data.
fn keep_log(writer: &mut Writer) -> Since {
    let (rows, lsn) = (&writer.state.segments, writer.log.position().lsn);
    writer.log.checkpoint(|segment| rows.row(segment).opened_lsn >= lsn)
}

/// Writes what was captured, and the superblock that refers to it. Calls `told` with the bytes
/// written so far. If a write fails, the checkpoint is undone. If a flush fails, what was captured
/// is written again with it.
pub(crate) fn write(
    world: &World,
    checkpointer: &mut Checkpointer,
    capture: Capture,
    told: &mut dyn FnMut(u64),
) -> Result<Result<Written, Refused>, StoreError> {
    let medium = &world.medium;
    let (mut bytes, mut segment, mut is_refused) = (0, 0, false);
    let mut write_all = || {
        let written = write_images(medium, &capture.captured.images, &mut segment, told);
        is_refused = written.is_err();
        bytes = written? + BLOCK_BYTES;
        Ok(())
    };
    let written = medium.disk.write_and_flush(&mut write_all);
    if is_refused {
        return Ok(Err(Refused { capture, segment }));
    }
    written?;
    drop(capture.captured);
    // From here on what was captured can be read from the medium, and so evicted.
    world.memory.end_capture();
    let in_both = checkpointer.write_superblock(medium, capture.superblock)?;
    checkpointer.streams = capture.streams;
    let open = checkpointer.superblock().metadata_segment;
    checkpointer.refused.remove(&open);
    let Capture { dead, log_segments, gone_leaves, .. } = capture;
    Ok(Ok(Written { bytes, in_both, dead, log_segments, gone_leaves }))
}

/// Frees the segments that were dead when the checkpoint was captured. They stay dead unless the
/// log has opened them since.
pub(crate) fn free_dead(
    world: &World,
    writer: &mut Writer,
    checkpointer: &mut Checkpointer,
    written: Written,
) {
    let (readers, images) = (world.readers.turn(), world.images.turn());
    checkpointer.earlier_images.retain(|token| token.strong_count() > 0);
    checkpointer.earlier_images.push(Arc::downgrade(&images));
    let Written { dead, log_segments, gone_leaves, .. } = written;
    writer.state.config.written(gone_leaves);
    writer.state.segments.written();
    let still: Vec<u32> = dead
        .into_iter()
        .filter(|segment| {
            !log_segments.contains(segment) && !writer.log.segments().contains(segment)
        })
        .collect();
    for segment in &still {
        writer.supply.freed(*segment);
    }
    writer.state.segments.free(still, &readers, &images);
}
