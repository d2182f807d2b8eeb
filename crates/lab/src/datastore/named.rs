//! Files by name, with their locks.

use std::rc::Rc;

use futures::lock::MutexGuard;

use super::descriptor::Description;
use super::error::DatastoreError;
use super::file::Inner;
use super::lock::{Held, Taken, Wait};
use super::lock_record::Mode;
use super::map::Map;
use super::mount::Core;

/// A file whose lock is held.
pub(super) struct Locked<'a> {
    pub(super) file: u32,
    pub(super) description: Description,
    pub(super) map: Map,
    pub(super) held: Held,
    pub(super) turn: MutexGuard<'a, ()>,
}

/// The state of a name.
pub(super) enum Named<'a> {
    Locked(Locked<'a>),
    /// This host has it open; no other task of it can interfere.
    Open(Rc<Inner>, MutexGuard<'a, ()>),
}

impl Core {
    /// Finds a file and takes its lock, unless this host has it open.
    pub(super) async fn lock_named(
        &self,
        name: &str,
        mode: Mode,
    ) -> Result<Named<'_>, DatastoreError> {
        if let Some(locked) = self.lock_again(name, mode).await? {
            return Ok(Named::Locked(locked));
        }
        let file = self.find_or_fail(name).await?;
        let turn = self.descriptor_turns[file as usize].lock().await;
        match self.open_inner(file) {
            Some(known) if known.name != name => Err(DatastoreError::NotFound(name.to_owned())),
            Some(known) => Ok(Named::Open(known, turn)),
            None => {
                let held = self.lock_file(file, name, mode).await?;
                let locked = self.check_locked(file, name, held, turn).await?;
                let found = locked.map(Named::Locked);
                found.ok_or_else(|| DatastoreError::NotFound(name.to_owned()))
            }
        }
    }

    /// Locks a file that this host has closed and no host has had since: one command.
    async fn lock_again(
        &self,
        name: &str,
        mode: Mode,
    ) -> Result<Option<Locked<'_>>, DatastoreError> {
        let closed = {
            let closed = self.closed.borrow();
            closed.iter().find(|(_, closed)| closed.name == name).map(|(file, _)| *file)
        };
        let Some(file) = closed else { return Ok(None) };
        let turn = self.descriptor_turns[file as usize].lock().await;
        if self.open_inner(file).is_some() {
            return Ok(None);
        }
        match self.acquire_again(self.layout.file_guard(file), mode).await? {
            Some(held) => self.check_locked(file, name, held, turn).await,
            None => Ok(None),
        }
    }

    fn open_inner(&self, file: u32) -> Option<Rc<Inner>> {
        let known = self.open.borrow().get(&file).and_then(std::rc::Weak::upgrade);
        known.filter(|known| known.is_open())
    }

    async fn lock_file(&self, file: u32, name: &str, mode: Mode) -> Result<Held, DatastoreError> {
        match self.acquire(self.layout.file_guard(file), mode, Wait::UnlessAlive).await? {
            Taken::Held(held) => Ok(held),
            Taken::By(host) => Err(DatastoreError::Locked { name: name.to_owned(), host }),
        }
    }

    /// Returns the current state of a file whose lock is held; `None`, and the lock is given back,
    /// if it is not the one with this name.
    async fn check_locked<'a>(
        &self,
        file: u32,
        name: &str,
        mut held: Held,
        turn: MutexGuard<'a, ()>,
    ) -> Result<Option<Locked<'a>>, DatastoreError> {
        let closed = self.closed.borrow_mut().remove(&file);
        let content = self.content_of(&mut held).await;
        let known = content.as_deref().ok().map(<[u8]>::to_vec);
        match content.and_then(|content| self.decode_description(file, &content)) {
            Ok(description) if description.is_used && description.name == name => {
                let map = match closed.filter(|closed| closed.image == held.was) {
                    Some(closed) => closed.map,
                    None => Map::new(file, description.generation),
                };
                Ok(Some(Locked { file, description, map, held, turn }))
            }
            end => {
                self.give_up(&held, known.as_deref()).await?;
                end.map(|_| None)
            }
        }
    }
}
