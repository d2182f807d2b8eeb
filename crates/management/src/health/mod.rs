//! The health that devices report (SMART), by `smartctl` of smartmontools.
//!
//! A thread asks each block device once an hour. A device may respond slowly, so nobody else waits
//! for it, and `smartctl` has a time limit ([`run`]). Its output is not trusted ([`smart`]). Files
//! have no health.

mod run;
mod smart;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::DeviceHealth;
use parking_lot::Mutex;

use sys::attendant::Attendant;
use sys::wall::now_ms;

use run::{RunError, Runner};

/// The interval at which a device is asked, and at which new devices are looked for.
const ASK_PAUSE: Duration = Duration::from_secs(3600);
const LOOK_PAUSE: Duration = Duration::from_secs(10);
/// The time limit of `smartctl`. A sleeping disk wakes up within about 10 s.
const ASK_TIME: Duration = Duration::from_secs(30);
/// Requests health, attributes, and the pages that contain errors and wear of each kind of device.
const OPTIONS: [&str; 6] =
    ["--json=c", "--info", "--health", "--attributes", "--log=error", "--log=ssd"];
const PROGRAM: &str = "smartctl";
/// Searched in addition to `PATH`, which has no `sbin` for many users.
const SBIN: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
const MISSING: &str = "smartctl is missing: install smartmontools (Debian, Ubuntu: apt-get \
                       install smartmontools; Fedora: dnf install smartmontools)";

/// The known health of devices, by name.
#[derive(Debug, Default)]
pub struct Health(Mutex<BTreeMap<String, DeviceHealth>>);

impl Health {
    /// Returns the health of a device; `None` if it has none, like a file, or was not asked yet.
    pub fn of(&self, device: &str) -> Option<DeviceHealth> {
        self.0.lock().get(device).cloned()
    }

    /// Stores a result. After an error the previous health stays.
    fn note(&self, device: &str, reported: Result<DeviceHealth, String>) {
        let mut known = self.0.lock();
        let of_it = known.entry(device.to_owned()).or_default();
        match reported {
            Ok(health) => *of_it = DeviceHealth { told_ms: Some(now_ms()), ..health },
            Err(why) => of_it.trouble = Some(why),
        }
    }

    fn keep(&self, devices: &BTreeSet<String>) {
        self.0.lock().retain(|device, _| devices.contains(device));
    }
}

/// Asks the devices with these names regularly, until the result is dropped.
///
/// # Errors
/// If no thread can be created.
pub fn start(
    health: Arc<Health>,
    devices: impl Fn() -> Vec<String> + Send + 'static,
) -> io::Result<Attendant> {
    let mut asker = Asker::new(health, find_program());
    Attendant::start("health", Arc::default(), move |bell| {
        let block_devices = devices().into_iter().filter(|name| is_block_device(name)).collect();
        asker.turn(&block_devices, Instant::now(), &|| bell.stopped());
        LOOK_PAUSE
    })
}

fn is_block_device(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

fn find_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(SBIN.into_iter().map(PathBuf::from));
    directories.map(|directory| directory.join(PROGRAM)).find(|program| program.is_file())
}

/// Asks devices when they are due.
struct Asker {
    health: Arc<Health>,
    program: Option<PathBuf>,
    limit: Duration,
    runner: Runner,
    asked: BTreeMap<String, Instant>,
    /// Devices of which it was logged that they do not report health.
    silent: BTreeSet<String>,
    is_missing_told: bool,
}

impl Asker {
    fn new(health: Arc<Health>, program: Option<PathBuf>) -> Self {
        let (runner, asked, silent) = Default::default();
        Self { health, program, limit: ASK_TIME, runner, asked, silent, is_missing_told: false }
    }

    fn turn(&mut self, devices: &BTreeSet<String>, now: Instant, stopped: &dyn Fn() -> bool) {
        self.health.keep(devices);
        self.asked.retain(|device, _| devices.contains(device));
        self.silent.retain(|device| devices.contains(device));
        for device in devices {
            let last = self.asked.get(device);
            if stopped() || last.is_some_and(|at| now.duration_since(*at) < ASK_PAUSE) {
                continue;
            }
            self.asked.insert(device.clone(), now);
            self.ask(device, stopped);
        }
    }

    fn ask(&mut self, device: &str, stopped: &dyn Fn() -> bool) {
        // It may have been installed since.
        let Some(program) = self.program.clone().or_else(find_program) else {
            if !std::mem::replace(&mut self.is_missing_told, true) {
                tracing::info!("the health of block devices is unknown: {MISSING}");
            }
            return self.health.note(device, Err(MISSING.into()));
        };
        // The name of a link does not show the kind of the device.
        let path = Path::new(device).canonicalize().unwrap_or_else(|_| device.into());
        let arguments: Vec<&OsStr> =
            OPTIONS.iter().map(OsStr::new).chain([path.as_os_str()]).collect();
        let reported = match self.runner.run(&program, &arguments, self.limit, stopped) {
            Ok(said) => smart::parse(&said),
            Err(RunError::Stopped) => return,
            Err(error) => Err(format!("smartctl failed: {error}")),
        };
        match &reported {
            Ok(_) => drop(self.silent.remove(device)),
            Err(why) if self.silent.insert(device.to_owned()) => {
                tracing::info!("the health of {device} is unknown: {why}");
            }
            Err(_) => {}
        }
        self.health.note(device, reported);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns an asker whose program is this script.
    fn with(directory: &Path, script: &str) -> Asker {
        let program = directory.join("smartctl");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut asker = Asker::new(Arc::default(), Some(program));
        asker.limit = Duration::from_secs(20);
        asker
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_device_is_asked_once_an_hour() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let report = r#"{"smart_status":{"passed":true},"power_on_time":{"hours":7}}"#;
        let script = format!("echo \"$@\" >>{}; echo '{report}'; exit 4", log.display());
        let mut asker = with(directory.path(), &script);
        let start = Instant::now();
        asker.turn(&names(&["/dev/a", "/dev/b"]), start, &|| false);
        asker.turn(&names(&["/dev/a", "/dev/b"]), start + HOUR / 2, &|| false);
        let asked = || std::fs::read_to_string(&log).unwrap();
        assert_eq!(asked().lines().count(), 2);
        assert!(
            asked().contains("--json=c --info --health --attributes --log=error --log=ssd /dev/b")
        );
        let reported = asker.health.of("/dev/a").unwrap();
        assert_eq!(
            (reported.passed, reported.power_on_hours, reported.trouble),
            (Some(true), Some(7), None)
        );
        assert!(reported.told_ms > Some(0));
        // One was added, and one was removed.
        asker.turn(&names(&["/dev/b", "/dev/c"]), start + HOUR / 2, &|| false);
        assert_eq!(asked().lines().count(), 3);
        assert!(asker.health.of("/dev/a").is_none() && asker.health.of("/dev/c").is_some());
        asker.turn(&names(&["/dev/b"]), start + HOUR, &|| false);
        assert_eq!(asked().lines().count(), 4);
        asker.turn(&names(&["/dev/d"]), start + HOUR, &|| true);
        assert_eq!(asked().lines().count(), 4, "the array ends");
    }

    #[test]
    fn the_last_report_is_kept_if_a_query_fails() {
        let directory = tempfile::tempdir().unwrap();
        let report = r#"{"smart_status":{"passed":false}}"#;
        let mut asker = with(directory.path(), &format!("echo '{report}'"));
        let (devices, start) = (names(&["/dev/a"]), Instant::now());
        asker.turn(&devices, start, &|| false);
        let mut asker = Asker { health: asker.health, ..with(directory.path(), "exec sleep 60") };
        asker.limit = Duration::from_millis(200);
        asker.turn(&devices, start, &|| false);
        let reported = asker.health.of("/dev/a").unwrap();
        assert_eq!(reported.passed, Some(false));
        let trouble = reported.trouble.unwrap();
        assert!(trouble.contains("smartctl failed: it did not end within 200ms"), "{trouble}");
        let mut asker = Asker { health: asker.health, ..with(directory.path(), "echo hello") };
        asker.turn(&devices, start, &|| false);
        assert!(asker.health.of("/dev/a").unwrap().trouble.unwrap().contains("can't be parsed"));
    }

    #[test]
    fn a_file_is_not_a_block_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_block_device(file.path().to_str().unwrap()));
        assert!(!is_block_device("/dev/null") && !is_block_device(""));
    }
}
