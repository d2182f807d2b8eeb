//! From a checkpoint to a store: the content of the checkpoint, the log after it, and what is
//! released at its end.

use format::geometry::PARITY_COLUMNS;
use format::parts_map::COLUMNS_MIN;
use format::{ChunkId, Geometry, Superblock};
use segments::Shared;

use crate::checkpoint::load::load_checkpoint;
use crate::chunks::medium::Medium;
use crate::chunks::memory::Budgets;
use crate::log::checkpointer::Checkpointer;
use crate::log::log_reader::LogReader;
use crate::log::plausible;
use crate::opening::Purpose;
use crate::opening::relief::Relief;
use crate::opening::replay::{self, Applied};
use crate::upkeep::Store;
use crate::upkeep::grow::{extend, grown_geometry};
use crate::world::{State, World};
use crate::writer::Writer;
use crate::{OpenOptions, StoreError};

/// A pool being recovered: the state of its checkpoint, with the log after it as far as it was
/// applied.
pub(super) struct Recovery {
    /// That of the checkpoint.
    superblock: Superblock,
    world: World,
    writer: Writer,
    checkpointer: Checkpointer,
    options: OpenOptions,
    /// Segments that the checkpoint has freed, although its table still shows their old content.
    dead: Vec<u32>,
    /// The last record that was applied.
    last: Option<Applied>,
}

impl Recovery {
    /// Reads the newest checkpoint.
    pub(super) fn begin(
        disk: Shared,
        options: OpenOptions,
        purpose: Purpose,
    ) -> Result<Self, StoreError> {
        let superblock = disk.read_root()?;
        plausible::check_superblock(&superblock)?;
        let geometry = superblock.geometry;
        disk.lay_out(geometry);
        options.tuning.check(geometry)?;
        if superblock.features.has_parts() {
            // If devices are added and removed, segments may become as narrow as that.
            let columns = COLUMNS_MIN - PARITY_COLUMNS as u8;
            options.tuning.check(Geometry { columns, ..geometry })?;
        }
        if purpose != Purpose::Look && superblock.features.unknown().read_compatible != 0 {
            let text = "it has an unknown feature, and can only be inspected";
            return Err(StoreError::Newer(text.into()));
        }
        let medium = Medium::new(disk, &superblock, options.tuning);
        if purpose != Purpose::Look {
            medium.mends.allow();
        }
        let mut checkpointer = Checkpointer::new(superblock.clone());
        let budgets = Budgets::split(options.memory_bytes, geometry.usable_bytes());
        let (world, state) = load_checkpoint(medium, budgets, &mut checkpointer)?;
        let epoch = superblock.epoch;
        let mut writer = Writer::new(state, epoch, &options, superblock.log, &world.medium);
        writer.note_checkpoint(&checkpointer);
        if let Purpose::Grow { capacity_bytes } = purpose {
            let (device_bytes, grown) = grown_geometry(&superblock, capacity_bytes)?;
            world.medium.disk.grow(device_bytes)?;
            extend(&world, &mut writer, &mut checkpointer, device_bytes, grown);
        }
        writer.find_ids((&world).into(), 0, 1);
        let keep =
            [superblock.log.segment, superblock.log.next_segment, superblock.metadata_segment];
        let dead = writer.state.segments.dead(&keep.into());
        Ok(Self { superblock, world, writer, checkpointer, options, dead, last: None })
    }

    /// Applies the log to its end, and releases what is left over. Writes nothing unless
    /// `may_write`.
    pub(super) fn finish(mut self, may_write: bool) -> Result<Store, StoreError> {
        let log_bytes = self.options.checkpoint_log_bytes;
        let checkpointer = may_write.then_some(&mut self.checkpointer);
        let mut relief = Relief::new(checkpointer, log_bytes, self.dead);
        let of = (&self.superblock, self.last);
        let end = self.options.log_end;
        replay::replay(&self.world, &mut self.writer, of, (end, &mut relief))?;
        let Self { world, mut writer, checkpointer, options, .. } = self;
        release_staged(&world, &mut writer.state);
        world.comparisons.forget_sessions();
        writer.state.segments.know_from(writer.log.position().lsn);
        world.begin_refill(writer.state.next_chunk);
        Ok(Store::assemble(world, writer, checkpointer, options))
    }

    /// Applies records that are certainly durable, as far as there are any, and not many more than
    /// `most`; returns whether there are no more. Does not look for the end of the log, and writes
    /// nothing.
    pub(super) fn follow(&mut self, most: usize) -> Result<bool, StoreError> {
        let of = (&self.superblock, &mut self.last);
        replay::follow(&self.world, &mut self.writer, of, most)
    }

    /// Returns the superblock of the checkpoint that it builds on.
    pub(super) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the disk of the pool.
    pub(super) fn disk(&self) -> &Shared {
        &self.world.medium.disk
    }

    /// Returns whether everything needed so far could be read.
    pub(super) fn is_whole(&self) -> bool {
        self.writer.state.losses == 0 && self.world.lost_volumes.read().is_empty()
    }

    /// Returns the LSN of the next record to apply.
    pub(super) fn next_lsn(&self) -> u64 {
        self.writer.log.position().lsn
    }

    /// Returns the same recovery for a process that has the pool to itself from here on, and may
    /// write, through `disk`, on which all segments have the same layout. The superblock is that of
    /// the same checkpoint, as found there. `None` if the applied records are not there.
    pub(super) fn go_on(
        mut self,
        disk: &Shared,
        superblock: &Superblock,
        options: &OpenOptions,
    ) -> Option<Self> {
        assert_eq!(self.options.tuning, options.tuning, "the tuning is the follower's");
        assert_eq!(self.options.durability, options.durability, "the durability is the follower's");
        self.world.medium.disk = disk.clone();
        self.world.medium.look_at_widths();
        if !self.has_last_record() {
            return None;
        }
        self.world.medium.mends.allow();
        self.writer.log.go_on(disk);
        self.checkpointer.wrote(superblock.clone());
        Some(Self { superblock: superblock.clone(), options: options.clone(), ..self })
    }

    /// Returns whether the last applied record is on the medium. It may not be if devices are
    /// missing that were there before.
    fn has_last_record(&self) -> bool {
        let Some(Applied { at, epoch }) = self.last else { return true };
        let found = LogReader::new(&self.world.medium).record(&at, epoch);
        let seal = self.writer.log.position().previous;
        found.is_ok_and(|found| found.is_some_and(|found| found.header.seal == seal))
    }
}

/// Releases staged chunks at the end of the log: they belong to a command that was not finished, or
/// to none. One whose row can't be read stays staged, and its space in use.
fn release_staged(world: &World, state: &mut State) {
    state.replaying = false;
    for (first, count) in std::mem::take(&mut state.staged) {
        for id in first..first + u64::from(count) {
            if world.free_unnamed_chunk(state, ChunkId(id)).is_err() {
                state.staged.insert(id, 1);
            }
        }
    }
}
