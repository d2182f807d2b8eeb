//! The devices of the pool that is being served: their states, and changes of them.

mod pace;
mod places;
mod refusals;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use api::{
    CatchingUp, Device, DeviceAdd, DeviceCalls, DeviceChange, DeviceChanges, DeviceParts,
    DeviceRefusal, DeviceState,
};
use array::Kind;
use block::FrameMut;
use management::health::Health;
use parking_lot::Mutex;
use segments::{DeviceError, DeviceSet, DeviceStatus, DiskSnapshot, Segments};
use store::Store;
use sys::{Disk, FileDisk};

use self::pace::Paces;
use self::places::{free_place, resolved, returning};
use self::refusals::{fault, of_place, refusal};
use super::creation::{Part, check_blank};
use super::fencing::Fence;
use super::medium::{Medium, report_retries};
use super::telemetry::{TOGETHER, transfers};

/// How long a device is read so that its activity light identifies it.
const IDENTIFY_TIME: Duration = Duration::from_secs(10);
/// The size of each read, in frames of 4 KiB, and the pause between reads.
const IDENTIFY_FRAMES: usize = 64;
const IDENTIFY_PAUSE: Duration = Duration::from_millis(5);

/// A file or device, with its name.
type Named = (String, Arc<FileDisk>);
/// Files and devices by their names.
type Files = HashMap<String, Arc<FileDisk>>;

/// The devices of a pool that is being served.
pub struct Members {
    store: Arc<Store>,
    medium: Medium,
    /// For a single device: its state when it was opened.
    only: Vec<DeviceStatus>,
    /// The files of the devices that were present or were added, by their names. Locked during a
    /// change of devices: one change at a time.
    files: Mutex<Files>,
    paces: Paces,
    health: Arc<Health>,
    /// Reserves added devices, if devices are reserved.
    fence: Option<Fence>,
}

impl Members {
    /// Returns the devices of an opened pool.
    pub fn new(medium: Medium, store: Arc<Store>, fence: Option<Fence>) -> Self {
        let only = match medium.several() {
            Some(_) => Vec::new(),
            None => medium.devices(),
        };
        let files = Mutex::new(medium.files().into_iter().collect());
        Self { store, only, medium, files, paces: Paces::default(), health: Arc::default(), fence }
    }

    /// Returns whether the pool is on several devices, by its labels: only one may be left.
    pub fn are_several(&self) -> bool {
        self.medium.several().is_some()
    }

    /// Returns the component of alerts about all devices.
    pub fn name(&self) -> String {
        let only = self.only.first().map(|device| device.name.clone());
        only.unwrap_or_else(|| TOGETHER.into())
    }

    /// Returns the states of the devices, by number, with the progress of those that catch up;
    /// empty for a pool on one device, whose loss is not a state of the pool.
    pub fn statuses_of_several(&self) -> Vec<(DeviceStatus, Option<CatchingUp>)> {
        let several = self.medium.several().map(|set| set.devices());
        let several = several.unwrap_or_default();
        let progress = self.paces.look(&self.store);
        self.paces.look_at_leaving(&several);
        several
            .into_iter()
            .map(|device| (device.clone(), progress.get(&device.number).copied()))
            .collect()
    }

    /// Returns the health that the devices report.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Returns the states of the devices, by number.
    pub fn statuses(&self) -> Vec<DeviceStatus> {
        match self.medium.several() {
            None => self.only.iter().cloned().map(|only| self.now(only)).collect(),
            Some(set) => set.devices(),
        }
    }

    /// Returns the only device, with its counters since it was opened.
    fn now(&self, only: DeviceStatus) -> DeviceStatus {
        let file = self.files.lock().get(&only.name).cloned();
        let counts = file.map(|file| file.counts()).unwrap_or_default();
        DeviceStatus { counts, ..only }
    }

    /// Returns the devices, in the form of interfaces, without the transfers of hosts.
    pub fn devices(&self) -> Vec<Device> {
        let has_failed = self.store.segments().has_given_up();
        let progress = self.paces.look(&self.store);
        let statuses = self.statuses();
        let leaving = self.paces.look_at_leaving(&statuses);
        let devices = statuses.into_iter().map(|status| {
            let state = state_of(status.state);
            let takes_writes = matches!(state, DeviceState::In | DeviceState::CatchingUp);
            Device {
                catching_up: progress.get(&status.number).copied(),
                health: self.health.of(&status.name),
                name: status.name,
                number: status.number,
                id: status.id.to_string(),
                state,
                why_out: status.why_out.filter(|_| !takes_writes),
                parts: status.parts.map(|parts| DeviceParts {
                    all: parts.all,
                    used: parts.used,
                    is_emptied: parts.is_emptied,
                    left_s: leaving.get(&status.number).copied(),
                }),
                len_bytes: status.len_bytes,
                read_errors: status.read_errors,
                write_errors: status.write_errors,
                mended: status.mended,
                retries: status.retries,
                takes_writes: takes_writes && !has_failed,
                calls: calls_of(&status.counts, status.reads_elsewhere),
                ..Device::default()
            }
        });
        devices.collect()
    }

    /// Adds a device to the pool, or replaces one.
    fn add(&self, set: &DeviceSet, asked: &DeviceAdd) -> Result<u16, DeviceRefusal> {
        let mut files = self.files.lock();
        self.forget_others(&mut files, set);
        let path = resolved(Path::new(&asked.place))?;
        if let Some(fence) = &self.fence {
            fence.admit(&path).map_err(of_place)?;
        }
        let pool = self.store.pool_status();
        let mut entropy = [0; 16];
        sys::entropy(&mut entropy).map_err(|error| fault(&error.to_string()))?;
        if let Some((name, file)) = returning(&path, pool.pool_id, &files, &in_use_of(set))? {
            self.watch(&name, &file);
            let device = segments::Device::of_file(file.clone(), name.clone());
            let number = put(set, device, asked.replaces, entropy)?;
            files.insert(name, file);
            return Ok(number);
        }
        let place = free_place(&path, &files)?;
        if place.is_device() && !asked.force {
            check_blank(&place.data).map_err(of_place)?;
        }
        let mut part = Part::make(&place, wanted_bytes(set)).map_err(of_place)?;
        let (name, file) = (place.name(), part.file().clone());
        report_retries(&file, Some(name.clone()));
        self.watch(&name, &file);
        let finished = part.finish().map_err(of_place);
        match finished.and_then(|()| put(set, part.device(), asked.replaces, entropy)) {
            Ok(number) => {
                files.insert(name, file);
                Ok(number)
            }
            Err(refusal) => {
                part.undo();
                Err(refusal)
            }
        }
    }

    /// Removes a device and closes it. In stripes its content is moved to others first.
    fn remove(&self, set: &DeviceSet, number: u16) -> Result<u16, DeviceRefusal> {
        let mut files = self.files.lock();
        set.remove(number).map_err(refusal)?;
        self.forget_others(&mut files, set);
        Ok(number)
    }

    /// Closes the files, and gives up the reservations, of devices that are no longer in the pool.
    fn forget_others(&self, files: &mut Files, set: &DeviceSet) {
        let names: Vec<String> = set.devices().into_iter().map(|device| device.name).collect();
        files.retain(|name, _| names.contains(name));
        if let Some(fence) = &self.fence {
            fence.guard().keep_only(&names);
        }
    }

    /// Watches an added device: it reports when it is reserved for another controller.
    fn watch(&self, name: &str, file: &FileDisk) {
        if let Some(fence) = &self.fence {
            fence.watch(name, file);
        }
    }

    fn status(&self, number: u16) -> Result<DeviceStatus, DeviceRefusal> {
        let found = self.statuses().into_iter().find(|device| device.number == number);
        found.ok_or_else(|| refusal(DeviceError::Unknown(number)))
    }

    /// Reads a device for some seconds, on a thread of its own.
    fn identify(&self, number: u16) -> Result<u16, DeviceRefusal> {
        let name = self.status(number)?.name;
        let Some(file) = self.files.lock().get(&name).cloned() else {
            let text = format!("Device {number} is missing, and can't be read.");
            return Err(DeviceRefusal {
                kind: Kind::Conflict,
                code: "device_state",
                message: text,
            });
        };
        let read = move || {
            let start = Instant::now();
            let chunk_bytes = IDENTIFY_FRAMES as u64 * 4096;
            let chunks = (file.len_bytes() / chunk_bytes).max(1);
            let mut frames: Vec<FrameMut> =
                (0..IDENTIFY_FRAMES).map(|_| FrameMut::zeroed()).collect();
            for chunk in (0..chunks).cycle().step_by(7) {
                // Errors are irrelevant here: regular reads find them.
                let _ = file.read(chunk * chunk_bytes, &mut frames);
                if start.elapsed() >= IDENTIFY_TIME {
                    return;
                }
                thread::sleep(IDENTIFY_PAUSE);
            }
        };
        let started = thread::Builder::new().name("identify".into()).spawn(read);
        started.map(|_| number).map_err(|error| fault(&error.to_string()))
    }
}

impl DeviceChanges for Members {
    fn change(&self, change: DeviceChange) -> Result<u16, DeviceRefusal> {
        if let DeviceChange::Identify(number) = change {
            return self.identify(number);
        }
        let set = self.medium.several().ok_or_else(|| refusal(DeviceError::OnlyOne))?;
        let of_number =
            |number: u16, done: Result<(), DeviceError>| done.map(|()| number).map_err(refusal);
        match change {
            DeviceChange::Add(asked) => self.add(set, &asked),
            DeviceChange::Remove(number) => self.remove(set, number),
            DeviceChange::TakeOut(number) => {
                of_number(number, set.take_out(number, "an administrator took it out"))
            }
            DeviceChange::TakeBack(number) => of_number(number, set.take_back(number)),
            DeviceChange::Identify(number) => self.identify(number),
        }
    }
}

/// Returns the calls of a device, in the form of interfaces.
fn calls_of(counts: &DiskSnapshot, reads_elsewhere: u64) -> DeviceCalls {
    DeviceCalls {
        reads: transfers(counts.reads),
        writes: transfers(counts.writes),
        flushes: transfers(counts.flushes),
        reads_elsewhere,
    }
}

/// Returns the state in the form of interfaces.
pub fn state_of(state: segments::DeviceState) -> DeviceState {
    match state {
        segments::DeviceState::In => DeviceState::In,
        segments::DeviceState::CatchingUp => DeviceState::CatchingUp,
        segments::DeviceState::Out | segments::DeviceState::Kept => DeviceState::Out,
        segments::DeviceState::Missing => DeviceState::Missing,
    }
}

/// Returns the names of the devices to which the pool writes.
fn in_use_of(set: &DeviceSet) -> Vec<String> {
    let is_written = |device: &DeviceStatus| {
        matches!(device.state, segments::DeviceState::In | segments::DeviceState::CatchingUp)
    };
    set.devices().into_iter().filter(is_written).map(|device| device.name).collect()
}

/// Returns the bytes that the pool uses of each device: the size of a new file.
fn wanted_bytes(set: &DeviceSet) -> u64 {
    let labels = set.labels();
    let members = labels.iter().flatten().flat_map(|label| &label.members);
    members.map(|member| member.bytes).max().unwrap_or_default()
}

fn put(
    set: &DeviceSet,
    device: segments::Device,
    replaces: Option<u16>,
    entropy: [u8; 16],
) -> Result<u16, DeviceRefusal> {
    let put = match replaces {
        None => set.add(device, entropy),
        Some(old) => set.replace(old, device, entropy),
    };
    put.map_err(refusal)
}
