//! The choice of the next command.

use libiscsi::{Capacity, Cdb, Data, Naa, unmap_parameters};

use super::{Access, LoadArgs, Offload};
use crate::copy::{self, Transfer};
use crate::fill::Content;
use crate::random::Random;

/// Chooses addresses and creates commands.
pub struct Pattern {
    access: Access,
    offload: Option<Offload>,
    block_bytes: u32,
    /// Logical blocks in one read or write.
    io_blocks: u64,
    /// How many reads and writes fit the span.
    io_slots: u64,
    /// Logical blocks that one command covers.
    length_blocks: u64,
    /// Where sequential commands are: first block, and number of steps.
    walk: (u64, u64),
    walk_next: u64,
    sequential_next: u64,
    read_percent: u32,
    seq_percent: u32,
    naa: Naa,
    random: Random,
    content: Content,
}

impl Pattern {
    /// Checks that the load fits the unit. `naa` identifies the unit in copies.
    pub fn new(args: &LoadArgs, capacity: Capacity, naa: Naa) -> Result<Self, String> {
        let block = u64::from(capacity.block_bytes);
        let span = args.span.unwrap_or(capacity.bytes()).min(capacity.bytes()) / block;
        let io_blocks = args.block / block;
        if io_blocks == 0 || !args.block.is_multiple_of(block) || io_blocks > span {
            return Err(format!("a read or write of {} bytes does not fit", args.block));
        }
        let length_blocks = args.length / block;
        if length_blocks == 0 || length_blocks > capacity.blocks {
            return Err(format!("a command over {} bytes does not fit", args.length));
        }
        let is_copy = args.command == Some(Offload::Xcopy);
        if is_copy && (args.length > copy::TRANSFER_BYTES_MAX || length_blocks > span) {
            return Err(String::from("a copy must be at most 1920M, and not longer than the span"));
        }
        let behind = capacity.blocks - span;
        let walk = if behind >= length_blocks {
            (span, behind / length_blocks)
        } else {
            (0, capacity.blocks / length_blocks)
        };
        Ok(Self {
            access: args.rw,
            offload: args.command,
            block_bytes: capacity.block_bytes,
            io_blocks,
            io_slots: span / io_blocks,
            length_blocks,
            walk,
            walk_next: 0,
            sequential_next: 0,
            read_percent: args.read_percent,
            seq_percent: args.seq_percent,
            naa,
            random: Random::new(args.seed),
            content: Content::new(args.seed, args.duplicates, args.compressible),
        })
    }

    /// Returns a buffer for reads and writes; other commands need none.
    pub fn buffer(&mut self) -> Vec<u8> {
        if self.offload.is_some() {
            return Vec::new();
        }
        let bytes = self.io_blocks as usize * self.block_bytes as usize;
        self.content.buffer(bytes)
    }

    /// Returns the next command, its data, and how many bytes it covers.
    pub fn next(&mut self, buffer: Vec<u8>) -> (Cdb, Data, u64) {
        match self.offload {
            Some(offload) => self.next_offload(offload),
            None => self.next_io(buffer),
        }
    }

    /// Returns the write of slot `slot` of the span, for filling it.
    pub fn write_slot(&mut self, slot: u64, mut buffer: Vec<u8>) -> (Cdb, Data) {
        self.content.put(&mut buffer);
        let lba = slot * self.io_blocks;
        (Cdb::write_16(lba, self.io_blocks as u32), Data::Out(buffer))
    }

    /// Returns how many reads or writes cover the span.
    pub fn slots(&self) -> u64 {
        self.io_slots
    }

    fn next_io(&mut self, buffer: Vec<u8>) -> (Cdb, Data, u64) {
        let (reads, sequential) = match self.access {
            Access::Randread => (true, false),
            Access::Randwrite => (false, false),
            Access::Read => (true, true),
            Access::Write => (false, true),
            Access::Mixed => {
                (self.random.percent(self.read_percent), self.random.percent(self.seq_percent))
            }
        };
        let slot = if sequential {
            let slot = self.sequential_next;
            self.sequential_next = (slot + 1) % self.io_slots;
            slot
        } else {
            self.random.below(self.io_slots)
        };
        let bytes = self.io_blocks * u64::from(self.block_bytes);
        if reads {
            let cdb = Cdb::read_16(slot * self.io_blocks, self.io_blocks as u32);
            return (cdb, Data::In(buffer), bytes);
        }
        let (cdb, data) = self.write_slot(slot, buffer);
        (cdb, data, bytes)
    }

    fn next_offload(&mut self, offload: Offload) -> (Cdb, Data, u64) {
        let lba = self.walk.0 + self.walk_next * self.length_blocks;
        self.walk_next = (self.walk_next + 1) % self.walk.1;
        let blocks = self.length_blocks as u32;
        let bytes = self.length_blocks * u64::from(self.block_bytes);
        let (cdb, data) = match offload {
            Offload::Tur => return (Cdb::test_unit_ready(), Data::None, 0),
            Offload::Xcopy => self.copy_to(lba),
            Offload::Writesame => {
                let zeros = vec![0; self.block_bytes as usize];
                (Cdb::write_same_16(lba, blocks, false), Data::Out(zeros))
            }
            Offload::Unmap => {
                let list = unmap_parameters(&[(lba, blocks)]);
                (Cdb::unmap(list.len() as u16), Data::Out(list))
            }
        };
        (cdb, data, bytes)
    }

    /// Returns a copy from a random MiB of the span.
    fn copy_to(&mut self, destination_lba: u64) -> (Cdb, Data) {
        let mib = (1 << 20) / u64::from(self.block_bytes);
        let last = (self.io_slots * self.io_blocks - self.length_blocks) / mib;
        let source_lba = self.random.below(last + 1) * mib;
        let transfer = Transfer { source_lba, destination_lba, blocks: self.length_blocks };
        copy::command(&[self.naa, self.naa], transfer, self.block_bytes)
    }
}
