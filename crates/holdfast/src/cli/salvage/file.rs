//! The files that salvage writes: sparse images, and lists of their lost ranges.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use block::{BLOCK_BYTES, Frame};
use serde::Serialize;
use store::{SalvageSink, Salvaged};

use crate::cli::failure::Failure;

/// The maximum number of lost ranges of an object in the report; its list has all of them.
const LOST_RANGES_MAX: usize = 1_000;
/// The reason for the loss of data that could be read.
const TOO_LONG: &str = "file-too-long";
/// The maximum size of one write, in bytes.
const WRITE_BYTES: usize = 1 << 20;

/// A range that is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostRange {
    offset_bytes: u64,
    length_bytes: u64,
    reason: &'static str,
}

/// The written parts of an object.
#[derive(Debug)]
pub struct Written {
    pub file: String,
    /// Whether the filesystem does not support files as long as the volume: the missing end is
    /// zeros, or listed as lost.
    pub is_short: bool,
    pub lost_file: Option<String>,
    pub written_bytes: u64,
    pub lost_bytes: u64,
    /// The first of the lost ranges.
    pub lost: Vec<LostRange>,
}

/// Writes a file that must not exist.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let mut file = make(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|error| Failure::of_file("write", path, &error))
}

/// Writes `NAME.raw` with the data of `read`, and `NAME.lost` if anything is lost. Without a size
/// the file ends with the last known byte.
pub fn write(
    to: &Path,
    name: &str,
    size_bytes: Option<u64>,
    read: impl FnOnce(&mut SalvageSink<'_>) -> io::Result<()>,
) -> Result<Written, Failure> {
    let (file, lost_file) = (format!("{name}.raw"), format!("{name}.lost"));
    let path = to.join(&file);
    let failed = |error: io::Error| Failure::of_file("write", &path, &error);
    let mut image = Image {
        file: make(&path).map_err(failed)?,
        lost_path: &to.join(&lost_file),
        list: None,
        size_bytes,
        end_bytes: 0,
        buffer: Vec::new(),
        written_bytes: 0,
        lost_bytes: 0,
        lost: Vec::new(),
        is_short: false,
    };
    read(&mut |part| image.take(part)).and_then(|()| image.end()).map_err(failed)?;
    let Image { list, written_bytes, lost_bytes, lost, is_short, .. } = image;
    let lost_file = list.map(|_| lost_file);
    Ok(Written { file, is_short, lost_file, written_bytes, lost_bytes, lost })
}

/// Returns whether a file is too long for the filesystem: the limit of ext4 is 16 TiB.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::FileTooLarge)
}

fn make(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

struct Image<'a> {
    file: File,
    lost_path: &'a Path,
    list: Option<BufWriter<File>>,
    size_bytes: Option<u64>,
    /// The end of the last known byte.
    end_bytes: u64,
    buffer: Vec<u8>,
    written_bytes: u64,
    lost_bytes: u64,
    lost: Vec<LostRange>,
    is_short: bool,
}

impl Image<'_> {
    fn take(&mut self, part: Salvaged<'_>) -> io::Result<()> {
        match part {
            Salvaged::Data(block, frames) => self.data(block * BLOCK_BYTES, frames),
            Salvaged::Lost(range, reason) => {
                let offset = range.start.0 * BLOCK_BYTES;
                self.lose(offset, range.count.0 * BLOCK_BYTES, reason.name())
            }
        }
    }

    /// Returns how many of `bytes` are before the end of the volume, which may be within a block.
    fn within(&self, offset_bytes: u64, bytes: u64) -> u64 {
        self.size_bytes.map_or(bytes, |size| size.saturating_sub(offset_bytes).min(bytes))
    }

    fn data(&mut self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let mut at = offset_bytes;
        for part in frames.chunks(WRITE_BYTES / BLOCK_BYTES as usize) {
            self.buffer.clear();
            part.iter().for_each(|frame| self.buffer.extend_from_slice(&frame[..]));
            let bytes = self.within(at, self.buffer.len() as u64);
            match self.file.write_all_at(&self.buffer[..bytes as usize], at) {
                Ok(()) => {
                    self.written_bytes += bytes;
                    self.end_bytes = self.end_bytes.max(at + bytes);
                }
                Err(error) if is_too_long(&error) => self.lose(at, bytes, TOO_LONG)?,
                Err(error) => return Err(error),
            }
            at += bytes;
        }
        Ok(())
    }

    fn lose(&mut self, offset_bytes: u64, bytes: u64, reason: &'static str) -> io::Result<()> {
        let length_bytes = self.within(offset_bytes, bytes);
        if self.list.is_none() {
            let mut list = BufWriter::new(make(self.lost_path)?);
            writeln!(list, "# first byte, bytes, why")?;
            self.list = Some(list);
        }
        if let Some(list) = &mut self.list {
            writeln!(list, "{offset_bytes} {length_bytes} {reason}")?;
        }
        if self.lost.len() < LOST_RANGES_MAX {
            self.lost.push(LostRange { offset_bytes, length_bytes, reason });
        }
        self.lost_bytes += length_bytes;
        if reason != TOO_LONG {
            self.end_bytes = self.end_bytes.max(offset_bytes + length_bytes);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        match self.file.set_len(self.size_bytes.unwrap_or(self.end_bytes)) {
            // The missing part of the image is zeros, or was reported as lost.
            Err(error) if is_too_long(&error) => self.is_short = true,
            set => set?,
        }
        self.file.sync_all()?;
        if let Some(list) = &mut self.list {
            list.flush()?;
            list.get_ref().sync_all()?;
        }
        Ok(())
    }
}
