//! What scenarios run on: hosts, units of the array, a scale; and how a part of one is measured.

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

/// What a unit is unmapped by before it is formatted anew.
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

    /// As charts call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }

    /// The settings of a host for this side: as given, or without offloads.
    pub fn settings(self, settings: Settings) -> Settings {
        match self {
            Self::Off => settings.without_offloads(),
            Self::On => settings,
        }
    }
}

/// Where scenarios find the array, and how large they are.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Target, secret, digests and patience.
    pub config: Config,
    /// Every portal: `address:port`.
    pub portals: Vec<String>,
    /// The initiator name of each host.
    pub initiators: Vec<String>,
    /// Units that scenarios may overwrite: two at least.
    pub luns: Vec<u16>,
    /// The papers' sizes are divided by it.
    pub scale: u64,
    /// The papers' numbers of machines are divided by it. Other than 1 for tests only: figures are
    /// those of the full numbers.
    pub count_scale: u64,
    /// Seeds all that is written and all chance.
    pub seed: u64,
    /// How long a load runs. The papers' ran for minutes: their arrays have caches to fill.
    pub load_time: Duration,
}

/// Hosts, units and a scale.
pub struct Bench {
    plan: BenchPlan,
    reactor: Reactor,
    hosts: Vec<Host>,
    /// The array's own command line, where it has one that the lab knows.
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
    /// If one can't be, or there are too few units.
    pub fn connect(
        reactor: &Reactor,
        plan: BenchPlan,
        array: Option<Array>,
        progress: Progress,
    ) -> Result<Rc<Self>, ScenarioError> {
        if plan.luns.len() < 2 || plan.initiators.is_empty() {
            return Err(ScenarioError::Plan("two units and one host at least are needed".into()));
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

    /// Where it is, and how large.
    pub fn plan(&self) -> &BenchPlan {
        &self.plan
    }

    /// What its futures wait through.
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The first host, which most scenarios need alone.
    pub fn host(&self) -> &Host {
        &self.hosts[0]
    }

    /// The array's own command line.
    pub fn array(&self) -> Option<&Array> {
        self.array.as_ref()
    }

    /// For observers.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Sets all hosts alike.
    pub fn set(&self, settings: Settings) {
        for host in &self.hosts {
            host.set(|now| *now = settings);
        }
    }

    /// A size of the papers' (in bytes), scaled: whole blocks of a datastore, four at least.
    pub fn scaled(&self, bytes: u64) -> u64 {
        (bytes / self.plan.scale.max(1)).next_multiple_of(BLOCK_BYTES).max(4 * BLOCK_BYTES)
    }

    /// A number of the papers', of machines.
    pub fn counted(&self, count: usize) -> usize {
        (count / self.plan.count_scale.max(1) as usize).max(1)
    }

    /// How many of what, in the papers' words, with what it is here where that is less.
    pub fn cases(&self, count: usize, what: &str) -> String {
        let name = if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
        match self.counted(count) {
            same if same == count => name,
            fewer => format!("{name} ({fewer} here)"),
        }
    }

    /// A unit, by its place among those of the plan.
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

    /// A new datastore on a unit: the one that the scenario had there is checked, and whatever was
    /// there is unmapped.
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
                // Then what was there stays, and costs the array what it costs.
                Err(HostError::Unsupported { .. }) => break,
                end => end?,
            }
            offset += bytes;
        }
        Datastore::format(&device, &format!("lab{index}")).await?;
        self.join(host, index).await
    }

    /// Mounts a datastore that is there, on another host.
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

    /// Those of the mounts that are wanted, which are not among them any more.
    pub(super) fn take_places(&self, is_wanted: impl Fn(&Place) -> bool) -> Vec<Place> {
        let (wanted, others) = self.places.take().into_iter().partition(is_wanted);
        *self.places.borrow_mut() = others;
        wanted
    }

    /// A datastore was checked.
    pub(super) fn note_check(&self) {
        self.checks.set(self.checks.get() + 1);
    }

    /// Datastores that were checked until now.
    pub fn checks(&self) -> u64 {
        self.checks.get()
    }

    /// Bytes that the array stores, where it can be asked.
    ///
    /// # Errors
    /// If it can be asked, and does not answer.
    pub fn physical_bytes(&self) -> Result<Option<u64>, ScenarioError> {
        let space = self.array.as_ref().map(Array::space).transpose();
        Ok(space.map_err(ScenarioError::Array)?.map(|space| space.data_bytes))
    }

    /// Does something, and says what it cost the hosts.
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

    /// What became of all hosts' offloads until now.
    pub fn offloads(&self) -> Offloads {
        self.hosts.iter().fold(Offloads::default(), |sum, host| sum.plus(&host.offloads()))
    }

    /// What all hosts have carried until now.
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

    /// Looks at the hosts' traffic again and again, for lines over time.
    pub fn sample(self: &Rc<Self>, interval: Duration) -> Sampler {
        Sampler::start(self, interval)
    }
}

/// What went over the wires.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// TCP payload, both ways.
    pub wire_bytes: u64,
    /// Of that, what the hosts have sent.
    pub sent_bytes: u64,
    /// Commands.
    pub commands: u64,
}
