//! Opening the medium of a pool: one file or device, or several.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use segments::{
    Device, DeviceSet, DeviceStatus, Local, Segments, Shared, Survey, has_labels_of_several,
    least_in,
};
use sys::FileDisk;

use super::failure::Failure;
use super::place::{Place, Places, open_disk, open_disk_beside, open_disk_to_read};

/// The timeout after which a device without response counts as missing. A disk in standby has to
/// spin up.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The purpose of opening a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reading and writing.
    Write {
        /// Whether missing devices are accepted that may have newer content than those that are
        /// present.
        may_miss: bool,
    },
    /// Only reading.
    Read,
    /// Reading as much as possible, also with too few devices.
    Salvage,
    /// Reading while another process uses the pool.
    Follow,
}

/// The medium of a pool.
#[derive(Clone)]
pub enum Medium {
    /// One file or device.
    One(Arc<Local>, String),
    /// Several files or devices.
    Several(Arc<DeviceSet>, Vec<(String, Arc<FileDisk>)>),
}

impl Medium {
    /// Opens the pool at these places, and refuses a device that is in use. The label of a device
    /// identifies its pool, and whether that has several devices.
    pub fn open(places: &Places, purpose: Use) -> Result<Self, Failure> {
        Self::open_slowed(places, purpose, None)
    }

    /// Like [`Medium::open`], but delays each request: for tests, on one device.
    pub fn open_slowed(
        places: &Places,
        purpose: Use,
        latency: Option<Duration>,
    ) -> Result<Self, Failure> {
        let is_alone = places.all.len() == 1 && places.missing.is_empty();
        Self::over(places, purpose, latency, open_all(places, purpose, is_alone)?)
    }

    /// Opens the pool for inspection, with the labels of a pool on several devices, even if the
    /// present devices do not suffice to open it.
    ///
    /// # Errors
    /// If none of the devices can be opened, or another process has one.
    pub fn survey(
        places: &Places,
        purpose: Use,
    ) -> Result<(Option<Survey>, Result<Self, Failure>), Failure> {
        let is_alone = places.all.len() == 1 && places.missing.is_empty();
        let opened = open_all(places, purpose, is_alone)?;
        let device =
            |(disk, name): &(Arc<FileDisk>, String)| Device::of_file(disk.clone(), name.clone());
        let devices = || opened.disks.iter().map(device).collect();
        let survey = opened.is_of_several.then(|| Survey::of(devices())).flatten();
        Ok((survey, Self::over(places, purpose, None, opened)))
    }

    fn over(
        places: &Places,
        purpose: Use,
        latency: Option<Duration>,
        Opened { disks, is_of_several, mut failed }: Opened,
    ) -> Result<Self, Failure> {
        match (&disks[..], is_of_several) {
            ([(disk, name)], false) if places.all.len() + places.missing.len() == 1 => {
                let local = match latency {
                    None => Local::new(disk.clone()),
                    Some(latency) => Local::slowed(disk.clone(), latency),
                };
                Ok(Self::One(Arc::new(local), name.clone()))
            }
            (_, false) => Err(failed.pop().unwrap_or_else(|| of_one(places))),
            (_, true) if latency.is_some() => {
                Err(Failure::Usage("only a pool on one device can be slowed".into()))
            }
            (_, true) => {
                let mut files: Vec<_> =
                    disks.iter().map(|(disk, name)| (name.clone(), disk.clone())).collect();
                let devices =
                    disks.into_iter().map(|(disk, name)| Device::of_file(disk, name)).collect();
                let set = match purpose {
                    Use::Write { may_miss } => DeviceSet::open(devices, may_miss),
                    Use::Read | Use::Follow => DeviceSet::open(devices, true),
                    Use::Salvage => DeviceSet::open_to_salvage(devices),
                };
                let set = set.map_err(|error| Failure::Refused(error.to_string()))?;
                // A device whose label could not be read is missing: it can be added when it is
                // readable.
                let devices = set.devices();
                files.retain(|(name, _)| devices.iter().any(|device| device.name == *name));
                Ok(Self::Several(Arc::new(set), files))
            }
        }
    }

    /// Returns the device of its segments.
    pub fn segments(&self) -> Shared {
        match self {
            Self::One(local, _) => local.clone().into(),
            Self::Several(set, _) => set.clone().into(),
        }
    }

    /// Returns its files and devices, by name, that were present when it was opened.
    pub fn files(&self) -> Vec<(String, Arc<FileDisk>)> {
        match self {
            Self::One(local, name) => {
                local.file().map(|file| (name.clone(), file.clone())).into_iter().collect()
            }
            Self::Several(_, files) => files.clone(),
        }
    }

    /// Returns notices for the administrator, one sentence each; usually none.
    pub fn notices(&self) -> Vec<String> {
        match self {
            Self::One(local, _) => local.notices(),
            Self::Several(set, _) => set.notices(),
        }
    }

    /// Returns the devices of a pool on several; `None` if it is on one.
    pub fn several(&self) -> Option<&Arc<DeviceSet>> {
        match self {
            Self::One(..) => None,
            Self::Several(set, _) => Some(set),
        }
    }

    /// Returns the devices of the pool, by number. For a single device its label is read.
    pub fn devices(&self) -> Vec<DeviceStatus> {
        match self {
            Self::One(local, name) => {
                let devices = local.devices().into_iter();
                devices.map(|device| DeviceStatus { name: name.clone(), ..device }).collect()
            }
            Self::Several(set, _) => set.devices(),
        }
    }
}

/// The devices that could be opened.
struct Opened {
    /// The devices, with their names.
    disks: Vec<(Arc<FileDisk>, String)>,
    /// Whether one of them belongs to a pool on several devices.
    is_of_several: bool,
    /// The errors of the others.
    failed: Vec<Failure>,
}

/// Opens all devices that can be opened. One of several that can't be opened, or does not respond,
/// counts as missing, unless another process has it.
fn open_all(places: &Places, purpose: Use, is_alone: bool) -> Result<Opened, Failure> {
    let mut opened = Opened { disks: Vec::new(), is_of_several: false, failed: Vec::new() };
    for (place, answer) in open_each(places, purpose, is_alone) {
        match answer {
            Ok((disk, is_of_several)) => {
                let name = place.name();
                report_retries(&disk, (!is_alone).then(|| name.clone()));
                opened.disks.push((Arc::new(disk), name));
                opened.is_of_several |= is_of_several;
            }
            Err(failure @ Failure::Refused(_)) => return Err(failure),
            Err(failure) if is_alone => return Err(failure),
            Err(failure) => {
                tracing::warn!("{failure}: the pool is opened without it");
                opened.failed.push(failure);
            }
        }
    }
    for path in &places.missing {
        tracing::warn!(
            "there is no part of a pool at {}: the pool is opened without it",
            path.display()
        );
    }
    Ok(opened)
}

/// An opened device, and whether it belongs to a pool on several devices.
type Answer = Result<(FileDisk, bool), Failure>;

/// Opens all devices in parallel, because one that hangs must not delay the others. There is no
/// timeout for a single device.
fn open_each(places: &Places, purpose: Use, is_alone: bool) -> Vec<(&Place, Answer)> {
    if is_alone {
        return places.all.iter().map(|place| (place, open(place, purpose))).collect();
    }
    let begin = |place: &Place| {
        let ((sender, receiver), place) = (mpsc::channel(), place.clone());
        // The receiver is gone after a timeout.
        std::thread::spawn(move || drop(sender.send(open(&place, purpose))));
        receiver
    };
    let opening: Vec<_> = places.all.iter().map(|place| (place, begin(place))).collect();
    let begun = Instant::now();
    let wait = |(place, receiver): (_, mpsc::Receiver<Answer>)| {
        let answer = receiver.recv_timeout(ANSWERS_WITHIN.saturating_sub(begun.elapsed()));
        (place, answer.unwrap_or_else(|_| Err(does_not_answer(place))))
    };
    opening.into_iter().map(wait).collect()
}

fn open(place: &Place, purpose: Use) -> Answer {
    let disk = match purpose {
        Use::Write { .. } => open_disk(place),
        Use::Read | Use::Salvage => open_disk_to_read(place),
        Use::Follow => open_disk_beside(place),
    }?;
    let is_of_several = has_labels_of_several(&disk);
    Ok((disk, is_of_several))
}

fn does_not_answer(place: &Place) -> Failure {
    let seconds = ANSWERS_WITHIN.as_secs();
    let text = format!("{} has not answered for {seconds} s", place.data.display());
    Failure::Machine(text)
}

/// Logs the requests that a device refuses and accepts on a retry; for several devices, with the
/// name.
pub fn report_retries(disk: &FileDisk, name: Option<String>) {
    disk.report_to(move |text| match &name {
        None => tracing::warn!("{text}"),
        Some(name) => tracing::warn!("{name}: {text}"),
    });
}

/// Returns whether a device belongs to a pool in stripes, of which no single device has everything.
pub fn is_in_stripes(place: &Place) -> bool {
    let Ok(disk) = open_disk_to_read(place) else { return false };
    let labels = Local::over(Arc::new(disk)).labels();
    labels.iter().flatten().any(|label| least_in(label.members.len()) > 1)
}

/// Returns the failure for several places that are not one pool.
fn of_one(places: &Places) -> Failure {
    let pool = places.first().pool.display();
    Failure::Refused(format!("{pool} is not a device of a pool on several devices: give it alone"))
}
