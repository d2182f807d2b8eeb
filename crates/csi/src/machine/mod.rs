//! The machine that a node is: all that touches its kernel.

mod commands;
pub mod directory;
mod disks;
pub mod linux;
mod mounts;
mod sessions;
mod vpd;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::capability::Filesystem;
use crate::context::{Chap, PublishContext};

pub use mounts::{MountPoint, identity};

/// Why the machine did not do something.
#[derive(Debug)]
pub enum Fault {
    /// A program failed, or a file can't be had.
    Failed(String),
    /// A device or filesystem is not what it must be; trying again does not help.
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
    /// A file that can't be had.
    pub fn of(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

/// How a filesystem is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes that anybody may still use.
    pub available_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Inodes in all.
    pub total_inodes: u64,
    /// Inodes that are free.
    pub free_inodes: u64,
}

/// What is done on a node. Every call may be repeated. They block: not for an asynchronous thread.
pub trait Machine: Send + Sync {
    /// The name of the machine's iSCSI initiator.
    fn initiator(&self) -> Result<String, Fault>;

    /// Logs in where a volume is, with the secrets of the call if it has some, and finds its
    /// device: one whose serial number is the volume's.
    fn attach(&self, volume: &PublishContext, chap: Option<&Chap>) -> Result<PathBuf, Fault>;

    /// Forgets the devices with this serial number, which nothing uses any more. Sessions stay:
    /// others may use them.
    fn detach(&self, serial: &str) -> Result<(), Fault>;

    /// Has the kernel see the size that the volume has now; returns its device.
    fn refresh(&self, serial: &str) -> Result<PathBuf, Fault>;

    /// What is on a device: `None` if nothing is.
    fn content(&self, device: &Path) -> Result<Option<String>, Fault>;

    /// Makes a filesystem on a device.
    fn format(&self, device: &Path, filesystem: Filesystem) -> Result<(), Fault>;

    /// Mounts a device.
    fn mount(
        &self,
        device: &Path,
        path: &Path,
        filesystem: Filesystem,
        options: &[String],
    ) -> Result<(), Fault>;

    /// Mounts a directory, or a device, at another place.
    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Fault>;

    /// Unmounts what was mounted last at a path.
    fn unmount(&self, path: &Path) -> Result<(), Fault>;

    /// All mounts, in the order in which they were made.
    fn mounts(&self) -> Result<Vec<MountPoint>, Fault>;

    /// Grows a mounted filesystem to the size of its device.
    fn grow(&self, device: &Path, path: &Path) -> Result<(), Fault>;

    /// The size of a device in bytes.
    fn size_bytes(&self, device: &Path) -> Result<u64, Fault>;

    /// Which paths to a volume do not work, said in a line; `None` if all do.
    fn lost_paths(&self, serial: &str) -> Result<Option<String>, Fault>;

    /// How a mounted filesystem is filled.
    fn usage(&self, path: &Path) -> Result<Usage, Fault>;
}

/// How the filesystem at a path is filled, as the kernel says it.
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
