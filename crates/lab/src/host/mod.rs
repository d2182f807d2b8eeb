//! A host that behaves like ESXi towards an array: an initiator name, sessions over every portal,
//! commands in turn over the paths that the array prefers (ALUA), over others if these are down,
//! retries, and the offloads with their fallback.

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

/// How long to wait for a target to start.
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
    /// Counters of devices that are no longer used: by name and LUN.
    past: RefCell<BTreeMap<(String, u16), Totals>>,
    offloads: RefCell<Offloads>,
}

/// Where a host connects, and by what name.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its name in reports.
    pub name: String,
    /// Its initiator name, secret, digests and patience; portal and unit are ignored.
    pub config: Config,
    /// Every portal through which it reaches the target: `address:port`.
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

    /// Does the same with retries, for up to 10 s, because the target may be starting.
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

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the interface for its futures.
    pub fn reactor(&self) -> &Reactor {
        &self.0.reactor
    }

    /// Returns the current settings.
    pub fn settings(&self) -> Settings {
        *self.0.settings.borrow()
    }

    /// Changes settings, from the next command on.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.0.settings.borrow_mut());
    }

    /// Identifies a unit, and uses it from now on.
    ///
    /// # Errors
    /// Those of the commands, and if a host can't use the unit.
    pub async fn claim(&self, lun: u16) -> Result<Device, HostError> {
        let device = Device::claim(self, lun).await?;
        let mut devices = self.0.devices.borrow_mut();
        devices.retain(|known| known.strong_count() > 0);
        devices.push(Rc::downgrade(&device.0));
        Ok(device)
    }

    /// Returns the devices in use.
    pub fn devices(&self) -> Vec<Device> {
        self.0.devices.borrow().iter().filter_map(|known| known.upgrade().map(Device)).collect()
    }

    /// Returns the counters of each device since the host started, by the device's name and LUN: of
    /// devices in use, and of former ones.
    pub fn totals(&self) -> BTreeMap<(String, u16), Totals> {
        let mut all = self.0.past.borrow().clone();
        for device in self.devices() {
            all.entry((device.name(), device.lun())).or_default().add(&device.totals());
        }
        all
    }

    /// Keeps the counters of a device that is no longer used.
    fn keep(&self, name: String, lun: u16, totals: &Totals) {
        self.0.past.borrow_mut().entry((name, lun)).or_default().add(totals);
    }

    /// Returns how much of what was to be offloaded the array did, and how much this host had to do
    /// itself.
    pub fn offloads(&self) -> Offloads {
        *self.0.offloads.borrow()
    }

    fn note_offload(&self, note: impl FnOnce(&mut Offloads)) {
        note(&mut self.0.offloads.borrow_mut());
    }

    /// Returns its paths, one for each portal.
    pub fn paths(&self) -> &[Rc<Path>] {
        &self.0.paths
    }

    /// Returns what all its paths have sent and received; for lost connections as far as known.
    pub fn wire_bytes(&self) -> WireBytes {
        let mut sum = WireBytes::default();
        for path in &self.0.paths {
            let bytes = path.wire_bytes();
            sum.sent += bytes.sent;
            sum.received += bytes.received;
        }
        sum
    }

    /// Returns how many commands all its paths have carried.
    pub fn commands(&self) -> u64 {
        self.0.paths.iter().map(|path| path.commands()).sum()
    }
}
