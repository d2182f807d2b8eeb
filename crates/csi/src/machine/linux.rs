//! The machine itself: Linux, with open-iscsi, and multipath where there are several paths.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::commands::{failed, output, run};
use super::{Fault, Machine, MountPoint, Usage, mounts, vpd};
use crate::capability::Filesystem;
use crate::context::PublishContext;

/// The code with which iscsiadm ends if the session is there already (iscsiadm(8)).
const ISCSI_SESSION_EXISTS: i32 = 15;
/// The code with which blkid ends if there is nothing on a device (blkid(8)).
const BLKID_NOTHING: i32 = 2;
/// How long a device may take to be there after its session, and its map after its paths.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(20);
const DEVICE_PAUSE: Duration = Duration::from_millis(250);

const INITIATOR_FILE: &str = "/etc/iscsi/initiatorname.iscsi";

/// This machine.
pub struct Linux;

impl Machine for Linux {
    fn initiator(&self) -> Result<String, Fault> {
        let path = Path::new(INITIATOR_FILE);
        let text = fs::read_to_string(path).map_err(|error| Fault::of(path, &error))?;
        let name = text.lines().find_map(|line| line.trim().strip_prefix("InitiatorName="));
        name.map(|name| name.trim().to_owned())
            .ok_or_else(|| Fault::Failed(format!("{INITIATOR_FILE} names no initiator")))
    }

    fn attach(&self, volume: &PublishContext) -> Result<PathBuf, Fault> {
        let mut refused = None;
        let mut sessions = 0;
        for portal in &volume.portals {
            match log_in(&volume.target, portal) {
                Ok(()) => sessions += 1,
                Err(fault) => refused = Some(fault),
            }
        }
        // One path is enough to go on.
        if let (0, Some(fault)) = (sessions, refused) {
            return Err(fault);
        }
        let until = Instant::now() + DEVICE_TIMEOUT;
        loop {
            match device(&volume.serial) {
                Err(_) if Instant::now() < until => sleep(DEVICE_PAUSE),
                found => return found,
            }
        }
    }

    fn detach(&self, serial: &str) -> Result<(), Fault> {
        let paths = paths(serial)?;
        if let Some(map) = map(&paths) {
            run("multipath", &["-f", &map.name], &[])?;
        }
        for path in paths {
            let node = Path::new("/dev").join(&path);
            check_unused(&node)?;
            run("blockdev", &[OsStr::new("--flushbufs"), node.as_os_str()], &[])?;
            write(&sys(&path).join("device/delete"))?;
        }
        Ok(())
    }

    fn refresh(&self, serial: &str) -> Result<PathBuf, Fault> {
        let paths = paths(serial)?;
        for path in &paths {
            write(&sys(path).join("device/rescan"))?;
        }
        if let Some(map) = map(&paths) {
            run("multipathd", &["resize", "map", &map.name], &[])?;
        }
        device(serial)
    }

    fn content(&self, device: &Path) -> Result<Option<String>, Fault> {
        // blkid says nothing of a device that it can't read, as if nothing were on it.
        let mut block = [0; 4096];
        let read = File::open(device).and_then(|mut file| file.read_exact(&mut block));
        read.map_err(|error| Fault::of(device, &error))?;
        let arguments = ["--probe", "--output", "value", "--match-tag", "TYPE"];
        let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        arguments.extend([OsStr::new("--match-tag"), OsStr::new("PTTYPE"), device.as_os_str()]);
        let done = output("blkid", &arguments)?;
        match done.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())),
            Some(BLKID_NOTHING) => Ok(None),
            _ => Err(failed("blkid", &done)),
        }
    }

    fn format(&self, device: &Path, filesystem: Filesystem) -> Result<(), Fault> {
        match filesystem {
            Filesystem::Ext4 => {
                let options = ["-F", "-m0", "-E", "nodiscard"].map(OsStr::new);
                run("mkfs.ext4", &[&options[..], &[device.as_os_str()]].concat(), &[])
            }
            Filesystem::Xfs => run("mkfs.xfs", &[OsStr::new("-K"), device.as_os_str()], &[]),
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
            // A clone has the UUID of its source, which may be mounted on this node, too.
            options.push("nouuid".into());
        }
        let options = options.join(",");
        if !options.is_empty() {
            arguments.extend([OsStr::new("-o"), OsStr::new(&options)]);
        }
        arguments.extend([device.as_os_str(), path.as_os_str()]);
        run("mount", &arguments, &[])
    }

    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Fault> {
        run("mount", &[OsStr::new("--bind"), source.as_os_str(), target.as_os_str()], &[])?;
        if !read_only {
            return Ok(());
        }
        let options = [OsStr::new("-o"), OsStr::new("remount,bind,ro"), target.as_os_str()];
        run("mount", &options, &[]).inspect_err(|_| {
            // Never leave it writable.
            if let Err(fault) = self.unmount(target) {
                tracing::error!("{} stays writable: {fault}", target.display());
            }
        })
    }

    fn unmount(&self, path: &Path) -> Result<(), Fault> {
        run("umount", &[path.as_os_str()], &[])
    }

    fn mounts(&self) -> Result<Vec<MountPoint>, Fault> {
        let path = Path::new("/proc/self/mountinfo");
        let text = fs::read_to_string(path).map_err(|error| Fault::of(path, &error))?;
        Ok(mounts::parse(&text))
    }

    fn grow(&self, device: &Path, path: &Path) -> Result<(), Fault> {
        match self.content(device)?.as_deref() {
            Some("ext4") => run("resize2fs", &[device.as_os_str()], &[]),
            Some("xfs") => run("xfs_growfs", &[path.as_os_str()], &[]),
            other => Err(Fault::Wrong(format!(
                "{} holds {}, which can't be grown",
                device.display(),
                other.unwrap_or("nothing")
            ))),
        }
    }

    fn size_bytes(&self, device: &Path) -> Result<u64, Fault> {
        let size = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
        size.map_err(|error| Fault::of(device, &error))
    }

    fn usage(&self, path: &Path) -> Result<Usage, Fault> {
        super::usage(path)
    }
}

/// Checks that no filesystem, map or program has a disk for itself: the kernel takes it away from
/// whoever has.
fn check_unused(node: &Path) -> Result<(), Fault> {
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let opened = fs::OpenOptions::new().read(true).custom_flags(exclusive).open(node);
    opened.map(drop).map_err(|error| Fault::of(node, &error))
}

/// Logs in at a portal, and has its LUNs looked for.
fn log_in(target: &str, portal: &str) -> Result<(), Fault> {
    let node = ["--mode", "node", "--targetname", target, "--portal", portal];
    let with = |more: &[&'static str]| [&node[..], more].concat();
    // The record of a node that is logged in is not to be written anew.
    let show = output("iscsiadm", &node)?;
    if !show.status.success() {
        run("iscsiadm", &with(&["--op", "new"]), &[])?;
    }
    run("iscsiadm", &with(&["--login"]), &[ISCSI_SESSION_EXISTS])?;
    run("iscsiadm", &with(&["--rescan"]), &[])
}

fn sys(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk)
}

/// Writes 1 to a file of the kernel.
fn write(path: &Path) -> Result<(), Fault> {
    fs::write(path, "1").map_err(|error| Fault::of(path, &error))
}

/// The names of the SCSI disks with a serial number. A disk is asked for its pages anew, as
/// another volume may be there since the kernel has read them.
fn paths(serial: &str) -> Result<Vec<String>, Fault> {
    let block = Path::new("/sys/block");
    let names = fs::read_dir(block).map_err(|error| Fault::of(block, &error))?;
    let mut found = Vec::new();
    for name in names {
        let name = name.map_err(|error| Fault::of(block, &error))?.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with("sd")) else { continue };
        if reads(name, serial) && write(&sys(name).join("device/rescan")).is_ok() {
            if !reads(name, serial) {
                return Err(Fault::Wrong(format!("{name} is another volume than it was")));
            }
            found.push(name.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Whether both pages of a disk say this serial number.
fn reads(disk: &str, serial: &str) -> bool {
    let page = |name: &str| {
        let mut page = Vec::new();
        let file = File::open(sys(disk).join("device").join(name));
        file.and_then(|mut file| file.read_to_end(&mut page)).ok().map(|_| page)
    };
    let designated = page("vpd_pg83").and_then(|page| vpd::serial_of_designators(&page));
    let unit = page("vpd_pg80").and_then(|page| vpd::unit_serial(&page));
    designated.as_deref() == Some(serial) && unit.as_deref() == Some(serial)
}

/// A multipath map.
struct Map {
    /// Its name, by which multipath knows it.
    name: String,
    device: PathBuf,
}

/// The multipath map of these disks, if they have one.
fn map(disks: &[String]) -> Option<Map> {
    let holders = fs::read_dir(sys(disks.first()?).join("holders")).ok()?;
    for holder in holders.flatten().filter_map(|holder| holder.file_name().into_string().ok()) {
        let read = |file: &str| fs::read_to_string(sys(&holder).join("dm").join(file)).ok();
        if read("uuid").is_some_and(|uuid| uuid.starts_with("mpath-")) {
            let name = read("name")?.trim().to_owned();
            return Some(Map { name, device: Path::new("/dev").join(holder) });
        }
    }
    None
}

/// The device to use: the map of several paths, or the one path.
fn device(serial: &str) -> Result<PathBuf, Fault> {
    let paths = paths(serial)?;
    match (map(&paths), &paths[..]) {
        (Some(map), _) => Ok(map.device),
        (None, [path]) => Ok(Path::new("/dev").join(path)),
        (None, []) => Err(Fault::Failed(format!("no device has the serial number {serial}"))),
        (None, _) => Err(Fault::Failed(format!(
            "{} are paths to one volume, and no multipath map has them: run multipathd",
            paths.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the programs of the machine, on a file in place of a device.
    #[test]
    fn a_blank_device_is_told_from_others_and_a_filesystem_grows() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        assert!(Linux.content(&device).is_err(), "what can't be read is not blank");
        let file = File::create(&device).unwrap();
        file.set_len(16 << 20).unwrap();
        assert_eq!(Linux.content(&device).unwrap(), None);
        assert!(Linux.grow(&device, directory.path()).is_err());
        Linux.format(&device, Filesystem::Ext4).unwrap();
        assert_eq!(Linux.content(&device).unwrap().as_deref(), Some("ext4"));
        file.set_len(32 << 20).unwrap();
        assert_eq!(Linux.size_bytes(&device).unwrap(), 32 << 20);
        Linux.grow(&device, directory.path()).unwrap();
        // s_blocks_count_lo of the superblock, of blocks of 1 KiB.
        let mut count = [0; 4];
        let mut file = File::open(&device).unwrap();
        file.seek(SeekFrom::Start(1024 + 4)).unwrap();
        file.read_exact(&mut count).unwrap();
        assert_eq!(u32::from_le_bytes(count), 32 << 10);
    }
}
