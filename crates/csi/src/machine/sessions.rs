//! Sessions of the machine's initiator: created by open-iscsi, found in sysfs.

use std::path::{Path, PathBuf};

use super::commands::run;
use super::disks::text;
use super::{Fault, System, node_record};
use crate::context::{Chap, PublishContext};

/// The exit code of iscsiadm if the session already exists (iscsiadm(8)).
const SESSION_EXISTS: i32 = 15;
/// LUNs from here on use flat addressing (SAM-5, 4.7.7.1), and the kernel numbers them that way.
const FLAT_LUNS: u16 = 256;
const FLAT: u16 = 0x4000;

/// A logged-in session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The number of its SCSI host.
    host: u32,
    /// Its directory, which contains its targets.
    directory: PathBuf,
}

impl Session {
    /// Makes the kernel scan one LUN. Scanning all would bring back the disks of another volume
    /// that is just being removed.
    pub fn scan(&self, system: &dyn System, lun: u16) -> Result<(), Fault> {
        let path = PathBuf::from(format!("/sys/class/scsi_host/host{}/scan", self.host));
        let text = format!("0 0 {}", kernel_lun(lun));
        system.set(&path, &text).map_err(|error| Fault::of(&path, &error))
    }

    /// Returns the name of the disk at a LUN, whatever volume it belongs to.
    pub fn disk(&self, system: &dyn System, lun: u16) -> Option<String> {
        let (host, lun) = (self.host, kernel_lun(lun));
        let unit = format!("target{host}:0:0/{host}:0:0:{lun}/block");
        system.names(&self.directory.join(unit)).ok()?.into_iter().next()
    }
}

/// Logs in at all portals of a volume in parallel, so that one that does not respond delays none of
/// the others. One session is sufficient.
///
/// # Errors
/// Why the last portal failed, if all did.
pub fn log_in(
    system: &dyn System,
    volume: &PublishContext,
    chap: Option<&Chap>,
) -> Result<Vec<Session>, Fault> {
    let attempts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = volume
            .portals
            .iter()
            .map(|portal| scope.spawn(move || at_portal(system, &volume.target, portal, chap)))
            .collect();
        let lost = || Err(Fault::Failed("a login ended unexpectedly".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    });
    let mut sessions = Vec::new();
    let mut refused = None;
    for attempt in attempts {
        match attempt {
            Ok(session) => sessions.push(session),
            Err(fault) => {
                tracing::warn!("{fault}");
                refused = Some(fault);
            }
        }
    }
    match refused.filter(|_| sessions.is_empty()) {
        Some(fault) => Err(fault),
        None => Ok(sessions),
    }
}

/// Returns the session with a portal, which is created if there is none.
fn at_portal(
    system: &dyn System,
    target: &str,
    portal: &str,
    chap: Option<&Chap>,
) -> Result<Session, Fault> {
    node_record::prepare(system, target, portal, chap)?;
    let session = || find(system, Path::new("/sys/class"), target, portal);
    if let Some(session) = session() {
        return Ok(session);
    }
    let login = ["--mode", "node", "--targetname", target, "--portal", portal, "--login"];
    run(system, "iscsiadm", &login, &[SESSION_EXISTS])?;
    session().ok_or_else(|| Fault::Failed(format!("the session with {portal} is not logged in")))
}

/// Returns the session with a portal of a target, if it is logged in.
fn find(system: &dyn System, class: &Path, target: &str, portal: &str) -> Option<Session> {
    let (address, port) = portal.rsplit_once(':')?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let sessions = class.join("iscsi_session");
    for name in system.names(&sessions).ok()? {
        let number = name.strip_prefix("session").unwrap_or_default();
        let connection = class.join(format!("iscsi_connection/connection{number}:0"));
        let is = |path: PathBuf, value: &str| text(system, &path).is_some_and(|it| it == value);
        let session = sessions.join(&name);
        if is(session.join("targetname"), target)
            && is(session.join("state"), "LOGGED_IN")
            && is(connection.join("persistent_address"), address)
            && is(connection.join("persistent_port"), port)
        {
            let directory = system.resolve(&session.join("device")).ok()?;
            return Some(Session { host: host(&directory)?, directory });
        }
    }
    None
}

/// Returns the number of a session's SCSI host.
fn host(directory: &Path) -> Option<u32> {
    let names = directory.components().rev().filter_map(|part| part.as_os_str().to_str());
    names.filter_map(|name| name.strip_prefix("host")).find_map(|number| number.parse().ok())
}

/// Returns the kernel's number of a LUN.
fn kernel_lun(lun: u16) -> u16 {
    if lun < FLAT_LUNS { lun } else { FLAT | lun }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Real;
    use super::*;

    /// Creates a tree like the kernel's, with one session.
    fn tree(state: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let session = root.path().join("iscsi_session/session3");
        let connection = root.path().join("iscsi_connection/connection3:0");
        let device = root.path().join("devices/host7/session3");
        for directory in [&session, &connection, &device] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::create_dir_all(device.join("target7:0:0/7:0:0:16640/block/sdq")).unwrap();
        fs::write(session.join("targetname"), "iqn.2026-01.test:a\n").unwrap();
        fs::write(session.join("state"), state).unwrap();
        fs::write(connection.join("persistent_address"), "2001:db8::1\n").unwrap();
        fs::write(connection.join("persistent_port"), "3260\n").unwrap();
        std::os::unix::fs::symlink(&device, session.join("device")).unwrap();
        root
    }

    #[test]
    fn only_a_session_logged_in_at_the_portal_counts() {
        let root = tree("LOGGED_IN\n");
        let found = |target, portal| find(&Real, root.path(), target, portal);
        let session = found("iqn.2026-01.test:a", "[2001:db8::1]:3260").unwrap();
        assert_eq!(session.host, 7);
        assert_eq!(session.disk(&Real, 256).as_deref(), Some("sdq"), "LUNs from 256 on are flat");
        assert_eq!(session.disk(&Real, 1), None);
        assert_eq!(found("iqn.2026-01.test:b", "[2001:db8::1]:3260"), None);
        assert_eq!(found("iqn.2026-01.test:a", "[2001:db8::1]:3261"), None);
        // The kernel tries to log in again: requests to it wait for minutes.
        let failed = tree("FAILED\n");
        assert_eq!(find(&Real, failed.path(), "iqn.2026-01.test:a", "[2001:db8::1]:3260"), None);
    }
}
