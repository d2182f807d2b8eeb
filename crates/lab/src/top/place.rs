//! Where counters are published, and replacing a file atomically.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The default file name.
const NAME: &str = "holdfast-lab.json";

/// Returns where a lab publishes by default: in the user's runtime directory, or without one in
/// that of temporary files.
pub fn default_place() -> PathBuf {
    place_in(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), std::env::temp_dir())
}

fn place_in(runtime: Option<PathBuf>, temporary: PathBuf) -> PathBuf {
    // The XDG base directory specification: a path that is not absolute is ignored.
    runtime.filter(|path| path.is_absolute()).unwrap_or(temporary).join(NAME)
}

/// Replaces a file: readers find the old or the new content, never a part.
///
/// # Errors
/// Those of the system, with the path.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), String> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let result = write_new(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    result.map_err(|error| {
        // What could not be created need not be there.
        let _ = std::fs::remove_file(&temporary);
        format!("{}: {error}", path.display())
    })
}

/// Never follows a link that another user has put there: the directory may be writable by everyone.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_is_in_the_users_runtime_directory() {
        let place = |runtime: Option<&str>| place_in(runtime.map(PathBuf::from), "/tmp".into());
        assert_eq!(place(Some("/run/user/7")), Path::new("/run/user/7/holdfast-lab.json"));
        assert_eq!(place(Some("here")), Path::new("/tmp/holdfast-lab.json"));
        assert_eq!(place(None), Path::new("/tmp/holdfast-lab.json"));
    }

    #[test]
    fn a_file_is_replaced_and_no_temporary_file_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let nowhere = directory.path().join("no/counters");
        let error = replace(&nowhere, "three").unwrap_err();
        assert!(error.contains("no/counters"), "{error}");
    }
}
