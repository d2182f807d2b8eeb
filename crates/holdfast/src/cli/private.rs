//! Files and directories that only their owner may read or write.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Who may read a secret: its owner.
pub const SECRET: u32 = 0o600;
/// Who may read what is no secret: everybody.
pub const PUBLIC: u32 = 0o644;

/// Writes a file that is there wholly or not at all.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let scratch = path.with_extension(format!("{}.new", std::process::id()));
    // Of a process that ended while it wrote, and whose number this one has: in a container each
    // start has the same. Where there is none, all is well.
    let _ = fs::remove_file(&scratch);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&scratch)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&scratch, path));
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(&scratch);
    }
    written
}

/// Makes a directory of this user's, or checks that it is one.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check_owner(directory)
}

/// Another user's directory could hold what only looks like ours.
pub fn check_owner(directory: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(directory)?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if is_ours && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is not a directory that only this user can write"))
}
