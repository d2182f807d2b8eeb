//! A simulated machine and the array behind it, as far as the driver can see them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The array's target.
pub const TARGET: &str = "iqn.2026-01.test:array";
/// Its portals.
pub const PORTALS: [&str; 2] = ["192.0.2.1:3260", "192.0.2.2:3260"];

/// The LUN within the kernel's number of it, which has its addressing method in other bits.
pub const LUN_MASK: u16 = 0x3fff;

/// The content of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Blank,
    /// An XFS whose mkfs was killed.
    Unfinished,
    Made {
        filesystem: &'static str,
        /// Which mkfs has made it: another one would mean that data was lost.
        generation: u32,
        size_bytes: u64,
    },
}

/// A volume of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    pub size_bytes: u64,
    pub content: Content,
}

/// A disk, with the data that the kernel has read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub name: String,
    pub serial: String,
}

/// A session, with its disks by the kernel's number of their LUNs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub host: u32,
    pub disks: BTreeMap<u16, Disk>,
}

/// A multipath map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its device, `dm-` and a number.
    pub device: String,
    pub disks: BTreeSet<String>,
    pub size_bytes: u64,
}

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The name of its device.
    pub device: String,
    /// `/` of a filesystem, or the device's file of devtmpfs.
    pub root: PathBuf,
    pub path: PathBuf,
    pub read_only: bool,
}

/// The machine and the array.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The array's volumes by serial number.
    pub volumes: BTreeMap<String, Volume>,
    /// The volumes connected to this node by LUN.
    pub luns: BTreeMap<u16, String>,
    /// Whether the array does not answer now.
    pub is_array_down: bool,
    /// The lines of a record without which the array refuses a login.
    pub credentials: Vec<String>,
    pub sessions: BTreeMap<String, Session>,
    /// Maps by the serial number of their volume.
    pub maps: BTreeMap<String, Map>,
    pub mounts: Vec<Mount>,
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    pub directories: BTreeSet<PathBuf>,
    /// The time that has passed.
    pub clock: Duration,
    /// The command lines of all programs so far.
    pub commands: Vec<String>,
    /// Violations of invariants.
    pub violations: Vec<String>,
    /// The number of names that the kernel has assigned.
    pub named: u32,
}

pub fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

pub fn failed() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl World {
    /// Returns a number that was not used before.
    pub fn name(&mut self) -> u32 {
        self.named += 1;
        self.named
    }

    /// Returns the disk with this name.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        let mut disks = self.sessions.values().flat_map(|session| session.disks.values());
        disks.find(|disk| disk.name == name)
    }

    /// Returns the serial number and the map of a device in `/dev`.
    pub fn volume_at(&self, device: &Path) -> Option<(String, Option<&Map>)> {
        let name = device.strip_prefix("/dev").ok()?.to_str()?;
        if let Some((serial, map)) = self.maps.iter().find(|(_, map)| map.device == name) {
            return Some((serial.clone(), Some(map)));
        }
        self.disk(name).map(|disk| (disk.serial.clone(), None))
    }

    /// Returns whether a filesystem or a map has a device.
    pub fn is_used(&self, name: &str) -> bool {
        let is_mounted = |mount: &Mount| mount.device == name || mount.root.ends_with(name);
        self.mounts.iter().any(is_mounted) || self.maps.values().any(|map| map.disks.contains(name))
    }

    /// Makes a session scan one LUN.
    pub fn scan(&mut self, host: u32, lun: u16) {
        if self.is_array_down {
            return;
        }
        let Some(serial) = self.luns.get(&(lun & LUN_MASK)).cloned() else { return };
        let name = self.name();
        let session = self.sessions.values_mut().find(|session| session.host == host);
        let disks = &mut session.expect("a session is scanned").disks;
        disks.entry(lun).or_insert(Disk { name: format!("sd{name}"), serial });
    }

    /// Lets udev and multipathd run: every disk is added to a map.
    pub fn settle(&mut self) {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for disk in self.sessions.values().flat_map(|session| session.disks.values()) {
            found.entry(disk.serial.clone()).or_default().insert(disk.name.clone());
        }
        for (serial, disks) in found {
            let name = self.name();
            let size_bytes = self.volumes[&serial].size_bytes;
            let device = format!("dm-{name}");
            let new = Map { device, disks: BTreeSet::new(), size_bytes };
            self.maps.entry(serial).or_insert(new).disks.extend(disks);
        }
    }

    /// Removes a disk, as the kernel does it even if something has it open.
    pub fn delete_disk(&mut self, name: &str) {
        if self.is_used(name) {
            self.violations.push(format!("{name} was removed in use"));
        }
        for session in self.sessions.values_mut() {
            session.disks.retain(|_, disk| disk.name != name);
        }
    }

    /// Returns the state without names that the kernel gives, which differ from run to run.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let of = |device: &str| self.volume_at(&Path::new("/dev").join(device)).map(|at| at.0);
        for (serial, volume) in &self.volumes {
            let content = match &volume.content {
                Content::Made { filesystem, size_bytes, .. } => {
                    format!("{filesystem} {size_bytes}")
                }
                content => format!("{content:?}"),
            };
            lines.push(format!("volume {serial}: {} {content}", volume.size_bytes));
        }
        for (portal, session) in &self.sessions {
            let disks = session.disks.iter().map(|(lun, disk)| format!("{lun} {}", disk.serial));
            lines.push(format!("session {portal}: {:?}", disks.collect::<Vec<_>>()));
        }
        for (serial, map) in &self.maps {
            lines.push(format!("map {serial}: {} disks, {}", map.disks.len(), map.size_bytes));
        }
        for mount in &self.mounts {
            let device = match mount.root == Path::new("/") {
                true => mount.device.clone(),
                false => mount.root.to_string_lossy().trim_start_matches('/').to_owned(),
            };
            let (path, read_only) = (mount.path.display(), mount.read_only);
            lines.push(format!("mount {:?} {path} read-only {read_only}", of(&device)));
        }
        for (path, content) in &self.files {
            lines.push(format!("file {} {}", path.display(), String::from_utf8_lossy(content)));
        }
        lines.extend(self.directories.iter().map(|path| format!("directory {}", path.display())));
        lines
    }
}
