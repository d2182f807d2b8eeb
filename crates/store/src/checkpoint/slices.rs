//! Capturing most of a checkpoint in slices, between which writing continues.
//!
//! A capture places changed metadata and computes its checksums under the writer's lock: that takes
//! a third of a second if a gigabyte of metadata has changed. But nodes or pages of rows with their
//! next location may still change: they are then captured again, and their first location is
//! released. So they are captured beforehand, some at a time, as long as there are many; the
//! capture itself has only what has changed since, the directories, and the streams.
//!
//! The state in between is the same as after a capture: what was captured stays in memory, because
//! its locations are not written yet, and nothing that the last checkpoint needs is freed before
//! the next superblock is written. If the capture itself finds no room, all of it is undone.
//!
//! A pool with few free segments is captured at once, because what changes twice takes two
//! locations.

use format::geometry::UNITS_PER_BLOCK;
use format::page::PageRef;
use format::{NodeId, Place};

use crate::checkpoint::above::{Seen, look_above_changed};
use crate::checkpoint::capture_leaves::CapturedLeaf;
use crate::checkpoint::captures::{PageImage, capture_nodes};
use crate::checkpoint::holes::KEPT_SEGMENTS;
use crate::checkpoint::images::Image;
use crate::checkpoint::placer::Placer;
use crate::checkpoint::segment_table::give_back_rows;
use crate::chunks::pages::PageKey;
use crate::chunks::table_name::TableName;
use crate::log::checkpointer::Checkpointer;
use crate::space::segments::Segments;
use crate::sync::{Mutex, MutexGuard};
use crate::world::World;
use crate::world::view::View;
use crate::writer::Writer;
use crate::{NODE_UNITS, StoreError};

/// The maximum number of passes over changed metadata: each finds less.
const PASSES_MAX: usize = 3;

/// What a checkpoint has captured.
#[derive(Default)]
pub(crate) struct Captured {
    /// What is to be written.
    pub(crate) images: Vec<(Place, Image)>,
    /// What the images contain, and its previous locations.
    steps: Vec<Step>,
    /// The end of the last image, if there are any: a segment, and a block of it.
    pub(crate) open: Option<(u32, u32)>,
    /// Segments that were opened for it.
    pub(crate) opened: Vec<u32>,
}

impl Captured {
    /// Returns the location of the next image: a segment, or 0 if one must be opened, and a block
    /// of it.
    fn next_place(&self, checkpointer: &Checkpointer) -> (u32, u32) {
        let old = checkpointer.superblock();
        let (segment, block) = self.open.unwrap_or((old.metadata_segment, old.metadata_block));
        (if checkpointer.refused.contains(&segment) { 0 } else { segment }, block)
    }

    /// Returns a placer for the following images.
    pub(crate) fn placer<'a>(
        &self,
        world: &'a World,
        segments: &'a mut Segments,
        lsn: u64,
        checkpointer: &Checkpointer,
    ) -> Placer<'a> {
        let (segment, block) = self.next_place(checkpointer);
        Placer {
            segments,
            lsn,
            blocks_per_segment: world.medium.metadata_blocks(),
            medium: &world.medium,
            segment,
            block,
            opened: Vec::new(),
            holes: None,
        }
    }

    /// Adds a captured node.
    pub(crate) fn add_node(&mut self, id: NodeId, captured: Place, before: (Place, u64)) {
        self.steps.push(Step::Node { id, captured, before });
    }

    /// Adds a captured leaf of the key-value space.
    pub(crate) fn add_leaf(&mut self, leaf: CapturedLeaf) {
        self.steps.push(Step::Leaf(leaf));
    }

    /// Adds captured pages of a table.
    pub(crate) fn add_pages(&mut self, table: TableName, pages: Vec<PageImage>) {
        self.steps.extend(pages.iter().map(|image| {
            let PageImage { key, reference: captured, before, .. } = *image;
            Step::Page { table, key, captured, before }
        }));
        let images = pages.into_iter();
        self.images.extend(images.map(|image| (image.reference.place, Image::Page(image.page))));
    }

    /// Undoes the capture: everything is at its previous location, and marked as changed if it was.
    /// Opened segments are free again, except one that has refused a part of it.
    ///
    /// # Errors
    /// If memory and medium differ now.
    pub(crate) fn give_back(
        self,
        world: &World,
        writer: &mut Writer,
        checkpointer: &Checkpointer,
        refused: Option<u32>,
    ) -> Result<(), StoreError> {
        if self.open.is_none() {
            return Ok(());
        }
        let segments = &mut writer.state.segments;
        // What was captured twice returns to its location before the first time.
        for step in self.steps.into_iter().rev() {
            let (new, old, units) = match step {
                Step::Node { id, captured, before } => {
                    if !world.nodes.give_back(&world.medium, id, captured, before)? {
                        continue;
                    }
                    (captured, before.0, NODE_UNITS)
                }
                Step::Page { table: TableName::Segments, key: (0, page), captured, before } => {
                    give_back_rows(world, segments, page, before)?;
                    (captured.place, before.place, UNITS_PER_BLOCK)
                }
                Step::Page { table, key, captured, before } => {
                    let of = (captured, before);
                    if !world.table(table).give_back(&world.medium, key, of)? {
                        continue;
                    }
                    (captured.place, before.place, UNITS_PER_BLOCK)
                }
                Step::Leaf(leaf) => {
                    leaf.give_back(world, segments, &mut writer.state.config)?;
                    continue;
                }
            };
            segments.sub_live(new, units)?;
            if !old.is_none() {
                segments.add_live(old, units)?;
            }
        }
        world.memory.end_capture();
        segments.give_back(self.opened.into_iter().filter(|segment| Some(*segment) != refused));
        writer.next_checkpoint.note_open(Self::default().next_place(checkpointer));
        Ok(())
    }
}

/// A step of a capture, which can be undone.
enum Step {
    Node { id: NodeId, captured: Place, before: (Place, u64) },
    Page { table: TableName, key: PageKey, captured: PageRef, before: PageRef },
    Leaf(CapturedLeaf),
}

/// The kind of a slice's objects.
#[derive(Clone, Copy)]
enum Of {
    Nodes,
    RowsOf(TableName),
}

/// Captures most of what has changed, a slice at a time.
///
/// # Errors
/// If memory and medium differ now: the store must be given up.
pub(crate) fn capture_slices(
    world: &World,
    writer: &Mutex<Writer>,
    checkpointer: &Checkpointer,
) -> Result<Captured, StoreError> {
    let mut captured = Captured::default();
    let plan = world.memory.plans.hold();
    for _ in 0..PASSES_MAX {
        let before = captured.images.len();
        // If a page can't be read, the capture reports the error.
        look_above_changed(View::from(world).planning(plan.number), Seen::default());
        world.nodes.sort_changed();
        for of in [Of::Nodes, Of::RowsOf(TableName::Nodes), Of::RowsOf(TableName::Chunks)] {
            for _ in 0..slices_of(world, of) {
                if !capture_slice((world, writer), checkpointer, &mut captured, of)? {
                    return Ok(captured);
                }
                world.medium.disk.give_way();
            }
        }
        if captured.images.len() == before {
            break;
        }
    }
    Ok(captured)
}

/// Returns how many slices are worthwhile.
fn slices_of(world: &World, of: Of) -> usize {
    let changed = match of {
        Of::Nodes => world.nodes.changed_count() as usize,
        Of::RowsOf(table) => world.table(table).changed_pages().len(),
    };
    changed / world.medium.tuning.slice_len
}

/// Captures one slice; returns `false` if there is no room.
fn capture_slice(
    (world, writer): (&World, &Mutex<Writer>),
    checkpointer: &Checkpointer,
    captured: &mut Captured,
    of: Of,
) -> Result<bool, StoreError> {
    let mut writer = writer.lock();
    let claim = writer.claim(world).segments;
    let needed = claim.saturating_add(claim / 4).saturating_add(KEPT_SEGMENTS);
    if writer.has_failed() || needed > writer.state.segments.free_for_metadata() {
        return Ok(false);
    }
    if captured.images.is_empty() {
        world.memory.begin_capture();
    }
    let (count_max, lsn) = (world.medium.tuning.slice_len, writer.log.position().lsn);
    let mut placer = captured.placer(world, &mut writer.state.segments, lsn, checkpointer);
    let result = match of {
        Of::Nodes => {
            let nodes = world.nodes.take_changed(count_max);
            capture_nodes(world, &mut placer, nodes, captured)
        }
        Of::RowsOf(name) => {
            let pages = world.table(name).capture_rows(&world.medium, &mut placer, count_max);
            pages.map(|pages| captured.add_pages(name, pages))
        }
    };
    let open = (placer.segment, placer.block);
    captured.opened.append(&mut placer.opened);
    captured.open = Some(open);
    writer.next_checkpoint.note_open(open);
    writer.fail_if(result.is_err());
    MutexGuard::unlock_fair(writer);
    result.map(|()| true)
}
