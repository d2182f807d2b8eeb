//! The disk below the synthetic one: a sparse file, for metadata and records' headers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use block::{BLOCK_BYTES, Frame, FrameMut};
use sys::Disk;

/// A sparse file that is removed with the process.
pub struct SparseFile(File, u64);

impl SparseFile {
    pub fn create(dir: &Path, len_bytes: u64) -> io::Result<Self> {
        let path = dir.join(format!("holdfast-memory-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        file.set_len(len_bytes)?;
        Ok(Self(file, len_bytes))
    }
}

impl Disk for SparseFile {
    fn len_bytes(&self) -> u64 {
        self.1
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let offsets = (offset_bytes..).step_by(BLOCK_BYTES as usize);
        frames
            .iter_mut()
            .zip(offsets)
            .try_for_each(|(frame, at)| self.0.read_exact_at(&mut frame[..], at))
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let offsets = (offset_bytes..).step_by(BLOCK_BYTES as usize);
        frames.iter().zip(offsets).try_for_each(|(frame, at)| self.0.write_all_at(&frame[..], at))
    }

    fn flush(&self) -> io::Result<()> {
        // Nothing of it survives the process.
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
