//! The files of the simulated kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::world::{Content, LUN_MASK, Mount, TARGET, World, failed, not_found};

/// The start of the designator that precedes a volume's serial number.
const NAA: [u8; 4] = [0x62, 0x4a, 0x93, 0x70];

impl World {
    /// Returns all files, with their contents.
    fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut tree = self.files.clone();
        let mut add = |path: String, text: &str| tree.insert(path.into(), text.into());
        add("/sys/block/none".into(), "");
        add("/etc/iscsi/initiatorname.iscsi".into(), "InitiatorName=iqn.2026-01.test:node\n");
        let state = if self.is_array_down { "FAILED\n" } else { "LOGGED_IN\n" };
        for (portal, session) in &self.sessions {
            let host = session.host;
            let (address, port) = portal.rsplit_once(':').unwrap();
            let class = format!("/sys/class/iscsi_session/session{host}");
            add(format!("{class}/targetname"), TARGET);
            add(format!("{class}/state"), state);
            let connection = format!("/sys/class/iscsi_connection/connection{host}:0");
            add(format!("{connection}/persistent_address"), address);
            add(format!("{connection}/persistent_port"), port);
            for (lun, disk) in &session.disks {
                let unit = format!("target{host}:0:0/{host}:0:0:{lun}/block/{}/size", disk.name);
                add(format!("/sys/devices/host{host}/session{host}/{unit}"), "0");
                add(format!("/sys/block/{}/device/state", disk.name), "running\n");
            }
        }
        for (serial, map) in &self.maps {
            let uuid = format!("mpath-3624a9370{}\n", serial.to_ascii_lowercase());
            let mut places = vec![format!("/sys/block/{}", map.device)];
            for disk in &map.disks {
                add(format!("{}/slaves/{disk}/size", places[0]), "0");
                places.push(format!("/sys/block/{disk}/holders/{}", map.device));
            }
            for place in places {
                add(format!("{place}/dm/uuid"), &uuid);
                add(format!("{place}/dm/name"), &format!("map-{}\n", map.device));
            }
        }
        add("/proc/self/mountinfo".into(), &self.mountinfo());
        for session in self.sessions.values() {
            for disk in session.disks.values() {
                for (page, content) in pages(&disk.serial) {
                    tree.insert(format!("/sys/block/{}/device/{page}", disk.name).into(), content);
                }
            }
        }
        tree
    }

    fn mountinfo(&self) -> String {
        let line = |mount: &Mount| {
            let options = if mount.read_only { "ro" } else { "rw" };
            let (root, path) = (mount.root.display(), mount.path.display());
            format!("1 1 {} {root} {path} {options} - fs x rw\n", number(&mount.device))
        };
        self.mounts.iter().map(line).collect()
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.tree().remove(path).ok_or_else(not_found)
    }

    pub fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let tree = self.tree();
        let below = |path: &PathBuf| {
            let name = path.strip_prefix(directory).ok()?.components().next()?;
            Some(name.as_os_str().to_str().unwrap().to_owned())
        };
        let names: BTreeSet<_> = tree.keys().chain(&self.directories).filter_map(below).collect();
        match names.is_empty() && !self.directories.contains(directory) {
            true => Err(not_found()),
            false => Ok(names.into_iter().collect()),
        }
    }

    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let session = path.to_str().and_then(|text| text.strip_suffix("/device"));
        let number = session.and_then(|text| text.strip_prefix("/sys/class/iscsi_session/session"));
        let number = number.ok_or_else(not_found)?;
        Ok(format!("/sys/devices/host{number}/session{number}").into())
    }

    /// Handles a write to a file of the kernel.
    pub fn set(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        let parts: Vec<&str> = parts.iter().skip(1).map(String::as_str).collect();
        match parts[..] {
            ["sys", "class", "scsi_host", host, "scan"] => {
                let lun = text.strip_prefix("0 0 ").unwrap().parse().unwrap();
                self.scan(host.strip_prefix("host").unwrap().parse().unwrap(), lun);
                Ok(())
            }
            ["sys", "block", disk, "device", "delete"] => {
                self.delete_disk(disk);
                Ok(())
            }
            ["sys", "block", disk, "device", "rescan"] => {
                self.rescan(disk);
                Ok(())
            }
            _ => panic!("the kernel has no {}", path.display()),
        }
    }

    /// Makes the kernel read a disk's identity again. It keeps the old one if the disk does not
    /// answer.
    fn rescan(&mut self, name: &str) {
        let luns = self.luns.clone();
        let disks = self.sessions.values_mut().flat_map(|session| &mut session.disks);
        for (lun, disk) in disks.filter(|(_, disk)| disk.name == name) {
            if let Some(serial) = luns.get(&(lun & LUN_MASK)).filter(|_| !self.is_array_down) {
                disk.serial.clone_from(serial);
            }
        }
    }

    /// Fails as opening a device exclusively does.
    pub fn claim(&self, device: &Path) -> io::Result<()> {
        let name = device.file_name().unwrap().to_str().unwrap();
        match self.is_used(name) {
            true => Err(io::ErrorKind::ResourceBusy.into()),
            false => self.volume_at(device).map(drop).ok_or_else(not_found),
        }
    }

    pub fn read_start(&self, device: &Path, block: &mut [u8]) -> io::Result<()> {
        let (serial, _) = self.volume_at(device).ok_or_else(not_found)?;
        if self.is_array_down {
            return Err(failed());
        }
        block.fill(0);
        match self.volumes[&serial].content {
            Content::Blank => {}
            Content::Made { filesystem: "ext4", .. } => {
                block[1080..1082].copy_from_slice(b"\x53\xef")
            }
            Content::Made { .. } => block[..4].copy_from_slice(b"XFSB"),
            Content::Unfinished => {
                block[..4].copy_from_slice(b"XFSB");
                block[126] = 1;
            }
        }
        Ok(())
    }

    pub fn size_bytes(&self, device: &Path) -> io::Result<u64> {
        let (serial, map) = self.volume_at(device).ok_or_else(not_found)?;
        Ok(map.map_or(self.volumes[&serial].size_bytes, |map| map.size_bytes))
    }
}

/// Returns the number of a device, which is unique.
fn number(device: &str) -> String {
    let digits: String = device.chars().filter(char::is_ascii_digit).collect();
    let major = if device.starts_with("dm-") { 253 } else { 8 };
    if device == "devtmpfs" { "0:5".into() } else { format!("{major}:{digits}") }
}

/// Returns the pages of vital product data that identify a disk.
fn pages(serial: &str) -> [(&'static str, Vec<u8>); 2] {
    let byte = |at: usize| u8::from_str_radix(&serial[at..at + 2], 16).unwrap();
    let mut designator = vec![0, 0x83, 0, 20, 1, 3, 0, 16];
    designator.extend(NAA);
    designator.extend((0..24).step_by(2).map(byte));
    let mut unit = vec![0, 0x80, 0, 24];
    unit.extend(serial.as_bytes());
    [("vpd_pg83", designator), ("vpd_pg80", unit)]
}
