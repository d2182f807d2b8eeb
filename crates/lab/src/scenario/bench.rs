//! What scenarios run on: hosts, units of the array, a scale; and measuring a part of one.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use libiscsi::Config;

use super::ScenarioError;
use super::sampler::Sampler;
use crate::datastore::{BLOCK_BYTES, Datastore, MountOptions};
use crate::deploy::Array;
use crate::disk::Place;
use crate::engine::Reactor;
use crate::host::{Device, Host, HostError, HostPlan, Offloads, Settings};
use crate::outcome::{InSoftware, Measure, Progress};
use crate::process;

/// The size of UNMAPs before a unit is formatted again.
const UNMAP_BYTES: u64 = 4 << 30;

/// Whether the array does the work, or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The host does it.
    Off,
    /// The array does it.
    On,
}

impl Side {
    /// Both, in the order in which scenarios run them.
    pub const BOTH: [Self; 2] = [Self::Off, Self::On];

    /// Returns its name in charts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }

    /// Returns the settings of a host for this side: as given, or without offloads.
    pub fn settings(self, settings: Settings) -> Settings {
        match self {
            Self::Off => settings.without_offloads(),
            Self::On => settings,
        }
    }
}

/// The array of scenarios, and their size.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Target, secret, digests and patience.
    pub config: Config,
    /// Every portal: `address:port`.
    pub portals: Vec<String>,
    /// The initiator name of each host.
    pub initiators: Vec<String>,
    /// Units that scenarios may overwrite: at least two.
    pub luns: Vec<u16>,
    /// The divisor of the papers' sizes.
    pub scale: u64,
    /// The divisor of the papers' numbers of machines. Other than 1 only for tests: figures are for
    /// the full numbers.
    pub count_scale: u64,
    /// The seed of everything that is written and all randomness.
    pub seed: u64,
    /// How long a load runs. The papers' ran for minutes: their arrays have caches to fill.
    pub load_time: Duration,
}

/// Hosts, units and a scale.
pub struct Bench {
    plan: BenchPlan,
    reactor: Reactor,
    hosts: Vec<Host>,
    /// The array's own command line, if it has one that the lab supports.
    array: Option<Array>,
    progress: Progress,
    places: RefCell<Vec<Place>>,
    checks: Cell<u64>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Bench {
    /// Connects all hosts through all portals.
    ///
    /// # Errors
    /// If one can't be connected, or there are too few units.
    pub fn connect(
        reactor: &Reactor,
        plan: BenchPlan,
        array: Option<Array>,
        progress: Progress,
    ) -> Result<Rc<Self>, ScenarioError> {
        if plan.luns.len() < 2 || plan.initiators.is_empty() {
            return Err(ScenarioError::Plan("at least two units and one host are needed".into()));
        }
        let mut hosts = Vec::new();
        for (index, initiator) in plan.initiators.iter().enumerate() {
            let config = Config { initiator: initiator.clone(), ..plan.config.clone() };
            let name = format!("host{}", index + 1);
            let portals = plan.portals.clone();
            let settings = Settings::default();
            hosts.push(Host::connect(reactor, &HostPlan { name, config, portals, settings })?);
        }
        let (places, checks) = (RefCell::default(), Cell::default());
        let reactor = reactor.clone();
        Ok(Rc::new(Self { plan, reactor, hosts, array, progress, places, checks }))
    }

    /// Returns the plan.
    pub fn plan(&self) -> &BenchPlan {
        &self.plan
    }

    /// Returns the interface for its futures.
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Returns its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the first host, which most scenarios use alone.
    pub fn host(&self) -> &Host {
        &self.hosts[0]
    }

    /// Returns the array's own command line.
    pub fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    /// Returns the progress, for observers.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Applies the settings to all hosts.
    pub fn set(&self, settings: Settings) {
        for host in &self.hosts {
            host.set(|now| *now = settings);
        }
    }

    /// Returns one of the papers' sizes (in bytes), scaled: whole blocks of a datastore, at least
    /// four.
    pub fn scaled(&self, bytes: u64) -> u64 {
        (bytes / self.plan.scale.max(1)).next_multiple_of(BLOCK_BYTES).max(4 * BLOCK_BYTES)
    }

    /// Returns one of the papers' numbers of machines, scaled.
    pub fn counted(&self, count: usize) -> usize {
        (count / self.plan.count_scale.max(1) as usize).max(1)
    }

    /// Returns how many of what, in the papers' words, with the scaled number if that is less.
    pub fn cases(&self, count: usize, what: &str) -> String {
        let name = if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
        match self.counted(count) {
            same if same == count => name,
            fewer => format!("{name} ({fewer} here)"),
        }
    }

    /// Returns a unit, by its index among those of the plan.
    ///
    /// # Errors
    /// Those of the host; also if the plan has no such unit.
    pub async fn device(&self, host: &Host, index: usize) -> Result<Device, ScenarioError> {
        let lun = self.plan.luns.get(index);
        let lun = *lun.ok_or_else(|| ScenarioError::Plan(format!("no unit {index} was given")))?;
        if let Some(known) = host.devices().into_iter().find(|device| device.lun() == lun) {
            return Ok(known);
        }
        Ok(host.claim(lun).await?)
    }

    /// Creates a new datastore on a unit: the previous one of the scenario there is checked, and
    /// the old content is unmapped.
    ///
    /// # Errors
    /// Those of the host and of the datastore, and what the check has found.
    pub async fn fresh(&self, host: &Host, index: usize) -> Result<Place, ScenarioError> {
        self.retire(index).await?;
        let device = self.device(host, index).await?;
        let mut offset = 0;
        while offset < device.bytes() {
            let bytes = UNMAP_BYTES.min(device.bytes() - offset);
            match device.unmap(&[(offset, bytes)]).await {
                // Then the old content stays, at the array's cost.
                Err(HostError::Unsupported { .. }) => break,
                end => end?,
            }
            offset += bytes;
        }
        Datastore::format(&device, &format!("lab{index}")).await?;
        self.join(host, index).await
    }

    /// Mounts an existing datastore on another host.
    ///
    /// # Errors
    /// Those of the host and of the datastore.
    pub async fn join(&self, host: &Host, index: usize) -> Result<Place, ScenarioError> {
        let device = self.device(host, index).await?;
        let datastore = Datastore::mount(&device, MountOptions::of_host(host.name())).await?;
        let place = Place { device, datastore };
        self.places.borrow_mut().push(place.clone());
        Ok(place)
    }

    /// Takes the wanted mounts out of the list.
    pub(super) fn take_places(&self, is_wanted: impl Fn(&Place) -> bool) -> Vec<Place> {
        let (wanted, others) = self.places.take().into_iter().partition(is_wanted);
        *self.places.borrow_mut() = others;
        wanted
    }

    /// Records that a datastore was checked.
    pub(super) fn note_check(&self) {
        self.checks.set(self.checks.get() + 1);
    }

    /// Returns how many datastores were checked so far.
    pub fn checks(&self) -> u64 {
        self.checks.get()
    }

    /// Returns the bytes that the array stores, if it can be queried.
    ///
    /// # Errors
    /// If it can be queried, and does not respond.
    pub fn physical_bytes(&self) -> Result<Option<u64>, ScenarioError> {
        let space = self.array.as_ref().map(Array::space).transpose();
        Ok(space.map_err(ScenarioError::Array)?.map(|space| space.data_bytes))
    }

    /// Does something, and returns what it cost the hosts.
    ///
    /// # Errors
    /// Those of what is done.
    pub async fn measure<T, E>(
        &self,
        what: impl Future<Output = Result<T, E>>,
    ) -> Result<(Measure, T), E> {
        let (before, offloads) = (self.traffic(), self.offloads());
        let (cpu, started) = (process::own_cpu_time(), Instant::now());
        let result = what.await?;
        let seconds = started.elapsed().as_secs_f64();
        let cpu = process::own_cpu_time().saturating_sub(cpu);
        let after = self.traffic();
        let measure = Measure {
            seconds,
            wire_bytes: after.wire_bytes - before.wire_bytes,
            host_cpu_s: cpu.as_secs_f64(),
            commands: after.commands - before.commands,
            in_software: InSoftware::of(&self.offloads().since(&offloads)),
            ..Measure::default()
        };
        Ok((measure, result))
    }

    /// Returns the results of all hosts' offloads so far.
    pub fn offloads(&self) -> Offloads {
        self.hosts.iter().fold(Offloads::default(), |sum, host| sum.plus(&host.offloads()))
    }

    /// Returns what all hosts have transferred so far.
    pub fn traffic(&self) -> Traffic {
        let mut sum = Traffic::default();
        for host in &self.hosts {
            let wire = host.wire_bytes();
            sum.wire_bytes += wire.sent + wire.received;
            sum.sent_bytes += wire.sent;
            sum.commands += host.commands();
        }
        sum
    }

    /// Samples the hosts' traffic periodically, for lines over time.
    pub fn sample(self: &Rc<Self>, interval: Duration) -> Sampler {
        Sampler::start(self, interval)
    }
}

/// Traffic on the wires.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// TCP payload, both ways.
    pub wire_bytes: u64,
    /// Those of them that the hosts have sent.
    pub sent_bytes: u64,
    /// Commands.
    pub commands: u64,
}
