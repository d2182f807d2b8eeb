//! Opening what a pool is on: one file or device, or several.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use segments::{
    Device, DeviceSet, DeviceStatus, Local, Segments, Shared, Survey, has_labels_of_several,
    least_in,
};
use sys::FileDisk;

use super::failure::Failure;
use super::place::{Place, Places, open_disk, open_disk_beside, open_disk_to_read};

/// A device that has not said by then what it is counts as missing. A disk that stands still has to
/// spin up.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// What a pool is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To be written.
    Write {
        /// Whether devices may be missing that may know more than those that are there.
        may_miss: bool,
    },
    /// To be read only.
    Read,
    /// The same, as far as it can be: on too few devices as well.
    Salvage,
    /// To be read while another process uses it.
    Follow,
}

/// What a pool is on.
#[derive(Clone)]
pub enum Medium {
    /// One file or device.
    One(Arc<Local>, String),
    /// Several.
    Several(Arc<DeviceSet>, Vec<(String, Arc<FileDisk>)>),
}

impl Medium {
    /// Opens the pool at these places, and refuses a device that is in use. Which pool a device is
    /// of, and whether that has several, stands on it.
    pub fn open(places: &Places, purpose: Use) -> Result<Self, Failure> {
        Self::open_slowed(places, purpose, None)
    }

    /// Returns the same, where each request takes longer by so much: for tests, on one device.
    pub fn open_slowed(
        places: &Places,
        purpose: Use,
        latency: Option<Duration>,
    ) -> Result<Self, Failure> {
        let is_alone = places.all.len() == 1 && places.missing.is_empty();
        Self::over(places, purpose, latency, open_all(places, purpose, is_alone)?)
    }

    /// Returns the same to look at it, with what labels say of a pool on several devices, also if
    /// it can't be opened on those that are there.
    ///
    /// # Errors
    /// If none of the devices can be opened, or somebody else has one.
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
                // One whose label could not be read is missing: it can be added when it can.
                let devices = set.devices();
                files.retain(|(name, _)| devices.iter().any(|device| device.name == *name));
                Ok(Self::Several(Arc::new(set), files))
            }
        }
    }

    /// Returns where its segments live.
    pub fn segments(&self) -> Shared {
        match self {
            Self::One(local, _) => local.clone().into(),
            Self::Several(set, _) => set.clone().into(),
        }
    }

    /// Returns its files and devices, by name, as far as they were there when it was opened.
    pub fn files(&self) -> Vec<(String, Arc<FileDisk>)> {
        match self {
            Self::One(local, name) => {
                local.file().map(|file| (name.clone(), file.clone())).into_iter().collect()
            }
            Self::Several(_, files) => files.clone(),
        }
    }

    /// Returns what an administrator should know about it, one sentence each; mostly nothing.
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

    /// Returns the devices of the pool, by number. Of one that is alone its label is read.
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

/// What could be opened.
struct Opened {
    /// With their names.
    disks: Vec<(Arc<FileDisk>, String)>,
    /// Whether one of them is one of several.
    is_of_several: bool,
    /// Why others could not.
    failed: Vec<Failure>,
}

/// Opens all that can be opened. One of several that can't be, or does not answer, is as good as
/// missing, unless somebody else has it.
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
        tracing::warn!("nothing of a pool is at {}: it is opened without it", path.display());
    }
    Ok(opened)
}

/// A device that was opened, and whether it is one of several.
type Answer = Result<(FileDisk, bool), Failure>;

/// Opens all, side by side, as one that hangs must not keep the others from it. One that is alone
/// is waited for as long as it takes.
fn open_each(places: &Places, purpose: Use, is_alone: bool) -> Vec<(&Place, Answer)> {
    if is_alone {
        return places.all.iter().map(|place| (place, open(place, purpose))).collect();
    }
    let begin = |place: &Place| {
        let ((sender, receiver), place) = (mpsc::channel(), place.clone());
        // Nobody waits any more if it took too long.
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

/// Has told in the log what a device refuses, and takes when it is asked again; of several, which.
pub fn report_retries(disk: &FileDisk, name: Option<String>) {
    disk.report_to(move |text| match &name {
        None => tracing::warn!("{text}"),
        Some(name) => tracing::warn!("{name}: {text}"),
    });
}

/// Returns whether a device is one of so many that none of them has all of the pool.
pub fn is_in_stripes(place: &Place) -> bool {
    let Ok(disk) = open_disk_to_read(place) else { return false };
    let labels = Local::over(Arc::new(disk)).labels();
    labels.iter().flatten().any(|label| least_in(label.members.len()) > 1)
}

/// Returns why several places are no pool.
fn of_one(places: &Places) -> Failure {
    let pool = places.first().pool.display();
    Failure::Refused(format!(
        "what is at {pool} is not one of several devices of a pool: name it alone"
    ))
}
