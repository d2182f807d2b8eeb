//! The disks and maps of a volume, found only by its serial number.

use std::path::{Path, PathBuf};

use super::commands::run;
use super::{Fault, System, vpd};

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
pub fn write(system: &dyn System, path: &Path) -> Result<(), Fault> {
    system.set(path, "1").map_err(|error| Fault::of(path, &error))
}

/// Reads a short text of the kernel; `None` if it can't be read.
pub fn text(system: &dyn System, path: &Path) -> Option<String> {
    let text = String::from_utf8(system.read(path).ok()?).ok()?;
    Some(text.trim().to_owned())
}

/// Returns the names of all SCSI disks, sorted.
fn scsi_disks(system: &dyn System) -> Result<Vec<String>, Fault> {
    let block = Path::new("/sys/block");
    let mut names = system.names(block).map_err(|error| Fault::of(block, &error))?;
    names.retain(|name| name.starts_with("sd"));
    Ok(names)
}

/// Returns the names of the SCSI disks with a serial number. Reads each disk's VPD pages again,
/// because the LUN may have another volume since the kernel has read them.
pub fn paths(system: &dyn System, serial: &str) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    for name in scsi_disks(system)? {
        let rescan = sys(&name).join("device/rescan");
        if reads(system, &name, serial) && write(system, &rescan).is_ok() {
            if !reads(system, &name, serial) {
                return Err(Fault::Wrong(format!("{name} is a different volume than before")));
            }
            found.push(name);
        }
    }
    Ok(found)
}

/// Returns the disks of a volume by the pages that the kernel has read, each with its state. Sends
/// no command to a disk, because it may not respond.
pub fn states(system: &dyn System, serial: &str) -> Result<Vec<(String, String)>, Fault> {
    let disks = scsi_disks(system)?.into_iter().filter(|name| reads(system, name, serial));
    let of_disk = |name: String| {
        let state = text(system, &sys(&name).join("device/state")).unwrap_or_default();
        (name, state)
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
pub fn reads(system: &dyn System, disk: &str, serial: &str) -> bool {
    let page = |name: &str| system.read(&sys(disk).join("device").join(name)).ok();
    let designated = page("vpd_pg83").and_then(|page| vpd::serial_of_designators(&page));
    let unit = page("vpd_pg80").and_then(|page| vpd::unit_serial(&page));
    designated.as_deref() == Some(serial) && unit.as_deref() == Some(serial)
}

/// Returns the multipath map of a volume, even if all its disks are gone.
pub fn map(system: &dyn System, serial: &str) -> Option<Map> {
    map_in(system, Path::new("/sys/block"), |uuid| is_map_of(uuid, serial))
}

/// Returns the multipath map that contains a disk, of whatever volume.
fn map_of_disk(system: &dyn System, disk: &str) -> Option<Map> {
    map_in(system, &sys(disk).join("holders"), |uuid| uuid.starts_with("mpath-"))
}

/// Returns the first map in a directory of block devices whose UUID is wanted.
fn map_in(system: &dyn System, directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Option<Map> {
    for device in system.names(directory).ok()? {
        let sys = directory.join(&device);
        let read = |file: &str| text(system, &sys.join("dm").join(file));
        if read("uuid").is_some_and(|uuid| is_wanted(&uuid)) {
            let name = read("name")?;
            let disks = system.names(&sys.join("slaves")).map_or(0, |names| names.len());
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
pub fn device(system: &dyn System, serial: &str) -> Result<PathBuf, Fault> {
    let paths = paths(system, serial)?;
    match (map(system, serial), &paths[..]) {
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
pub fn remove_map(system: &dyn System, map: &Map) -> Result<(), Fault> {
    // No one waits for a path any more, and a map with queued I/O can't be removed.
    if let Err(fault) = run(system, "multipathd", &["disablequeueing", "map", &map.name], &[]) {
        tracing::warn!("{fault}");
    }
    let Err(fault) = run(system, "multipath", &["-f", &map.name], &[]) else { return Ok(()) };
    // A map unknown to multipathd, such as one without any disk.
    match run(system, "dmsetup", &["remove", &map.name], &[]) {
        Ok(()) => Ok(()),
        Err(_) if !is_there(system, map) => Ok(()),
        Err(_) => Err(fault),
    }
}

fn is_there(system: &dyn System, map: &Map) -> bool {
    let sys = Path::new("/sys/block").join(map.device.file_name().unwrap_or_default());
    system.names(&sys).is_ok()
}

/// Removes a disk that is not open.
pub fn remove_disk(system: &dyn System, disk: &str) -> Result<(), Fault> {
    check_unused(system, &Path::new("/dev").join(disk))?;
    write(system, &sys(disk).join("device/delete"))
}

/// Removes a disk at a volume's LUN that belongs to another volume: an earlier attempt has left it,
/// and the LUN has been reassigned since.
///
/// # Errors
/// `Fault::Wrong` if it is open.
pub fn remove_stale(system: &dyn System, disk: &str, serial: &str) -> Result<(), Fault> {
    let map = map_of_disk(system, disk);
    let own = self::map(system, serial);
    let is_own = |held: &Map| own.as_ref().is_some_and(|own| own.device == held.device);
    let is_ours = map.as_ref().is_none_or(is_own);
    if reads(system, disk, serial) && is_ours {
        return Ok(());
    }
    let wrong = |fault: Fault| {
        Fault::Wrong(format!("{disk} at the volume's LUN is another volume, in use: {fault}"))
    };
    if let Some(map) = map.filter(|_| !is_ours) {
        remove_map(system, &map).map_err(wrong)?;
    }
    remove_disk(system, disk).map_err(wrong)
}

/// Checks that no filesystem, map or program uses a disk exclusively: the kernel would remove it
/// anyway.
fn check_unused(system: &dyn System, node: &Path) -> Result<(), Fault> {
    match system.claim(node) {
        // The volume is gone from the array: nobody can open its node.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(())
        }
        claimed => claimed.map_err(|error| Fault::of(node, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Real;
    use super::*;

    const SERIAL: &str = "0123456789ABCDEF0000002A";

    #[test]
    fn a_map_is_found_by_its_uuid_even_without_a_disk() {
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
        let found = |serial| map_in(&Real, block.path(), |uuid| is_map_of(uuid, serial));
        let map = found(SERIAL).unwrap();
        assert_eq!((map.name.as_str(), map.disks), ("name-of-dm-2", 0));
        assert_eq!(map.device, Path::new("/dev/dm-2"));
        assert_eq!(found("0123456789ABCDEF0000002C"), None);
    }

    #[test]
    fn paths_that_do_not_work_are_reported() {
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
    fn a_uuid_with_only_the_same_end_is_another_volume() {
        assert!(is_map_of("mpath-3624a93700123456789abcdef0000002a", SERIAL));
        for other in ["mpath-0123456789abcdef0000002a", "mpath-3000123456789abcdef0000002a", ""] {
            assert!(!is_map_of(other, SERIAL), "{other}");
        }
    }
}
