//! The location of a pool: its directories and block devices, and its files in them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sys::FileDisk;

use super::failure::Failure;
use super::stable_name;

/// The maximum number of devices of a pool.
pub use segments::DEVICES_MAX;

/// Returns the name of a file of a pool in its directory, by its number, from 0. Files other than
/// the first exist only if several devices are tried out in one directory.
fn data_file(number: usize) -> String {
    match number {
        0 => "pool.data".into(),
        number => format!("pool.{}.data", number + 1),
    }
}

/// The location of a device of a pool.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory or device, as an absolute path without links.
    pub pool: PathBuf,
    /// The file or device that contains the data.
    pub data: PathBuf,
}

impl Place {
    /// Returns the first place of a path, whether it exists or not.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        Self::numbered(path, 0)
    }

    /// Returns the place of a path with this number, from 0: a directory can contain several.
    pub fn numbered(path: &Path, number: usize) -> Result<Self, Failure> {
        let kind =
            fs::metadata(path).map_err(|error| Failure::of_file("use", path, &error))?.file_type();
        let pool = path.to_owned();
        if kind.is_dir() {
            return Ok(Self { data: pool.join(data_file(number)), pool });
        }
        if kind.is_block_device() {
            return Ok(Self { data: pool.clone(), pool });
        }
        let text = format!("{} is neither a directory nor a block device", path.display());
        Err(Failure::Usage(text))
    }

    /// Returns the existing places of a path, without links: the device, or the files in the
    /// directory.
    pub fn all_of(path: &Path) -> Result<Vec<Self>, Failure> {
        let first = Self::of(path)?;
        if first.is_device() {
            return Ok(vec![first]);
        }
        let place = |number| Self { data: path.join(data_file(number)), pool: path.to_owned() };
        Ok((0..DEVICES_MAX).map(place).filter(|place| place.data.exists()).collect())
    }

    /// Returns the temporary file of a pool until it is complete.
    pub fn scratch(&self) -> PathBuf {
        self.data.with_extension("data.new")
    }

    /// Returns whether it is a block device, not a directory.
    pub fn is_device(&self) -> bool {
        self.pool == self.data
    }

    /// Returns its name in messages: for a file its path, for a device a stable name.
    pub fn name(&self) -> String {
        match self.is_device() {
            true => stable_name::of_device(&self.data).display().to_string(),
            false => self.data.display().to_string(),
        }
    }

    /// Returns the unique identity of the place: the device number, or the path of the file.
    fn identity(&self) -> (u64, PathBuf) {
        let device = fs::metadata(&self.pool).map_or(0, |found| found.rdev());
        match self.is_device() {
            true => (device, PathBuf::new()),
            false => (0, self.data.clone()),
        }
    }
}

/// The locations of the devices of a pool.
#[derive(Clone, Debug)]
pub struct Places {
    /// The places that exist: at least one.
    pub all: Vec<Place>,
    /// The given paths where nothing is.
    pub missing: Vec<PathBuf>,
}

impl Places {
    /// Returns the places of a pool that exists.
    pub fn of_existing(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (mut all, mut missing) = (Vec::new(), Vec::new());
        for path in paths {
            let found = match fs::canonicalize(path) {
                Ok(found) => Place::all_of(&found)?,
                Err(_) => Vec::new(),
            };
            if found.is_empty() {
                missing.push(path.clone());
            }
            all.extend(found);
        }
        match (all.is_empty(), missing.first()) {
            (true, Some(path)) => {
                let path = path.display();
                Err(Failure::Refused(format!(
                    "there is no pool at {path}; create one: holdfast pool create {path}"
                )))
            }
            _ => {
                check_distinct(&all)?;
                Ok(Self { all, missing })
            }
        }
    }

    /// Returns the places of a pool that exists, or of one that can be created: the directories
    /// contain nothing else. The second value is whether there is no pool yet.
    pub fn of_existing_or_new(paths: &[PathBuf]) -> Result<(Self, bool), Failure> {
        let (mut new, mut is_any_there) = (Vec::new(), false);
        for path in paths {
            let Ok(found) = fs::canonicalize(path) else { continue };
            is_any_there |= !Place::all_of(&found)?.is_empty();
            new.push((path, Place::of(&found)?));
        }
        if is_any_there {
            return Ok((Self::of_existing(paths)?, false));
        }
        if let Some(path) = paths.iter().find(|path| !path.exists()) {
            return Err(Failure::Refused(format!(
                "there is no directory {0}; create it, and serve creates a pool in it: mkdir {0}",
                path.display()
            )));
        }
        for (path, place) in &new {
            if let Some(name) = other_file(place)? {
                return Err(Failure::Refused(format!(
                    "there is no pool in {0}, but other files are, such as {name:?}: give an empty \
                     directory, or create the pool yourself: holdfast pool create {0}",
                    path.display()
                )));
            }
        }
        let all: Vec<Place> = new.into_iter().map(|(_, place)| place).collect();
        check_distinct(&all)?;
        Ok((Self { all, missing: Vec::new() }, true))
    }

    /// Returns all places but the first, and the missing paths that can be resolved.
    pub fn others(&self) -> Vec<PathBuf> {
        let missing = self.missing.iter().filter_map(|path| fs::canonicalize(path).ok());
        self.all.iter().skip(1).map(|place| place.pool.clone()).chain(missing).collect()
    }

    /// Returns the first place: files of the array, rather than of one of its devices, are beside
    /// it.
    pub fn first(&self) -> &Place {
        &self.all[0]
    }
}

/// Refuses more places than a pool can have, and two that are the same.
pub fn check_distinct(places: &[Place]) -> Result<(), Failure> {
    if places.len() > DEVICES_MAX {
        return Err(too_many(places.len()));
    }
    for (at, place) in places.iter().enumerate() {
        if places[..at].iter().any(|other| other.identity() == place.identity()) {
            let text = format!("{} is given twice", place.pool.display());
            return Err(Failure::Usage(text));
        }
    }
    Ok(())
}

/// Returns the failure for too many devices.
pub fn too_many(count: usize) -> Failure {
    Failure::Usage(format!("a pool is on 1 to {DEVICES_MAX} devices, not {count}"))
}

/// Returns a file in the directory of a pool to be created, if there is one; leftovers of a killed
/// start, and the files of an empty filesystem, do not count.
fn other_file(place: &Place) -> Result<Option<OsString>, Failure> {
    let refuse = |error: io::Error| Failure::of_file("look into", &place.pool, &error);
    for entry in fs::read_dir(&place.pool).map_err(refuse)? {
        let name = entry.map_err(refuse)?.file_name();
        let is_ours = place.scratch().file_name() == Some(&name);
        if !is_ours && name != "lost+found" {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Opens the disk of a pool; refuses one that is in use.
pub fn open_disk(place: &Place) -> Result<FileDisk, Failure> {
    FileDisk::open(&place.data).map_err(|error| of_disk(place, &error))
}

/// Opens the disk of a pool for reading: the file, its filesystem or the device may be read-only.
/// If it is writable, it is opened for writing nevertheless, because some filesystems require that
/// for a lock.
pub fn open_disk_to_read(place: &Place) -> Result<FileDisk, Failure> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    FileDisk::open(&place.data)
        .or_else(|error| match error.kind() {
            PermissionDenied | ReadOnlyFilesystem => FileDisk::open_read_only(&place.data),
            _ => Err(error),
        })
        .map_err(|error| of_disk(place, &error))
}

/// Opens the disk of a pool for reading while another process uses the pool.
pub fn open_disk_beside(place: &Place) -> Result<FileDisk, Failure> {
    FileDisk::open_beside(&place.data).map_err(|error| of_disk(place, &error))
}

fn of_disk(place: &Place, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => {
            let pool = place.pool.display();
            Failure::Refused(format!("{pool} is in use by another process; stop it first"))
        }
        _ => Failure::of_file("open", &place.data, error),
    }
}
