//! The commands with which a Linux host mounts a volume: open-iscsi and a filesystem.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Returns the Linux device of the volume with this NAA designator, on any path.
pub fn device(naa: &str) -> String {
    format!("/dev/disk/by-id/wwn-0x{}", naa.trim_start_matches("naa."))
}

/// Returns the Linux device of a LUN of a portal.
pub fn device_by_path(portal: SocketAddr, target: &str, lun: u16) -> String {
    format!("/dev/disk/by-path/ip-{}-iscsi-{target}-lun-{lun}", reached_at(portal))
}

/// Returns the commands that log this machine in, and that format and mount the device.
pub fn commands(portal: SocketAddr, device: &str, name: &str) -> Vec<String> {
    let portal = reached_at(portal);
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    vec![
        format!("{sudo}iscsiadm --mode discovery --type sendtargets --portal {portal} --login"),
        format!(
            "{sudo}sh -ec 'udevadm settle; mkfs.ext4 -q {device}; mkdir -p /mnt/{name}; mount \
             {device} /mnt/{name}'"
        ),
    ]
}

/// Returns the address at which this machine reaches a portal: loopback for one that listens on all
/// addresses.
fn reached_at(portal: SocketAddr) -> SocketAddr {
    match portal.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), portal.port()),
        false => portal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_found_by_its_naa_name_or_by_its_path() {
        assert_eq!(device("naa.6024846"), "/dev/disk/by-id/wwn-0x6024846");
        let everywhere: SocketAddr = "0.0.0.0:3260".parse().unwrap();
        assert_eq!(
            device_by_path(everywhere, "iqn.x:y", 1),
            "/dev/disk/by-path/ip-127.0.0.1:3260-iscsi-iqn.x:y-lun-1"
        );
        let commands = commands(everywhere, "/dev/x", "data");
        assert!(commands[0].ends_with("--portal 127.0.0.1:3260 --login"), "{commands:?}");
        assert!(commands[1].contains("mount /dev/x /mnt/data"), "{commands:?}");
    }
}
