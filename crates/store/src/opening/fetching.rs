//! What records will change is read before they are applied, for many records at once.
//!
//! Writes all over a large volume need a leaf and a page of chunks each. Read one after the other,
//! when they are met, these take most of the time of a recovery; side by side they take little. It
//! is a hint ([`crate::edits::foresee`]): what was not read here, or could not be, is read when it
//! is needed, and what that means is decided there.

use format::Entry;

use crate::DiskReads;
use crate::chunks::asking::{Asked, MANY_LOADS_MAX};
use crate::chunks::reads::Reads;
use crate::edits::foresee;
use crate::log::replay::Found;
use crate::world::World;
use crate::world::view::View;

/// How often it is looked for more to read for the same records. A map and a table have few levels;
/// the rest is for records that need more than is asked for at once.
const ROUNDS_MAX: usize = 64;

/// Reads metadata for records that are applied next.
pub(crate) struct Fetching {
    /// `None`: the medium reads one after the other.
    reads: Option<Reads>,
    /// Whether the last records that were looked at needed nothing that was not in memory.
    is_all_there: bool,
    /// How often something had to be read by then ([`crate::chunks::memory::Memory::misses`]).
    misses: u64,
}

impl Fetching {
    pub(crate) fn new(world: &World) -> Self {
        let reads = Reads::of(&world.medium, MANY_LOADS_MAX as u32);
        Self { reads, is_all_there: false, misses: 0 }
    }

    /// Reads what applying these records will need.
    pub(crate) fn fetch(&mut self, world: &World, records: &[Found]) {
        // Where all that is changed is in memory by now, nothing has to be looked for.
        if self.is_all_there && self.misses == world.memory.misses() {
            return;
        }
        let mut asked = Asked::many();
        let mut entries: Vec<&Entry> = records.iter().flat_map(|found| &found.entries).collect();
        self.is_all_there = true;
        for _ in 0..ROUNDS_MAX {
            let view = View::asking(world, &asked);
            entries.retain(|entry| {
                let before = asked.absences();
                let is_full = asked.is_full();
                if !is_full {
                    foresee::entry(view, entry);
                }
                is_full || asked.absences() > before
            });
            if !asked.is_waiting() {
                break;
            }
            self.is_all_there = false;
            asked.let_go();
            let (loads, mut reads) = asked.reads(&world.medium);
            self.read(world, &mut reads);
            reads.iter().for_each(|_| world.memory.missed());
            asked.came(&world.medium, loads, reads);
        }
        self.misses = world.memory.misses();
    }

    fn read(&mut self, world: &World, reads: &mut DiskReads) {
        let Some(side_by_side) = &mut self.reads else {
            for read in reads {
                read.failed =
                    world.medium.disk.read_patiently(read.place, &mut read.frames).is_err();
            }
            return;
        };
        let queue = |read: &mut crate::DiskRead| {
            side_by_side.queue(read.place, std::mem::take(&mut read.frames))
        };
        let numbers: Vec<u64> = reads.iter_mut().map(queue).collect();
        side_by_side.start();
        for (read, number) in reads.iter_mut().zip(numbers) {
            match side_by_side.end(number) {
                Some(frames) => read.frames = frames,
                None => read.failed = true,
            }
        }
    }
}
