//! Files and directories that only their owner may read or write.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::Error;

/// The mode of secrets: readable and writable by their owner.
pub const SECRET: u32 = 0o600;
/// The mode of other files: readable by everybody.
pub const PUBLIC: u32 = 0o644;

/// The most bytes that are read of a secret file, which is one line.
const SECRET_FILE_BYTES_MAX: u64 = 4096;

/// Writes a file atomically.
///
/// # Errors
/// The system's error.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let scratch = path.with_extension(format!("{}.new", std::process::id()));
    // Left by a process with the same id that died while writing: in a container each start has the
    // same id. Usually there is none.
    let _ = fs::remove_file(&scratch);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&scratch)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&scratch, path));
    if written.is_err() {
        // The first failure is reported.
        let _ = fs::remove_file(&scratch);
    }
    written
}

/// Creates a directory owned by this user, or checks that it is.
///
/// # Errors
/// The system's error.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check_owner(directory)
}

/// Checks that the directory belongs to this user: another user's directory could contain forged
/// files.
///
/// # Errors
/// The system's error.
pub fn check_owner(directory: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(directory)?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if is_ours && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is not a directory that only this user can write"))
}

/// Reads the first line of a file, or of the standard input for `-`.
pub fn read_secret(file: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(SECRET_FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        fs::File::open(file)
            .and_then(|file| file.take(SECRET_FILE_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(|error| Error::of_file("read the secret in", file, &error))?;
    let secret = text.trim_end_matches(['\n', '\r']);
    if secret.contains('\n') {
        let text = format!("{} must contain one line: the secret", file.display());
        return Err(Error::Usage(text));
    }
    Ok(secret.to_owned())
}
