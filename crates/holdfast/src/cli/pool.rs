//! `pool create`, `pool grow`, and where a pool is.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{Pool, PoolChange};
use serde_json::json;
use store::{OpenOptions, Store};
use sys::FileDisk;

use super::args::{Common, PoolVerb};
use super::client::Client;
use super::failure::Failure;
use super::integrity;
use super::optimize;
use super::output::show;
use super::size::human;
use super::space;

/// The file that holds a pool, in the pool's directory.
const DATA_FILE: &str = "pool.data";
/// The least that a pool holds.
const CAPACITY_BYTES_MIN: u64 = 1 << 30;
/// The default size of a pool is the free space divided by this: others need room beside it too.
const DEFAULT_SHARE: u64 = 4;
/// The most bytes of a pool by default.
const CAPACITY_BYTES_DEFAULT_MAX: u64 = 64 << 30;
/// A capacity is a multiple of this; the rest is left unused.
const CAPACITY_STEP_BYTES: u64 = 1 << 20;
/// How much of a device must be blank: every partition table and filesystem has data there.
const BLANK_BYTES: u64 = 1 << 20;

/// Where a pool is.
pub struct Place {
    /// The directory or device, as an absolute path without links.
    pub pool: PathBuf,
    /// The file or device that holds the bytes.
    pub data: PathBuf,
}

impl Place {
    /// The place of a pool that exists.
    pub fn of_existing(path: &Path) -> Result<Self, Failure> {
        let missing = || {
            let path = path.display();
            let text = format!("there is no pool at {path}; make one: holdfast pool create {path}");
            Failure::Refused(text)
        };
        let place = Self::of(&fs::canonicalize(path).map_err(|_| missing())?)?;
        if place.data.exists() { Ok(place) } else { Err(missing()) }
    }

    /// The place of a pool that exists, or of one that can be made: the directory holds nothing
    /// else. The second value is whether there is none yet.
    pub fn of_existing_or_new(path: &Path) -> Result<(Self, bool), Failure> {
        let Ok(found) = fs::canonicalize(path) else {
            return Err(Failure::Refused(format!(
                "there is no directory {0}; make it, and serve makes a pool in it: mkdir {0}",
                path.display()
            )));
        };
        let place = Self::of(&found)?;
        if place.is_device() || place.data.exists() {
            return Ok((place, false));
        }
        match other_file(&place)? {
            None => Ok((place, true)),
            Some(name) => Err(Failure::Refused(format!(
                "there is no pool in {0}, but other files are, such as {name:?}: name an empty \
                 directory, or make the pool yourself: holdfast pool create {0}",
                path.display()
            ))),
        }
    }

    fn of(path: &Path) -> Result<Self, Failure> {
        let kind =
            fs::metadata(path).map_err(|error| Failure::of_file("use", path, &error))?.file_type();
        let pool = path.to_owned();
        if kind.is_dir() {
            return Ok(Self { data: pool.join(DATA_FILE), pool });
        }
        if kind.is_block_device() {
            return Ok(Self { data: pool.clone(), pool });
        }
        let text = format!("{} is neither a directory nor a block device", path.display());
        Err(Failure::Usage(text))
    }

    /// Where a pool is built until it is complete.
    fn scratch(&self) -> PathBuf {
        self.data.with_extension("data.new")
    }

    /// Whether it is a block device, not a directory.
    pub fn is_device(&self) -> bool {
        self.pool == self.data
    }
}

/// A file in the directory of a pool to be made, if there is one; leftovers of a killed start, and
/// of an empty filesystem, do not count.
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

/// The same, to be read only: the file, its filesystem or the device may be read-only. One that is
/// not is opened for writing all the same, which some filesystems ask for before they lock it.
pub fn open_disk_to_read(place: &Place) -> Result<FileDisk, Failure> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    FileDisk::open(&place.data)
        .or_else(|error| match error.kind() {
            PermissionDenied | ReadOnlyFilesystem => FileDisk::open_read_only(&place.data),
            _ => Err(error),
        })
        .map_err(|error| of_disk(place, &error))
}

fn of_disk(place: &Place, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => {
            let pool = place.pool.display();
            Failure::Refused(format!("{pool} is in use by another process; stop that first"))
        }
        _ => Failure::of_file("open", &place.data, error),
    }
}

/// Runs a verb.
pub fn run(common: &Common, verb: &PoolVerb) -> Result<(), Failure> {
    match verb {
        PoolVerb::Create { place, capacity, force } => make(common, place, *capacity, *force),
        PoolVerb::Grow { place: None, capacity } => grow(common, *capacity),
        PoolVerb::Grow { place: Some(place), capacity } => grow_stopped(common, place, *capacity),
        PoolVerb::Upgrade => upgrade(common),
        PoolVerb::Scrub { verb } => integrity::scrub(common, *verb),
        PoolVerb::Optimize { verb, wait } => optimize::run(common, *verb, *wait),
        PoolVerb::Space { refresh } => space::run(common, *refresh),
        PoolVerb::Damage => integrity::damage(common),
    }
}

/// Has the running array upgrade its pool.
fn upgrade(common: &Common) -> Result<(), Failure> {
    let pool: Pool = Client::find(common)?.post("/v1/pool/upgrade", &json!({}))?;
    show(common.form, &pool, || {
        let version = pool.format_version;
        let left = match pool.upgrade_left_bytes {
            0 => String::new(),
            bytes => format!(" {} of metadata are written anew in the background.", human(bytes)),
        };
        format!("The pool is of version {version} of the format, with all of its features.{left}\n")
    })
}

/// Has the running array grow its pool.
fn grow(common: &Common, capacity: u64) -> Result<(), Failure> {
    let change =
        PoolChange { capacity_bytes: capacity / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES };
    let pool: Pool = Client::find(common)?.patch("/v1/pool", &change)?;
    show(common.form, &pool, || format!("The pool holds {} now.\n", human(pool.capacity_bytes)))
}

/// Grows a pool that is not in use.
fn grow_stopped(common: &Common, place: &Path, capacity: u64) -> Result<(), Failure> {
    let place = Place::of_existing(place)?;
    let disk = Arc::new(open_disk(&place)?);
    let wanted = capacity / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    // That it becomes one of another version is for whoever starts it to say.
    let options = OpenOptions { upgrade: false, ..OpenOptions::default() };
    let store = Store::open_grown(disk, options, wanted)?;
    let capacity_bytes = store.pool_status().capacity_bytes;
    let told = json!({ "pool": place.pool, "capacity_bytes": capacity_bytes });
    show(common.form, &told, || format!("The pool holds {} now.\n", human(capacity_bytes)))
}

fn make(common: &Common, place: &Path, capacity: Option<u64>, force: bool) -> Result<(), Failure> {
    let is_new_directory = !place.exists();
    if is_new_directory {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(place)
            .map_err(|error| Failure::of_file("make the directory", place, &error))?;
    }
    let found = fs::canonicalize(place).map_err(|error| Failure::of_file("use", place, &error))?;
    let made = Place::of(&found).and_then(|place| {
        create(&place, capacity, force).map(|(bytes, notice)| (place, bytes, notice))
    });
    if made.is_err() && is_new_directory {
        // Only the directory that was just made, and only if it is still empty.
        let _ = fs::remove_dir(&found);
    }
    let (place, bytes, notice) = made?;
    let (pool, data) = (place.pool.display(), place.data.display());
    let told = json!({ "pool": place.pool, "data": place.data, "capacity_bytes": bytes });
    show(common.form, &told, || {
        format!(
            "Pool made: {data}, {}{notice}.\nServe it: holdfast serve --pool {pool} \
             --iscsi 127.0.0.1:3260 --api 127.0.0.1:3280\n",
            human(bytes)
        )
    })
}

/// Makes the pool; returns its size, and a remark on it.
pub fn create(
    place: &Place,
    capacity: Option<u64>,
    force: bool,
) -> Result<(u64, &'static str), Failure> {
    let exists = !place.is_device() && place.data.exists();
    if exists {
        let (pool, data) = (place.pool.display(), place.data.display());
        return Err(Failure::Refused(format!(
            "there is a pool in {pool}; choose another directory, or remove {data} and its data"
        )));
    }
    if place.is_device() && !force {
        check_blank(&place.data)?;
    }
    let (bytes, notice) = match capacity {
        Some(bytes) => (bytes, ""),
        None if place.is_device() => (device_bytes(&place.data)?, " (the whole device)"),
        None => default_capacity(free_bytes(&place.pool)?),
    };
    let bytes = bytes / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    if bytes < CAPACITY_BYTES_MIN {
        let text = format!("a pool needs at least 1G; this would have {}", human(bytes));
        return Err(Failure::Refused(text));
    }
    match place.is_device() {
        true => format(&place.data, bytes)?,
        false => create_file(place, bytes)?,
    }
    Ok((bytes, notice))
}

/// Makes the file of a pool. It gets its name when it is complete, and never replaces another.
fn create_file(place: &Place, bytes: u64) -> Result<(), Failure> {
    let scratch = place.scratch();
    // Another process that is making a pool here holds its lock.
    if scratch.exists() {
        open_disk(&Place { data: scratch.clone(), pool: place.pool.clone() })?;
        fs::remove_file(&scratch).map_err(|error| Failure::of_file("remove", &scratch, &error))?;
    }
    let made = format(&scratch, bytes).and_then(|()| {
        fs::hard_link(&scratch, &place.data)
            .and_then(|()| File::open(&place.pool)?.sync_all())
            .map_err(|error| Failure::of_file("make", &place.data, &error))
    });
    // A second name of the finished pool, or an empty file.
    let removed = fs::remove_file(&scratch);
    made?;
    removed.map_err(|error| Failure::of_file("remove", &scratch, &error))
}

fn format(data: &Path, bytes: u64) -> Result<(), Failure> {
    let is_device = data.exists();
    let disk =
        FileDisk::create(data, bytes).map_err(|error| Failure::of_file("make", data, &error))?;
    if !is_device {
        make_private(data)?;
    }
    let mut entropy = [0; 64];
    sys::entropy(&mut entropy).map_err(|error| Failure::Machine(error.to_string()))?;
    Store::create(&disk, &entropy).map_err(Failure::from)
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

fn device_bytes(device: &Path) -> Result<u64, Failure> {
    let length = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|error| Failure::of_file("open", device, &error))
}

/// Refuses a device that contains data.
fn check_blank(device: &Path) -> Result<(), Failure> {
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
    fn a_pool_that_nobody_sized_leaves_room_beside_it() {
        assert_eq!(default_capacity(40 << 30).0, 10 << 30);
        assert_eq!(default_capacity(10 << 40).0, 64 << 30);
        assert!(default_capacity(2 << 30).0 < CAPACITY_BYTES_MIN);
    }
}
