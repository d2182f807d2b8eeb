//! `pool create`: makes a pool on one device, or on several.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Frame;
use format::geometry::POOL_BYTES_MIN;
use segments::Device;
use serde_json::json;
use store::{Store, StoreError};
use sys::{Disk, FileDisk, Persist};

use super::args::Common;
use super::failure::Failure;
use super::output::show;
use super::place::{self, Place, check_distinct, open_disk};
use super::pool::CAPACITY_STEP_BYTES;
use super::size::human;

/// The least that a pool holds.
const CAPACITY_BYTES_MIN: u64 = 1 << 30;
/// The default size of a pool is the free space divided by this: others need room beside it too.
const DEFAULT_SHARE: u64 = 4;
/// The most bytes of a pool by default.
const CAPACITY_BYTES_DEFAULT_MAX: u64 = 64 << 30;
/// How much of a device must be blank: every partition table and filesystem has data there.
const BLANK_BYTES: u64 = 1 << 20;

/// What `pool create` was asked for.
pub struct Asked<'a> {
    /// The directories and block devices.
    pub places: &'a [PathBuf],
    /// Bytes that the pool is to hold, if they were said.
    pub capacity: Option<u64>,
    /// How many files to make in the one directory, to try several devices out.
    pub devices: Option<u16>,
    /// Whether devices that are not blank are overwritten.
    pub force: bool,
}

/// Makes a pool, and its directories where there are none.
pub fn make(common: &Common, asked: &Asked) -> Result<(), Failure> {
    if asked.places.len() > place::DEVICES_MAX {
        return Err(place::too_many(asked.places.len()));
    }
    let is_one = asked.places.len() == 1 && !asked.places[0].metadata().is_ok_and(|m| !m.is_dir());
    if asked.devices.is_some() && !is_one {
        let text = "--devices makes several files in one directory: name that, and no other place";
        return Err(Failure::Usage(text.into()));
    }
    let mut directories = Vec::new();
    let made = make_directories(asked.places, &mut directories)
        .and_then(|found| places(&found, asked.devices))
        .and_then(|places| {
            create(&places, asked.capacity, asked.force)
                .map(|(bytes, notice)| (places, bytes, notice))
        });
    if made.is_err() {
        // Only directories that were just made, and only if they are still empty.
        directories.iter().for_each(|directory| drop(fs::remove_dir(directory)));
    }
    let (places, bytes, notice) = made?;
    let (first, all_bytes) = (&places[0], capacity_bytes(places.len(), bytes));
    let mut told = json!({ "pool": first.pool, "data": first.data, "capacity_bytes": all_bytes });
    if places.len() > 1 {
        told["devices"] = places.iter().map(|place| json!(place.data)).collect();
        told["may_fail"] = json!(places.len() - segments::least_in(places.len()));
    }
    show(common.form, &told, || text_of(&places, bytes, &notice))
}

fn text_of(places: &[Place], bytes: u64, notice: &str) -> String {
    let list = |path: fn(&Place) -> &PathBuf, before: &str, between: &str| {
        let mut paths: Vec<&PathBuf> = places.iter().map(path).collect();
        paths.dedup();
        let paths = paths.iter().map(|path| format!("{before}{}", path.display()));
        paths.collect::<Vec<_>>().join(between)
    };
    format!(
        "Pool made: {}, {}.\nServe it: holdfast serve {} --iscsi 127.0.0.1:3260 \
         --api 127.0.0.1:3280\n",
        list(|place| &place.data, "", ", "),
        size_of(places.len(), bytes, notice),
        list(|place| &place.pool, "--pool ", " "),
    )
}

/// How large a pool is that has so many bytes of each of so many devices, and what it survives.
pub fn size_of(devices: usize, bytes: u64, notice: &str) -> String {
    let (each, may_fail) = (human(bytes), devices.saturating_sub(segments::least_in(devices)));
    let all = match capacity_bytes(devices, bytes) {
        all if all == bytes => String::new(),
        all => format!("{}: ", human(all)),
    };
    match may_fail {
        0 => format!("{each}{notice}"),
        1 => format!("{each} on each of {devices} devices{notice}, of which one may fail"),
        _ => format!(
            "{all}{each} on each of {devices} devices{notice}, of which any {may_fail} may fail"
        ),
    }
}

/// How much a pool holds that has so many bytes of each of so many devices.
pub fn capacity_bytes(devices: usize, bytes: u64) -> u64 {
    bytes * columns(devices)
}

/// Makes the directories that do not exist, of which it tells at once; returns the paths without
/// links.
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
                .map_err(|error| Failure::of_file("make the directory", path, &error))?;
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

/// How many of so many devices have data: in stripes all but two, and one where each has the same.
fn columns(devices: usize) -> u64 {
    segments::least_in(devices) as u64
}

/// Makes the pool; returns how much of each device it has, and a remark on that. What was made is
/// removed if a part fails.
pub fn create(
    places: &[Place],
    capacity: Option<u64>,
    force: bool,
) -> Result<(u64, String), Failure> {
    check_distinct(places)?;
    for place in places {
        check_free(place, force)?;
    }
    let columns = columns(places.len());
    let (bytes, notice) = match capacity {
        Some(bytes) => (bytes.div_ceil(columns), String::new()),
        None => default_size(places)?,
    };
    let bytes = bytes / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    let least = CAPACITY_BYTES_MIN.max(columns * POOL_BYTES_MIN);
    if bytes * columns < least {
        let (least, has) = (human(least), human(bytes * columns));
        let on = if columns > 1 { " on so many devices" } else { "" };
        let text = format!("a pool{on} needs at least {least}; this would have {has}");
        return Err(Failure::Refused(text));
    }
    let mut parts = Vec::new();
    let made = places
        .iter()
        .try_for_each(|place| Part::make(place, bytes).map(|part| parts.push(part)))
        .and_then(|()| format(&parts))
        .and_then(|()| parts.iter_mut().try_for_each(Part::finish));
    match made {
        Ok(()) => Ok((bytes, notice)),
        Err(failure) => {
            parts.into_iter().for_each(Part::undo);
            Err(failure)
        }
    }
}

/// Refuses a place that has a pool, or something else.
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

/// A part of a pool that is being made: what is on one device. A file has another name until the
/// pool is complete, and never replaces another.
pub struct Part {
    place: Place,
    disk: Arc<FileDisk>,
    is_linked: bool,
}

impl Part {
    /// A file of so many bytes, or a device.
    pub fn make(place: &Place, bytes: u64) -> Result<Self, Failure> {
        let scratch = place.scratch();
        let path = if place.is_device() { &place.data } else { &scratch };
        // Another process that is making a pool here holds its lock.
        if !place.is_device() && scratch.exists() {
            open_disk(&Place { data: scratch.clone(), pool: place.pool.clone() })?;
            fs::remove_file(&scratch)
                .map_err(|error| Failure::of_file("remove", &scratch, &error))?;
        }
        let disk = FileDisk::create(path, bytes)
            .map_err(|error| Failure::of_file("make", path, &error))?;
        let part = Self { place: place.clone(), disk: Arc::new(disk), is_linked: false };
        if !place.is_device()
            && let Err(failure) = make_private(path)
        {
            part.undo();
            return Err(failure);
        }
        Ok(part)
    }

    /// The device, for the segments of a pool.
    pub fn device(&self) -> Device {
        Device::of_file(self.disk.clone(), self.place.data.display().to_string())
    }

    /// The file or device.
    pub fn file(&self) -> &Arc<FileDisk> {
        &self.disk
    }

    /// Its file gets its name.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.place.is_device() {
            return Ok(());
        }
        let (scratch, Place { data, pool }) = (self.place.scratch(), &self.place);
        fs::hard_link(&scratch, data)
            .map(|()| self.is_linked = true)
            .and_then(|()| File::open(pool)?.sync_all())
            .map_err(|error| Failure::of_file("make", data, &error))?;
        // A second name of the finished file.
        fs::remove_file(&scratch).map_err(|error| Failure::of_file("remove", &scratch, &error))
    }

    /// Takes back what was made: a file is removed, and a device bears no pool.
    pub fn undo(self) {
        // What failed is reported; that something is left behind is not worth a second error.
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

fn format(parts: &[Part]) -> Result<(), Failure> {
    let mut entropy = [0; 64];
    sys::entropy(&mut entropy).map_err(|error| Failure::Machine(error.to_string()))?;
    let made = match parts {
        [only] => Store::create(&*only.disk, &entropy),
        several => {
            let devices: Vec<Device> = several.iter().map(Part::device).collect();
            Store::create_on(&devices, &entropy)
        }
    };
    made.map_err(|error| match error {
        // A library is missing: no device has failed.
        StoreError::Io(error) if error.kind() == io::ErrorKind::Other => {
            Failure::Refused(error.to_string())
        }
        error => error.into(),
    })
}

/// The size of a pool that nobody sized, and a remark on it: what its smallest device can hold.
fn default_size(places: &[Place]) -> Result<(u64, String), Failure> {
    let mut sizes = Vec::new();
    for place in places {
        sizes.push(match place.is_device() {
            true => (device_bytes(&place.data)?, " (the whole device)"),
            false => {
                let sharing = places.iter().filter(|other| is_beside(place, other)).count() as u64;
                default_capacity(free_bytes(&place.pool)? / sharing.max(1))
            }
        });
    }
    let most = sizes.iter().map(|(bytes, _)| *bytes).max();
    let (bytes, notice) = sizes.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    Ok(match most == Some(bytes) {
        true => (bytes, notice.to_owned()),
        false => (bytes, " (as much as the smallest)".to_owned()),
    })
}

/// Whether two places take of the same filesystem.
fn is_beside(one: &Place, other: &Place) -> bool {
    let filesystem = |place: &Place| fs::metadata(&place.pool).map(|found| found.dev()).ok();
    !one.is_device() && !other.is_device() && filesystem(one) == filesystem(other)
}

/// The default size of a file, and a remark on it. It is reserved at once, so that others see the
/// space as taken.
fn default_capacity(free_bytes: u64) -> (u64, &'static str) {
    let share = free_bytes / DEFAULT_SHARE;
    if share < CAPACITY_BYTES_DEFAULT_MAX {
        (share, " (a quarter of the free space; --capacity sets another)")
    } else {
        (CAPACITY_BYTES_DEFAULT_MAX, " (--capacity sets another)")
    }
}

/// The pool holds hosts' data and CHAP secrets: only its owner may read it. It is still empty.
fn make_private(data: &Path) -> Result<(), Failure> {
    fs::set_permissions(data, Permissions::from_mode(0o600))
        .map_err(|error| Failure::of_file("protect", data, &error))
}

fn free_bytes(directory: &Path) -> Result<u64, Failure> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|error| Failure::of_file("ask for the space in", directory, &error.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// How long a block device is.
pub fn device_bytes(device: &Path) -> Result<u64, Failure> {
    let length = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|error| Failure::of_file("open", device, &error))
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
        "{device} is not blank: something stands in its first MiB; --force overwrites it"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_devices_it_is_said_how_much_they_hold_and_how_many_may_fail() {
        for (devices, told) in [
            (1, "1 GiB (x)"),
            (2, "1 GiB on each of 2 devices (x), of which one may fail"),
            (3, "1 GiB on each of 3 devices (x), of which any 2 may fail"),
            (6, "4 GiB: 1 GiB on each of 6 devices (x), of which any 2 may fail"),
        ] {
            assert_eq!(size_of(devices, 1 << 30, " (x)"), told);
        }
    }

    #[test]
    fn a_pool_that_nobody_sized_leaves_room_beside_it() {
        assert_eq!(default_capacity(40 << 30).0, 10 << 30);
        assert_eq!(default_capacity(10 << 40).0, 64 << 30);
        assert!(default_capacity(2 << 30).0 < CAPACITY_BYTES_MIN);
    }
}
