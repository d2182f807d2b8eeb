//! The metadata of a checkpoint, read at leisure while the array works.
//!
//! What a checkpoint has written is of one point in time, and is not overwritten: later ones write
//! changes to other locations. So to keep it, its segments must only not be reused, which the token
//! prevents.

use std::sync::Arc;

use crate::StoreError;
use crate::checkpoint::load::load_checkpoint;
use crate::chunks::medium::Medium;
use crate::chunks::memory::Budgets;
use crate::log::checkpointer::Checkpointer;
use crate::space::readers::ReaderToken;
use crate::upkeep::Store;
use crate::world::{State, World};

/// The content of a checkpoint.
pub(super) struct Image {
    pub(super) world: World,
    pub(super) state: State,
    /// The LSN of the first record after it.
    pub(super) lsn: u64,
    _token: Arc<ReaderToken>,
}

impl Store {
    /// Returns the current image: writes a checkpoint if anything has changed since the last one.
    /// Reading it takes up to `memory_bytes`.
    pub(super) fn image(&self, memory_bytes: u64) -> Result<Image, StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let behind = checkpointer.superblock().log.lsn;
        let is_old =
            self.writer.lock().log.position().lsn != behind || !self.world.memory.is_clean();
        if is_old {
            self.checkpoint_with(&mut checkpointer)?;
        }
        let superblock = checkpointer.superblock().clone();
        let token = self.world.images.token();
        drop(checkpointer);
        let (disk, lsn) = (self.world.medium.disk.clone(), superblock.log.lsn);
        let medium = Medium::new(disk, &superblock, self.options.tuning);
        let budgets = Budgets::of_metadata(memory_bytes);
        let (world, state) = load_checkpoint(medium, budgets, &mut Checkpointer::new(superblock))?;
        if !world.lost_volumes.read().is_empty() || !world.lost_rows.read().is_empty() {
            // What only these own would be counted as unreferenced.
            return Err(StoreError::Damaged("rows of volumes can't be read".into()));
        }
        Ok(Image { world, state, lsn, _token: token })
    }
}
