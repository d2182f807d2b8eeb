//! The places of devices that are added to a pool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::DeviceRefusal;
use segments::{Local, Segments};

use super::refusals::of_place;
use super::{Files, Named};
use crate::cli::failure::Failure;
use crate::cli::medium::report_retries;
use crate::cli::place::{DEVICES_MAX, Place, open_disk};

/// Returns a path of a request, without links.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, DeviceRefusal> {
    if !path.is_absolute() {
        let text = format!("{} is not an absolute path", path.display());
        return Err(of_place(Failure::Usage(text)));
    }
    if !path.exists() {
        let text = format!("{0} does not exist; create the directory: mkdir {0}", path.display());
        return Err(of_place(Failure::Usage(text)));
    }
    path.canonicalize().map_err(|error| of_place(Failure::of_file("use", path, &error)))
}

/// Returns a device of this pool that was missing, or was removed, and is back: its name and its
/// file.
pub(super) fn returning(
    path: &Path,
    pool_id: [u8; 16],
    files: &Files,
    in_use: &[String],
) -> Result<Option<Named>, DeviceRefusal> {
    // A device that is back keeps its name; a file that is already open is the same one.
    let is_new = |place: &Place| match place.is_device() {
        true => !in_use.contains(&place.name()),
        false => !files.contains_key(&place.name()),
    };
    for place in Place::all_of(path).map_err(of_place)?.into_iter().filter(is_new) {
        let disk = Arc::new(open_disk(&place).map_err(of_place)?);
        let name = place.name();
        let labels = Local::over(disk.clone()).labels();
        if labels.iter().flatten().any(|label| label.pool_id == pool_id) {
            report_retries(&disk, Some(name.clone()));
            return Ok(Some((name, disk)));
        }
    }
    Ok(None)
}

/// Returns the place of a new device of the pool: a block device, or a file in a directory that
/// contains none, or that contains several files of this pool (to try that out) and has room for
/// one more.
pub(super) fn free_place(found: &Path, files: &Files) -> Result<Place, DeviceRefusal> {
    let place = Place::of(found).map_err(of_place)?;
    let is_of_pool = |name: &String| Path::new(name).parent() == Some(found);
    if place.is_device() || files.keys().filter(|name| is_of_pool(name)).count() < 2 {
        return match !place.is_device() && place.data.exists() {
            false => Ok(place),
            true => {
                let data = place.data.display();
                let text =
                    format!("{data} already exists, and may be in use; choose another directory");
                Err(of_place(Failure::Refused(text)))
            }
        };
    }
    let mut places = (0..DEVICES_MAX).filter_map(|n| Place::numbered(found, n).ok());
    places.find(|place| !place.data.exists()).ok_or_else(|| {
        let text = format!("{} has the maximum number of files; remove one", found.display());
        of_place(Failure::Refused(text))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_new_device_needs_an_unused_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let place = free_place(path, &HashMap::new()).unwrap();
        assert!(place.data.ends_with("pool.data"));
        std::fs::write(&place.data, "x").unwrap();
        assert_eq!(free_place(path, &HashMap::new()).unwrap_err().code, "place_in_use");
        for bad in ["relative", "/srv/not-there"] {
            assert_eq!(resolved(Path::new(bad)).unwrap_err().code, "invalid_place");
        }
    }
}
