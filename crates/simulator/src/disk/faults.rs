//! What the disk may do wrong.

use block::Frame;
use format::geometry::SEGMENT_BYTES_MIN;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::{BLOCK, Inner, SimDisk};
use crate::device::overlay;
use crate::rng::Rng;

/// Reads that there may be while one is tried again, at most.
const READS_OF_A_TRY_MAX: u64 = 10_000;

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

impl Faults {
    /// Reads that fail at first, and, if it is `hindered`, writes that are refused for a while or
    /// done in part, and flushes that fail.
    pub fn that_pass(hindered: bool) -> Self {
        let hindered = u64::from(hindered);
        Self {
            transient_reads_per_mille: 20,
            transient_writes_per_mille: 60 * hindered,
            failed_flushes_per_mille: 150 * hindered,
            ..Self::default()
        }
    }
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

impl SimDisk {
    /// Some places of the device go bad, and others are good again: one where the log or a
    /// checkpoint is likely to go on, one anywhere, and a superblock.
    pub fn go_bad(&self, rng: &mut Rng) {
        let first = SEGMENT_BYTES_MIN / BLOCK;
        let end = self.inner().len_bytes / BLOCK;
        let near = self.written_to() + rng.below(4);
        let anywhere = rng.between(first, end - 1);
        let mut bad = Vec::new();
        for at in [near, anywhere] {
            if at >= first && rng.chance(60) {
                bad.push(at..at + rng.between(1, 4));
            }
        }
        if rng.chance(30) {
            let copy = SUPERBLOCK_OFFSETS_BYTES[rng.below(2) as usize] / BLOCK;
            bad.push(copy..copy + 1);
        }
        self.set_bad(bad);
    }

    /// Something happens at one of the next I/Os, whoever does it: the power fails, or an I/O or
    /// all from there on.
    pub fn strike_soon(&self, rng: &mut Rng) {
        let io = self.io_count() + rng.between(1, 40);
        match rng.below(10) {
            0..6 => self.set_fuse(Some(io)),
            6..8 => self.set_error_at(Some(io)),
            8 => self.set_no_flush_from(io),
            _ => self.set_errors_from(io),
        }
    }
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

    /// Whether a read fails that succeeds if it is tried as often as reads are, whatever others
    /// read meanwhile.
    pub(super) fn refuses_read(&mut self, first: u64) -> bool {
        let refused = self.reads_refused.get(&first).copied();
        let refused = refused.filter(|(_, since)| self.read_count < since + READS_OF_A_TRY_MAX);
        let per_mille = match (self.faults.transient_reads_per_mille, refused) {
            (0, _) => return false,
            (_, Some((count, _))) if count + 1 >= sys::READ_TRIES_MAX => 0,
            (per_mille, None) => per_mille,
            _ => 500,
        };
        let refuses = self.rng.below(1000) < per_mille;
        if refuses {
            let (count, since) = refused.unwrap_or((0, self.read_count));
            self.reads_refused.insert(first, (count + 1, since));
        }
        refuses
    }

    pub(super) fn shear(&mut self, (number, above): (u64, Frame)) -> (u64, Frame) {
        // Neither all of a block nor nothing.
        let coins = self.rng.between(1, 254);
        (number, overlay(self.device.read(number), &above, |sector| coins >> sector & 1 == 1))
    }
}
