//! What the store knows of its incarnation (`log::incarnation`).

use std::sync::atomic::Ordering;

use format::FormatVersion;

use crate::log::incarnation::Incarnation;
use crate::log::plausible::ID_END;
use crate::upkeep::Store;
use crate::{Durability, StoreError};

impl Store {
    /// Whether all that was answered is in the log, durably (`durability = "commit"`): then whoever
    /// opens the pool next needs no checkpoint.
    pub fn answers_are_durable(&self) -> bool {
        self.options.durability == Durability::Commit
    }

    /// The incarnation of the pool: that of the last opening to use it. What a superblock says is
    /// durable since then.
    pub fn incarnation(&self) -> Incarnation {
        let number = self.incarnation.load(Ordering::Acquire);
        let is_stored = self.world.medium.version() > FormatVersion::V2;
        Incarnation { number, is_stored }
    }

    /// Whether it goes on in the incarnation of another controller, from which this one has taken
    /// over ([`crate::OpenOptions::takes_over`]).
    pub fn has_taken_over(&self) -> bool {
        self.options.takes_over == Some(self.incarnation().number)
    }

    /// Sees to it that the incarnation has at least this number: earlier programs have counted for
    /// themselves, and what they have written is not to be of this one. Durable when it returns,
    /// where the pool stores it. To be called before anything of this incarnation is written.
    ///
    /// # Errors
    /// Those of the device; [`StoreError::Damaged`] if nobody can have counted so far.
    pub fn raise_incarnation(&self, least: u64) -> Result<(), StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let now = self.incarnation();
        if now.number >= least {
            return Ok(());
        }
        if least >= ID_END {
            let text = format!("no pool was started {least} times");
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
