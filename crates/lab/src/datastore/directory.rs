//! Files by their names: found, made, opened, deleted.
//!
//! The directory is a table with a hash of each descriptor's name, so that a name is found by a
//! read of some sectors. What is true is in the descriptors. Files are made and deleted under the
//! directory's lock, the latter under the file's as well, which is taken first.

use std::rc::Rc;

use super::descriptor::{Description, check_file};
use super::error::DatastoreError;
use super::file::{File, Inner};
use super::layout::{Pool, SLOT_SECTORS};
use super::lock::{Held, Taken, Wait};
use super::lock_record::Mode;
use super::map::{Map, encode_slots};
use super::mount::Core;
use super::sector::{Kind, SECTOR_BYTES};
use super::table::{self, ENTRIES, Owner, hash_of};

/// A file as the list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name.
    pub name: String,
    /// Its size; how much of that it has blocks for is another matter.
    pub size_bytes: u64,
}

fn owner(part: u32) -> Owner {
    Owner { file: 0, generation: 0, part }
}

/// An empty directory's sector, or one of it.
pub(super) fn encode_directory(offset: u64, part: u32, entries: &[u32; ENTRIES]) -> Vec<u8> {
    table::encode(Kind::Directory, offset, owner(part), entries).to_vec()
}

/// The entries of one of its sectors.
pub(super) fn decode_directory(
    offset: u64,
    part: u32,
    bytes: &[u8],
) -> Result<[u32; ENTRIES], DatastoreError> {
    table::decode(Kind::Directory, offset, owner(part), bytes)
}

impl Core {
    /// All hashes, by descriptor.
    async fn read_directory(&self) -> Result<Vec<u32>, DatastoreError> {
        let sectors = self.layout.directory_sectors();
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let all = self.disk.read(self.layout.directory(0), bytes).await?;
        let mut hashes = Vec::new();
        for (sector, part) in all.chunks_exact(SECTOR_BYTES as usize).zip(0..) {
            hashes.extend(decode_directory(self.layout.directory(part), part, sector)?);
        }
        hashes.truncate(self.layout.files as usize);
        Ok(hashes)
    }

    /// Changes an entry, under the directory's lock.
    async fn set_entry(&self, file: u32, hash: u32) -> Result<(), DatastoreError> {
        let part = file / ENTRIES as u32;
        let offset = self.layout.directory(part);
        let sector = self.disk.read_sector(offset).await?;
        let mut entries = decode_directory(offset, part, &sector)?;
        entries[file as usize % ENTRIES] = hash;
        self.disk.write(offset, &encode_directory(offset, part, &entries)).await
    }

    pub(super) async fn read_description(&self, file: u32) -> Result<Description, DatastoreError> {
        let offset = self.layout.description(file);
        let sector = self.disk.read_sector(offset).await?;
        Description::decode(file, offset, self.layout.file_blocks_max(), &sector)
    }

    pub(super) async fn write_description(
        &self,
        file: u32,
        description: &Description,
    ) -> Result<(), DatastoreError> {
        let offset = self.layout.description(file);
        self.disk.write(offset, &description.encode(file, offset)).await
    }

    async fn find(&self, name: &str, hashes: &[u32]) -> Result<Option<u32>, DatastoreError> {
        let hash = hash_of(name);
        for (file, _) in (0..).zip(hashes).filter(|(_, known)| **known == hash) {
            let description = self.read_description(file).await?;
            if description.is_used && description.name == name {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    async fn find_or_fail(&self, name: &str) -> Result<u32, DatastoreError> {
        let found = self.find(name, &self.read_directory().await?).await?;
        found.ok_or_else(|| DatastoreError::NotFound(name.to_owned()))
    }

    /// What is on disk under all names.
    pub(super) async fn list(&self) -> Result<Vec<FileInfo>, DatastoreError> {
        let mut files = Vec::new();
        for (file, _) in (0..).zip(self.read_directory().await?).filter(|(_, hash)| *hash != 0) {
            let Description { is_used, name, size_bytes, .. } = self.read_description(file).await?;
            // One that is just being deleted is none any more.
            if is_used {
                files.push(FileInfo { name, size_bytes });
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Makes a file without blocks, and opens it.
    pub(super) async fn create(
        self: &Rc<Self>,
        name: &str,
        size_bytes: u64,
    ) -> Result<File, DatastoreError> {
        check_file(name, size_bytes, self.layout.file_blocks_max())?;
        let _turn = self.directory_turn.lock().await;
        let work = async {
            let hashes = self.read_directory().await?;
            if self.find(name, &hashes).await?.is_some() {
                return Err(DatastoreError::Exists(name.to_owned()));
            }
            for (file, _) in (0..).zip(&hashes).filter(|(_, hash)| **hash == 0) {
                if let Some(file) = self.create_in(file, name, size_bytes).await? {
                    return Ok(file);
                }
            }
            Err(DatastoreError::TooManyFiles)
        };
        self.under_lock(self.layout.directory_lock(), work).await
    }

    /// Makes a file in a descriptor that no name leads to; `None` if somebody is still busy with
    /// what it was before.
    async fn create_in(
        self: &Rc<Self>,
        file: u32,
        name: &str,
        size_bytes: u64,
    ) -> Result<Option<File>, DatastoreError> {
        let Some(_turn) = self.descriptor_turns[file as usize].try_lock() else { return Ok(None) };
        let lock = self.layout.descriptor(file);
        let Taken::Held(held) = self.acquire(lock, Mode::Exclusive, Wait::Never).await? else {
            return Ok(None);
        };
        match self.fill_descriptor(file, name, size_bytes).await {
            Ok(description) => Ok(Some(self.opened(file, description, Mode::Exclusive, held))),
            Err(error) => {
                // The first error is the one to be told.
                let _ = self.give_up(&held).await;
                Err(error)
            }
        }
    }

    /// Order: empty slots, the description, the name. A host that dies in between leaves a
    /// descriptor that is in use without a name, which the next file that is made here cleans up.
    async fn fill_descriptor(
        &self,
        file: u32,
        name: &str,
        size_bytes: u64,
    ) -> Result<Description, DatastoreError> {
        let before = self.read_description(file).await?;
        if before.is_used {
            let (data, pointers) = self.erase(file, &before).await?;
            self.give_back(Pool::Pointer, pointers).await?;
            self.give_back(Pool::Data, data).await?;
        }
        let generation = before.generation.wrapping_add(1);
        let slots =
            encode_slots(&self.layout, Owner { file, generation, part: 0 }, 0..SLOT_SECTORS, &[]);
        self.disk.write(self.layout.slots(file, 0), &slots).await?;
        let name = name.to_owned();
        let description = Description { is_used: true, generation, size_bytes, name };
        self.write_description(file, &description).await?;
        self.set_entry(file, hash_of(&description.name)).await?;
        Ok(description)
    }

    /// Makes a descriptor free, so that it names nothing, and tells what it has named: data blocks
    /// and pointer blocks, which are still taken.
    async fn erase(
        &self,
        file: u32,
        description: &Description,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let blocks = Map::new(file, description.generation).all(self).await?;
        let free = Description { generation: description.generation, ..Description::free() };
        self.write_description(file, &free).await?;
        Ok(blocks)
    }

    /// Opens a file that is there.
    pub(super) async fn open(
        self: &Rc<Self>,
        name: &str,
        mode: Mode,
    ) -> Result<File, DatastoreError> {
        let file = self.find_or_fail(name).await?;
        let _turn = self.descriptor_turns[file as usize].lock().await;
        let known = self.open.borrow().get(&file).and_then(std::rc::Weak::upgrade);
        if let Some(known) = known.filter(|known| known.is_open()) {
            if known.name != name {
                return Err(DatastoreError::NotFound(name.to_owned()));
            }
            if known.mode != mode || mode == Mode::Exclusive {
                return Err(DatastoreError::InUse(name.to_owned()));
            }
            return Ok(File::again(known));
        }
        let held = self.lock_file(file, name, mode).await?;
        match self.read_description(file).await {
            Ok(description) if description.is_used && description.name == name => {
                Ok(self.opened(file, description, mode, held))
            }
            end => {
                self.give_up(&held).await?;
                end?;
                Err(DatastoreError::NotFound(name.to_owned()))
            }
        }
    }

    async fn lock_file(&self, file: u32, name: &str, mode: Mode) -> Result<Held, DatastoreError> {
        match self.acquire(self.layout.descriptor(file), mode, Wait::UnlessAlive).await? {
            Taken::Held(held) => Ok(held),
            Taken::By(host) => Err(DatastoreError::Locked { name: name.to_owned(), host }),
        }
    }

    fn opened(
        self: &Rc<Self>,
        file: u32,
        description: Description,
        mode: Mode,
        held: Held,
    ) -> File {
        let inner = Rc::new(Inner::new(self, file, description, mode, held));
        self.open.borrow_mut().insert(file, Rc::downgrade(&inner));
        File::again(inner)
    }

    /// Deletes a file that nobody has open. Its data blocks stay taken; they are returned.
    ///
    /// Order: the name goes, then the descriptor, then what that named. A host that dies in
    /// between leaves a descriptor without a name, or blocks that nothing names.
    pub(super) async fn delete(&self, name: &str) -> Result<Vec<u32>, DatastoreError> {
        let file = self.find_or_fail(name).await?;
        let _turn = self.descriptor_turns[file as usize].lock().await;
        let known = self.open.borrow().get(&file).and_then(std::rc::Weak::upgrade);
        if known.is_some_and(|known| known.is_open()) {
            return Err(DatastoreError::InUse(name.to_owned()));
        }
        let held = self.lock_file(file, name, Mode::Exclusive).await?;
        let end = self.delete_locked(file, name).await;
        let freed = self.give_up(&held).await;
        let (data, pointers) = end?;
        freed?;
        self.give_back(Pool::Pointer, pointers).await?;
        Ok(data)
    }

    async fn delete_locked(
        &self,
        file: u32,
        name: &str,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let description = self.read_description(file).await?;
        if !description.is_used || description.name != name {
            return Err(DatastoreError::NotFound(name.to_owned()));
        }
        {
            let _turn = self.directory_turn.lock().await;
            self.under_lock(self.layout.directory_lock(), self.set_entry(file, 0)).await?;
        }
        self.erase(file, &description).await
    }
}
