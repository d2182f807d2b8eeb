//! Determining what a job needs space for ([`Need`]).

use block::BlockRange;
use format::{MapEntry, VolumeRow};

use crate::chunks::asking::Asked;
use crate::edits::edit::{Edit, Step};
use crate::space::need::Need;
use crate::world::World;
use crate::world::view::View;
use crate::writer::Writer;
use crate::writer::job::Job;
use crate::writer::room::Want;

/// The maximum number of blocks that are examined under one hold of the writer's lock to determine
/// what jobs need space for: a millisecond or two. Later jobs are examined at the next commit.
pub(crate) const NEEDS_LOOKED_AT_MAX: u64 = 4096;

impl Writer {
    /// Determines what a job needs space for. Examines each block that an edit replaces: once when
    /// the job begins to wait, and again when there is room for it as what it was then. So no block
    /// is examined however often waiting jobs are checked.
    pub(crate) fn look_at_need(&mut self, world: &World, job: &Job) -> Need {
        if job.want(world) != Some(Want::Data) {
            return Need::Upkeep;
        }
        match job {
            Job::Edit(edit) if self.is_replacement(world, edit) => Need::Upkeep,
            _ => Need::NewData,
        }
    }

    /// Returns whether at least as much as an edit stores dies when it is applied, because nothing
    /// else refers to the old content.
    fn is_replacement(&mut self, world: &World, edit: &Edit) -> bool {
        // It was planned with all of this in memory.
        let asked = Asked::default();
        let view = View::asking(world, &asked);
        edit.steps.iter().all(|step| {
            let Step::Put(put) = step else { return false };
            let Some(map) = world.map_of(put.volume) else { return false };
            let wanted = put.stored_blocks() as u64 * u64::from(format::geometry::UNITS_PER_BLOCK);
            let mut dying = 0;
            let range: BlockRange = put.range();
            (range.start.0..range.end().0).any(|block| {
                self.supply.look_at_need();
                dying += dying_units(view, &map, block).unwrap_or(0);
                dying >= wanted
            }) || wanted == 0
        })
    }
}

/// Returns the units of 64 bytes that die if a block is overwritten.
fn dying_units(world: View<'_>, map: &VolumeRow, block: u64) -> Option<u64> {
    let (mut entry, mut offset) = (map.root, block);
    for level in (1..=map.level).rev() {
        let MapEntry::Node(id) = entry else { return None };
        let row = world.nodes.row(world.medium, id).ok()?;
        if row.reference_count != 1 {
            return None;
        }
        let below = world.span_blocks(level - 1);
        let node = world.nodes.get(world.medium, id, level).ok()?;
        entry = node.get((offset / below) as usize);
        offset %= below;
    }
    let MapEntry::Chunk(id) = entry else { return None };
    let row = world.chunk(id).ok()?;
    (row.reference_count == 1 && row.original.is_none()).then(|| u64::from(row.share_units()))
}
