//! What hosts request: as bytes, as operations on blocks, and as operations on reservations.

use std::time::Duration;

use super::cdb::{self, MoveTo, Naa};
use super::content::{BLOCK_BYTES, PATTERN, content, is_own, pattern};
use crate::array::linear::{Block, Op};
use crate::array::reservations::{self, Access, Action, Nexus};

/// The size of the response to commands without blocks, in bytes.
const PARAMETER_BYTES: u32 = 512;

/// Some blocks of 4 KiB of a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) unit: usize,
    pub(super) block: u64,
    pub(super) count: u64,
}

impl Place {
    /// Returns the blocks as the monitor numbers them.
    fn blocks(self) -> impl Iterator<Item = Block> {
        (self.block..self.block + self.count).map(move |block| number(self.unit, block))
    }
}

/// Returns the monitor's number of a block.
pub(super) fn number(unit: usize, block: u64) -> Block {
    Block((unit as u64) << 40 | block)
}

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Read {
        at: Place,
        is_long: bool,
    },
    Write {
        at: Place,
        tags: Vec<u64>,
        is_long: bool,
        /// FUA: it is durable when it is acknowledged.
        forces: bool,
    },
    /// WRITE SAME with zeros, or with a pattern.
    Same {
        at: Place,
        tag: u64,
        is_long: bool,
        unmaps: bool,
    },
    /// SYNCHRONIZE CACHE.
    Synchronize {
        at: Place,
        is_long: bool,
    },
    Unmap {
        unit: usize,
        ranges: Vec<(u64, u64)>,
    },
    /// COMPARE AND WRITE.
    Swap {
        at: Place,
        expected: u64,
        new: u64,
        /// When it was first sent over the same path, whose session was lost.
        repeats: Option<Duration>,
    },
    /// EXTENDED COPY, sent to the destination.
    Copy {
        from: Place,
        at: Place,
    },
    /// PERSISTENT RESERVE OUT.
    Out {
        unit: usize,
        action: Action,
        aborts: bool,
    },
    ReadKeys {
        unit: usize,
    },
    ReadReservation {
        unit: usize,
    },
    Reserve {
        unit: usize,
    },
    Release {
        unit: usize,
    },
    Ready {
        unit: usize,
    },
    /// INQUIRY, of page 83h.
    Identify {
        unit: usize,
    },
}

/// A command in the form in which it is sent.
pub(super) struct Wire {
    pub(super) cdb: Vec<u8>,
    pub(super) data_out: Option<Vec<u8>>,
    pub(super) expected_in_bytes: u32,
}

impl Wire {
    fn to(cdb: Vec<u8>) -> Self {
        Self { cdb, data_out: None, expected_in_bytes: 0 }
    }

    fn with((cdb, list): (Vec<u8>, Vec<u8>)) -> Self {
        Self { cdb, data_out: Some(list), expected_in_bytes: 0 }
    }

    fn asking(cdb: Vec<u8>) -> Self {
        Self { cdb, data_out: None, expected_in_bytes: PARAMETER_BYTES }
    }
}

/// The names that are needed to encode a command.
pub(super) trait Names {
    /// Returns the name of a unit in copies.
    fn naa(&self, unit: usize) -> Naa;
    /// Returns the name of a path in REGISTER AND MOVE.
    fn path(&self, nexus: Nexus) -> MoveTo;
}

impl Command {
    /// Returns the unit to which it is sent.
    pub(super) fn unit(&self) -> usize {
        match self {
            Self::Read { at, .. }
            | Self::Write { at, .. }
            | Self::Same { at, .. }
            | Self::Synchronize { at, .. }
            | Self::Swap { at, .. }
            | Self::Copy { at, .. } => at.unit,
            Self::Unmap { unit, .. }
            | Self::Out { unit, .. }
            | Self::ReadKeys { unit }
            | Self::ReadReservation { unit }
            | Self::Reserve { unit }
            | Self::Release { unit }
            | Self::Ready { unit }
            | Self::Identify { unit } => *unit,
        }
    }

    /// Returns the same command for repeating it if its response was lost with its session: only if
    /// the array recognizes it, and what it writes is not written by others.
    pub(super) fn again(self, began: Duration) -> Option<Self> {
        match self {
            Self::Swap { at, expected, new, repeats } if is_own(new) && expected != new => {
                Some(Self::Swap { at, expected, new, repeats: repeats.or(Some(began)) })
            }
            _ => None,
        }
    }

    /// Returns whether it leaves unit attentions pending.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self, Self::Identify { .. })
    }

    pub(super) fn wire(&self, names: &dyn Names) -> Wire {
        match self {
            Self::Read { at, is_long } => Wire {
                cdb: cdb::read(at.block, at.count, *is_long),
                data_out: None,
                expected_in_bytes: at.count as u32 * BLOCK_BYTES as u32,
            },
            Self::Write { at, tags, is_long, forces } => {
                let data = tags.iter().flat_map(|tag| content(*tag)).collect();
                Wire::with((cdb::write(at.block, at.count, *is_long, *forces), data))
            }
            Self::Same { at, tag, is_long, unmaps } => {
                let cdb = cdb::write_same(at.block, at.count, *is_long, *unmaps);
                let sector = if tag & PATTERN != 0 { pattern(*tag) } else { vec![0; 512] };
                Wire::with((cdb, sector))
            }
            Self::Synchronize { at, is_long } => {
                Wire::to(cdb::synchronize(at.block, at.count, *is_long))
            }
            Self::Unmap { ranges, .. } => Wire::with(cdb::unmap(ranges)),
            Self::Swap { at, expected, new, .. } => {
                let data = [content(*expected), content(*new)].concat();
                Wire::with((cdb::compare_and_write(at.block), data))
            }
            Self::Copy { from, at } => {
                let (source, destination) = (names.naa(from.unit), names.naa(at.unit));
                let (from, to) = ((&source, from.block), (&destination, at.block));
                Wire::with(cdb::extended_copy(from, to, at.count))
            }
            Self::Out { action, aborts, .. } => {
                let to = match action {
                    Action::Move { to, .. } => Some(names.path(*to)),
                    _ => None,
                };
                Wire::with(cdb::persistent_reserve_out(*action, *aborts, to.as_ref()))
            }
            Self::ReadKeys { .. } => Wire::asking(cdb::persistent_reserve_in(0)),
            Self::ReadReservation { .. } => Wire::asking(cdb::persistent_reserve_in(1)),
            Self::Reserve { .. } => Wire::to(vec![0x16, 0, 0, 0, 0, 0]),
            Self::Release { .. } => Wire::to(vec![0x17, 0, 0, 0, 0, 0]),
            Self::Ready { .. } => Wire::to(vec![0; 6]),
            Self::Identify { .. } => Wire::asking(cdb::device_identification()),
        }
    }

    /// Returns its effects on blocks, in the order of its data.
    pub(super) fn effects(&self) -> Vec<(Block, Op)> {
        let all = |at: &Place, op: Op| at.blocks().map(|block| (block, op)).collect();
        match self {
            Self::Read { at, .. } => all(at, Op::Read),
            Self::Write { at, tags, .. } => {
                at.blocks().zip(tags).map(|(block, tag)| (block, Op::Write(*tag))).collect()
            }
            Self::Same { at, tag, .. } => all(at, Op::Write(*tag)),
            Self::Unmap { unit, ranges } => ranges
                .iter()
                .flat_map(|(block, count)| {
                    Place { unit: *unit, block: *block, count: *count }.blocks()
                })
                .map(|block| (block, Op::Write(0)))
                .collect(),
            Self::Swap { at, expected, new, repeats } => {
                let (expected, new, repeats) = (*expected, *new, repeats.is_some());
                all(at, Op::CompareAndWrite { expected, new, repeats })
            }
            Self::Copy { from, at } => {
                at.blocks().zip(from.blocks()).map(|(to, from)| (to, Op::CopyOf(from))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the blocks that are durable when it gets its response, regardless of what was
    /// acknowledged before it began.
    pub(super) fn makes_durable(&self) -> Vec<Block> {
        match self {
            Self::Synchronize { at, .. } | Self::Write { at, forces: true, .. } => {
                at.blocks().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns its operations on reservations, by unit; the unit to which it is sent is first.
    pub(super) fn claims(&self, nexus: Nexus) -> Vec<(usize, reservations::Op)> {
        use reservations::Op;
        let command = |access| vec![(self.unit(), Op::Command(nexus, access))];
        match self {
            Self::Read { .. } => command(Access::Read),
            Self::Copy { from, .. } => {
                let mut claims = command(Access::Write);
                claims.push((from.unit, Op::Command(nexus, Access::Read)));
                claims
            }
            Self::Write { .. }
            | Self::Same { .. }
            | Self::Synchronize { .. }
            | Self::Unmap { .. }
            | Self::Swap { .. } => command(Access::Write),
            Self::Out { unit, action, .. } => vec![(*unit, Op::Out(nexus, *action))],
            Self::ReadKeys { unit } => vec![(*unit, Op::ReadKeys)],
            Self::ReadReservation { unit } => vec![(*unit, Op::ReadReservation)],
            Self::Reserve { unit } => vec![(*unit, Op::Reserve(nexus))],
            Self::Release { unit } => vec![(*unit, Op::Release(nexus))],
            Self::Ready { .. } => command(Access::Status),
            Self::Identify { .. } => Vec::new(),
        }
    }
}
