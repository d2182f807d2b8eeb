//! Datastores: the lab's own cluster file system on a shared device, modeled on what is public
//! about VMFS: blocks of 1 MiB, 512-byte locks on disk, a heartbeat slot for each host.
//!
//! Several hosts mount one at a time and communicate only through the disk. The content of each
//! sector is described in `layout`, `sector`, `lock_record`, `pulse`, `cluster`, `descriptor` and
//! `table`; the rules are:
//!
//! - A sector of 512 bytes is written completely or not at all; each has magic, location and
//!   checksum.
//! - Everything is changed under a lock on disk: a cluster's bitmap under the cluster's, the
//!   directory under the directory's, a file's description and pointers under the file's.
//! - A block is taken before it is referred to, and no longer referred to before it is freed. So a
//!   host that dies at any time leaves unreferenced blocks (a leak), but never one to which two
//!   files refer.
//! - A lock is broken only after its holder's heartbeat was ended on disk.
//! - What a host remembers of a bitmap, the directory or a file that it has closed is trusted once
//!   it has taken the lock from the very image that it left there: no host has held it in between.
//!   `lock` has the whole argument.
//!
//! Futures of a datastore must run to completion: one that is dropped may leave a lock on disk,
//! which this host takes again when it needs it, and which others get when it unmounts.

mod allocate;
mod auto_reclaim;
mod cluster;
mod counters;
mod descriptor;
mod detached;
mod directory;
mod disk;
mod error;
mod extent;
mod file;
mod format;
mod fsck;
mod heart;
mod layout;
mod lock;
mod lock_record;
mod map;
mod medium;
mod mount;
mod named;
mod pulse;
mod sector;
mod table;
#[cfg(test)]
mod tests;
mod views;

use std::num::NonZeroU32;
use std::rc::Rc;

pub use auto_reclaim::{AutoReclaimed, NoAutoReclaim};
pub use counters::LockCounters;
pub use detached::{Detached, DeviceRange};
pub use directory::FileInfo;
use disk::Disk;
pub use error::DatastoreError;
pub use extent::{AllocateAs, BlockState, FileExtent, Placement};
pub use file::File;
pub use fsck::{FsckReport, fsck};
pub use layout::BLOCK_BYTES;
use layout::Pool;
pub use lock_record::{HostId, Mode};
pub use medium::{Locking, Medium};
pub use mount::MountOptions;
use mount::{Core, read_layout};

/// A datastore that a host has mounted. Cheap to clone: all clones are one mount. If the last one
/// is dropped without [`Datastore::unmount`], it is as if the host had died.
#[derive(Clone)]
pub struct Datastore(Rc<Core>);

impl std::fmt::Debug for Datastore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Datastore").field("label", &self.label()).finish_non_exhaustive()
    }
}

impl Datastore {
    /// Creates an empty datastore on a device that no host has mounted; previous content is lost.
    ///
    /// # Errors
    /// A device that is too small or has no 512-byte blocks, a label that is not 1 to 64 bytes
    /// long; those of the device.
    pub async fn format<M>(medium: &M, label: &str) -> Result<(), DatastoreError>
    where
        M: Medium + Clone + 'static,
    {
        format::format(&Disk::new(Rc::new(medium.clone()), 0), label).await
    }

    /// Mounts it: takes a heartbeat slot, and beats in it from now on. If a host of this id seems
    /// to have it mounted, this waits for the liveness time to see whether it is alive.
    ///
    /// # Errors
    /// No datastore there, or one that is damaged; no slot; those of the device.
    pub async fn mount<M>(medium: &M, options: MountOptions) -> Result<Self, DatastoreError>
    where
        M: Medium + Clone + 'static,
    {
        let disk = Disk::new(Rc::new(medium.clone()), options.seed);
        let layout = read_layout(&disk).await?;
        let (me, pulse) = heart::claim_slot(&disk, &layout, &options).await?;
        let core = Core::new(disk, layout, options, me, pulse);
        heart::start(&core).await?;
        Ok(Self(core))
    }

    /// Closes what is open, and gives the heartbeat slot back. Everything fails from then on. What
    /// was still to be unmapped is free, without notifying the array.
    ///
    /// # Errors
    /// Those of the locks and the device; it is unmounted nevertheless, and what is still locked
    /// can be broken at once.
    pub async fn unmount(&self) -> Result<(), DatastoreError> {
        let mut end = Ok(());
        for file in self.0.open_files() {
            end = end.and(file.close(true).await);
        }
        end = end.and(self.0.skip_pending().await.map(drop));
        end.and(self.0.stop_heart().await)
    }

    /// Returns its label.
    pub fn label(&self) -> &str {
        &self.0.layout.label
    }

    /// Returns this host's id.
    pub fn host(&self) -> HostId {
        self.0.options.host
    }

    /// Returns the number of its data blocks, of [`BLOCK_BYTES`] each.
    pub fn capacity_blocks(&self) -> u64 {
        u64::from(self.0.layout.data_blocks)
    }

    /// Returns the maximum number of blocks of a file, allocated or not.
    pub fn file_blocks_max(&self) -> u64 {
        u64::from(self.0.layout.file_blocks_max())
    }

    /// Returns how many data blocks are free: read from disk, each cluster at some time.
    ///
    /// # Errors
    /// Those of the device; the content must be valid.
    pub async fn free_blocks(&self) -> Result<u64, DatastoreError> {
        let clusters = self.0.read_clusters(Pool::Data).await?;
        Ok(clusters.iter().map(|cluster| u64::from(cluster.free())).sum())
    }

    /// Creates a file of a given size, without any blocks, and opens it exclusively for this host.
    ///
    /// # Errors
    /// [`DatastoreError::Exists`], [`DatastoreError::TooManyFiles`]; a name that is not 1 to 128
    /// bytes long, a size beyond [`Datastore::file_blocks_max`]; those of the locks and the device.
    pub async fn create(&self, name: &str, size_bytes: u64) -> Result<File, DatastoreError> {
        self.0.create(name, size_bytes).await
    }

    /// Opens a file. If another host has it in a conflicting mode, this waits until it is clear
    /// whether that host is alive.
    ///
    /// # Errors
    /// [`DatastoreError::NotFound`]; [`DatastoreError::Locked`] by another host;
    /// [`DatastoreError::InUse`] by this one; those of the locks and the device.
    pub async fn open(&self, name: &str, mode: Mode) -> Result<File, DatastoreError> {
        self.0.open(name, mode).await
    }

    /// Returns all files, ordered by name.
    ///
    /// # Errors
    /// Those of the device; the content must be valid.
    pub async fn list(&self) -> Result<Vec<FileInfo>, DatastoreError> {
        self.0.list().await
    }

    /// Deletes a file that no host has open; returns where its blocks were. They are free and may
    /// be another host's by now, so callers that unmap them use [`Datastore::detach`]; or this host
    /// unmaps them automatically ([`Detached::let_go`]).
    ///
    /// # Errors
    /// As [`Datastore::open`].
    pub async fn delete(&self, name: &str) -> Result<Vec<DeviceRange>, DatastoreError> {
        let detached = self.detach(name).await?;
        let ranges = detached.ranges();
        detached.let_go().await?;
        Ok(ranges)
    }

    /// Deletes a file that no host has open. Its blocks belong to no file until they are given
    /// back.
    ///
    /// # Errors
    /// As [`Datastore::open`].
    pub async fn detach(&self, name: &str) -> Result<Detached, DatastoreError> {
        Ok(Detached::new(&self.0, self.0.delete(name).await?))
    }

    /// Returns how many blocks per second, of those that files no longer use, this host unmaps
    /// automatically.
    ///
    /// # Errors
    /// Why it does not at present.
    pub fn auto_reclaim(&self) -> Result<NonZeroU32, NoAutoReclaim> {
        self.0.disk.medium.auto_reclaim()
    }

    /// Returns what that has done so far.
    pub fn auto_reclaimed(&self) -> AutoReclaimed {
        self.0.auto_reclaim.done()
    }

    /// Returns what its locks have cost so far.
    pub fn counters(&self) -> LockCounters {
        *self.0.disk.counters.borrow()
    }
}
