//! What the disk may do wrong.

use block::Frame;

use super::{BLOCK, Inner};
use crate::device::overlay;

/// Faults other than a crash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Flushes and FUA do nothing: the canary.
    pub lying_flush: bool,
    /// It has no FUA: a durable write is one with a flush behind it.
    pub no_fua: bool,
    /// In so many of a thousand reads, the device reports an error.
    pub failed_reads_per_mille: u64,
    /// In so many of a thousand reads, the device reports an error, and succeeds within as many
    /// tries as whoever reads makes.
    pub transient_reads_per_mille: u64,
    /// In so many of a thousand writes, the device or the filesystem below hinders it for a while:
    /// it is done in part, or refused.
    pub transient_writes_per_mille: u64,
    /// So many of a thousand flushes fail, and lose what they should have kept.
    pub failed_flushes_per_mille: u64,
    /// In so many of a thousand reads, the bytes of another place are delivered.
    pub misdirected_reads_per_mille: u64,
}

/// How a write is done wrongly that the device says it has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// It never lands: what was there stays.
    Lost,
    /// It lands from this block of the device on, over what is there.
    Misdirected(u64),
    /// Some of its sectors land, and some do not.
    Shorn,
}

/// A write that was done wrongly.
#[derive(Clone, Debug)]
pub struct Struck {
    /// Which I/O it was, counted from the disk's beginning.
    pub io: u64,
    /// Where it should have landed.
    pub offset_bytes: u64,
    /// What its first block should have been.
    pub first: Frame,
    /// How it was done.
    pub fault: WriteFault,
}

impl Inner {
    /// The blocks of a write as they land: wrongly, if it is the one.
    pub(super) fn strike(&mut self, blocks: Vec<(u64, Frame)>) -> Vec<(u64, Frame)> {
        let Some((number, first)) = blocks.first().cloned() else { return blocks };
        let offset_bytes = number * BLOCK;
        let due =
            |(offsets, _): &(&[u64], _)| offsets.is_empty() || offsets.contains(&offset_bytes);
        let Some((_, fault)) = self.write_fault.take_if(|fault| due(fault)) else { return blocks };
        self.note("struck", offset_bytes, blocks.len(), 0);
        self.struck = Some(Struck { io: self.io_count, offset_bytes, first, fault });
        let count = blocks.len() as u64;
        match fault {
            WriteFault::Lost => Vec::new(),
            WriteFault::Misdirected(to) => {
                let to = to.min(self.len_bytes / BLOCK - count);
                (to..).zip(blocks.into_iter().map(|(_, frame)| frame)).collect()
            }
            WriteFault::Shorn => blocks.into_iter().map(|block| self.shear(block)).collect(),
        }
    }

    /// Whether a write touches a bad place.
    pub(super) fn refuses(&mut self, first: u64, count: u64) -> bool {
        let end = first + count;
        let refuses = self.bad.iter().any(|bad| bad.start < end && first < bad.end);
        self.refused_count += u64::from(refuses);
        self.written_to = end;
        refuses
    }

    /// Whether a read fails that succeeds if it is tried as often as reads are.
    pub(super) fn refuses_read(&mut self) -> bool {
        let per_mille = match (self.faults.transient_reads_per_mille, self.reads_refused) {
            (0, _) => return false,
            (_, refused) if refused + 1 >= sys::READ_TRIES_MAX => 0,
            (per_mille, 0) => per_mille,
            _ => 500,
        };
        let refuses = self.rng.below(1000) < per_mille;
        self.reads_refused = if refuses { self.reads_refused + 1 } else { 0 };
        refuses
    }

    pub(super) fn shear(&mut self, (number, above): (u64, Frame)) -> (u64, Frame) {
        // Neither all of a block nor nothing.
        let coins = self.rng.between(1, 254);
        (number, overlay(self.device.read(number), &above, |sector| coins >> sector & 1 == 1))
    }
}
