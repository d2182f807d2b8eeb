//! Records of the volumes that this node may have attached.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::Fault;

/// A volume that may be attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its serial number.
    pub serial: String,
    /// Where it is staged.
    pub staging: PathBuf,
}

/// The records of a node: a file for each volume.
#[derive(Clone, Debug)]
pub struct Records(PathBuf);

impl Records {
    /// Opens the records in a directory, which is created.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn new(directory: &Path) -> Result<Self, Fault> {
        fs::create_dir_all(directory).map_err(|error| Fault::of(directory, &error))?;
        Ok(Self(directory.to_owned()))
    }

    /// Returns the record of a volume, if there is one.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn get(&self, volume: &str) -> Result<Option<Record>, Fault> {
        let Some(path) = self.path(volume) else { return Ok(None) };
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| Fault::Failed(format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::of(&path, &error)),
        }
    }

    /// Stores a record atomically.
    ///
    /// # Errors
    /// If it can't be written, or the id is not one of this driver.
    pub fn set(&self, volume: &str, record: &Record) -> Result<(), Fault> {
        let path = self.path(volume);
        let path = path.ok_or_else(|| Fault::Wrong(format!("{volume} is no volume id")))?;
        let text = serde_json::to_vec(record).map_err(|error| Fault::Failed(error.to_string()))?;
        let new = path.with_extension("new");
        let written = File::create(&new)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| File::open(&self.0)?.sync_all());
        written.map_err(|error| Fault::of(&path, &error))
    }

    /// Removes the record of a volume.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn remove(&self, volume: &str) -> Result<(), Fault> {
        let Some(path) = self.path(volume) else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Fault::of(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Returns the file of a volume; `None` if this can't be an id, which is a UUID.
    fn path(&self, volume: &str) -> Option<PathBuf> {
        let is_id = volume.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        (is_id && volume.len() == 36).then(|| self.0.join(format!("{volume}.json")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_kept_until_it_is_removed_and_no_id_leaves_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let records = Records::new(directory.path()).unwrap();
        let record = Record { serial: "AB".into(), staging: "/mnt/b".into() };
        let id = "01020304-0506-0701-0000-00010000002a";
        assert_eq!(records.get(id).unwrap(), None);
        records.set(id, &record).unwrap();
        assert_eq!(records.get(id).unwrap(), Some(record.clone()));
        records.remove(id).unwrap();
        records.remove(id).unwrap();
        assert_eq!(records.get(id).unwrap(), None);
        assert!(records.set("../x", &record).is_err());
        assert_eq!(records.get("../x").unwrap(), None);
    }
}
