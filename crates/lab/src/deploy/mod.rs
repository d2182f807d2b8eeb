//! A template deployed many times, by the host and by the array; and the verification of every
//! copy.
//!
//! The host has several paths, continues over those that are left, and repeats commands without a
//! response; on request a second host takes a lock repeatedly in parallel.
//!
//! "Off" means that the host does the work: it reads the template and writes the clone, a MiB at a
//! time. "On" means that the array does it: EXTENDED COPY. Both move the whole image, at the same
//! depth, over the same sessions, and both are read back over iSCSI and compared with the image's
//! file.

mod answers;
mod array;
mod demo;
mod locking;
mod paths;
mod pipeline;
mod progress;
mod table;

pub use answers::Event;
pub use array::Array;
pub use demo::{DemoArgs, run as run_demo};
pub use paths::Paths;
pub use pipeline::{FillArgs, fill, verify_image, write_image};
pub use table::{Row, Table};

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a template is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// By READ and WRITE of the host.
    Off,
    /// By EXTENDED COPY.
    On,
}

/// The image that is deployed: a file whose length is a multiple of a MiB.
#[derive(Debug)]
pub struct Image {
    file: File,
    bytes: u64,
}

impl Image {
    /// Opens an image.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fail = |error| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(fail)?;
        let bytes = file.metadata().map_err(fail)?.len();
        if bytes == 0 || bytes % (1 << 20) != 0 {
            return Err(format!("{}: the length is not a multiple of 1 MiB", path.display()));
        }
        Ok(Self { file, bytes })
    }

    /// Returns its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads `buffer.len()` bytes at `offset`.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), String> {
        self.file.read_exact_at(buffer, offset).map_err(|error| format!("the image: {error}"))
    }
}
