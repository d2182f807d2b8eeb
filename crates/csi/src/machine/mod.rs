//! The machine that a node runs on: everything that uses its kernel.

mod commands;
pub mod directory;
mod disks;
pub mod linux;
mod mounts;
mod node_record;
mod places;
mod sessions;
mod system;
mod vpd;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::capability::Filesystem;
use crate::context::{Chap, PublishContext};

pub use mounts::{MountPoint, identity};
pub use system::{Real, System};

/// The reason why the machine failed.
#[derive(Debug)]
pub enum Fault {
    /// A program failed, or a file can't be accessed.
    Failed(String),
    /// A device or filesystem is not the expected one; retrying does not help.
    Wrong(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Wrong(text) => f.write_str(text),
        }
    }
}

impl Fault {
    /// Returns the fault of a file that can't be accessed.
    pub fn of(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

/// The usage of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Total bytes.
    pub total_bytes: u64,
    /// Bytes available to unprivileged users.
    pub available_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Total inodes.
    pub total_inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
}

/// The operations of a node. Every call may be repeated. They block, and must not run on an
/// asynchronous thread.
pub trait Machine: Send + Sync {
    /// Returns the name of the machine's iSCSI initiator.
    fn initiator(&self) -> Result<String, Fault>;

    /// Logs in to a volume's portals, with the secrets of the call if it has some, and finds its
    /// device: one whose serial number is the volume's.
    fn attach(&self, volume: &PublishContext, chap: Option<&Chap>) -> Result<PathBuf, Fault>;

    /// Removes the devices with this serial number, which are no longer used. Sessions stay,
    /// because other volumes may use them.
    fn detach(&self, serial: &str) -> Result<(), Fault>;

    /// Makes the kernel read the volume's current size; returns its device.
    fn refresh(&self, serial: &str) -> Result<PathBuf, Fault>;

    /// Returns the content of a device; `None` if there is nothing on it.
    fn content(&self, device: &Path) -> Result<Option<String>, Fault>;

    /// Creates a filesystem on a device.
    fn format(&self, device: &Path, filesystem: Filesystem) -> Result<(), Fault>;

    /// Mounts a device.
    fn mount(
        &self,
        device: &Path,
        path: &Path,
        filesystem: Filesystem,
        options: &[String],
    ) -> Result<(), Fault>;

    /// Bind-mounts a directory, or a device, at another path.
    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Fault>;

    /// Unmounts the topmost mount at a path.
    fn unmount(&self, path: &Path) -> Result<(), Fault>;

    /// Returns all mounts, in the order of their creation.
    fn mounts(&self) -> Result<Vec<MountPoint>, Fault>;

    /// Grows a mounted filesystem to the size of its device.
    fn grow(&self, device: &Path, path: &Path) -> Result<(), Fault>;

    /// Returns the size of a device in bytes.
    fn size_bytes(&self, device: &Path) -> Result<u64, Fault>;

    /// Describes which paths to a volume do not work, on one line; `None` if all do.
    fn lost_paths(&self, serial: &str) -> Result<Option<String>, Fault>;

    /// Returns the usage of a mounted filesystem.
    fn usage(&self, path: &Path) -> Result<Usage, Fault>;

    /// Creates a directory with its parents, unless it exists.
    fn make_directory(&self, path: &Path) -> Result<(), Fault>;

    /// Creates an empty file with its parents, unless it exists.
    fn make_file(&self, path: &Path) -> Result<(), Fault>;

    /// Removes a file or an empty directory, if it exists.
    fn remove(&self, path: &Path) -> Result<(), Fault>;
}

/// Returns the usage of the filesystem at a path from the kernel.
fn usage(path: &Path) -> Result<Usage, Fault> {
    let found = rustix::fs::statvfs(path).map_err(|error| Fault::of(path, &error.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Usage {
        total_bytes: bytes(found.f_blocks),
        available_bytes: bytes(found.f_bavail),
        used_bytes: bytes(found.f_blocks.saturating_sub(found.f_bfree)),
        total_inodes: found.f_files,
        free_inodes: found.f_ffree,
    })
}
