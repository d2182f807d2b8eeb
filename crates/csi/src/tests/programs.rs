//! The programs of the simulated machine.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};

use super::world::{Content, Mount, Session, World};

/// How a program ends: its exit code, and its output.
type Ending = Result<String, i32>;

impl World {
    /// Runs a program.
    pub fn run(&mut self, program: &str, arguments: &[&str]) -> Output {
        self.commands.push(format!("{program} {}", arguments.join(" ")));
        let ending = match (program, arguments) {
            ("iscsiadm", ["--mode", "node", "--targetname", _, "--portal", portal, rest @ ..]) => {
                self.iscsiadm(portal, rest)
            }
            ("blkid", [.., device]) => self.blkid(Path::new(device)),
            ("mkfs.ext4", [.., device]) => self.mkfs("ext4", Path::new(device)),
            ("mkfs.xfs", [.., device]) => self.mkfs("xfs", Path::new(device)),
            ("mount", ["--bind", source, target]) => self.bind(Path::new(source), target),
            ("mount", ["-o", "remount,bind,ro", target]) => self.remount(Path::new(target)),
            ("mount", ["-t", kind, .., device, target]) => self.mount(kind, device, target),
            ("umount", [path]) => self.umount(Path::new(path)),
            ("resize2fs", [device]) => self.grow(Path::new(device)),
            ("xfs_growfs", [path]) => {
                let mount = self.mounts.iter().find(|mount| mount.path == Path::new(path));
                let device = Path::new("/dev").join(&mount.expect("it is mounted").device);
                self.grow(&device)
            }
            ("multipathd", ["resize", "map", name]) => self.resize_map(name),
            ("multipathd", ["disablequeueing", "map", _]) => Ok(String::new()),
            ("multipath", ["-f", name]) | ("dmsetup", ["remove", name]) => self.remove_map(name),
            ("blockdev", ["--flushbufs", _]) if self.is_array_down => Err(1),
            ("blockdev", ["--flushbufs", _]) => Ok(String::new()),
            _ => panic!("{program} does not take {arguments:?}"),
        };
        let (code, text) = match ending {
            Ok(text) => (0, text),
            Err(code) => (code, String::new()),
        };
        let stderr = if code == 0 { Vec::new() } else { format!("{program}: {code}").into_bytes() };
        Output { status: ExitStatus::from_raw(code << 8), stdout: text.into_bytes(), stderr }
    }

    fn iscsiadm(&mut self, portal: &str, rest: &[&str]) -> Ending {
        let (address, port) = portal.rsplit_once(':').unwrap();
        let nodes = Path::new("/etc/iscsi/nodes").join(super::world::TARGET);
        let record = nodes.join(format!("{address},{port}"));
        match rest {
            ["--op", "new"] => {
                let text = "# BEGIN RECORD 2.1.11\nnode.session.scan = auto\n# END RECORD\n";
                self.files.insert(record, text.into());
                Ok(String::new())
            }
            ["--login"] => {
                let record = self.files.get(&record).ok_or(21)?;
                let record = String::from_utf8(record.clone()).unwrap();
                assert!(record.contains("node.session.scan = manual"), "{record}");
                if self.sessions.contains_key(portal) {
                    return Err(15);
                }
                if self.is_array_down {
                    return Err(8);
                }
                let has = |line: &String| record.lines().any(|found| found == line);
                if !self.credentials.iter().all(has) {
                    return Err(24);
                }
                let session = Session { host: self.name(), disks: Default::default() };
                self.sessions.insert(portal.to_owned(), session);
                Ok(String::new())
            }
            _ => panic!("iscsiadm does not take {rest:?}"),
        }
    }

    /// Like the real one, reports a device that it can't read as blank.
    fn blkid(&self, device: &Path) -> Ending {
        let serial = self.volume_at(device).ok_or(2)?.0;
        match &self.volumes[&serial].content {
            Content::Made { filesystem, .. } if !self.is_array_down => Ok((*filesystem).into()),
            Content::Unfinished if !self.is_array_down => Ok("xfs".into()),
            _ => Err(2),
        }
    }

    fn mkfs(&mut self, filesystem: &'static str, device: &Path) -> Ending {
        if self.is_array_down || self.claim(device).is_err() {
            return Err(1);
        }
        let (serial, map) = self.volume_at(device).ok_or(1)?;
        let size_bytes = map.map_or(self.volumes[&serial].size_bytes, |map| map.size_bytes);
        let generation = self.name();
        let volume = self.volumes.get_mut(&serial).unwrap();
        if let Content::Made { .. } = volume.content {
            self.violations.push(format!("{serial} was formatted, and had a filesystem"));
        }
        volume.content = Content::Made { filesystem, generation, size_bytes };
        Ok(String::new())
    }

    fn mount(&mut self, kind: &str, device: &str, target: &str) -> Ending {
        let (device, target) = (Path::new(device), PathBuf::from(target));
        let serial = self.volume_at(device).ok_or(32)?.0;
        let is_fine = matches!(&self.volumes[&serial].content,
            Content::Made { filesystem, .. } if *filesystem == kind);
        if self.is_array_down || !is_fine || !self.directories.contains(&target) {
            return Err(32);
        }
        if self.mounts.iter().any(|mount| mount.path == target) {
            self.violations.push(format!("{} is mounted twice", target.display()));
        }
        let device = device.file_name().unwrap().to_str().unwrap().to_owned();
        self.mounts.push(Mount { device, root: "/".into(), path: target, read_only: false });
        Ok(String::new())
    }

    fn bind(&mut self, source: &Path, target: &str) -> Ending {
        let target = PathBuf::from(target);
        if !self.directories.contains(&target) && !self.files.contains_key(&target) {
            return Err(32);
        }
        let mount = match self.mounts.iter().rev().find(|mount| mount.path == source) {
            Some(mount) => Mount { path: target, ..mount.clone() },
            None => {
                let root = Path::new("/").join(source.strip_prefix("/dev").map_err(|_| 32)?);
                self.volume_at(source).ok_or(32)?;
                Mount { device: "devtmpfs".into(), root, path: target, read_only: false }
            }
        };
        if self.mounts.iter().any(|other| other.path == mount.path) {
            self.violations.push(format!("{} is mounted twice", mount.path.display()));
        }
        self.mounts.push(mount);
        Ok(String::new())
    }

    fn remount(&mut self, target: &Path) -> Ending {
        let mount = self.mounts.iter_mut().rev().find(|mount| mount.path == target);
        mount.ok_or(32)?.read_only = true;
        Ok(String::new())
    }

    fn umount(&mut self, path: &Path) -> Ending {
        let at = self.mounts.iter().rposition(|mount| mount.path == path);
        self.mounts.remove(at.ok_or(32)?);
        Ok(String::new())
    }

    /// Grows a mounted filesystem to the size of its device.
    fn grow(&mut self, device: &Path) -> Ending {
        let (serial, map) = self.volume_at(device).ok_or(1)?;
        let device_bytes = map.map(|map| map.size_bytes);
        if self.is_array_down {
            return Err(1);
        }
        let volume = self.volumes.get_mut(&serial).unwrap();
        let Content::Made { size_bytes, .. } = &mut volume.content else { return Err(1) };
        *size_bytes = device_bytes.unwrap_or(volume.size_bytes);
        Ok(String::new())
    }

    fn resize_map(&mut self, name: &str) -> Ending {
        if self.is_array_down {
            return Err(1);
        }
        let named = |map: &super::world::Map| format!("map-{}", map.device) == name;
        let (serial, map) = self.maps.iter_mut().find(|(_, map)| named(map)).ok_or(1)?;
        map.size_bytes = self.volumes[serial].size_bytes;
        Ok(String::new())
    }

    fn remove_map(&mut self, name: &str) -> Ending {
        let device = name.strip_prefix("map-").ok_or(1)?.to_owned();
        if self.is_used(&device) {
            return Err(1);
        }
        let count = self.maps.len();
        self.maps.retain(|_, map| map.device != device);
        if self.maps.len() < count { Ok(String::new()) } else { Err(1) }
    }
}
