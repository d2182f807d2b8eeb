//! A host as ESXi is one towards an array: an initiator name, sessions over every portal, commands
//! in turn over those paths that the array prefers (ALUA), over others where these are down,
//! retries, and the offloads with their way back to doing it by hand.

mod acceleration;
mod access;
mod command;
mod counters;
mod device;
mod error;
mod offloads;
mod path;
mod settings;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use libiscsi::{Config, WireBytes};

pub use acceleration::Primitive;
pub use access::Access;
pub use command::{Extent, Swap};
pub use counters::{Class, DeviceCounters, Ended, Tally, Totals};
pub use device::Device;
pub use error::HostError;
pub use offloads::{Offloaded, Offloads};
pub use path::Path;
pub use settings::{EsxVersion, Settings};

use crate::engine::Reactor;

/// How long a target may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// A host. Cheap to clone: all clones are one host.
#[derive(Clone, Debug)]
pub struct Host(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    reactor: Reactor,
    settings: RefCell<Settings>,
    paths: Vec<Rc<Path>>,
    devices: RefCell<Vec<Weak<device::Inner>>>,
    /// What was counted of devices that are not used any more: by name and number.
    past: RefCell<BTreeMap<(String, u16), Totals>>,
    offloads: RefCell<Offloads>,
}

/// Where a host connects, and as whom.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// What it is called in reports.
    pub name: String,
    /// Its initiator name, secret, digests and patience; portal and unit are not looked at.
    pub config: Config,
    /// Every portal through which it is to reach the target: `address:port`.
    pub portals: Vec<String>,
    /// What an administrator has set.
    pub settings: Settings,
}

impl Host {
    /// Logs in through every portal.
    ///
    /// # Errors
    /// If one of them can't be reached or refuses.
    pub fn connect(reactor: &Reactor, plan: &HostPlan) -> Result<Self, HostError> {
        let mut paths = Vec::new();
        for portal in &plan.portals {
            let config = Config { portal: portal.clone(), ..plan.config.clone() };
            paths.push(Path::open(reactor, config)?);
        }
        if paths.is_empty() {
            return Err(HostError::NoPath);
        }
        Ok(Self(Rc::new(Inner {
            name: plan.name.clone(),
            reactor: reactor.clone(),
            settings: RefCell::new(plan.settings),
            paths,
            devices: RefCell::default(),
            past: RefCell::default(),
            offloads: RefCell::default(),
        })))
    }

    /// The same, again and again until it works, for 10 s at most: a target that starts is waited
    /// for.
    ///
    /// # Errors
    /// That of the last attempt.
    pub fn connect_within(reactor: &Reactor, plan: &HostPlan) -> Result<Self, String> {
        let start = Instant::now();
        loop {
            match Self::connect(reactor, plan) {
                Ok(host) => return Ok(host),
                Err(error) if start.elapsed() >= PATIENCE => {
                    return Err(format!(
                        "{} on {}: {error}",
                        plan.config.target,
                        plan.portals.join(", ")
                    ));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What its futures wait through.
    pub fn reactor(&self) -> &Reactor {
        &self.0.reactor
    }

    /// What is set now.
    pub fn settings(&self) -> Settings {
        *self.0.settings.borrow()
    }

    /// An administrator changes settings: they count from the next command on.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.0.settings.borrow_mut());
    }

    /// Finds out what a unit is, and uses it from now on.
    ///
    /// # Errors
    /// Those of the commands, and if the unit is none that a host can use.
    pub async fn claim(&self, lun: u16) -> Result<Device, HostError> {
        let device = Device::claim(self, lun).await?;
        let mut devices = self.0.devices.borrow_mut();
        devices.retain(|known| known.strong_count() > 0);
        devices.push(Rc::downgrade(&device.0));
        Ok(device)
    }

    /// The devices that are in use.
    pub fn devices(&self) -> Vec<Device> {
        self.0.devices.borrow().iter().filter_map(|known| known.upgrade().map(Device)).collect()
    }

    /// The counters of each device since the host started, by the device's name and number: of
    /// devices in use, and of former ones.
    pub fn totals(&self) -> BTreeMap<(String, u16), Totals> {
        let mut all = self.0.past.borrow().clone();
        for device in self.devices() {
            all.entry((device.name(), device.lun())).or_default().add(&device.totals());
        }
        all
    }

    /// A device is not used any more.
    fn keep(&self, name: String, lun: u16, totals: &Totals) {
        self.0.past.borrow_mut().entry((name, lun)).or_default().add(totals);
    }

    /// What the array did of what was to be offloaded, and what this host had to do itself.
    pub fn offloads(&self) -> Offloads {
        *self.0.offloads.borrow()
    }

    fn note_offload(&self, note: impl FnOnce(&mut Offloads)) {
        note(&mut self.0.offloads.borrow_mut());
    }

    /// Its paths, one for each portal.
    pub fn paths(&self) -> &[Rc<Path>] {
        &self.0.paths
    }

    /// What all its paths have sent and received, those of lost connections as far as was seen.
    pub fn wire_bytes(&self) -> WireBytes {
        let mut sum = WireBytes::default();
        for path in &self.0.paths {
            let bytes = path.wire_bytes();
            sum.sent += bytes.sent;
            sum.received += bytes.received;
        }
        sum
    }

    /// Commands that all its paths have carried.
    pub fn commands(&self) -> u64 {
        self.0.paths.iter().map(|path| path.commands()).sum()
    }
}
