//! Reading what records will change before they are applied, for many records at once.
//!
//! Writes all over a large volume need a leaf and a page of chunks each. Reading these one by one
//! when they are needed takes most of the time of a recovery; in parallel, while earlier records
//! are applied, it takes little. This is a hint ([`crate::edits::foresee`]): what was not read
//! here, or could not be, is read when it is needed, and only then does an error count.

use crate::chunks::asking::{Asked, Load, MANY_LOADS_MAX};
use crate::chunks::reads::Reads;
use crate::edits::foresee;
use crate::log::replay::Found;
use crate::world::World;
use crate::world::view::View;
use crate::{DiskRead, DiskReads};

/// How many rounds of reads are made for the same records. A map and a table have few levels; the
/// rest is for records that need more than is requested at once.
const ROUNDS_MAX: u32 = 64;

/// Reads metadata for the records that are applied next.
pub(crate) struct Fetching {
    /// `None`: the medium reads sequentially.
    side_by_side: Option<Reads>,
    records: Vec<Found>,
    /// The record and the entry of all that need something that was not in memory.
    waiting: Vec<(usize, usize)>,
    asked: Asked,
    under_way: Option<UnderWay>,
    rounds_left: u32,
    /// Whether the last examined records needed nothing that was not in memory.
    is_all_there: bool,
    /// How many reads were necessary until then ([`crate::chunks::memory::Memory::misses`]).
    misses: u64,
}

/// The reads of one round.
struct UnderWay {
    loads: Vec<Load>,
    reads: DiskReads,
    /// Their numbers, if they are parallel.
    numbers: Vec<u64>,
}

impl Fetching {
    /// For records of which none is there yet.
    pub(crate) fn new(world: &World) -> Self {
        Self {
            side_by_side: Reads::of(&world.medium, MANY_LOADS_MAX as u32),
            records: Vec::new(),
            waiting: Vec::new(),
            asked: Asked::many(),
            under_way: None,
            rounds_left: 0,
            is_all_there: false,
            misses: 0,
        }
    }

    /// Begins to read what these records need. The previous ones were taken.
    pub(crate) fn begin(&mut self, world: &World, records: Vec<Found>) {
        debug_assert!(self.records.is_empty(), "the previous records were taken");
        self.records = records;
        // If everything that is changed is in memory now, there is nothing to look for.
        if self.is_all_there && self.misses == world.memory.misses() {
            return;
        }
        let entries = |(at, found): (usize, &Found)| (0..found.entries.len()).map(move |i| (at, i));
        self.waiting = self.records.iter().enumerate().flat_map(entries).collect();
        self.rounds_left = ROUNDS_MAX;
        self.is_all_there = true;
        self.look(world);
        self.misses = world.memory.misses();
    }

    /// Processes reads that have completed, without waiting.
    pub(crate) fn go_on(&mut self, world: &World) {
        let Some(under_way) = &self.under_way else { return };
        if self.side_by_side.as_mut().is_some_and(|reads| reads.have_ended(&under_way.numbers)) {
            self.came(world);
        }
    }

    /// Returns the records, once everything that they need was read.
    pub(crate) fn take(&mut self, world: &World) -> Vec<Found> {
        while self.under_way.is_some() {
            self.came(world);
        }
        std::mem::take(&mut self.records)
    }

    /// Determines what is not in memory, and begins to read it.
    fn look(&mut self, world: &World) {
        let Self { records, waiting, asked, .. } = self;
        let view = View::asking(world, asked);
        waiting.retain(|(at, entry)| {
            if asked.is_full() {
                return true;
            }
            let before = asked.absences();
            foresee::entry(view, &records[*at].entries[*entry]);
            asked.absences() != before
        });
        asked.let_go();
        if !asked.is_waiting() || self.rounds_left == 0 {
            self.waiting.clear();
            self.asked = Asked::many();
            return;
        }
        self.rounds_left -= 1;
        self.is_all_there = false;
        let (loads, mut reads) = self.asked.reads(&world.medium);
        reads.iter().for_each(|_| world.memory.missed());
        let mut numbers = Vec::new();
        if let Some(side_by_side) = &mut self.side_by_side {
            let frames = |read: &mut DiskRead| std::mem::take(&mut read.frames);
            numbers.extend(reads.iter_mut().map(|r| side_by_side.queue(r.place, frames(r))));
            side_by_side.start();
        }
        self.under_way = Some(UnderWay { loads, reads, numbers });
    }

    /// Waits for the reads in flight, and continues with their results.
    fn came(&mut self, world: &World) {
        let Some(UnderWay { loads, mut reads, numbers }) = self.under_way.take() else { return };
        match &mut self.side_by_side {
            None => reads.iter_mut().for_each(|read| {
                let result = world.medium.disk.read_patiently(read.place, &mut read.frames);
                read.failed = result.is_err();
            }),
            Some(side_by_side) => {
                for (read, number) in reads.iter_mut().zip(numbers) {
                    match side_by_side.end(number) {
                        Some(frames) => read.frames = frames,
                        None => read.failed = true,
                    }
                }
            }
        }
        self.asked.came(&world.medium, loads, reads);
        self.look(world);
    }
}
