//! The disks and maps of a volume, found only by its serial number.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::commands::run;
use super::{Fault, vpd};

/// A multipath map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its name for multipath.
    pub name: String,
    /// Its device.
    pub device: PathBuf,
    /// The number of its disks.
    pub disks: usize,
}

/// Returns the directory of a disk in sysfs.
pub fn sys(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk)
}

/// Writes 1 to a kernel file.
pub fn write(path: &Path) -> Result<(), Fault> {
    fs::write(path, "1").map_err(|error| Fault::of(path, &error))
}

/// Returns the names of all SCSI disks, sorted.
fn scsi_disks() -> Result<Vec<String>, Fault> {
    let block = Path::new("/sys/block");
    let of = |error| Fault::of(block, &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(block).map_err(of)? {
        let name = entry.map_err(of)?.file_name().into_string().ok();
        found.extend(name.filter(|name| name.starts_with("sd")));
    }
    found.sort();
    Ok(found)
}

/// Returns the names of the SCSI disks with a serial number. Reads each disk's VPD pages again,
/// because the LUN may have another volume since the kernel has read them.
pub fn paths(serial: &str) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    for name in scsi_disks()? {
        if reads(&name, serial) && write(&sys(&name).join("device/rescan")).is_ok() {
            if !reads(&name, serial) {
                return Err(Fault::Wrong(format!("{name} is another volume than it was")));
            }
            found.push(name);
        }
    }
    Ok(found)
}

/// Returns the disks of a volume by the pages that the kernel has read, each with its state. Sends
/// no command to a disk, because it may not respond.
pub fn states(serial: &str) -> Result<Vec<(String, String)>, Fault> {
    let disks = scsi_disks()?.into_iter().filter(|name| reads(name, serial));
    let of_disk = |name: String| {
        let state = fs::read_to_string(sys(&name).join("device/state")).unwrap_or_default();
        (name, state.trim().to_owned())
    };
    Ok(disks.map(of_disk).collect())
}

/// Returns which of these disks do not work.
pub fn lost(disks: &[(String, String)]) -> Option<String> {
    if disks.is_empty() {
        return Some("no path to the volume is left".into());
    }
    let lost = disks.iter().filter(|(_, state)| state != "running");
    let lost: Vec<_> = lost.map(|(name, state)| format!("{name} is {state}")).collect();
    let text = format!("{} of {} paths do not work: ", lost.len(), disks.len());
    (!lost.is_empty()).then(|| text + &lost.join(", "))
}

/// Returns whether both pages of a disk, as read by the kernel, contain this serial number.
pub fn reads(disk: &str, serial: &str) -> bool {
    let page = |name: &str| {
        let mut page = Vec::new();
        let file = File::open(sys(disk).join("device").join(name));
        file.and_then(|mut file| file.read_to_end(&mut page)).ok().map(|_| page)
    };
    let designated = page("vpd_pg83").and_then(|page| vpd::serial_of_designators(&page));
    let unit = page("vpd_pg80").and_then(|page| vpd::unit_serial(&page));
    designated.as_deref() == Some(serial) && unit.as_deref() == Some(serial)
}

/// Returns the multipath map of a volume, even if all its disks are gone.
pub fn map(serial: &str) -> Option<Map> {
    map_in(Path::new("/sys/block"), |uuid| is_map_of(uuid, serial))
}

/// Returns the multipath map that contains a disk, of whatever volume.
fn map_of_disk(disk: &str) -> Option<Map> {
    map_in(&sys(disk).join("holders"), |uuid| uuid.starts_with("mpath-"))
}

/// Returns the first map in a directory of block devices whose UUID is wanted.
fn map_in(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Option<Map> {
    let devices = fs::read_dir(directory).ok()?;
    for device in devices.flatten().filter_map(|device| device.file_name().into_string().ok()) {
        let sys = directory.join(&device);
        let read = |file: &str| fs::read_to_string(sys.join("dm").join(file)).ok();
        if read("uuid").is_some_and(|uuid| is_wanted(uuid.trim())) {
            let name = read("name")?.trim().to_owned();
            let disks = fs::read_dir(sys.join("slaves")).map_or(0, Iterator::count);
            return Some(Map { name, device: Path::new("/dev").join(device), disks });
        }
    }
    None
}

/// Returns whether a map's UUID is that of a volume: `mpath-`, `3` for NAA, and the designator,
/// which ends in the serial number.
fn is_map_of(uuid: &str, serial: &str) -> bool {
    let identity = uuid.strip_prefix("mpath-3");
    identity.is_some_and(|naa| naa.len() == 32 && naa.to_ascii_uppercase().ends_with(serial))
}

/// Returns the device to use: the map of several paths, or the single path.
pub fn device(serial: &str) -> Result<PathBuf, Fault> {
    let paths = paths(serial)?;
    match (map(serial), &paths[..]) {
        (_, []) => Err(Fault::Failed(format!("no device has the serial number {serial}"))),
        (Some(map), _) => Ok(map.device),
        (None, [path]) => Ok(Path::new("/dev").join(path)),
        (None, _) => Err(Fault::Failed(format!(
            "{} are paths to one volume, and no multipath map has them: run multipathd",
            paths.join(", ")
        ))),
    }
}

/// Removes a map that is not open.
pub fn remove_map(map: &Map) -> Result<(), Fault> {
    // Nobody is left who could wait for a path, and a map with queued I/O can't be removed.
    if let Err(fault) = run("multipathd", &["disablequeueing", "map", &map.name], &[]) {
        tracing::warn!("{fault}");
    }
    let Err(fault) = run("multipath", &["-f", &map.name], &[]) else { return Ok(()) };
    // A map unknown to multipathd, such as one without any disk.
    match run("dmsetup", &["remove", &map.name], &[]) {
        Ok(()) => Ok(()),
        Err(_) if !sys_of(map).exists() => Ok(()),
        Err(_) => Err(fault),
    }
}

fn sys_of(map: &Map) -> PathBuf {
    Path::new("/sys/block").join(map.device.file_name().unwrap_or_default())
}

/// Removes a disk that is not open.
pub fn remove_disk(disk: &str) -> Result<(), Fault> {
    check_unused(&Path::new("/dev").join(disk))?;
    write(&sys(disk).join("device/delete"))
}

/// Removes a disk at a volume's LUN that belongs to another volume: an earlier attempt has left it,
/// and the LUN has been reassigned since.
///
/// # Errors
/// `Fault::Wrong` if it is open.
pub fn remove_stale(disk: &str, serial: &str) -> Result<(), Fault> {
    let map = map_of_disk(disk);
    let is_ours = map.as_ref().is_none_or(|held| is_map_of_serial(held, serial));
    if reads(disk, serial) && is_ours {
        return Ok(());
    }
    let wrong = |fault: Fault| {
        Fault::Wrong(format!("{disk} at the volume's LUN is another volume, in use: {fault}"))
    };
    if let Some(map) = map.filter(|_| !is_ours) {
        remove_map(&map).map_err(wrong)?;
    }
    remove_disk(disk).map_err(wrong)
}

fn is_map_of_serial(held: &Map, serial: &str) -> bool {
    map(serial).is_some_and(|own| own.device == held.device)
}

/// Checks that no filesystem, map or program uses a disk exclusively: the kernel would remove it
/// anyway.
fn check_unused(node: &Path) -> Result<(), Fault> {
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let opened = fs::OpenOptions::new().read(true).custom_flags(exclusive).open(node);
    match opened {
        // The volume is gone from the array: nobody can open its node.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(())
        }
        opened => opened.map(drop).map_err(|error| Fault::of(node, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIAL: &str = "0123456789ABCDEF0000002A";

    #[test]
    fn a_map_is_found_by_its_uuid_also_without_a_disk() {
        let block = tempfile::tempdir().unwrap();
        for (device, uuid) in [
            ("dm-0", "LVM-624a93700123456789abcdef0000002a"),
            ("dm-1", "mpath-3624a93700123456789abcdef0000002b"),
            ("dm-2", "mpath-3624a93700123456789abcdef0000002a\n"),
        ] {
            let dm = block.path().join(device).join("dm");
            fs::create_dir_all(&dm).unwrap();
            fs::create_dir_all(block.path().join(device).join("slaves")).unwrap();
            fs::write(dm.join("uuid"), uuid).unwrap();
            fs::write(dm.join("name"), format!("name-of-{device}\n")).unwrap();
        }
        let found = |serial| map_in(block.path(), |uuid| is_map_of(uuid, serial));
        let map = found(SERIAL).unwrap();
        assert_eq!((map.name.as_str(), map.disks), ("name-of-dm-2", 0));
        assert_eq!(map.device, Path::new("/dev/dm-2"));
        assert_eq!(found("0123456789ABCDEF0000002C"), None);
    }

    #[test]
    fn paths_that_do_not_run_are_told() {
        let disk = |name: &str, state: &str| (name.to_owned(), state.to_owned());
        let (good, bad) = (disk("sda", "running"), disk("sdb", "transport-offline"));
        assert_eq!(lost(std::slice::from_ref(&good)), None);
        assert_eq!(
            lost(&[good, bad]).as_deref(),
            Some("1 of 2 paths do not work: sdb is transport-offline")
        );
        assert!(lost(&[]).is_some());
    }

    #[test]
    fn a_uuid_that_only_ends_alike_is_another_volume() {
        assert!(is_map_of("mpath-3624a93700123456789abcdef0000002a", SERIAL));
        for other in ["mpath-0123456789abcdef0000002a", "mpath-3000123456789abcdef0000002a", ""] {
            assert!(!is_map_of(other, SERIAL), "{other}");
        }
    }
}
