//! The random choice of what hosts do next.

use super::Mix;
use super::command::{Command, Place, number};
use super::content::{COMMON_TAGS, PATTERN};
use super::monitors::Monitors;
use crate::array::reservations::{Action, Kind, Nexus};
use crate::rng::Rng;

/// The maximum number of blocks of most commands.
const BLOCKS_MAX: u64 = 6;
/// From this many blocks on, a read is gathered from several requests.
const GATHERED_BLOCKS: u64 = 1025;
/// The number of patterns.
const PATTERNS: u64 = 12;
/// The maximum number of possible contents of a block that is copied.
const COPIED_CONTENTS_MAX: usize = 4;
/// The number of registered keys.
const KEYS: u64 = 3;

/// What there is to choose from.
pub(super) struct Choice<'a> {
    pub(super) mix: &'a Mix,
    /// The sizes of the units, in blocks of 4 KiB.
    pub(super) units: &'a [u64],
    /// The first unit with reservations.
    pub(super) reserved_from: usize,
    /// The number of paths.
    pub(super) paths: u32,
    /// Whether the names of units in copies are known.
    pub(super) may_copy: bool,
    pub(super) nexus: Nexus,
    /// The maximum number of blocks of a long command.
    pub(super) long_blocks: u64,
}

impl Choice<'_> {
    /// Chooses a command.
    pub(super) fn command(&self, rng: &mut Rng, monitors: &Monitors, tag: &mut u64) -> Command {
        let Mix { reads, writes, zeros, unmaps, swaps, copies, .. } = *self.mix;
        let Mix { persistent_out, persistent_in, exclusive, looks, patterns, .. } = *self.mix;
        let Mix { synchronizes, forced_percent, .. } = *self.mix;
        let copies = if self.may_copy { copies } else { 0 };
        let is_reserved = |weight| if self.reserved_from < self.units.len() { weight } else { 0 };
        let weights = [
            reads,
            writes,
            zeros,
            unmaps,
            swaps,
            copies,
            is_reserved(persistent_out),
            is_reserved(persistent_in),
            is_reserved(exclusive),
            looks,
            patterns,
            synchronizes,
        ];
        let is_long = rng.chance(50);
        let at = self.place(rng, BLOCKS_MAX);
        match rng.weighted(&weights) {
            0 => Command::Read { at: self.longer(at, rng), is_long },
            1 => {
                let tags = (0..at.count).map(|_| any_tag(rng, tag)).collect();
                Command::Write { at, tags, is_long, forces: rng.chance(forced_percent) }
            }
            2 => Command::Same { at, tag: 0, is_long, unmaps: rng.chance(50) },
            3 => Command::Unmap { unit: at.unit, ranges: ranges(rng, at) },
            4 => {
                let at = Place { count: 1, ..at };
                // What the block may have.
                let possible: Vec<u64> =
                    monitors.linear.possible(number(at.unit, at.block)).into_iter().collect();
                let expected = match rng.chance(85) {
                    true => possible[rng.below(possible.len() as u64) as usize],
                    false => any_tag(rng, tag),
                };
                Command::Swap { at, expected, new: any_tag(rng, tag), repeats: None }
            }
            5 => {
                let from = self.place(rng, at.count);
                let count = from.count.min(at.count);
                let blocks = (from.block..from.block + count).map(|block| number(from.unit, block));
                // What may have any content would be copied as any content.
                let is_known = |block| monitors.linear.possible(block).len() <= COPIED_CONTENTS_MAX;
                if !blocks.into_iter().all(is_known) {
                    return Command::Read { at, is_long };
                }
                Command::Copy { from: Place { count, ..from }, at: Place { count, ..at } }
            }
            6 => Command::Out {
                unit: self.reserved_unit(rng),
                action: self.action(rng),
                aborts: rng.chance(50),
            },
            7 if rng.chance(50) => Command::ReadKeys { unit: self.reserved_unit(rng) },
            7 => Command::ReadReservation { unit: self.reserved_unit(rng) },
            8 if rng.chance(50) => Command::Reserve { unit: self.reserved_unit(rng) },
            8 => Command::Release { unit: self.reserved_unit(rng) },
            10 => {
                let tag = PATTERN | rng.below(PATTERNS);
                Command::Same { at, tag, is_long, unmaps: rng.chance(20) }
            }
            11 => Command::Synchronize { at: self.all_or(at, rng), is_long },
            _ if rng.chance(50) => Command::Ready { unit: at.unit },
            _ => Command::Identify { unit: at.unit },
        }
    }

    fn place(&self, rng: &mut Rng, most: u64) -> Place {
        let unit = rng.below(self.units.len() as u64) as usize;
        let blocks = self.units[unit];
        let count = rng.between(1, most.min(blocks));
        Place { unit, block: rng.below(blocks - count + 1), count }
    }

    /// Returns the whole unit, or the chosen blocks.
    fn all_or(&self, at: Place, rng: &mut Rng) -> Place {
        match rng.chance(50) {
            true => Place { block: 0, count: self.units[at.unit], ..at },
            false => at,
        }
    }

    /// Sometimes makes a read longer. Writes are bounded by `Tuning::SMALL`.
    fn longer(&self, at: Place, rng: &mut Rng) -> Place {
        let Mix { long_percent, gathered_percent, .. } = *self.mix;
        let blocks = self.units[at.unit];
        if blocks >= GATHERED_BLOCKS && rng.chance(gathered_percent) {
            let count = rng.between(GATHERED_BLOCKS, blocks);
            return Place { block: rng.below(blocks - count + 1), count, ..at };
        }
        if long_percent > 0 && rng.chance(long_percent) {
            let count = rng.between(1, self.long_blocks.min(blocks));
            return Place { block: rng.below(blocks - count + 1), count, ..at };
        }
        at
    }

    fn reserved_unit(&self, rng: &mut Rng) -> usize {
        rng.between(self.reserved_from as u64, self.units.len() as u64 - 1) as usize
    }

    fn action(&self, rng: &mut Rng) -> Action {
        let key = rng.between(1, KEYS);
        let kind = Kind::ALL[rng.below(6) as usize];
        match rng.weighted(&[40, 20, 12, 6, 14, 8]) {
            0 => Action::Register {
                key: rng.below(KEYS + 1),
                new_key: rng.below(KEYS + 1),
                ignores_key: rng.chance(60),
                is_kept: rng.chance(60),
            },
            1 => Action::Reserve { key, kind },
            2 => Action::Release { key, kind },
            3 => Action::Clear { key },
            4 => Action::Preempt { key, victim: rng.below(KEYS + 1), kind },
            _ => match self.other_path(rng) {
                Some(to) => Action::Move {
                    key,
                    new_key: rng.below(KEYS + 1),
                    to,
                    unregisters: rng.chance(50),
                    is_kept: rng.chance(60),
                },
                None => Action::Clear { key },
            },
        }
    }

    fn other_path(&self, rng: &mut Rng) -> Option<Nexus> {
        let to = Nexus(rng.below(u64::from(self.paths)) as u32);
        (to != self.nexus).then_some(to)
    }
}

fn any_tag(rng: &mut Rng, next: &mut u64) -> u64 {
    if rng.chance(10) {
        return rng.between(1, COMMON_TAGS);
    }
    *next += 1;
    COMMON_TAGS + *next
}

/// Chooses ranges that do not overlap.
fn ranges(rng: &mut Rng, at: Place) -> Vec<(u64, u64)> {
    let end = at.block + at.count;
    let mut ranges = Vec::new();
    let mut block = at.block;
    while block < end {
        let count = rng.between(1, end - block);
        ranges.push((block, count));
        block += count + rng.below(2);
    }
    ranges
}
