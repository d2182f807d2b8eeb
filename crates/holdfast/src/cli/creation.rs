//! `pool create`: makes a pool on one device, or on several.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Frame;
use format::geometry::{PARITY_COLUMNS, POOL_BYTES_MIN, SEGMENT_BYTES_MIN};
use segments::{Device, StripePlan, stripe_columns};
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
    /// How many lost devices there is to be room for on the others, in stripes.
    pub spares: usize,
    /// Whether devices that are not blank are overwritten.
    pub force: bool,
}

/// How large a pool was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// What it holds, in bytes.
    pub capacity_bytes: u64,
    /// How much of each device it has, in bytes.
    each_bytes: Vec<u64>,
    /// A remark on why it has this size.
    notice: String,
    /// How many lost devices there is room for on the others.
    spares: usize,
}

impl Size {
    /// How many of its devices may fail at once.
    pub fn may_fail(&self) -> usize {
        let devices = self.each_bytes.len();
        devices.saturating_sub(segments::least_in(devices))
    }

    /// In one line.
    pub fn text(&self) -> String {
        let (devices, notice) = (self.each_bytes.len(), &self.notice);
        let all = human(self.capacity_bytes);
        let least = self.each_bytes.iter().min().copied().unwrap_or_default();
        let most = self.each_bytes.iter().max().copied().unwrap_or_default();
        let each = match least == most {
            true => format!("{} on each of {devices} devices", human(least)),
            false => format!("{} to {} on each of {devices} devices", human(least), human(most)),
        };
        let size = match devices {
            ..=1 => format!("{all}{notice}"),
            2 | 3 => format!("{each}{notice}"),
            _ => format!("{all}: {each}{notice}"),
        };
        let spare = match self.spares {
            0 => String::new(),
            1 => "; one that is lost is made again on the others".into(),
            spares => format!("; {spares} that are lost are made again on the others"),
        };
        match self.may_fail() {
            0 => size,
            1 => format!("{size}, of which one may fail"),
            may_fail => format!("{size}, of which any {may_fail} may fail{spare}"),
        }
    }
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
            let of = (asked.capacity, asked.spares);
            create(&places, of, asked.force).map(|size| (places, size))
        });
    if made.is_err() {
        // Only directories that were just made, and only if they are still empty.
        directories.iter().for_each(|directory| drop(fs::remove_dir(directory)));
    }
    let (places, size) = made?;
    let first = &places[0];
    let mut told = json!({
        "pool": first.pool,
        "data": first.data,
        "capacity_bytes": size.capacity_bytes,
    });
    if places.len() > 1 {
        told["devices"] = places.iter().map(|place| json!(place.data)).collect();
        told["may_fail"] = json!(size.may_fail());
        told["spares"] = json!(size.spares);
    }
    show(common.form, &told, || text_of(&places, &size))
}

fn text_of(places: &[Place], size: &Size) -> String {
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
        size.text(),
        list(|place| &place.pool, "--pool ", " "),
    )
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

/// Makes the pool, which holds so much, if that was said, and has room for so many lost devices.
/// What was made is removed if a part fails.
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

/// How large a pool becomes on these places.
fn size_of(places: &[Place], capacity: Option<u64>, spares: usize) -> Result<Size, Failure> {
    if spares > 0 && places.len().saturating_sub(spares) < 4 {
        let text = "--spares is for pools in stripes: name at least four devices more than it says";
        return Err(Failure::Usage(text.into()));
    }
    let columns = columns(places.len(), spares);
    let step = |bytes: u64| bytes / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    let (mut each_bytes, notice) = match capacity {
        // A device that is longer than it takes has free parts.
        Some(bytes) => {
            let each = bytes.div_ceil(columns);
            (sizes_for(places, (step(each), spares))?, String::new())
        }
        None => default_sizes(places)?,
    };
    each_bytes.iter_mut().for_each(|bytes| *bytes = step(*bytes));
    let capacity_bytes = match (columns, capacity) {
        (1, _) => each_bytes.iter().min().copied().unwrap_or_default(),
        (_, Some(bytes)) => step(bytes.div_ceil(columns)) * columns,
        (_, None) => StripePlan::new(&each_bytes, spares, None, None)
            .map_or(0, |plan| plan.geometry.pool_bytes() * columns),
    };
    let least = CAPACITY_BYTES_MIN.max(columns * POOL_BYTES_MIN);
    if capacity_bytes < least {
        let (least, has) = (human(least), human(capacity_bytes));
        let on = if columns > 1 { " on so many devices" } else { "" };
        let text = format!("a pool{on} needs at least {least}; this would have {has}");
        return Err(Failure::Refused(text));
    }
    Ok(Size { capacity_bytes, each_bytes, notice, spares })
}

/// How many devices of each stripe have data, and one where each has the same.
fn columns(devices: usize, spares: usize) -> u64 {
    match devices {
        ..=3 => 1,
        _ => stripe_columns(devices, spares) as u64 - u64::from(PARITY_COLUMNS),
    }
}

/// How much of each place a pool has that would have so much of each column.
fn sizes_for(places: &[Place], (column_bytes, spares): (u64, usize)) -> Result<Vec<u64>, Failure> {
    // Of more devices than a stripe has columns each has a share, and room for what is lost.
    let shares = (places.len() - spares) as u64;
    let each = match places.len() {
        ..=3 => column_bytes,
        _ => {
            let shards = columns(places.len(), spares) + u64::from(PARITY_COLUMNS);
            let behind = column_bytes.saturating_sub(SEGMENT_BYTES_MIN);
            // A part more, as they are whole.
            let rest = if shares > shards { SEGMENT_BYTES_MIN } else { 0 };
            SEGMENT_BYTES_MIN + behind * shards / shares + rest
        }
    };
    let of = |place: &Place| match place.is_device() && places.len() > 3 {
        true => device_bytes(&place.data),
        false => Ok(each),
    };
    places.iter().map(of).collect()
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
        // A library is missing: no device has failed.
        StoreError::Io(error) if error.kind() == io::ErrorKind::Other => {
            Failure::Refused(error.to_string())
        }
        error => error.into(),
    })
}

/// How much of each place a pool has that nobody sized, and a remark on it: in stripes what each
/// can hold, and where each has all, what the smallest can.
fn default_sizes(places: &[Place]) -> Result<(Vec<u64>, String), Failure> {
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
    let (bytes, notice) = sizes.iter().copied().min_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    Ok(match (most == Some(bytes), places.len()) {
        (true, count) => (vec![bytes; count], notice.to_owned()),
        (false, ..=3) => (vec![bytes; places.len()], " (as much as the smallest)".to_owned()),
        (false, _) => (sizes.into_iter().map(|(bytes, _)| bytes).collect(), String::new()),
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
        for (devices, spares, told) in [
            (1, 0, "1 GiB (x)"),
            (2, 0, "1 GiB on each of 2 devices (x), of which one may fail"),
            (3, 0, "1 GiB on each of 3 devices (x), of which any 2 may fail"),
            (6, 0, "4 GiB: 1 GiB on each of 6 devices (x), of which any 2 may fail"),
            (
                7,
                1,
                "4 GiB: 1 GiB on each of 7 devices (x), of which any 2 may fail; one that is lost \
                 is made again on the others",
            ),
        ] {
            let size = Size {
                capacity_bytes: columns(devices, spares) << 30,
                each_bytes: vec![1 << 30; devices],
                notice: " (x)".into(),
                spares,
            };
            assert_eq!(size.text(), told);
        }
    }

    #[test]
    fn files_are_as_long_as_it_takes() {
        let places = |count: usize| -> Vec<Place> {
            let one = tempfile::tempdir().unwrap();
            (0..count).map(|number| Place::numbered(one.path(), number).unwrap()).collect()
        };
        for (count, spares) in [(4, 0), (6, 1), (18, 0), (19, 0), (20, 2), (30, 0), (48, 3)] {
            let size = size_of(&places(count), Some(64 << 30), spares).unwrap();
            let columns = columns(count, spares);
            let each = Some(size.capacity_bytes.div_ceil(columns));
            let plan = StripePlan::new(&size.each_bytes, spares, each, None).unwrap();
            let asked = plan.geometry.count_in(each.unwrap());
            assert_eq!(u64::from(plan.geometry.segment_count), asked, "{count} {spares}");
        }
        assert!(size_of(&places(4), Some(64 << 30), 1).is_err());
    }

    #[test]
    fn a_pool_that_nobody_sized_leaves_room_beside_it() {
        assert_eq!(default_capacity(40 << 30).0, 10 << 30);
        assert_eq!(default_capacity(10 << 40).0, 64 << 30);
        assert!(default_capacity(2 << 30).0 < CAPACITY_BYTES_MIN);
    }
}
