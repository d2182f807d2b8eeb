//! The list of mounts: `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPoint {
    /// The device number of the filesystem, as `MAJOR:MINOR`.
    pub device: String,
    /// The mounted part of the filesystem: `/`, a directory of it, or one file.
    pub root: PathBuf,
    /// Where it is mounted.
    pub path: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether the filesystem itself is read-only, which the kernel also does after errors.
    #[serde(default)]
    pub filesystem_read_only: bool,
}

/// Returns the topmost mount at a path: its device number and the mounted part of its filesystem
/// identify it wherever else it is mounted.
pub fn identity<'a>(mounts: &'a [MountPoint], path: &Path) -> Option<&'a MountPoint> {
    mounts.iter().rev().find(|mount| mount.path == path)
}

/// Parses the kernel's list.
pub fn parse(text: &str) -> Vec<MountPoint> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<MountPoint> {
    let (line, filesystem) = line.split_once(" - ")?;
    let mut fields = line.split(' ').skip(2);
    let (device, root) = (fields.next()?.to_owned(), unescape(fields.next()?));
    let (path, options) = (unescape(fields.next()?), fields.next()?);
    let has = |options: &str, words: &[&str]| options.split(',').any(|it| words.contains(&it));
    let is_ro = |options: &str| has(options, &["ro"]);
    // ext4 of later kernels stays `rw` after an error, and shows these options.
    let is_stopped = |options: &str| has(options, &["ro", "emergency_ro", "shutdown"]);
    let filesystem_read_only = filesystem.rsplit(' ').next().is_some_and(is_stopped);
    Some(MountPoint { device, root, path, read_only: is_ro(options), filesystem_read_only })
}

/// Decodes spaces and similar characters, which are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(|_| *first == b'\\') {
            Some(code) => {
                plain.push(code);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_escapes() {
        let text = "36 35 8:16 / /mnt/a\\040b rw,noatime master:1 - ext4 /dev/sdb rw\n\
                    37 35 0:5 /sdb /mnt/raw ro,nosuid - devtmpfs udev rw\n\
                    38 35 8:32 / /mnt/c rw shared:1 - ext4 /dev/sdc ro,seclabel\n\
                    39 35 8:48 / /mnt/d rw shared:1 - ext4 /dev/sdd rw,emergency_ro\n";
        let mounts = parse(text);
        assert_eq!(mounts[0].path, Path::new("/mnt/a b"));
        assert_eq!((mounts[0].device.as_str(), mounts[0].read_only), ("8:16", false));
        assert_eq!((mounts[1].root.as_path(), mounts[1].read_only), (Path::new("/sdb"), true));
        assert_eq!(identity(&mounts, Path::new("/mnt/raw")), Some(&mounts[1]));
        assert_eq!(identity(&mounts, Path::new("/mnt")), None);
        let read_only = |at: usize| (mounts[at].read_only, mounts[at].filesystem_read_only);
        assert_eq!((read_only(1), read_only(2)), ((true, false), (false, true)));
        assert_eq!((read_only(0), read_only(3)), ((false, false), (false, true)));
    }
}
