//! From a checkpoint to a store: what the checkpoint holds, the log behind it, and what ends with
//! that.

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

/// A pool that is being recovered: the state of its checkpoint, with the log behind that as far as
/// it was followed.
pub(super) struct Recovery {
    /// That of the checkpoint.
    superblock: Superblock,
    world: World,
    writer: Writer,
    checkpointer: Checkpointer,
    options: OpenOptions,
    /// Segments that the checkpoint has freed, though its table still shows what they were.
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
            // Where devices come and go segments may become as narrow as that.
            let columns = COLUMNS_MIN - PARITY_COLUMNS as u8;
            options.tuning.check(Geometry { columns, ..geometry })?;
        }
        if purpose != Purpose::Look && superblock.features.unknown().read_compatible != 0 {
            let text = "it has a feature that is not known, and can only be looked at";
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

    /// Follows the log to its end, where the pool is as it was left. What only looks writes
    /// nothing.
    pub(super) fn finish(mut self, may_write: bool) -> Result<Store, StoreError> {
        let log_bytes = self.options.checkpoint_log_bytes;
        let checkpointer = may_write.then_some(&mut self.checkpointer);
        let mut relief = Relief::new(checkpointer, log_bytes, self.dead);
        let of = (&self.superblock, self.last);
        replay::replay(&self.world, &mut self.writer, of, &mut relief)?;
        let Self { world, mut writer, checkpointer, options, .. } = self;
        release_staged(&world, &mut writer.state);
        world.comparisons.forget_sessions();
        writer.state.segments.know_from(writer.log.position().lsn);
        world.begin_refill(writer.state.next_chunk);
        Ok(Store::assemble(world, writer, checkpointer, options))
    }

    /// Applies records that are durable for sure, as far as there are any and not many more than
    /// `most`; whether no more were found. The end of the log is not looked for, and nothing is
    /// written.
    pub(super) fn follow(&mut self, most: usize) -> Result<bool, StoreError> {
        let of = (&self.superblock, &mut self.last);
        replay::follow(&self.world, &mut self.writer, of, most)
    }

    /// The superblock of the checkpoint that it builds on.
    pub(super) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Where the pool lives.
    pub(super) fn disk(&self) -> &Shared {
        &self.world.medium.disk
    }

    /// Whether all that was needed so far could be read.
    pub(super) fn is_whole(&self) -> bool {
        self.writer.state.losses == 0 && self.world.lost_volumes.read().is_empty()
    }

    /// The sequence number of the record that is applied next.
    pub(super) fn next_lsn(&self) -> u64 {
        self.writer.log.position().lsn
    }

    /// The same, of a pool that this process has to itself from here on, and may write: through
    /// `disk`, which says of all segments what the one before said. The superblock is that of the
    /// same checkpoint, as it is found there. `None` if the records that were applied are not.
    pub(super) fn go_on(
        mut self,
        disk: &Shared,
        superblock: &Superblock,
        options: &OpenOptions,
    ) -> Option<Self> {
        assert_eq!(self.options.tuning, options.tuning, "one process has one tuning");
        assert_eq!(self.options.durability, options.durability, "one process has one promise");
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

    /// Whether the last record that was applied is on the medium. It may not be if that is on fewer
    /// devices than it was.
    fn has_last_record(&self) -> bool {
        let Some(Applied { at, epoch }) = self.last else { return true };
        let found = LogReader::new(&self.world.medium).record(&at, epoch);
        let seal = self.writer.log.position().previous;
        found.is_ok_and(|found| found.is_some_and(|found| found.header.seal == seal))
    }
}

/// The log has ended. Staged chunks belong to a command that was not finished, or to none at all:
/// they go. One whose row can't be read stays staged, and its space in use.
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
