//! A disk that is a file or a block device.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::calls::Calls;
use crate::disk::Disk as _;
use crate::opening::{is_block_device, lock, open_direct, open_direct_beside};

use crate::retrying::{RetryingDisk, invalid};
use crate::units::{UNIT_BYTES, Units};
use crate::{fiemap, iovec};

/// Zeros to write, as large as a unit and aligned for `O_DIRECT`.
#[repr(C, align(4096))]
struct Zeros([u8; UNIT_BYTES as usize]);
static ZEROS: Zeros = Zeros([0; UNIT_BYTES as usize]);

/// A file or a block device, accessed without the page cache (`O_DIRECT`), owned by one process.
pub type FileDisk = RetryingDisk<OpenFile>;

/// The calls that a [`FileDisk`] makes.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    /// Only increases.
    len_bytes: AtomicU64,
    units: Units,
    notices: Vec<String>,
}

impl FileDisk {
    /// Creates a file of `len_bytes` (a multiple of 4096) at `path`, which must not exist, with all
    /// of its space reserved; or, if `path` is a block device, takes the device, of which
    /// `len_bytes` are used.
    ///
    /// # Errors
    /// If the file exists, there is no room, the device is smaller or in use; those of the system.
    /// A file that was created is removed again.
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
            disk.calls_mut().len_bytes = AtomicU64::new(len_bytes);
            return Ok(disk);
        }
        let (file, notice) = open_direct(OpenOptions::new().write(true).create_new(true), path)?;
        let made = Self::reserve(file, path, len_bytes, notice);
        if made.is_err() {
            // The failure is reported; an empty file left behind is not worth a second error.
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
    /// `WouldBlock` if another process has it; those of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().write(true))
    }

    /// Opens it like [`FileDisk::open`], read-only: the file, its filesystem or the device may be
    /// read-only. Each write fails.
    ///
    /// # Errors
    /// As [`FileDisk::open`].
    pub fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::open_with(path, &mut OpenOptions::new())
    }

    /// Opens it like [`FileDisk::open_read_only`], without a lock: another process may have it, and
    /// write to it meanwhile.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open_beside(path: &Path) -> io::Result<Self> {
        let (file, notice) = open_direct_beside(path)?;
        Self::of_opened(path, file, notice)
    }

    fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        if is_block_device(path) {
            // On a device this flag means: not while it is mounted or otherwise in use.
            options.custom_flags(libc::O_EXCL);
        }
        let (file, notice) = open_direct(options, path)?;
        lock(&file, path)?;
        Self::of_opened(path, file, notice)
    }

    fn of_opened(path: &Path, mut file: File, notice: Option<String>) -> io::Result<Self> {
        let len_bytes = file.seek(SeekFrom::End(0))? / FRAME_BYTES as u64 * FRAME_BYTES as u64;
        let mut disk = Self::over(file, len_bytes, notice);
        if is_block_device(path) {
            disk.calls_mut().units = Units::all_written();
        }
        Ok(disk)
    }

    fn over(file: File, len_bytes: u64, notice: Option<String>) -> Self {
        // If the filesystem does not report it, nothing counts as unwritten, and nothing will be
        // prepared: slower, never wrong.
        let units = fiemap::written_ranges(&file, len_bytes).map_or_else(
            |_| Units::all_written(),
            |ranges| Units::with_written(len_bytes, &ranges),
        );
        let notices = notice.into_iter().collect();
        let len_bytes = AtomicU64::new(len_bytes);
        Self::new(OpenFile { file, len_bytes, units, notices })
    }

    /// Returns messages for the administrator about this disk, one sentence each; usually none.
    pub fn notices(&self) -> &[String] {
        &self.calls().notices
    }

    pub(crate) fn units(&self) -> &Units {
        &self.calls().units
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.calls().file.as_raw_fd()
    }

    /// Writes zeros and flushes them, for a caller that has claimed the units. In as few calls as
    /// possible: each changes the file's extents, and while the filesystem's journal has such a
    /// change open, durable writes to other parts of the file wait for the journal as well.
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
            let write = || {
                // SAFETY: each vector points to bytes of a static that never changes; the kernel
                // only reads them.
                let result = unsafe {
                    let count = iovecs.len() as i32;
                    libc::pwritev2(self.raw_fd(), iovecs.as_ptr(), count, offset, 0)
                };
                moved(result, "the device wrote no bytes")
            };
            match self.core().counters.writes.count(write) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => done += result? as u64,
            }
        }
        self.flush_since(self.flush_failures())
    }
}

impl Calls for OpenFile {
    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    /// Grows a file, with its space reserved; for a device, uses its new size. The new space is not
    /// prepared ahead of the log before the next opening: slower, never wrong.
    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        if self.file.metadata()?.file_type().is_block_device() {
            let has = (&self.file).seek(SeekFrom::End(0))?;
            if has < len_bytes {
                return Err(invalid(format!("the device has {has} bytes, fewer than {len_bytes}")));
            }
        } else {
            allocate(&self.file, len_bytes)?;
            self.file.sync_all()?;
        }
        self.len_bytes.fetch_max(len_bytes, Ordering::AcqRel);
        Ok(())
    }

    /// The space of a file goes back to its filesystem, that of a device to the layer below it, if
    /// that supports it.
    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        let done = match self.file.metadata()?.file_type().is_block_device() {
            true => discard_of_device(&self.file, [offset_bytes, len_bytes]),
            false => punch_hole(&self.file, offset_bytes, len_bytes),
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn before_write(&self, offset_bytes: u64, len_bytes: u64) {
        self.units.before_write(offset_bytes, len_bytes);
    }

    fn read(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        skip_bytes: usize,
    ) -> io::Result<usize> {
        let mut iovecs = Vec::with_capacity(frames.len().min(iovec::IOVECS_MAX));
        iovec::for_read(&mut iovecs, frames, skip_bytes);
        let offset = (offset_bytes + skip_bytes as u64) as i64;
        // SAFETY: each vector points to bytes of a frame that `frames` borrows exclusively for
        // longer than the call.
        let result = unsafe {
            let count = iovecs.len() as i32;
            libc::preadv(self.file.as_raw_fd(), iovecs.as_ptr(), count, offset)
        };
        moved(result, "the device returned no bytes")
    }

    fn write(
        &self,
        offset_bytes: u64,
        frames: &[Frame],
        skip_bytes: usize,
        dsync: bool,
    ) -> io::Result<usize> {
        let mut iovecs = Vec::with_capacity(frames.len().min(iovec::IOVECS_MAX));
        iovec::for_write(&mut iovecs, frames, skip_bytes);
        let offset = (offset_bytes + skip_bytes as u64) as i64;
        let flags = if dsync { libc::RWF_DSYNC } else { 0 };
        // SAFETY: each vector points to bytes of a frame that `frames` keeps alive and that can't
        // change; the kernel only reads them.
        let result = unsafe {
            let count = iovecs.len() as i32;
            libc::pwritev2(self.file.as_raw_fd(), iovecs.as_ptr(), count, offset, flags)
        };
        moved(result, "the device wrote no bytes")
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Returns how much a call with this `result` has transferred.
fn moved(result: isize, nothing: &str) -> io::Result<usize> {
    match usize::try_from(result) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, nothing.to_owned())),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Reserves the space of a file up to a length, and extends it if it is shorter. On failure the
/// file has its old length, and no reserved space.
fn allocate(file: &File, len_bytes: u64) -> io::Result<()> {
    let refused = |error: io::Error| {
        let text = format!("could not reserve {len_bytes} bytes: {error}");
        io::Error::new(error.kind(), text)
    };
    let len = i64::try_from(len_bytes).map_err(|_| invalid("too long for a file".into()))?;
    let before = file.metadata()?;
    let missing_bytes = len_bytes.saturating_sub(before.blocks() * 512);
    if missing_bytes > free_bytes(file)? {
        return Err(refused(io::Error::from_raw_os_error(libc::ENOSPC)));
    }
    reserve_or_give_back(file, before.len(), || {
        // SAFETY: the descriptor is open for the duration of the call; no memory is passed.
        match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    })
    .map_err(refused)
}

/// `BLKDISCARD` of <linux/fs.h>: `_IO(0x12, 119)`.
const BLKDISCARD: libc::c_ulong = 0x1277;

/// Discards a range of a block device: its offset and its length, in bytes.
fn discard_of_device(file: &File, range: [u64; 2]) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads two words, which outlive the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns a range of a file to its filesystem; the file keeps its length.
fn punch_hole(file: &File, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let too_long = |_| invalid("too long for a file".into());
    let offset = i64::try_from(offset_bytes).map_err(too_long)?;
    let len = i64::try_from(len_bytes).map_err(too_long)?;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open for the duration of the call; no memory is passed.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the free bytes in the filesystem of a file, including those reserved for root.
fn free_bytes(file: &File) -> io::Result<u64> {
    let mut status = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and the kernel fills the structure if it returns 0.
    let status = unsafe {
        if libc::fstatvfs(file.as_raw_fd(), status.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        status.assume_init()
    };
    Ok(status.f_bfree.saturating_mul(status.f_frsize))
}

/// Filesystems keep what they reserved before they ran out of space.
fn reserve_or_give_back(
    file: &File,
    before_bytes: u64,
    reserve: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let result = reserve();
    if result.is_err() && file.metadata()?.len() > before_bytes {
        file.set_len(before_bytes)?;
    }
    result
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
