//! The parts of a machine that the driver uses: programs, the kernel's files, devices and its own
//! files. Whatever changes the machine is one call here, so that tests can end the driver before
//! and after each of these steps.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::places;

/// The steps of the driver.
pub trait System: Send + Sync {
    /// Runs a program to its end. Its arguments can be read by every user of the machine.
    fn command(&self, program: &str, arguments: &[&OsStr]) -> io::Result<Output>;

    /// Returns the content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Reads the start of a device.
    fn read_start(&self, device: &Path, block: &mut [u8]) -> io::Result<()>;

    /// Returns the size of a device.
    fn size_bytes(&self, device: &Path) -> io::Result<u64>;

    /// Returns the names in a directory, sorted.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Returns a path without symbolic links.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// Writes to a file of the kernel.
    fn set(&self, path: &Path, text: &str) -> io::Result<()>;

    /// Opens a device exclusively for a moment, which fails if anything else has it open
    /// exclusively.
    fn claim(&self, device: &Path) -> io::Result<()>;

    /// Replaces a file atomically by one that only root can read; `new` is its name until then, on
    /// the same filesystem.
    fn replace(&self, path: &Path, new: &Path, content: &[u8]) -> io::Result<()>;

    /// Creates a directory with its parents, unless it exists.
    fn make_directory(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file, unless it exists.
    fn make_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a file or an empty directory, if it exists.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Waits.
    fn pause(&self, time: Duration);

    /// Returns the time.
    fn now(&self) -> Instant;
}

/// The machine that the driver runs on.
pub struct Real;

impl System for Real {
    fn command(&self, program: &str, arguments: &[&OsStr]) -> io::Result<Output> {
        let mut command = Command::new(program);
        // The output that is parsed must not depend on the locale.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_start(&self, device: &Path, block: &mut [u8]) -> io::Result<()> {
        File::open(device)?.read_exact(block)
    }

    fn size_bytes(&self, device: &Path) -> io::Result<u64> {
        File::open(device)?.seek(SeekFrom::End(0))
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            // The kernel and open-iscsi use no other names.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn set(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)
    }

    fn claim(&self, device: &Path) -> io::Result<()> {
        let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
        OpenOptions::new().read(true).custom_flags(exclusive).open(device).map(drop)
    }

    fn replace(&self, path: &Path, new: &Path, content: &[u8]) -> io::Result<()> {
        // An interrupted attempt may have left it, with any mode.
        places::remove(new)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(new, path)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        places::make_directory(path)
    }

    fn make_file(&self, path: &Path) -> io::Result<()> {
        places::make_file(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        places::remove(path)
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_replaced_file_is_only_for_root_even_after_an_interrupted_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("record"), directory.path().join("new"));
        fs::write(&path, "old").unwrap();
        fs::write(&new, "left, and readable by all").unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).unwrap();
        Real.replace(&path, &new, b"secret").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!new.exists());
    }
}
