//! The store's incarnation (`log::incarnation`).

use std::sync::atomic::Ordering;

use format::FormatVersion;

use crate::log::incarnation::Incarnation;
use crate::log::plausible::ID_END;
use crate::upkeep::Store;
use crate::{Durability, LogEnd, StoreError};

impl Store {
    /// Returns whether everything acknowledged is in the log, durably (`durability = "commit"`):
    /// the next opening then needs no checkpoint.
    pub fn answers_are_durable(&self) -> bool {
        self.options.durability == Durability::Commit
    }

    /// Returns where the log ends, for the process that opens the pool next; `None` if something is
    /// not durable, or a record is being written. Call it when nothing writes any more.
    pub fn log_end(&self) -> Option<LogEnd> {
        let writer = self.writer.lock();
        let (log, position) = (&writer.log, writer.log.position());
        let is_settled = position == log.end() && log.is_durable() && !writer.has_failed();
        is_settled.then(|| LogEnd { epoch: log.epoch(), position })
    }

    /// Returns the incarnation of the pool: that of the last opening for use. It has been durable
    /// since, if superblocks store it.
    pub fn incarnation(&self) -> Incarnation {
        let number = self.incarnation.load(Ordering::Acquire);
        let is_stored = self.world.medium.version() > FormatVersion::V2;
        Incarnation { number, is_stored }
    }

    /// Returns whether it continues the incarnation of another controller, from which this one has
    /// taken over ([`crate::OpenOptions::takes_over`]).
    pub fn has_taken_over(&self) -> bool {
        self.options.takes_over == Some(self.incarnation().number)
    }

    /// Raises the incarnation to at least this number: earlier programs have counted by themselves,
    /// and what they have written must not be of this one. Durable when it returns, if the pool
    /// stores it. Call it before anything of this incarnation is written.
    ///
    /// # Errors
    /// Those of the device; [`StoreError::Damaged`] if the number is impossible.
    pub fn raise_incarnation(&self, least: u64) -> Result<(), StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let now = self.incarnation();
        if now.number >= least {
            return Ok(());
        }
        if least >= ID_END {
            let text = format!("a pool was never started {least} times");
            return Err(StoreError::Damaged(text));
        }
        if now.is_stored {
            checkpointer.count_incarnation(least);
            checkpointer.rewrite_superblock(&self.world.medium)?;
        }
        self.incarnation.store(least, Ordering::Release);
        Ok(())
    }
}
