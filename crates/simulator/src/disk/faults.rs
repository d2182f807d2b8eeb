//! The possible faults of the disk.

use block::Frame;
use format::geometry::SEGMENT_BYTES_MIN;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::{BLOCK, Inner, SimDisk};
use crate::device::overlay;
use crate::rng::Rng;

/// The maximum number of other reads while one is retried.
const READS_OF_A_TRY_MAX: u64 = 10_000;

/// Faults other than a crash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Flushes and FUA do nothing: the canary.
    pub lying_flush: bool,
    /// It has no FUA: a durable write is one followed by a flush.
    pub no_fua: bool,
    /// In this many of a thousand reads, the device reports an error.
    pub failed_reads_per_mille: u64,
    /// In this many of a thousand reads, the device reports an error, and succeeds within the
    /// number of retries of a reader.
    pub transient_reads_per_mille: u64,
    /// In this many of a thousand writes, the device or the filesystem below hinders it
    /// temporarily: it is done in part, or refused.
    pub transient_writes_per_mille: u64,
    /// This many of a thousand flushes fail, and lose what they should have made durable.
    pub failed_flushes_per_mille: u64,
    /// In this many of a thousand reads, the bytes of another location are returned.
    pub misdirected_reads_per_mille: u64,
}

impl Faults {
    /// Returns faults with reads that fail at first, and, if it is `hindered`, writes that are
    /// refused temporarily or done in part, and flushes that fail.
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

/// How a write is done wrongly that the device reports as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// It never lands: the old content stays.
    Lost,
    /// It lands from this block of the device on, over other content.
    Misdirected(u64),
    /// Some of its sectors land, and some do not.
    Shorn,
}

/// A write that was done wrongly.
#[derive(Clone, Debug)]
pub struct Struck {
    /// The number of the I/O, counted from the disk's beginning.
    pub io: u64,
    /// Where it should have landed.
    pub offset_bytes: u64,
    /// What its first block should have been.
    pub first: Frame,
    /// How it was done.
    pub fault: WriteFault,
}

impl SimDisk {
    /// Makes some locations of the device bad, and others good again: one where the log or a
    /// checkpoint is likely to continue, any other one, and a superblock.
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

    /// Makes something happen at one of the next I/Os: the power fails, or an I/O, or all from
    /// there on.
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
    /// Returns the blocks of a write as they land: wrongly, if it is the one.
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

    /// Returns whether a write touches a bad location.
    pub(super) fn refuses(&mut self, first: u64, count: u64) -> bool {
        let end = first + count;
        let refuses = self.bad.iter().any(|bad| bad.start < end && first < bad.end);
        self.refused_count += u64::from(refuses);
        self.written_to = end;
        refuses
    }

    /// Returns whether a read fails that succeeds if it is retried as often as reads are,
    /// regardless of other reads meanwhile.
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
