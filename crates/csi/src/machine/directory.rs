//! For tests only: a directory as a machine without a kernel initiator. A device is a file, a mount
//! is a line in a file: nothing is logged in to, formatted or mounted, and no data is stored.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Fault, Machine, MountPoint, Usage, places};
use crate::capability::Filesystem;
use crate::context::{Chap, PublishContext};

/// The size of every device.
const DEVICE_BYTES: u64 = 1 << 40;
/// The name of the initiator.
const INITIATOR: &str = "iqn.2026-01.test.holdfast:directory";

/// A machine for tests only.
pub struct Directory(PathBuf);

/// The content of a device.
#[derive(Serialize, Deserialize)]
struct Content {
    filesystem: Option<String>,
}

impl Directory {
    /// Uses a directory, which is created.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn new(path: &Path) -> Result<Self, Fault> {
        fs::create_dir_all(path.join("devices")).map_err(|error| Fault::of(path, &error))?;
        Ok(Self(path.to_owned()))
    }

    fn device(&self, serial: &str) -> PathBuf {
        self.0.join("devices").join(serial)
    }

    fn set_mounts(&self, mounts: &[MountPoint]) -> Result<(), Fault> {
        write(&self.0.join("mounts"), &mounts)
    }

    fn add(&self, device: &str, root: PathBuf, path: &Path, ro: bool) -> Result<(), Fault> {
        let mut mounts = self.mounts()?;
        let path = path.to_owned();
        mounts.push(MountPoint {
            device: device.to_owned(),
            root,
            path,
            read_only: ro,
            filesystem_read_only: false,
        });
        self.set_mounts(&mounts)
    }
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Fault> {
    let text = serde_json::to_vec(value).map_err(|error| Fault::Failed(error.to_string()))?;
    fs::write(path, text).map_err(|error| Fault::of(path, &error))
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Fault> {
    let text = fs::read(path).map_err(|error| Fault::of(path, &error))?;
    serde_json::from_slice(&text).map_err(|error| Fault::Failed(error.to_string()))
}

impl Machine for Directory {
    fn initiator(&self) -> Result<String, Fault> {
        Ok(INITIATOR.into())
    }

    fn attach(&self, volume: &PublishContext, _: Option<&Chap>) -> Result<PathBuf, Fault> {
        let device = self.device(&volume.serial);
        if !device.exists() {
            write(&device, &Content { filesystem: None })?;
        }
        Ok(device)
    }

    fn detach(&self, serial: &str) -> Result<(), Fault> {
        let device = self.device(serial);
        let is_used = self.mounts()?.iter().any(|mount| Path::new(&mount.device) == device);
        match is_used {
            true => Err(Fault::Failed(format!("{serial} is mounted"))),
            false => Ok(()),
        }
    }

    fn refresh(&self, serial: &str) -> Result<PathBuf, Fault> {
        Ok(self.device(serial))
    }

    fn content(&self, device: &Path) -> Result<Option<String>, Fault> {
        Ok(read::<Content>(device)?.filesystem)
    }

    fn format(&self, device: &Path, filesystem: Filesystem) -> Result<(), Fault> {
        write(device, &Content { filesystem: Some(filesystem.name().into()) })
    }

    fn mount(
        &self,
        device: &Path,
        path: &Path,
        filesystem: Filesystem,
        _: &[String],
    ) -> Result<(), Fault> {
        if self.content(device)?.as_deref() != Some(filesystem.name()) {
            return Err(Fault::Failed(format!("{} contains something else", device.display())));
        }
        self.add(&device.to_string_lossy(), "/".into(), path, false)
    }

    fn bind(&self, source: &Path, target: &Path, read_only: bool) -> Result<(), Fault> {
        let mounts = self.mounts()?;
        match super::identity(&mounts, source) {
            Some(mount) => self.add(&mount.device, mount.root.clone(), target, read_only),
            None => self.add(&source.to_string_lossy(), source.to_owned(), target, read_only),
        }
    }

    fn unmount(&self, path: &Path) -> Result<(), Fault> {
        let mut mounts = self.mounts()?;
        let at = mounts.iter().rposition(|mount| mount.path == path);
        let at = at.ok_or_else(|| Fault::Failed(format!("{} is not a mount", path.display())))?;
        mounts.remove(at);
        self.set_mounts(&mounts)
    }

    fn mounts(&self) -> Result<Vec<MountPoint>, Fault> {
        let path = self.0.join("mounts");
        if path.exists() { read(&path) } else { Ok(Vec::new()) }
    }

    fn grow(&self, _: &Path, _: &Path) -> Result<(), Fault> {
        Ok(())
    }

    fn size_bytes(&self, _: &Path) -> Result<u64, Fault> {
        Ok(DEVICE_BYTES)
    }

    fn lost_paths(&self, _: &str) -> Result<Option<String>, Fault> {
        Ok(None)
    }

    fn usage(&self, path: &Path) -> Result<Usage, Fault> {
        super::usage(path)
    }

    fn make_directory(&self, path: &Path) -> Result<(), Fault> {
        places::make_directory(path).map_err(|error| Fault::of(path, &error))
    }

    fn make_file(&self, path: &Path) -> Result<(), Fault> {
        places::make_file(path).map_err(|error| Fault::of(path, &error))
    }

    fn remove(&self, path: &Path) -> Result<(), Fault> {
        places::remove(path).map_err(|error| Fault::of(path, &error))
    }
}
