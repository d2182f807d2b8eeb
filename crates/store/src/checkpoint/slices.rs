//! Most of a checkpoint is captured in slices, while writing goes on between them.
//!
//! A capture places what has changed and takes its checksums under the writer's lock: a third of a
//! second where a gigabyte of metadata may be changed. But a node or a page of rows that has its
//! next place is nothing that anybody must not change: whoever does has it captured once more, and
//! its first place is released. So these are captured beforehand, some at a time, as long as there
//! are many; what is left for the capture itself is what has changed meanwhile, the directories,
//! and the streams.
//!
//! That is no other state than the one behind a capture: what was captured stays in memory, since
//! its places hold nothing yet; what the last checkpoint needs is freed by none before the next
//! superblock is written. If the capture itself finds no room, all of it is given back.
//!
//! A pool in which free segments are few is captured at once: what changes twice takes two places.

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

/// How often what has changed is gone through, at most: each time less has changed meanwhile.
const PASSES_MAX: usize = 3;

/// What a checkpoint has captured.
#[derive(Default)]
pub(crate) struct Captured {
    /// What is to be written.
    pub(crate) images: Vec<(Place, Image)>,
    /// What the images are of, and where that was before.
    steps: Vec<Step>,
    /// Where the last image has ended, if there are any: a segment, and a block of it.
    pub(crate) open: Option<(u32, u32)>,
    /// Segments that were opened for it.
    pub(crate) opened: Vec<u32>,
}

impl Captured {
    /// Where the next image goes: a segment, or 0 where one is to be opened, and a block of it.
    fn next_place(&self, checkpointer: &Checkpointer) -> (u32, u32) {
        let old = checkpointer.superblock();
        let (segment, block) = self.open.unwrap_or((old.metadata_segment, old.metadata_block));
        (if checkpointer.refused.contains(&segment) { 0 } else { segment }, block)
    }

    /// Hands out the places that follow.
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

    /// A node was captured.
    pub(crate) fn add_node(&mut self, id: NodeId, captured: Place, before: (Place, u64)) {
        self.steps.push(Step::Node { id, captured, before });
    }

    /// A leaf of the key-value space was captured.
    pub(crate) fn add_leaf(&mut self, leaf: CapturedLeaf) {
        self.steps.push(Step::Leaf(leaf));
    }

    /// Pages of a table were captured.
    pub(crate) fn add_pages(&mut self, table: TableName, pages: Vec<PageImage>) {
        self.steps.extend(pages.iter().map(|image| {
            let PageImage { key, reference: captured, before, .. } = *image;
            Step::Page { table, key, captured, before }
        }));
        let images = pages.into_iter();
        self.images.extend(images.map(|image| (image.reference.place, Image::Page(image.page))));
    }

    /// Nothing of it was captured: everything is where it was, and what had changed has changed
    /// still. What was opened is free, but for a segment that has refused a part of it.
    ///
    /// # Errors
    /// If memory and medium differ by now.
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
        // What was captured twice is where it was before the first time.
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

/// What was done to capture something, so that it can be undone.
enum Step {
    Node { id: NodeId, captured: Place, before: (Place, u64) },
    Page { table: TableName, key: PageKey, captured: PageRef, before: PageRef },
    Leaf(CapturedLeaf),
}

/// What a slice is of.
#[derive(Clone, Copy)]
enum Of {
    Nodes,
    RowsOf(TableName),
}

/// Captures most of what has changed, a slice at a time.
///
/// # Errors
/// If memory and medium differ by now: it has to be given up.
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

/// How many slices are worth it.
fn slices_of(world: &World, of: Of) -> usize {
    let changed = match of {
        Of::Nodes => world.nodes.changed_count() as usize,
        Of::RowsOf(table) => world.table(table).changed_pages().len(),
    };
    changed / world.medium.tuning.slice_len
}

/// Captures one slice; `false` if there is no room for that.
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
