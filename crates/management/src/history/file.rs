//! The file of the history, next to the pool.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use history::{History, Medium, OpenError};

/// The name of the file.
const FILE: &str = "history.data";
/// The name under which an unusable file is kept.
const ASIDE: &str = "history.data.aside";

/// A sparse file: parts that were never written take no space.
struct Samples(File);

impl Medium for Samples {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.0.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes[done..].fill(0);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }
}

/// Opens the history of a pool in a directory. An unusable file is renamed; if no file can be
/// created, the array runs without.
pub(super) fn open(directory: &Path, pool_id: [u8; 16]) -> History {
    let path = directory.join(FILE);
    match try_open(&path, pool_id) {
        Ok(history) => history,
        Err(OpenError::NotOurs(why)) => {
            let aside = directory.join(ASIDE);
            tracing::warn!("{}: {why}; it is set aside as {}", path.display(), aside.display());
            let again = fs::rename(&path, &aside).map_err(OpenError::from);
            again
                .and_then(|()| try_open(&path, pool_id))
                .unwrap_or_else(|error| none(&path, &error))
        }
        Err(error) => none(&path, &error),
    }
}

fn try_open(path: &Path, pool_id: [u8; 16]) -> Result<History, OpenError> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    History::open(Box::new(Samples(file)), pool_id)
}

fn none(path: &Path, error: &OpenError) -> History {
    let why = format!("there is no history of performance: {}: {error}", path.display());
    tracing::warn!("{why}");
    History::not_kept(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_continues_and_a_damaged_one_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let now_ms = 20_000 * 86_400_000;
        let known = |history: &History| {
            let range = history::Range::new(now_ms - 60_000, now_ms + 1, None, now_ms).unwrap();
            history.of_array(&range).unwrap().len()
        };
        let first = open(directory.path(), [1; 16]);
        let tick = history::Tick { now_ms, covered_ms: 1000, ..history::Tick::default() };
        first.record(tick).unwrap();
        first.save().unwrap();
        assert_eq!(known(&open(directory.path(), [1; 16])), 1);
        let file = OpenOptions::new().write(true).open(directory.path().join(FILE)).unwrap();
        file.write_all_at(b"x", 20).unwrap();
        assert_eq!(known(&open(directory.path(), [1; 16])), 0);
        assert!(directory.path().join(ASIDE).exists());
        // If no file can be created, the array still runs.
        let none = open(&directory.path().join("nowhere"), [1; 16]);
        assert!(none.save().is_ok() && none.latest().covered_ms == 0);
    }
}
