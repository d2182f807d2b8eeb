//! Configuring the directory service whose users may log in.

use std::sync::Arc;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::directory::{Directory, DirectoryChange};
use crate::record;
use crate::state::State;

impl Array {
    /// Returns the directory service. It is the same allocation until something changes.
    pub fn directory(&self) -> Arc<Directory> {
        self.read().directory.clone()
    }

    /// Changes the directory service; durable when it returns. If nothing changes, nothing is
    /// written.
    ///
    /// # Errors
    /// `invalid_directory`, and those of the store.
    pub fn change_directory(&self, change: DirectoryChange) -> Result<Arc<Directory>, Error> {
        let plan = |state: &State| {
            let changed = state.directory.changed(change)?;
            let mut commit = Change::default();
            if changed == *state.directory {
                return Ok((commit, state.directory.clone()));
            }
            let row = (record::directory_key(), Some(record::directory(&changed)?));
            commit.config.push(row);
            Ok((commit, Arc::new(changed)))
        };
        self.change(plan, |state, changed| {
            state.directory = changed.clone();
            changed
        })
    }
}
