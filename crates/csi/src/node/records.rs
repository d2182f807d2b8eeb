//! Records of the volumes that this node may have attached.

use std::collections::BTreeSet;
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
    /// Whether staging it has begun and has not ended. Not so in records of earlier versions.
    #[serde(default)]
    pub is_unfinished: bool,
    /// Paths of pods at which a mount is about to become read-only.
    #[serde(default)]
    pub unfinished: BTreeSet<PathBuf>,
}

impl Record {
    /// Returns the record of a volume before it is staged.
    pub fn new(serial: &str, staging: &Path) -> Self {
        let (serial, staging) = (serial.to_owned(), staging.to_owned());
        Self { serial, staging, is_unfinished: true, unfinished: BTreeSet::new() }
    }
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
        let path = path.ok_or_else(|| Fault::Wrong(format!("{volume} is not a volume id")))?;
        let text = serde_json::to_vec(record).map_err(|error| Fault::Failed(error.to_string()))?;
        let new = path.with_extension("new");
        let written = File::create(&new)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &path))
            .and_then(|()| File::open(&self.0)?.sync_all());
        written.map_err(|error| Fault::of(&path, &error))
    }

    /// Notes whether a mount of a volume, at a path of a pod, is about to become read-only.
    ///
    /// # Errors
    /// If the volume has no record that could have the note, or it can't be written.
    pub fn mark(&self, volume: &str, target: &Path, is_unfinished: bool) -> Result<(), Fault> {
        let mut record = match self.get(volume)? {
            Some(record) => record,
            None if !is_unfinished => return Ok(()),
            None => return Err(Fault::Failed(format!("there is no record of {volume}"))),
        };
        let is_new = match is_unfinished {
            true => record.unfinished.insert(target.to_owned()),
            false => record.unfinished.remove(target),
        };
        if is_new { self.set(volume, &record) } else { Ok(()) }
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
        let record = Record::new("AB", Path::new("/mnt/b"));
        let id = "01020304-0506-0701-0000-00010000002a";
        assert_eq!(records.get(id).unwrap(), None);
        records.set(id, &record).unwrap();
        assert_eq!(records.get(id).unwrap(), Some(record.clone()));
        records.remove(id).unwrap();
        records.remove(id).unwrap();
        assert_eq!(records.get(id).unwrap(), None);
        assert!(records.set("../x", &record).is_err());
        let earlier = "{\"serial\":\"AB\",\"staging\":\"/mnt/b\"}";
        fs::write(directory.path().join(format!("{id}.json")), earlier).unwrap();
        assert_eq!(
            records.get(id).unwrap(),
            Some(Record { is_unfinished: false, ..record.clone() })
        );
        assert_eq!(records.get("../x").unwrap(), None);
    }
}
