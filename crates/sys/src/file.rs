//! A disk that is a file or a block device.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::disk::{Disk, Persist};
use crate::opening::{is_block_device, lock, open_direct};
use crate::prepare::{UNIT_BYTES, Units};
use crate::retry::{Flushes, Patience, Retries};
use crate::{fiemap, iovec};

/// Zeros to write, as large as a unit and aligned as `O_DIRECT` wants it.
#[repr(C, align(4096))]
struct Zeros([u8; UNIT_BYTES as usize]);
static ZEROS: Zeros = Zeros([0; UNIT_BYTES as usize]);

/// A file or a block device, moved past the page cache (`O_DIRECT`), owned by one process.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    /// Goes up only.
    len_bytes: AtomicU64,
    units: Units,
    notices: Vec<String>,
    /// Whether a write can carry its own flush (`RWF_DSYNC`).
    dsync: AtomicBool,
    retries: Retries,
    flushes: Flushes,
}

impl FileDisk {
    /// Makes a file of `len_bytes` (a multiple of 4096) at `path`, which must not exist, with all
    /// of its space reserved; or, where `path` is a block device, takes the device, of which
    /// `len_bytes` are used.
    ///
    /// # Errors
    /// If the file exists, there is no room, the device is smaller or in use, or what the system
    /// says. A file that was made is removed again.
    pub fn create(path: &Path, len_bytes: u64) -> io::Result<Self> {
        if len_bytes == 0 || !len_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!("{len_bytes} bytes is not a multiple of 4096")));
        }
        if is_block_device(path) {
            let mut disk = Self::open(path)?;
            let has = disk.len_bytes();
            if has < len_bytes {
                let path = path.display();
                return Err(invalid(format!("{path} has {has} bytes, fewer than {len_bytes}")));
            }
            disk.len_bytes = AtomicU64::new(len_bytes);
            return Ok(disk);
        }
        let (file, notice) = open_direct(OpenOptions::new().write(true).create_new(true), path)?;
        let made = Self::reserve(file, path, len_bytes, notice);
        if made.is_err() {
            // What failed is reported; an empty file left behind is not worth a second error.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    fn reserve(
        file: File,
        path: &Path,
        len_bytes: u64,
        notice: Option<String>,
    ) -> io::Result<Self> {
        lock(&file, path)?;
        allocate(&file, len_bytes)?;
        file.sync_all()?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self::over(file, len_bytes, notice))
    }

    /// Opens the file or the block device at `path`, and locks it.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; what the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().write(true))
    }

    /// As [`FileDisk::open`], to be read only: the file, its filesystem or the device may be
    /// read-only. Each write fails.
    ///
    /// # Errors
    /// As [`FileDisk::open`].
    pub fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::open_with(path, &mut OpenOptions::new())
    }

    fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let device = is_block_device(path);
        if device {
            // On a device this flag says: not while it is mounted or otherwise in use.
            options.custom_flags(libc::O_EXCL);
        }
        let (mut file, notice) = open_direct(options, path)?;
        lock(&file, path)?;
        let len_bytes = file.seek(SeekFrom::End(0))? / FRAME_BYTES as u64 * FRAME_BYTES as u64;
        let mut disk = Self::over(file, len_bytes, notice);
        if device {
            disk.units = Units::all_written();
        }
        Ok(disk)
    }

    fn over(file: File, len_bytes: u64, notice: Option<String>) -> Self {
        // Where the filesystem does not tell, nothing is known to be untouched, and nothing will
        // be prepared: slower, never wrong.
        let units = fiemap::written_ranges(&file, len_bytes).map_or_else(
            |_| Units::all_written(),
            |ranges| Units::with_written(len_bytes, &ranges),
        );
        let notices = notice.into_iter().collect();
        let len_bytes = AtomicU64::new(len_bytes);
        let (dsync, retries) = (AtomicBool::new(true), Retries::default());
        let flushes = Flushes::default();
        Self { file, len_bytes, units, notices, dsync, retries, flushes }
    }

    /// What an administrator should know about this disk, one sentence each; mostly nothing.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Tells `report`, one sentence each, when the device begins to refuse writes, takes them
    /// again,
    /// or one was given up.
    pub fn report_to(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        self.retries.report_to(Box::new(report));
    }

    /// From here on a write that is refused has failed: the owner stops.
    pub fn end_retries(&self) {
        self.retries.end();
    }

    pub(crate) fn retries(&self) -> &Retries {
        &self.retries
    }

    pub(crate) fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Refuses what is not in whole frames inside the disk. Writing past the end would make a
    /// file longer.
    pub(crate) fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        let len = (frame_count * FRAME_BYTES) as u64;
        let has = self.len_bytes();
        let end = offset_bytes.checked_add(len).filter(|end| *end <= has);
        if end.is_none() || !offset_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!(
                "{len} bytes at {offset_bytes} are not in whole frames of a disk of {has} bytes"
            )));
        }
        Ok(())
    }

    /// Writes zeros and flushes them. For who has claimed the units. In as few calls as can be:
    /// each changes the file's marks, and while the filesystem's journal has such a change open,
    /// durable writes to other parts of the file wait for the journal as well.
    pub(crate) fn write_zeros(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
        let mut done = 0;
        while done < len_bytes {
            let iovecs: Vec<libc::iovec> = (done..len_bytes)
                .step_by(ZEROS.0.len())
                .take(iovec::IOVECS_MAX)
                .map(|at| libc::iovec {
                    iov_base: ZEROS.0.as_ptr().cast_mut().cast(),
                    iov_len: ZEROS.0.len().min((len_bytes - at) as usize),
                })
                .collect();
            let offset = (offset_bytes + done) as i64;
            // SAFETY: each vector names bytes of a static that never changes; the kernel only
            // reads them.
            let result = unsafe {
                let count = iovecs.len() as i32;
                libc::pwritev2(self.file.as_raw_fd(), iovecs.as_ptr(), count, offset, 0)
            };
            done += advance(result, "the device took no bytes")? as u64;
        }
        self.sync(self.flushes.failed())
    }

    /// Flushes, for writes that began when `before` flushes had failed.
    fn sync(&self, before: u64) -> io::Result<()> {
        #[cfg(test)]
        if let Some(fault) = self.retries.flush_fault() {
            return self.flushes.judge(Err(io::Error::from_raw_os_error(fault)), before);
        }
        self.flushes.judge(self.file.sync_data(), before)
    }

    /// How long to wait before a write begins that flushes others, if such flushes fail.
    pub(crate) fn pause_before(&self, persist: Persist) -> Option<Duration> {
        let pause = self.flushes.pause().filter(|_| persist == Persist::All);
        self.retries.pause(pause)
    }

    /// Flushes, for all writes before.
    pub(crate) fn flush_at_once(&self) -> io::Result<()> {
        let result = self.sync(self.flushes.failed());
        self.flushes.note_for_all(&result);
        result
    }

    /// Writes, once, and makes durable what `persist` says.
    pub(crate) fn put(
        &self,
        offset_bytes: u64,
        frames: &[Frame],
        persist: Persist,
    ) -> io::Result<()> {
        self.check_range(offset_bytes, frames.len())?;
        self.units.before_write(offset_bytes, (frames.len() * FRAME_BYTES) as u64);
        let one_call = frames.len() <= iovec::IOVECS_MAX && self.dsync.load(Ordering::Relaxed);
        let before = self.flushes.failed();
        match persist {
            Persist::Nothing => return self.write_vectored(offset_bytes, frames, 0),
            Persist::Itself if frames.is_empty() => return Ok(()),
            Persist::Itself if one_call => {
                match self.write_vectored(offset_bytes, frames, libc::RWF_DSYNC) {
                    Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                        self.dsync.store(false, Ordering::Relaxed);
                    }
                    result => return result.inspect_err(|error| self.flushes.note(error)),
                }
            }
            Persist::Itself | Persist::All => {}
        }
        self.write_vectored(offset_bytes, frames, 0)?;
        if persist == Persist::All { self.flush_at_once() } else { self.sync(before) }
    }

    fn write_vectored(&self, offset_bytes: u64, frames: &[Frame], flags: i32) -> io::Result<()> {
        let mut iovecs = Vec::with_capacity(frames.len().min(iovec::IOVECS_MAX));
        let mut done = 0;
        while iovec::for_write(&mut iovecs, frames, done) > 0 {
            let offset = (offset_bytes + done as u64) as i64;
            #[cfg(test)]
            if let Some(fault) = self.retries.fault() {
                return Err(io::Error::from_raw_os_error(fault));
            }
            // SAFETY: each vector names bytes of a frame that `frames` keeps alive and that
            // nobody can change; the kernel only reads them.
            let result = unsafe {
                let count = iovecs.len() as i32;
                libc::pwritev2(self.file.as_raw_fd(), iovecs.as_ptr(), count, offset, flags)
            };
            done += advance(result, "the device took no bytes")?;
        }
        Ok(())
    }
}

impl Disk for FileDisk {
    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    /// A file is made longer, with the space reserved; of a device, what it has got is used. What
    /// is new is not prepared ahead of the log before the next opening: slower, never wrong.
    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        if !len_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!("{len_bytes} bytes is not a multiple of 4096")));
        }
        if self.file.metadata()?.file_type().is_block_device() {
            let has = (&self.file).seek(SeekFrom::End(0))?;
            if has < len_bytes {
                return Err(invalid(format!("the device has {has} bytes, not {len_bytes}")));
            }
        } else {
            allocate(&self.file, len_bytes)?;
            self.file.sync_all()?;
        }
        self.len_bytes.fetch_max(len_bytes, Ordering::AcqRel);
        Ok(())
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.check_range(offset_bytes, frames.len())?;
        let mut iovecs = Vec::with_capacity(frames.len().min(iovec::IOVECS_MAX));
        let mut done = 0;
        while iovec::for_read(&mut iovecs, frames, done) > 0 {
            let offset = (offset_bytes + done as u64) as i64;
            #[cfg(test)]
            if let Some(fault) = self.retries.read_fault() {
                return Err(io::Error::from_raw_os_error(fault));
            }
            // SAFETY: each vector names bytes of a frame that `frames` borrows exclusively for
            // longer than the call.
            let result = unsafe {
                let count = iovecs.len() as i32;
                libc::preadv(self.file.as_raw_fd(), iovecs.as_ptr(), count, offset)
            };
            done += advance(result, "the device ended early")?;
        }
        Ok(())
    }

    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.retries.read_patiently(|| self.read(offset_bytes, frames))
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let patience = self.retries.patience();
        self.retries.patiently(patience, || self.put(offset_bytes, frames, Persist::Nothing))
    }

    fn flush(&self) -> io::Result<()> {
        if let Some(pause) = self.pause_before(Persist::All) {
            self.retries.sleep(pause);
        }
        self.flush_at_once()
    }

    fn flush_failures(&self) -> u64 {
        self.flushes.failed()
    }

    fn retry_count(&self) -> u64 {
        self.retries.count()
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut given_up = None;
        self.retries.patiently(Patience::Device, || {
            let before = self.flushes.failed();
            match write() {
                Ok(()) => self.sync(before),
                // That was tried often enough.
                Err(error) => {
                    given_up = Some(error);
                    Ok(())
                }
            }
        })?;
        given_up.map_or(Ok(()), Err)
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let patience = self.retries.patience();
        self.retries.patiently(patience, || self.put(offset_bytes, frames, Persist::Itself))
    }
}

/// What a transfer that returned `result` has moved; 0 where it must be called again.
fn advance(result: isize, ended: &str) -> io::Result<usize> {
    match usize::try_from(result) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, ended.to_owned())),
        Ok(bytes) => Ok(bytes),
        Err(_) => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
        }
    }
}

/// Reserves the space of a file up to a length, and makes it so long where it is shorter.
fn allocate(file: &File, len_bytes: u64) -> io::Result<()> {
    let len = i64::try_from(len_bytes).map_err(|_| invalid("too long for a file".into()))?;
    // SAFETY: the descriptor is open for the duration of the call; no memory is passed.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) } < 0 {
        let error = io::Error::last_os_error();
        let text = format!("could not reserve {len_bytes} bytes: {error}");
        return Err(io::Error::new(error.kind(), text));
    }
    Ok(())
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
