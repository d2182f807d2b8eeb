//! What a job that waits for space needs it for: that decides how much is done to win some.
//!
//! A segment of which little is dead costs much to empty: with a share `d` dead, and `h` of what is
//! moved going to headers, `(1 - d) / (d - h)` bytes are moved for one that is won. At a sixteenth
//! that is 20, at a thirty-second 60, and at a sixty-fourth nothing is won any more but by chance.
//! So new data, for which a pool may just be too full, gets the first of these; what a full pool
//! promises to take all the same gets the last.

use block::BlockRange;
use format::{MapEntry, VolumeRow};

use crate::chunks::asking::Asked;
use crate::edits::edit::{Edit, Step};
use crate::log::writer::{Job, Writer};
use crate::space::room::Want;
use crate::world::World;
use crate::world::view::View;

/// How many blocks may be looked at under one hold of the writer's lock to decide what jobs need
/// space for: a millisecond or two. Jobs that come later are decided on at the next commit.
pub(crate) const NEEDS_LOOKED_AT_MAX: u64 = 4096;

/// What space is needed for: for the last most is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Data where there was none, or where others share what was there.
    NewData,
    /// Data that takes the place of as much, what may make metadata, and ends.
    Upkeep,
}

impl Need {
    pub(crate) const ALL: [Self; 2] = [Self::NewData, Self::Upkeep];

    /// The share of a segment that must be dead for it to be emptied, where nothing else is left:
    /// one of so many parts.
    pub(crate) fn least_dead_divisor(self) -> u64 {
        match self {
            Self::NewData => 16,
            Self::Upkeep => 64,
        }
    }

    /// How long it waits for that: one of so many parts of [`crate::Store::work_bytes_max`].
    pub(crate) fn work_divisor(self) -> u64 {
        match self {
            Self::NewData => 4,
            Self::Upkeep => 1,
        }
    }
}

/// That a job waits for space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The work that had been done when it began.
    pub(crate) from_work_bytes: u64,
    pub(crate) need: Need,
}

impl Writer {
    /// What a job needs space for. Looks at each block that an edit replaces: at most once when the
    /// job begins to wait, and again when there is room for it as what it was then. So no block is
    /// looked at for it however often those that wait are asked.
    pub(crate) fn look_at_need(&mut self, world: &World, job: &Job) -> Need {
        if job.want() != Some(Want::Data) {
            return Need::Upkeep;
        }
        match job {
            Job::Edit(edit) if self.is_replacement(world, edit) => Need::Upkeep,
            _ => Need::NewData,
        }
    }

    /// Whether as much as an edit stores, at most, dies when it is applied: what was there before
    /// is named by nothing else.
    fn is_replacement(&mut self, world: &World, edit: &Edit) -> bool {
        // It was planned with all of this.
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

/// Units of 64 bytes that die if a block becomes something else.
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
