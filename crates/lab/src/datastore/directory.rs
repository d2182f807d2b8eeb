//! Files by name: finding, creating, opening, deleting.
//!
//! The directory is a table with a hash of each descriptor's name, so that a name is found by
//! reading some sectors. The descriptors are authoritative. Files are created and deleted under the
//! directory's lock, and deleted also under the file's, which is taken first.

use std::rc::Rc;

use super::descriptor::{Description, check_file};
use super::error::DatastoreError;
use super::file::{File, Inner};
use super::layout::Pool;
use super::lock::{Held, Taken, Wait};
use super::lock_record::Mode;
use super::map::Map;
use super::mount::Core;
use super::named::{Locked, Named};
use super::sector::{Kind, SECTOR_BYTES, damaged};
use super::table::{self, ENTRIES, Owner, hash_of};

/// A file in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name.
    pub name: String,
    /// Its size, however many blocks are allocated.
    pub size_bytes: u64,
}

fn owner(part: u32) -> Owner {
    Owner { file: 0, generation: 0, part }
}

/// Encodes one sector of the directory.
pub(super) fn encode_directory(offset: u64, part: u32, entries: &[u32; ENTRIES]) -> Vec<u8> {
    table::encode(Kind::Directory, offset, owner(part), entries).to_vec()
}

/// Decodes the entries of one of its sectors.
pub(super) fn decode_directory(
    offset: u64,
    part: u32,
    bytes: &[u8],
) -> Result<[u32; ENTRIES], DatastoreError> {
    table::decode(Kind::Directory, offset, owner(part), bytes)
}

impl Core {
    /// Returns all hashes, by descriptor.
    async fn read_directory(&self) -> Result<Vec<u32>, DatastoreError> {
        let guard = self.layout.directory_guard();
        self.hashes(&self.disk.read(guard.content(), guard.content_bytes).await?)
    }

    fn hashes(&self, directory: &[u8]) -> Result<Vec<u32>, DatastoreError> {
        let mut hashes = Vec::new();
        for (sector, part) in directory.chunks_exact(SECTOR_BYTES as usize).zip(0..) {
            hashes.extend(decode_directory(self.layout.directory(part), part, sector)?);
        }
        hashes.truncate(self.layout.files as usize);
        Ok(hashes)
    }

    /// Changes an entry of the directory, under its lock.
    async fn set_entry(
        &self,
        directory: &mut [u8],
        file: u32,
        hash: u32,
    ) -> Result<(), DatastoreError> {
        let part = file / ENTRIES as u32;
        let offset = self.layout.directory(part);
        let Some(sector) = directory.chunks_exact_mut(SECTOR_BYTES as usize).nth(part as usize)
        else {
            return Err(damaged(offset, "the directory is too short"));
        };
        let mut entries = decode_directory(offset, part, sector)?;
        entries[file as usize % ENTRIES] = hash;
        sector.copy_from_slice(&encode_directory(offset, part, &entries));
        self.disk.write(offset, sector).await
    }

    pub(super) async fn read_description(&self, file: u32) -> Result<Description, DatastoreError> {
        let sector = self.disk.read_sector(self.layout.description(file)).await?;
        self.decode_description(file, &sector)
    }

    pub(super) async fn write_description(
        &self,
        file: u32,
        description: &Description,
    ) -> Result<(), DatastoreError> {
        let offset = self.layout.description(file);
        self.disk.write(offset, &description.encode(file, offset)).await
    }

    pub(super) fn decode_description(
        &self,
        file: u32,
        bytes: &[u8],
    ) -> Result<Description, DatastoreError> {
        let offset = self.layout.description(file);
        Description::decode(file, offset, self.layout.file_blocks_max(), bytes)
    }

    async fn find(&self, name: &str, hashes: &[u32]) -> Result<Option<u32>, DatastoreError> {
        let hash = hash_of(name);
        for (file, _) in (0..).zip(hashes).filter(|(_, known)| **known == hash) {
            let guard = self.layout.file_guard(file);
            let bytes = self.disk.read(guard.lock, guard.bytes()).await?;
            let description = self.decode_description(file, &bytes[SECTOR_BYTES as usize..])?;
            if description.is_used && description.name == name {
                // The directory's lock is usually needed next.
                self.views.saw(guard, &bytes);
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    pub(super) async fn find_or_fail(&self, name: &str) -> Result<u32, DatastoreError> {
        let found = self.find(name, &self.read_directory().await?).await?;
        found.ok_or_else(|| DatastoreError::NotFound(name.to_owned()))
    }

    /// Returns all files on disk.
    pub(super) async fn list(&self) -> Result<Vec<FileInfo>, DatastoreError> {
        let mut files = Vec::new();
        for (file, _) in (0..).zip(self.read_directory().await?).filter(|(_, hash)| *hash != 0) {
            let Description { is_used, name, size_bytes, .. } = self.read_description(file).await?;
            // One that is being deleted does not count.
            if is_used {
                files.push(FileInfo { name, size_bytes });
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Creates a file without blocks, and opens it.
    pub(super) async fn create(
        self: &Rc<Self>,
        name: &str,
        size_bytes: u64,
    ) -> Result<File, DatastoreError> {
        check_file(name, size_bytes, self.layout.file_blocks_max())?;
        let _turn = self.directory_turn.lock().await;
        let work = async |mut directory: Vec<u8>| {
            let hashes = self.hashes(&directory)?;
            if self.find(name, &hashes).await?.is_some() {
                return Err(DatastoreError::Exists(name.to_owned()));
            }
            for (file, _) in (0..).zip(&hashes).filter(|(_, hash)| **hash == 0) {
                let made = self.create_in(file, name, size_bytes, &mut directory).await?;
                if let Some(file) = made {
                    return Ok((file, directory));
                }
            }
            Err(DatastoreError::TooManyFiles)
        };
        self.under_lock(self.layout.directory_guard(), work).await
    }

    /// Creates a file in a descriptor without a name in the directory; `None` if another host is
    /// still busy with its previous file.
    async fn create_in(
        self: &Rc<Self>,
        file: u32,
        name: &str,
        size_bytes: u64,
        directory: &mut [u8],
    ) -> Result<Option<File>, DatastoreError> {
        let Some(_turn) = self.descriptor_turns[file as usize].try_lock() else { return Ok(None) };
        let guard = self.layout.file_guard(file);
        let Taken::Held(mut held) = self.acquire(guard, Mode::Exclusive, Wait::Never).await? else {
            return Ok(None);
        };
        self.closed.borrow_mut().remove(&file);
        let made = async {
            let before = self.decode_description(file, &self.content_of(&mut held).await?)?;
            self.fill_descriptor(file, before, name, size_bytes, directory).await
        };
        match made.await {
            Ok(description) => {
                let map = Map::empty(file, description.generation);
                Ok(Some(self.opened(file, description, map, Mode::Exclusive, held)))
            }
            Err(error) => {
                // The first error is the one to report.
                let _ = self.give_up(&held, None).await;
                Err(error)
            }
        }
    }

    /// Order: the description, the name. A host that dies in between leaves a descriptor that is in
    /// use without a name, which the next file that is created here cleans up. Slots left of its
    /// previous file are of an older generation.
    async fn fill_descriptor(
        &self,
        file: u32,
        before: Description,
        name: &str,
        size_bytes: u64,
        directory: &mut [u8],
    ) -> Result<Description, DatastoreError> {
        if before.is_used {
            let map = Map::new(file, before.generation);
            let (data, pointers) = self.erase(file, &before, map).await?;
            self.give_back(Pool::Pointer, pointers).await?;
            self.give_back(Pool::Data, data).await?;
        }
        let generation = before.generation.wrapping_add(1);
        let name = name.to_owned();
        let description = Description { is_used: true, generation, size_bytes, name };
        self.write_description(file, &description).await?;
        self.set_entry(directory, file, hash_of(&description.name)).await?;
        Ok(description)
    }

    /// Frees a descriptor, so that it refers to nothing, and returns the data blocks and pointer
    /// blocks that it referred to, which are still taken.
    async fn erase(
        &self,
        file: u32,
        description: &Description,
        mut map: Map,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let blocks = map.all(self).await?;
        self.write_description(file, &description.erased()).await?;
        Ok(blocks)
    }

    /// Opens an existing file.
    pub(super) async fn open(
        self: &Rc<Self>,
        name: &str,
        mode: Mode,
    ) -> Result<File, DatastoreError> {
        match self.lock_named(name, mode).await? {
            Named::Locked(Locked { file, description, map, held, .. }) => {
                Ok(self.opened(file, description, map, mode, held))
            }
            Named::Open(known, _) if known.mode != mode || mode == Mode::Exclusive => {
                Err(DatastoreError::InUse(name.to_owned()))
            }
            Named::Open(known, _turn) => Ok(File::again(known)),
        }
    }

    fn opened(
        self: &Rc<Self>,
        file: u32,
        description: Description,
        map: Map,
        mode: Mode,
        held: Held,
    ) -> File {
        let inner = Rc::new(Inner::new(self, file, description, map, mode, held));
        self.open.borrow_mut().insert(file, Rc::downgrade(&inner));
        File::again(inner)
    }

    /// Deletes a file that no host has open. Its data blocks stay taken; they are returned.
    ///
    /// Order: first the name, then the descriptor, then its blocks. A host that dies in between
    /// leaves a descriptor without a name, or unreferenced blocks.
    pub(super) async fn delete(&self, name: &str) -> Result<Vec<u32>, DatastoreError> {
        let Named::Locked(locked) = self.lock_named(name, Mode::Exclusive).await? else {
            return Err(DatastoreError::InUse(name.to_owned()));
        };
        let Locked { file, description, map, held, turn } = locked;
        let (data, pointers) = match self.delete_locked(file, &description, map).await {
            Ok(blocks) => blocks,
            Err(error) => {
                // The first error is the one to report.
                let _ = self.give_up(&held, None).await;
                return Err(error);
            }
        };
        let erased = description.erased().encode(file, self.layout.description(file));
        // Nothing refers to its blocks any longer, regardless of the lock's owner.
        let (freed, given_back) = futures::join!(
            self.give_up(&held, Some(&erased[..])),
            self.give_back(Pool::Pointer, pointers)
        );
        drop(turn);
        freed?;
        given_back?;
        Ok(data)
    }

    async fn delete_locked(
        &self,
        file: u32,
        description: &Description,
        map: Map,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        {
            let _turn = self.directory_turn.lock().await;
            let work = async |mut directory: Vec<u8>| {
                self.set_entry(&mut directory, file, 0).await?;
                Ok(((), directory))
            };
            self.under_lock(self.layout.directory_guard(), work).await?;
        }
        self.erase(file, description, map).await
    }
}
