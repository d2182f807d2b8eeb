//! The size of a new pool, and its part of each device.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use format::geometry::{PARITY_COLUMNS, POOL_BYTES_MIN, SEGMENT_BYTES_MIN};
use segments::{StripePlan, stripe_columns};

use super::super::failure::Failure;
use super::super::place::Place;
use super::super::pool::CAPACITY_STEP_BYTES;
use super::super::size::human;

/// The minimum capacity of a pool.
const CAPACITY_BYTES_MIN: u64 = 1 << 30;
/// The default size of a pool is the free space divided by this: other users of the filesystem need
/// room too.
const DEFAULT_SHARE: u64 = 4;
/// The maximum of the default size of a pool, in bytes.
const CAPACITY_BYTES_DEFAULT_MAX: u64 = 64 << 30;

/// The size of a new pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its capacity, in bytes.
    pub capacity_bytes: u64,
    /// Its part of each device, in bytes.
    pub(super) each_bytes: Vec<u64>,
    /// A remark on the reason for its size.
    notice: String,
    /// The number of lost devices for which the others have spare room.
    pub(super) spares: usize,
}

impl Size {
    /// Returns how many of its devices may fail at once.
    pub fn may_fail(&self) -> usize {
        let devices = self.each_bytes.len();
        devices.saturating_sub(segments::least_in(devices))
    }

    /// Returns the size in one line.
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
            1 => "; one lost device can be rebuilt on the others".into(),
            spares => format!("; {spares} lost devices can be rebuilt on the others"),
        };
        match self.may_fail() {
            0 => size,
            1 => format!("{size}, of which one may fail"),
            may_fail => format!("{size}, of which any {may_fail} may fail{spare}"),
        }
    }
}

/// Returns the size of a new pool on these places.
pub(super) fn size_of(
    places: &[Place],
    capacity: Option<u64>,
    spares: usize,
) -> Result<Size, Failure> {
    if spares > 0 && places.len().saturating_sub(spares) < 4 {
        let text = "--spares is for striped pools: give at least four devices more than spares";
        return Err(Failure::Usage(text.into()));
    }
    let columns = columns(places.len(), spares);
    let step = |bytes: u64| bytes / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    let (mut each_bytes, notice) = match capacity {
        // A device that is longer than necessary has free parts.
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

/// Returns the number of data columns of a stripe; 1 if all devices have the same content.
pub(super) fn columns(devices: usize, spares: usize) -> u64 {
    match devices {
        ..=3 => 1,
        _ => stripe_columns(devices, spares) as u64 - u64::from(PARITY_COLUMNS),
    }
}

/// Returns the size on each place of a pool with this size of each column.
fn sizes_for(places: &[Place], (column_bytes, spares): (u64, usize)) -> Result<Vec<u64>, Failure> {
    // With more devices than columns of a stripe, each device has a share, and spare room for lost
    // devices.
    let shares = (places.len() - spares) as u64;
    let each = match places.len() {
        ..=3 => column_bytes,
        _ => {
            let shards = columns(places.len(), spares) + u64::from(PARITY_COLUMNS);
            let behind = column_bytes.saturating_sub(SEGMENT_BYTES_MIN);
            // One part more, because parts are not divided.
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

/// Returns the default size on each place, and a remark on it: in stripes the size of each place,
/// and for mirrors that of the smallest.
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

/// Returns whether two places take space of the same filesystem.
fn is_beside(one: &Place, other: &Place) -> bool {
    let filesystem = |place: &Place| fs::metadata(&place.pool).map(|found| found.dev()).ok();
    !one.is_device() && !other.is_device() && filesystem(one) == filesystem(other)
}

/// Returns the default size of a file, and a remark on it. It is reserved at once, so that others
/// see the space as taken.
fn default_capacity(free_bytes: u64) -> (u64, &'static str) {
    let share = free_bytes / DEFAULT_SHARE;
    if share < CAPACITY_BYTES_DEFAULT_MAX {
        (share, " (a quarter of the free space; --capacity sets another)")
    } else {
        (CAPACITY_BYTES_DEFAULT_MAX, " (--capacity sets another)")
    }
}

fn free_bytes(directory: &Path) -> Result<u64, Failure> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|error| Failure::of_file("query the free space of", directory, &error.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the length of a block device.
fn device_bytes(device: &Path) -> Result<u64, Failure> {
    let length = File::open(device).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|error| Failure::of_file("open", device, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_pool_is_shown_with_how_many_devices_may_fail() {
        for (devices, spares, reported) in [
            (1, 0, "1 GiB (x)"),
            (2, 0, "1 GiB on each of 2 devices (x), of which one may fail"),
            (3, 0, "1 GiB on each of 3 devices (x), of which any 2 may fail"),
            (6, 0, "4 GiB: 1 GiB on each of 6 devices (x), of which any 2 may fail"),
            (
                7,
                1,
                "4 GiB: 1 GiB on each of 7 devices (x), of which any 2 may fail; one lost \
                 device can be rebuilt on the others",
            ),
        ] {
            let size = Size {
                capacity_bytes: columns(devices, spares) << 30,
                each_bytes: vec![1 << 30; devices],
                notice: " (x)".into(),
                spares,
            };
            assert_eq!(size.text(), reported);
        }
    }

    #[test]
    fn files_are_long_enough_for_the_capacity() {
        let places = |count: usize| -> Vec<Place> {
            let one = tempfile::tempdir().unwrap();
            (0..count).map(|number| Place::numbered(one.path(), number).unwrap()).collect()
        };
        for (count, spares) in [(4, 0), (6, 1), (18, 0), (19, 0), (20, 2), (30, 0), (48, 3)] {
            let size = size_of(&places(count), Some(64 << 30), spares).unwrap();
            let columns = columns(count, spares);
            let each = size.capacity_bytes.div_ceil(columns);
            let plan = StripePlan::new(&size.each_bytes, spares, Some(each), None).unwrap();
            let asked = plan.geometry.count_in(each);
            assert_eq!(u64::from(plan.geometry.segment_count), asked, "{count} {spares}");
        }
        assert!(size_of(&places(4), Some(64 << 30), 1).is_err());
    }

    #[test]
    fn a_pool_of_default_size_leaves_free_space() {
        assert_eq!(default_capacity(40 << 30).0, 10 << 30);
        assert_eq!(default_capacity(10 << 40).0, 64 << 30);
        assert!(default_capacity(2 << 30).0 < CAPACITY_BYTES_MIN);
    }
}
