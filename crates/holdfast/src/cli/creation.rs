//! `pool create`: creates a pool on one device, or on several.

mod sizing;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Frame;
use segments::Device;
use serde_json::json;
use store::{Store, StoreError};
use sys::{Disk, FileDisk, Persist};

use super::args::Common;
use super::failure::Failure;
use super::output::show;
use super::place::{self, Place, check_distinct, open_disk};
pub use sizing::Size;
use sizing::{columns, size_of};

/// The number of bytes at the beginning of a device that must be blank: every partition table and
/// filesystem has data there.
const BLANK_BYTES: u64 = 1 << 20;

/// The request of `pool create`.
pub struct Asked<'a> {
    /// The directories and block devices.
    pub places: &'a [PathBuf],
    /// The capacity of the pool in bytes, if it was given.
    pub capacity: Option<u64>,
    /// The number of files to create in the one directory, to try out a pool on several devices.
    pub devices: Option<u16>,
    /// The number of lost devices for which the others have spare room, in stripes.
    pub spares: usize,
    /// Whether devices that are not blank are overwritten.
    pub force: bool,
}

/// Creates a pool, and its directories where they do not exist.
pub fn make(common: &Common, asked: &Asked) -> Result<(), Failure> {
    if asked.places.len() > place::DEVICES_MAX {
        return Err(place::too_many(asked.places.len()));
    }
    let is_one = asked.places.len() == 1 && !asked.places[0].metadata().is_ok_and(|m| !m.is_dir());
    if asked.devices.is_some() && !is_one {
        let text = "--devices creates several files in one directory: give only that directory";
        return Err(Failure::Usage(text.into()));
    }
    let mut directories = Vec::new();
    let made = make_directories(asked.places, &mut directories)
        .and_then(|found| places(&found, asked.devices))
        .and_then(|places| {
            let of = (asked.capacity, asked.spares);
            create(&places, of, asked.force).map(|size| (places, size))
        });
    if made.is_err() {
        // Removes only directories that were just created, and only if they are still empty.
        directories.iter().for_each(|directory| drop(fs::remove_dir(directory)));
    }
    let (places, size) = made?;
    let first = &places[0];
    let mut reported = json!({
        "pool": first.pool,
        "data": first.data,
        "capacity_bytes": size.capacity_bytes,
    });
    if places.len() > 1 {
        reported["devices"] = places.iter().map(|place| json!(place.data)).collect();
        reported["may_fail"] = json!(size.may_fail());
        reported["spares"] = json!(size.spares);
    }
    show(common.form, &reported, || text_of(&places, &size))
}

fn text_of(places: &[Place], size: &Size) -> String {
    let list = |path: fn(&Place) -> &PathBuf, before: &str, between: &str| {
        let mut paths: Vec<&PathBuf> = places.iter().map(path).collect();
        paths.dedup();
        let paths = paths.iter().map(|path| format!("{before}{}", path.display()));
        paths.collect::<Vec<_>>().join(between)
    };
    format!(
        "Pool created: {}, {}.\nServe it: holdfast serve {} --iscsi 127.0.0.1:3260 \
         --api 127.0.0.1:3280\n",
        list(|place| &place.data, "", ", "),
        size.text(),
        list(|place| &place.pool, "--pool ", " "),
    )
}

/// Creates the directories that do not exist, and adds each to `directories` at once; returns the
/// paths without links.
fn make_directories(
    paths: &[PathBuf],
    directories: &mut Vec<PathBuf>,
) -> Result<Vec<PathBuf>, Failure> {
    let one = |path: &PathBuf| {
        if !path.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| Failure::of_file("create the directory", path, &error))?;
            directories.push(path.clone());
        }
        fs::canonicalize(path).map_err(|error| Failure::of_file("use", path, &error))
    };
    paths.iter().map(one).collect()
}

fn places(paths: &[PathBuf], devices: Option<u16>) -> Result<Vec<Place>, Failure> {
    match (paths, devices) {
        ([directory], Some(count)) => {
            (0..usize::from(count)).map(|number| Place::numbered(directory, number)).collect()
        }
        _ => paths.iter().map(|path| Place::of(path)).collect(),
    }
}

/// Creates the pool, with this capacity if it was given, and with spare room for this many lost
/// devices. If a part fails, everything that was created is removed.
pub fn create(
    places: &[Place],
    (capacity, spares): (Option<u64>, usize),
    force: bool,
) -> Result<Size, Failure> {
    check_distinct(places)?;
    for place in places {
        check_free(place, force)?;
    }
    let size = size_of(places, capacity, spares)?;
    let mut parts = Vec::new();
    let made = places
        .iter()
        .zip(&size.each_bytes)
        .try_for_each(|(place, bytes)| Part::make(place, *bytes).map(|part| parts.push(part)))
        .and_then(|()| format(&parts, &size))
        .and_then(|()| parts.iter_mut().try_for_each(Part::finish));
    match made {
        Ok(()) => Ok(size),
        Err(failure) => {
            parts.into_iter().for_each(Part::undo);
            Err(failure)
        }
    }
}

/// Refuses a place that contains a pool, or something else.
fn check_free(place: &Place, force: bool) -> Result<(), Failure> {
    if place.is_device() {
        return if force { Ok(()) } else { check_blank(&place.data) };
    }
    match place.data.exists() {
        false => Ok(()),
        true => {
            let (pool, data) = (place.pool.display(), place.data.display());
            Err(Failure::Refused(format!(
                "there is a pool in {pool}; choose another directory, or remove {data} and its data"
            )))
        }
    }
}

/// The part on one device of a pool that is being created. A file has a temporary name until the
/// pool is complete, and never replaces another file.
pub struct Part {
    place: Place,
    disk: Arc<FileDisk>,
    is_linked: bool,
}

impl Part {
    /// Creates a file of this size, or opens a device.
    pub fn make(place: &Place, bytes: u64) -> Result<Self, Failure> {
        let scratch = place.scratch();
        let path = if place.is_device() { &place.data } else { &scratch };
        // Another process that is creating a pool here holds its lock.
        if !place.is_device() && scratch.exists() {
            open_disk(&Place { data: scratch.clone(), pool: place.pool.clone() })?;
            fs::remove_file(&scratch)
                .map_err(|error| Failure::of_file("remove", &scratch, &error))?;
        }
        let disk = FileDisk::create(path, bytes)
            .map_err(|error| Failure::of_file("create", path, &error))?;
        let part = Self { place: place.clone(), disk: Arc::new(disk), is_linked: false };
        if !place.is_device()
            && let Err(failure) = make_private(path)
        {
            part.undo();
            return Err(failure);
        }
        Ok(part)
    }

    /// Returns the device, for the segments of a pool.
    pub fn device(&self) -> Device {
        Device::of_file(self.disk.clone(), self.place.name())
    }

    /// Returns the file or device.
    pub fn file(&self) -> &Arc<FileDisk> {
        &self.disk
    }

    /// Gives the file its final name.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.place.is_device() {
            return Ok(());
        }
        let (scratch, Place { data, pool }) = (self.place.scratch(), &self.place);
        fs::hard_link(&scratch, data)
            .map(|()| self.is_linked = true)
            .and_then(|()| File::open(pool)?.sync_all())
            .map_err(|error| Failure::of_file("create", data, &error))?;
        // The temporary name is a second name of the finished file.
        fs::remove_file(&scratch).map_err(|error| Failure::of_file("remove", &scratch, &error))
    }

    /// Reverts the creation: removes a file, and erases the pool on a device.
    pub fn undo(self) {
        // The original failure is reported; what remains is not worth a second error.
        if self.place.is_device() {
            let zeros: Vec<Frame> = (0..BLANK_BYTES / 4096).map(|_| Frame::zeros()).collect();
            let _ = self.disk.write_as(0, &zeros, Persist::All);
            return;
        }
        if self.is_linked {
            let _ = fs::remove_file(&self.place.data);
        }
        let _ = fs::remove_file(self.place.scratch());
    }
}

fn format(parts: &[Part], size: &Size) -> Result<(), Failure> {
    let mut entropy = [0; 64];
    sys::entropy(&mut entropy).map_err(|error| Failure::Machine(error.to_string()))?;
    let made = match parts {
        [only] => Store::create(&*only.disk, &entropy),
        several => {
            let devices: Vec<Device> = several.iter().map(Part::device).collect();
            match columns(devices.len(), size.spares) {
                1 => Store::create_on(&devices, &entropy),
                columns => {
                    let column_bytes = Some(size.capacity_bytes.div_ceil(columns));
                    let of = (size.spares, column_bytes, None);
                    Store::create_in_stripes(&devices, &entropy, of)
                }
            }
        }
    };
    made.map_err(|error| match error {
        // A library is missing: this is not a failure of a device.
        StoreError::Io(error) if error.kind() == io::ErrorKind::Other => {
            Failure::Refused(error.to_string())
        }
        error => error.into(),
    })
}

/// Makes the still empty file readable only by its owner: a pool contains hosts' data and CHAP
/// secrets.
fn make_private(data: &Path) -> Result<(), Failure> {
    fs::set_permissions(data, Permissions::from_mode(0o600))
        .map_err(|error| Failure::of_file("protect", data, &error))
}

/// Refuses a device that contains data.
pub fn check_blank(device: &Path) -> Result<(), Failure> {
    let mut head = Vec::new();
    File::open(device)
        .and_then(|file| file.take(BLANK_BYTES).read_to_end(&mut head))
        .map_err(|error| Failure::of_file("read", device, &error))?;
    if head.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    let device = device.display();
    Err(Failure::Refused(format!(
        "{device} is not blank: its first MiB contains data; --force overwrites it"
    )))
}
