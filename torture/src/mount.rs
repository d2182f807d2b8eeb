//! A device in place of a file: a FUSE filesystem that consists of this file, mounted over it.
//!
//! Reads and writes arrive here as the process makes them, bypassing the page cache whether
//! requested or not (`FOPEN_DIRECT_IO`), and several at once. RWF_DSYNC and O_DSYNC arrive as a
//! flag of the write. Locks are the kernel's own. io_uring does not block on submission
//! (`FUSE_ASYNC_DIO`); otherwise the submitting thread would wait, and all devices would be as slow
//! as the slowest. It reports no extents (FS_IOC_FIEMAP), so Holdfast prepares no space ahead of
//! its log.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use fuser::{
    BackgroundSession, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData,
    ReplyEmpty, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use rustix::mount::{UnmountFlags, unmount};

use crate::device::Device;
use crate::faults::Faults;

/// The largest read or write that arrives in one piece, in bytes.
const CALL_BYTES_MAX: u32 = 1 << 20;
/// The most io_uring requests in progress at a device.
const CALLS_MAX: u16 = 256;
/// O_DSYNC, which O_SYNC includes.
const DURABLE: i32 = rustix::fs::OFlags::DSYNC.bits() as i32;
/// How long unmounting waits for a process that has the file open.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the kernel may cache attributes of the file.
const NO_TIME: Duration = Duration::ZERO;

/// A device that is mounted over its file, until this is dropped.
pub struct Mounted {
    path: PathBuf,
    device: Arc<Device>,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts a device over this file, which keeps its content.
    ///
    /// # Errors
    /// If FUSE is not available, or this process may not mount.
    pub fn over(path: &Path) -> Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let device = Arc::new(Device::over(file));
        let mut config = fuser::Config::default();
        config.mount_options = vec![MountOption::FSName("torture".into()), MountOption::NoAtime];
        config.n_threads = Some(2);
        let session = fuser::spawn_mount(OneFile(device.clone()), path, &config)
            .with_context(|| format!("could not mount over {}", path.display()))?;
        Ok(Self { path: path.to_owned(), device, session: Some(session) })
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process that hangs would keep it open, as does a killed one while its rings are torn
        // down.
        self.device.set(Faults::default());
        let begin = Instant::now();
        let unmounted = loop {
            match unmount(&self.path, UnmountFlags::empty()) {
                Err(rustix::io::Errno::BUSY) if begin.elapsed() < UNMOUNT_PATIENCE => {
                    thread::sleep(Duration::from_millis(10));
                }
                unmounted => break unmounted,
            }
        };
        let Some(session) = self.session.take() else { return };
        // An unprivileged user unmounts with `fusermount3`.
        let ended = if unmounted.is_ok() { session.join() } else { session.umount_and_join() };
        if let Err(error) = ended {
            eprintln!("torture: could not unmount: {error}");
        }
    }
}

/// Checks whether files can be mounted over here.
///
/// # Errors
/// Why not, in one line.
pub fn probe() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    Mounted::over(file.path()).map(drop)
}

/// The filesystem, whose root is the file.
struct OneFile(Arc<Device>);

impl OneFile {
    /// Executes a call on a separate thread, so that a slow one does not block others.
    fn answer(&self, call: impl FnOnce(&Device) + Send + 'static) {
        if !self.0.is_slow() {
            return call(&self.0);
        }
        let device = self.0.clone();
        thread::spawn(move || call(&device));
    }

    fn attributes(&self) -> Result<FileAttr, Errno> {
        let found = self.0.metadata()?;
        let time = |time: io::Result<SystemTime>| time.unwrap_or(UNIX_EPOCH);
        Ok(FileAttr {
            ino: INodeNo::ROOT,
            size: found.len(),
            blocks: found.blocks(),
            atime: time(found.accessed()),
            mtime: time(found.modified()),
            ctime: time(found.modified()),
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: (found.permissions().mode() & 0o7777) as u16,
            nlink: 1,
            uid: found.uid(),
            gid: found.gid(),
            rdev: 0,
            blksize: found.blksize() as u32,
            flags: 0,
        })
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config
            .set_max_write(CALL_BYTES_MAX)
            .map_err(|_| io::Error::other("FUSE does not allow calls of this size"))?;
        config
            .set_max_background(CALLS_MAX)
            .map_err(|_| io::Error::other("FUSE does not allow this many calls"))?;
        let missing =
            |_| io::Error::other("this kernel's FUSE does not support asynchronous direct I/O");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(missing)?;
        Ok(())
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes() {
            Ok(attributes) => reply.attr(&NO_TIME, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let resized = size.map_or(Ok(()), |size| self.0.set_len(size));
        match resized.and_then(|()| self.attributes()) {
            Ok(attributes) => reply.attr(&NO_TIME, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        match self.0.must_be_there() {
            Ok(()) => reply.opened(FileHandle(0), flags),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.answer(move |device| match device.read(offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.answer(move |device| {
            match device.write(offset, &data, flags.0 & DURABLE != 0) {
                Ok(()) => reply.written(data.len() as u32),
                Err(error) => reply.error(error),
            };
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.answer(move |device| end(reply, device.flush()));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.answer(move |device| end(reply, device.allocate(mode, offset, length)));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        match self.0.space() {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                found.f_namemax as u32,
                found.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }
}

fn end(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}
