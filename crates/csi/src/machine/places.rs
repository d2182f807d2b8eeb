//! Places where volumes are mounted: directories for filesystems, files for devices.

use std::fs;
use std::io;
use std::path::Path;

/// Creates a directory with its parents, unless it exists.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Creates an empty file with its parents, unless it exists.
pub fn make_file(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new().create(true).append(true).open(path).map(drop)
}

/// Removes a file or a directory, if it exists; never the content of a directory, which would be
/// somebody's data.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
