//! Names of block devices that do not depend on where they are attached.

use std::path::{Path, PathBuf};

/// The directory in which the system keeps such names, as links.
const BY_ID: &str = "/dev/disk/by-id";
/// The prefixes of names that contain the model and the serial number, as on the device's label.
const READABLE: [&str; 6] = ["ata-", "mmc-", "nvme-", "scsi-S", "usb-", "virtio-"];
/// The exceptions, which contain only a number.
const NUMBERS: [&str; 2] = ["nvme-eui.", "nvme-nvme."];

/// Returns the name of a block device: its name in `/dev/disk/by-id`, if it has one; otherwise its
/// path.
pub fn of_device(device: &Path) -> PathBuf {
    in_directory(Path::new(BY_ID), device).unwrap_or_else(|| device.to_owned())
}

/// Returns the link to a device in this directory; of several the readable one, then the shortest,
/// then the first in order.
fn in_directory(directory: &Path, device: &Path) -> Option<PathBuf> {
    let device = device.canonicalize().ok()?;
    let links = std::fs::read_dir(directory).ok()?.filter_map(Result::ok);
    let names = links.filter_map(|link| {
        let is_it = link.path().canonicalize().is_ok_and(|target| target == device);
        is_it.then(|| link.file_name().into_string().ok())?
    });
    let rank = |name: &String| {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        (!starts(&READABLE) || starts(&NUMBERS), name.len(), name.clone())
    };
    Some(directory.join(names.min_by_key(rank)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_readable_name_of_a_device_is_preferred() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| directory.path().join(name);
        let by_id = of("by-id");
        std::fs::create_dir(&by_id).unwrap();
        for device in ["sda", "sdb", "nvme0n1", "sdz"] {
            std::fs::write(of(device), "").unwrap();
        }
        symlink(of("sda"), of("link-to-sda")).unwrap();
        for (name, device) in [
            ("wwn-0x5002538e40a22954", "../sda"),
            ("ata-EXAMPLE_860_S3YZNB0K", "../sda"),
            ("ata-EXAMPLE_860_S3YZNB0K-part1", "../sda1"),
            ("scsi-35000c500a1b2c3d4", "../sdb"),
            ("wwn-0x5000c500a1b2c3d4", "../sdb"),
            ("nvme-eui.0025385b21402f1a", "../nvme0n1"),
            ("nvme-EXAMPLE_970_S466NX0K_1", "../nvme0n1"),
            ("nvme-EXAMPLE_970_S466NX0K", "../nvme0n1"),
        ] {
            symlink(device, by_id.join(name)).unwrap();
        }
        for (device, name) in [
            ("sda", Some("ata-EXAMPLE_860_S3YZNB0K")),
            ("link-to-sda", Some("ata-EXAMPLE_860_S3YZNB0K")),
            ("sdb", Some("scsi-35000c500a1b2c3d4")),
            ("nvme0n1", Some("nvme-EXAMPLE_970_S466NX0K")),
            ("sdz", None),
            ("sdc", None),
        ] {
            let found = in_directory(&by_id, &of(device));
            assert_eq!(found, name.map(|name| by_id.join(name)), "{device}");
        }
        assert_eq!(in_directory(&of("none"), &of("sda")), None);
        assert_eq!(of_device(&of("sdz")), of("sdz"));
    }
}
