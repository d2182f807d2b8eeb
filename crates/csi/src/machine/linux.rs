//! A Linux machine with open-iscsi, and multipath for several paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::commands::{failed, output, run};
use super::disks::{
    device, lost, map, paths, remove_disk, remove_map, remove_stale, states, sys, write,
};
use super::sessions::{Session, log_in};
use super::{Fault, Machine, MountPoint, Real, System, Usage, mounts};
use crate::capability::Filesystem;
use crate::context::{Chap, PublishContext};

/// The exit code of blkid if there is nothing on a device (blkid(8)).
const BLKID_NOTHING: i32 = 2;
/// How long a device may take to appear after its session, and its map after its paths.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(20);
/// The marks of contents in their first block: XFS, LUKS, a partition table, its GPT, LVM, ext2 to
/// ext4.
const MARKS: [(usize, &[u8]); 6] = [
    (0, b"XFSB"),
    (0, b"LUKS"),
    (510, b"\x55\xaa"),
    (512, b"EFI PART"),
    (512, b"LABELONE"),
    (1080, b"\x53\xef"),
];
/// The offset in an XFS superblock of the flag that mkfs is in progress.
const XFS_IN_PROGRESS: usize = 126;
const DEVICE_PAUSE: Duration = Duration::from_millis(250);

const INITIATOR_FILE: &str = "/etc/iscsi/initiatorname.iscsi";

/// A machine.
pub struct Linux(Box<dyn System>);

impl Default for Linux {
    /// This machine.
    fn default() -> Self {
        Self::new(Box::new(Real))
    }
}

impl Linux {
    /// Creates a machine of these parts.
    pub fn new(system: Box<dyn System>) -> Self {
        Self(system)
    }

    fn system(&self) -> &dyn System {
        &*self.0
    }

    /// Reads a text of the machine.
    fn text(&self, path: &Path) -> Result<String, Fault> {
        let text = self.0.read(path).map_err(|error| Fault::of(path, &error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the first block of a device.
    fn first_block(&self, device: &Path) -> Result<[u8; 4096], Fault> {
        let mut block = [0; 4096];
        let read = self.0.read_start(device, &mut block);
        read.map_err(|error| Fault::of(device, &error))?;
        Ok(block)
    }
}

impl Machine for Linux {
    fn initiator(&self) -> Result<String, Fault> {
        let path = Path::new(INITIATOR_FILE);
        let text = self.text(path)?;
        let name = text.lines().find_map(|line| line.trim().strip_prefix("InitiatorName="));
        name.map(|name| name.trim().to_owned())
            .ok_or_else(|| Fault::Failed(format!("{INITIATOR_FILE} names no initiator")))
    }

    fn attach(&self, volume: &PublishContext, chap: Option<&Chap>) -> Result<PathBuf, Fault> {
        let system = self.system();
        let sessions = log_in(system, volume, chap)?;
        for session in &sessions {
            if let Some(disk) = session.disk(system, volume.lun) {
                remove_stale(system, &disk, &volume.serial)?;
            }
        }
        let until = system.now() + DEVICE_TIMEOUT;
        loop {
            scan(system, &sessions, volume.lun);
            match device(system, &volume.serial) {
                // A single path, or a map of some of them, must not be used just because it appears
                // first: nothing can be added to it once it is mounted, or it would fail.
                Ok(device) if is_whole(system, volume, sessions.len()) => return Ok(device),
                Err(Fault::Wrong(text)) => return Err(Fault::Wrong(text)),
                _ if system.now() < until => system.pause(DEVICE_PAUSE),
                found => return found,
            }
        }
    }

    fn detach(&self, serial: &str) -> Result<(), Fault> {
        let system = self.system();
        let paths = paths(system, serial)?;
        if let Some(map) = map(system, serial) {
            remove_map(system, &map)?;
        }
        for path in paths {
            let node = Path::new("/dev").join(&path);
            // Its user has written everything when it was closed. A volume that is gone from the
            // array accepts no more writes, and its disk must be removed nevertheless.
            let arguments = [OsStr::new("--flushbufs"), node.as_os_str()];
            let flushed = run(system, "blockdev", &arguments, &[]);
            if let Err(fault) = flushed {
                tracing::warn!("{fault}");
            }
            remove_disk(system, &path)?;
        }
        Ok(())
    }

    fn refresh(&self, serial: &str) -> Result<PathBuf, Fault> {
        let system = self.system();
        for path in &paths(system, serial)? {
            write(system, &sys(path).join("device/rescan"))?;
        }
        if let Some(map) = map(system, serial) {
            run(system, "multipathd", &["resize", "map", &map.name], &[])?;
        }
        device(system, serial)
    }

    fn content(&self, device: &Path) -> Result<Option<String>, Fault> {
        // blkid reports a device that it can't read as if nothing were on it.
        let block = self.first_block(device)?;
        if is_half_made(&block) {
            return Ok(None);
        }
        let arguments = ["--probe", "--output", "value", "--match-tag", "TYPE"];
        let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new("--match-tag"), OsStr::new("PTTYPE"), device.as_os_str()]);
        let done = output(self.system(), "blkid", &arguments)?;
        match done.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())),
            // The device has failed since the first block was read.
            Some(BLKID_NOTHING) if is_marked(&block) => {
                let text = "has the mark of some content, but blkid could not read it";
                Err(Fault::Failed(format!("{} {text}", device.display())))
            }
            Some(BLKID_NOTHING) => Ok(None),
            _ => Err(failed("blkid", &done)),
        }
    }

    fn format(&self, device: &Path, filesystem: Filesystem) -> Result<(), Fault> {
        match filesystem {
            Filesystem::Ext4 => {
                let options = ["-F", "-m0", "-E", "nodiscard"].map(OsStr::new);
                run(
                    self.system(),
                    "mkfs.ext4",
                    &[&options[..], &[device.as_os_str()]].concat(),
                    &[],
                )
            }
            Filesystem::Xfs => {
                // It overwrites nothing that it recognises, except its own unfinished filesystem.
                let force = is_half_made(&self.first_block(device)?).then_some(OsStr::new("-f"));
                let options = [OsStr::new("-K")].into_iter().chain(force);
                run(
                    self.system(),
                    "mkfs.xfs",
                    &options.chain([device.as_os_str()]).collect::<Vec<_>>(),
                    &[],
                )
            }
        }
    }

    fn mount(
        &self,
        device: &Path,
        path: &Path,
        filesystem: Filesystem,
        options: &[String],
    ) -> Result<(), Fault> {
        let mut arguments = vec![OsStr::new("-t"), OsStr::new(filesystem.name())];
        let mut options = options.to_vec();
        if filesystem == Filesystem::Xfs {
            // A clone has the UUID of its source, which may be mounted on this node too.
            options.push("nouuid".into());
        }
        let options = options.join(",");
        if !options.is_empty() {
            arguments.extend([OsStr::new("-o"), OsStr::new(&options)]);
        }
        arguments.extend([device.as_os_str(), path.as_os_str()]);
        run(self.system(), "mount", &arguments, &[])
    }

    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Fault> {
        run(
            self.system(),
            "mount",
            &[OsStr::new("--bind"), source.as_os_str(), target.as_os_str()],
            &[],
        )?;
        if !read_only {
            return Ok(());
        }
        let options = [OsStr::new("-o"), OsStr::new("remount,bind,ro"), target.as_os_str()];
        run(self.system(), "mount", &options, &[]).inspect_err(|_| {
            // Never leave it writable.
            if let Err(fault) = self.unmount(target) {
                tracing::error!("{} is still writable: {fault}", target.display());
            }
        })
    }

    fn unmount(&self, path: &Path) -> Result<(), Fault> {
        run(self.system(), "umount", &[path.as_os_str()], &[])
    }

    fn mounts(&self) -> Result<Vec<MountPoint>, Fault> {
        let path = Path::new("/proc/self/mountinfo");
        Ok(mounts::parse(&self.text(path)?))
    }

    fn grow(&self, device: &Path, path: &Path) -> Result<(), Fault> {
        match self.content(device)?.as_deref() {
            Some("ext4") => run(self.system(), "resize2fs", &[device.as_os_str()], &[]),
            Some("xfs") => run(self.system(), "xfs_growfs", &[path.as_os_str()], &[]),
            other => Err(Fault::Wrong(format!(
                "{} contains {}, which can't be grown",
                device.display(),
                other.unwrap_or("nothing")
            ))),
        }
    }

    fn size_bytes(&self, device: &Path) -> Result<u64, Fault> {
        self.0.size_bytes(device).map_err(|error| Fault::of(device, &error))
    }

    fn lost_paths(&self, serial: &str) -> Result<Option<String>, Fault> {
        Ok(lost(&states(self.system(), serial)?))
    }

    fn usage(&self, path: &Path) -> Result<Usage, Fault> {
        super::usage(path)
    }

    fn make_directory(&self, path: &Path) -> Result<(), Fault> {
        self.0.make_directory(path).map_err(|error| Fault::of(path, &error))
    }

    fn make_file(&self, path: &Path) -> Result<(), Fault> {
        self.0.make_file(path).map_err(|error| Fault::of(path, &error))
    }

    fn remove(&self, path: &Path) -> Result<(), Fault> {
        self.0.remove(path).map_err(|error| Fault::of(path, &error))
    }
}

/// Returns whether this is the superblock of an XFS whose mkfs was killed: the flag `sb_inprogress`
/// is set, so the kernel never mounts it, and it contains no data.
fn is_half_made(block: &[u8; 4096]) -> bool {
    block.starts_with(b"XFSB") && block[XFS_IN_PROGRESS] != 0
}

/// Returns whether a first block has the mark of a filesystem or of another content.
fn is_marked(block: &[u8; 4096]) -> bool {
    MARKS.iter().any(|(at, mark)| block[*at..].starts_with(mark))
}

/// Makes all sessions scan a LUN at which they have no disk yet.
fn scan(system: &dyn System, sessions: &[Session], lun: u16) {
    for session in sessions.iter().filter(|session| session.disk(system, lun).is_none()) {
        if let Err(fault) = session.scan(system, lun) {
            tracing::warn!("{fault}");
        }
    }
}

/// Returns whether a volume is present in each session, and with several portals in a map.
fn is_whole(system: &dyn System, volume: &PublishContext, sessions: usize) -> bool {
    match map(system, &volume.serial) {
        Some(map) => map.disks >= sessions,
        None => volume.portals.len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{Read, Seek, SeekFrom};

    use super::*;

    #[test]
    fn an_xfs_with_unfinished_mkfs_is_blank() {
        let linux = Linux::default();
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        let mut block = [0; 4096];
        block[..4].copy_from_slice(b"XFSB");
        assert!(!is_half_made(&block), "its mkfs is complete");
        block[XFS_IN_PROGRESS] = 1;
        fs::write(&device, block).unwrap();
        assert_eq!(linux.content(&device).unwrap(), None);
        block[0] = b'Y';
        assert!(!is_half_made(&block), "it is something else");
    }

    /// With the machine's programs, on a file instead of a device.
    #[test]
    fn a_blank_device_is_recognized_and_a_filesystem_grows() {
        let linux = Linux::default();
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        assert!(linux.content(&device).is_err(), "an unreadable device is not blank");
        let file = File::create(&device).unwrap();
        file.set_len(16 << 20).unwrap();
        assert_eq!(linux.content(&device).unwrap(), None);
        assert!(linux.grow(&device, directory.path()).is_err());
        linux.format(&device, Filesystem::Ext4).unwrap();
        assert_eq!(linux.content(&device).unwrap().as_deref(), Some("ext4"));
        file.set_len(32 << 20).unwrap();
        assert_eq!(linux.size_bytes(&device).unwrap(), 32 << 20);
        linux.grow(&device, directory.path()).unwrap();
        // s_blocks_count_lo of the superblock, in blocks of 1 KiB.
        let mut count = [0; 4];
        let mut file = File::open(&device).unwrap();
        file.seek(SeekFrom::Start(1024 + 4)).unwrap();
        file.read_exact(&mut count).unwrap();
        assert_eq!(u32::from_le_bytes(count), 32 << 10);
    }
}
