//! The blocks of the race, and the commands on them.
//!
//! Each volume has a zone. Its first 64 blocks are hot: all commands use them, in one of four
//! spots; copies stay in a spot, or go to that of the other volume. The other 128 blocks are one
//! COMPARE AND WRITE of 64 KiB, and mostly used as a whole; they are on both sides of a multiple of
//! 1 MiB, where two leaves of the array's maps meet. Only an occasional READ of the whole zone
//! covers more than one of these: so a history splits into short ones.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use libiscsi::{Cdb, CopySegment, Data, Naa, copy_parameters, unmap_parameters};

use super::history::{Action, BLOCK, Swap, Value, bytes_of, values_of};
use crate::random::Random;

/// The number of volumes.
pub const VOLUMES: usize = 2;
/// The blocks of a spot: two of the array's.
const SPOT: usize = 16;
/// The hot blocks.
const HOT: usize = 4 * SPOT;
/// The blocks of one long COMPARE AND WRITE.
const LOCK: usize = 128;
/// The cells of a volume.
pub const CELLS: usize = HOT + LOCK;
/// The logical block of a volume's first cell: the leaf boundary is in the middle of the lock.
const FIRST_LBA: usize = 2048 - LOCK / 2 - HOT;
/// The length of most ranges, at most.
const SHORT: u64 = 12;

const _: () = assert!(FIRST_LBA.is_multiple_of(8) && CELLS.is_multiple_of(8));

/// Generates values that no other command writes.
#[derive(Default)]
pub struct Values(AtomicU32);

impl Values {
    /// Returns this many consecutive values.
    fn next(&self, count: usize) -> std::ops::Range<Value> {
        let first = self.0.fetch_add(count as u32, Ordering::Relaxed) + 1;
        first..first + count as u32
    }

    fn one(&self) -> Value {
        self.next(1).start
    }
}

/// A command, and its effect if it succeeds.
pub struct Planned {
    /// The effect. Until it has ended, the values of READ are the expected ones, and the result of
    /// COMPARE AND WRITE is unknown.
    pub action: Action,
    /// The CDB.
    pub cdb: Cdb,
    /// The data-out.
    pub out: Vec<u8>,
    /// The length of data-in.
    pub in_bytes: usize,
}

impl Planned {
    /// Returns its data in libiscsi's form.
    pub fn data(&self) -> Data {
        if self.in_bytes > 0 {
            Data::In(vec![0; self.in_bytes])
        } else {
            Data::Out(self.out.clone())
        }
    }

    /// Returns its effect, given the bytes read.
    pub fn done(&self, bytes: &[u8]) -> Result<Action> {
        Ok(match &self.action {
            Action::Read { at, .. } => Action::Read { at: *at, values: values_of(bytes)? },
            Action::Compare { .. } => self.ended(Swap::Done),
            other => other.clone(),
        })
    }

    /// Returns the effect of a COMPARE AND WRITE with this result.
    pub fn ended(&self, end: Swap) -> Action {
        let mut action = self.action.clone();
        if let Action::Compare { swap, .. } = &mut action {
            *swap = end;
        }
        action
    }
}

/// Generates the commands of one host, based on what it saw last.
pub struct Planner<'a> {
    volume: usize,
    names: [Naa; VOLUMES],
    values: &'a Values,
    random: Random,
    /// The assumed content of the cells.
    seen: Vec<Value>,
}

impl<'a> Planner<'a> {
    /// Creates it for a host with a session of this volume.
    pub fn new(volume: usize, names: [Naa; VOLUMES], values: &'a Values, seed: u64) -> Self {
        let seen = vec![0; VOLUMES * CELLS];
        Self { volume, names, values, random: Random::new(seed), seen }
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Updates the assumed content by the effect of a command.
    pub fn learn(&mut self, action: &Action) {
        let (at, values) = match action {
            Action::Read { at, values } | Action::Write { at, values } => (*at, values),
            Action::Compare { at, values, swap: Swap::Done, .. } => (*at, values),
            _ => return,
        };
        self.seen[at..at + values.len()].copy_from_slice(values);
    }

    /// Returns any command.
    pub fn any(&mut self) -> Planned {
        match self.random.below(800) {
            0 => read(self.volume * CELLS, CELLS),
            _ => self.some(),
        }
    }

    /// Returns any command except a READ of the whole zone, so that a history of many still splits.
    pub fn some(&mut self) -> Planned {
        match self.random.below(100) {
            0..33 => self.read_short(),
            33..44 => self.read_lock(),
            _ => self.change(),
        }
    }

    /// Returns any command that changes something.
    pub fn change(&mut self) -> Planned {
        // Zeros and copied values allow many ways to one state: with more of them the checker does
        // not finish.
        match self.random.below(100) {
            0..32 => self.write(),
            32..40 => self.fill(),
            40..45 => self.unmap(),
            45..52 => self.copy(),
            52..78 => self.compare_short(),
            _ => self.compare_lock(),
        }
    }

    /// Returns a READ of a few hot blocks.
    pub fn read_short(&mut self) -> Planned {
        let (at, count) = self.range();
        read(at, count)
    }

    fn read_lock(&mut self) -> Planned {
        read(self.volume * CELLS + HOT, LOCK)
    }

    /// Returns a few blocks of one of the volume's spots, unaligned or aligned to 4 KiB.
    fn range(&mut self) -> (usize, usize) {
        let count = [1, 8, 1 + self.random.below(SHORT)][self.random.below(3) as usize] as usize;
        let mut offset = self.random.below((SPOT - count) as u64 + 1) as usize;
        if self.random.below(2) == 0 {
            offset -= offset % 8;
        }
        let spot = self.random.below((HOT / SPOT) as u64) as usize * SPOT;
        (self.volume * CELLS + spot + offset, count)
    }

    /// Returns new values: all different, or equal in each 4 KiB (a pattern), or with zeros. Each
    /// kind is stored differently.
    fn fresh(&mut self, at: usize, count: usize) -> Vec<Value> {
        let mut values: Vec<Value> = self.values.next(count).collect();
        let mut kind = 0;
        for index in 0..count {
            if index == 0 || (at + index).is_multiple_of(8) {
                kind = self.random.below(4);
            }
            match kind {
                0 if index > 0 && !(at + index).is_multiple_of(8) => {
                    values[index] = values[index - 1];
                }
                1 if index > 0 && self.random.below(4) > 0 => values[index] = 0,
                _ => {}
            }
        }
        values
    }

    fn write(&mut self) -> Planned {
        let (at, count) = self.range();
        let values = self.fresh(at, count);
        let out = bytes_of(&values);
        let cdb = Cdb::write_16(lba(at), count as u32);
        Planned { action: Action::Write { at, values }, cdb, out, in_bytes: 0 }
    }

    fn fill(&mut self) -> Planned {
        let (at, count) = self.range();
        let value = if self.random.below(4) == 0 { 0 } else { self.values.one() };
        let unmap = value == 0 && self.random.below(2) == 0;
        let cdb = Cdb::write_same_16(lba(at), count as u32, unmap);
        let action = Action::Write { at, values: vec![value; count] };
        Planned { action, cdb, out: bytes_of(&[value]), in_bytes: 0 }
    }

    fn unmap(&mut self) -> Planned {
        let (at, count) = self.range();
        let out = unmap_parameters(&[(lba(at), count as u32)]);
        let cdb = Cdb::unmap(out.len() as u16);
        let action = Action::Write { at, values: vec![0; count] };
        Planned { action, cdb, out, in_bytes: 0 }
    }

    /// Returns a segment within a spot or from one volume to the other, often equally aligned.
    fn copy(&mut self) -> Planned {
        let (mut from, count) = self.range();
        from = from % CELLS + self.random.below(VOLUMES as u64) as usize * CELLS;
        let mut to = self.random.below((SPOT - count) as u64 + 1) as usize;
        if self.random.below(3) > 0 && from % 8 + count <= 8 {
            to = to / 8 * 8 + from % 8;
        }
        to += from % CELLS / SPOT * SPOT;
        let mut volume = self.random.below(VOLUMES as u64) as usize;
        if volume == from / CELLS && to < from % CELLS + count && from % CELLS < to + count {
            // An overlapping copy goes to the other volume.
            volume = VOLUMES - 1 - volume;
        }
        to += volume * CELLS;
        let segment = CopySegment {
            source: (from / CELLS) as u16,
            destination: volume as u16,
            blocks: count as u16,
            source_lba: lba(from),
            destination_lba: lba(to),
        };
        let out = copy_parameters(&self.names, &[segment], BLOCK as u32);
        let cdb = Cdb::extended_copy(out.len() as u32);
        Planned { action: Action::Copy { from, to, count }, cdb, out, in_bytes: 0 }
    }

    fn compare_short(&mut self) -> Planned {
        let (at, mut count) = self.range();
        if self.random.below(2) == 0 {
            count = 1;
        }
        self.compare(at, count)
    }

    fn compare_lock(&mut self) -> Planned {
        let start = self.volume * CELLS + HOT;
        if self.random.below(6) > 0 {
            return self.compare(start, LOCK);
        }
        let count = 1 + self.random.below(40) as usize;
        let offset = self.random.below((LOCK - count) as u64 + 1) as usize;
        self.compare(start + offset, count)
    }

    fn compare(&mut self, at: usize, count: usize) -> Planned {
        let expected = self.seen[at..at + count].to_vec();
        let values = self.fresh(at, count);
        let out = [bytes_of(&expected), bytes_of(&values)].concat();
        let cdb = Cdb::compare_and_write(lba(at), count as u8);
        let action = Action::Compare { at, expected, values, swap: Swap::Unknown };
        Planned { action, cdb, out, in_bytes: 0 }
    }
}

/// Returns a READ of some cells of one volume.
pub fn read(at: usize, count: usize) -> Planned {
    let cdb = Cdb::read_16(lba(at), count as u32);
    let action = Action::Read { at, values: Vec::new() };
    Planned { action, cdb, out: Vec::new(), in_bytes: count * BLOCK }
}

fn lba(cell: usize) -> u64 {
    (FIRST_LBA + cell % CELLS) as u64
}
