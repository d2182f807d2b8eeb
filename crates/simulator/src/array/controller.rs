//! The array's side of the world: front ends over the real target and the real store, on the
//! simulated disk. All of it is the product's code, except threads, sockets, the clock and the
//! disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use array::{Array, HostName, InitiatorName, NewHost, NewVolume, Reduction, VolumeName};
use block::{ArrayIdentity, LogicalBlockSize, SectorRange, VolumeLimits, VolumeRequest};
use front::transport::iscsi::Iscsi;
use front::transport::{self, Opening};
use front::{FrontEnd, Options, PortOptions, Wake, Wires};
use iscsi::{InitiatorAccess, Limits};
use store::{LogEnd, OpenOptions, Store};

use super::channel::{SimChannel, Way};
use super::chores::{Chore, Chores, volume_name};
use super::network::{Link, Network};
use super::sockets::Sockets;
use crate::disk::SimDisk;
use crate::rng::Rng;

/// The target that hosts log in to.
pub const TARGET_NAME: &str = "iqn.2026-01.example:array";
/// The time at which the world begins, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_790_000_000_000;

/// What stays the same for the life of a pool.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How the store is opened.
    pub options: OpenOptions,
    /// Front ends.
    pub threads: usize,
    /// Portals, which are target ports.
    pub ports: u16,
    /// The bounds of memory and time.
    pub limits: Limits,
    /// The iSCSI names of the hosts.
    pub hosts: Vec<String>,
    /// The sizes of the volumes in bytes, which all hosts see, from LUN 1 on.
    pub volume_bytes: Vec<u64>,
    /// The initial limits of each of them.
    pub volume_limits: VolumeLimits,
}

/// The clock of the world.
#[derive(Debug, Default)]
pub struct SimClock {
    now_ns: AtomicU64,
    tick_ns: u64,
}

impl SimClock {
    /// Creates a clock that advances by so much at each query, because work takes time.
    pub fn new(tick_ns: u64) -> Self {
        Self { now_ns: AtomicU64::new(0), tick_ns }
    }

    /// Advances the time.
    pub fn advance_to(&self, now: Duration) {
        let ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// Returns the time, without advancing it.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }
}

impl front::Clock for SimClock {
    fn now(&self) -> Duration {
        let before_ns = self.now_ns.fetch_add(self.tick_ns, Ordering::Relaxed);
        Duration::from_nanos(before_ns + self.tick_ns)
    }

    fn wall_ms(&self) -> u64 {
        EPOCH_MS + self.time().as_millis() as u64
    }
}

/// Records that it was rung.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everybody may log in.
struct Everybody;

impl iscsi::Access for Everybody {
    fn initiator(&self, _: &str) -> Option<InitiatorAccess> {
        Some(InitiatorAccess::default())
    }
}

use thread::Thread;

/// A running array.
pub struct Controller {
    disk: Arc<SimDisk>,
    /// The pool.
    pub store: Arc<Store>,
    array: Arc<Array>,
    shared: Arc<front::Shared>,
    clock: Arc<SimClock>,
    threads: Vec<Thread>,
    next_thread: usize,
    maintenance: Flag,
    saver: Flag,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Creates a pool with volumes that all hosts see.
///
/// # Errors
/// Those of the array.
pub fn make(
    disk: &Arc<SimDisk>,
    setup: &Setup,
    segment_bytes: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    let mut entropy = [0; 64];
    entropy.iter_mut().for_each(|byte| *byte = rng.draw() as u8);
    Store::create_as(&**disk, &entropy, segment_bytes, format::FormatVersion::default())
        .map_err(text)?;
    let store = Arc::new(Store::open(disk.clone(), setup.options.clone()).map_err(text)?);
    let array = Array::open(store.clone(), false).map_err(text)?;
    let created_ms = EPOCH_MS;
    for (number, name) in setup.hosts.iter().enumerate() {
        let new = NewHost {
            name: HostName::new(&format!("host-{number}")).map_err(text)?,
            initiators: vec![InitiatorName::new(name).map_err(text)?],
            chap: None,
            personality: None,
            created_ms,
        };
        array.create_host(new).map_err(text)?;
    }
    for (number, size_bytes) in setup.volume_bytes.iter().enumerate() {
        let name = volume_name(number);
        let new = NewVolume {
            name: VolumeName::new(&name).map_err(text)?,
            size_bytes: *size_bytes,
            logical_block: LogicalBlockSize::B512,
            reduction: Reduction::default(),
            limits: setup.volume_limits,
            created_ms,
        };
        array.create_volume(new).map_err(text)?;
        for host in 0..setup.hosts.len() {
            let lun = Some(number as u16 + 1);
            array.connect(&name, &format!("host-{host}"), lun).map_err(text)?;
        }
    }
    Ok(())
}

impl Controller {
    /// Opens the pool, and serves it.
    ///
    /// # Errors
    /// Those of the array.
    pub fn open(disk: &Arc<SimDisk>, setup: &Setup, clock: &Arc<SimClock>) -> Result<Self, String> {
        Self::open_as(disk, setup, clock, (None, None))
    }

    /// The same, taking over from a controller of this incarnation, which has left a log with this
    /// end.
    fn open_as(
        disk: &Arc<SimDisk>,
        setup: &Setup,
        clock: &Arc<SimClock>,
        (takes_over, log_end): (Option<u64>, Option<LogEnd>),
    ) -> Result<Self, String> {
        let options = OpenOptions { takes_over, log_end, ..setup.options.clone() };
        let store = Arc::new(Store::open(disk.clone(), options).map_err(text)?);
        let array = Arc::new(Array::open(store.clone(), false).map_err(text)?);
        let (id, size) = array.token_volume();
        let ranges = vec![SectorRange::new(0, size.0)];
        store.execute(VolumeRequest::Unmap { volume: id, ranges }).map_err(text)?;
        let wakers: Vec<Flag> = (0..setup.threads).map(|_| Flag::default()).collect();
        let (maintenance, saver) = (Flag::default(), Flag::default());
        let port = |id| PortOptions { address: address(3000 + id), group: id, id };
        let ports: Vec<PortOptions> = (1..=setup.ports).map(port).collect();
        let transports = Iscsi::new(transport::iscsi::Options {
            target_name: TARGET_NAME.into(),
            target_alias: String::new(),
            ports: ports.clone(),
            access: Arc::new(Everybody),
            limits: setup.limits.clone(),
        });
        let shared = front::Shared::new(Options {
            store: store.clone(),
            tokens: scsi::RodVolume { id, size, key: scsi::TokenKey([7; 32]) },
            identity: ArrayIdentity {
                vendor: "HOLDFAST".into(),
                product: "Holdfast".into(),
                revision: "0001".into(),
                target_name: TARGET_NAME.into(),
            },
            ports,
            transports: Arc::new(transports),
            luns: array.clone(),
            clock: clock.clone(),
            wakers: wakers.iter().map(|flag| Box::new(flag.clone()) as Box<dyn Wake>).collect(),
            saver: Box::new(saver.clone()),
            maintenance: Box::new(maintenance.clone()),
        });
        shared.restore(&*array).map_err(text)?;
        let thread = |(index, woken): (usize, Flag)| {
            let way = Way::new(disk.clone(), store.segments().clone());
            let front = FrontEnd::new(shared.clone(), index, Box::new(SimChannel(way.clone())));
            let (sockets, accepted) = Default::default();
            Thread { front, way, woken, sockets, accepted, due: Duration::ZERO }
        };
        let threads = wakers.into_iter().enumerate().map(thread).collect();
        let (disk, clock) = (disk.clone(), clock.clone());
        let next_thread = 0;
        Ok(Self { disk, store, array, shared, clock, threads, next_thread, maintenance, saver })
    }

    /// Accepts a host's connection to a port; ports are counted from 1.
    pub fn accept(&mut self, link: Link, port: u16) {
        self.take(link, port, None);
    }

    fn take(&mut self, link: Link, port: u16, handed: Option<transport::Handed>) {
        let thread = self.next_thread % self.threads.len();
        self.next_thread = thread + 1;
        self.threads[thread].accepted.push((link, port, handed));
    }

    /// Returns the number of front ends.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether a front end has something to do now.
    pub fn is_due(&self, index: usize, network: &Network) -> bool {
        let now = self.clock.time();
        let thread = &self.threads[index];
        thread.due <= now
            || thread.woken.0.load(Ordering::Relaxed)
            || thread.way.has_signal()
            || !thread.accepted.is_empty()
            || thread.sockets.iter().flatten().any(|socket| socket.has_event(network, now))
    }

    /// Returns when the next turn of any front end is due.
    pub fn due_at(&self) -> Duration {
        self.threads.iter().map(|thread| thread.due).min().unwrap_or_default()
    }

    /// Runs a turn of a front end.
    pub fn turn(&mut self, index: usize, network: &mut Network, rng: &mut Rng) {
        let now = self.clock.time();
        let thread = &mut self.threads[index];
        thread.open_accepted(now, rng);
        thread.note(network, now);
        let mut sockets = std::mem::take(&mut thread.sockets);
        let leaving = &mut Vec::new();
        thread.turn(now, &mut Sockets { network, sockets: &mut sockets, leaving, now });
        thread.sockets = sockets;
    }

    /// The same over other wires than those of the network. The front end itself
    /// ([`Controller::front`]) has opened their connections, and gets their events.
    pub fn turn_over(&mut self, index: usize, wires: &mut dyn Wires) {
        self.threads[index].turn(self.clock.time(), wires);
    }

    /// Returns a front end.
    pub fn front(&mut self, index: usize) -> &mut FrontEnd {
        &mut self.threads[index].front
    }

    /// Returns the memory for hosts' data in flight, in bytes.
    pub fn data_bytes(&self) -> usize {
        self.shared.transports.data_bytes()
    }

    /// Returns whether a front end has disk requests in flight.
    pub fn is_busy(&self, index: usize) -> bool {
        self.in_flight(index) > 0
    }

    /// Returns how many disk requests of a front end are in flight.
    pub fn in_flight(&self, index: usize) -> usize {
        self.threads[index].way.in_flight()
    }

    /// Returns how often a front end has submitted requests to the kernel.
    pub fn submits(&self, index: usize) -> u64 {
        self.threads[index].way.submits()
    }

    /// Does one step of a front end's disk request.
    pub fn disk_step(&self, index: usize, rng: &mut Rng) {
        self.threads[index].way.step(rng);
    }

    /// Returns a requested chore that no other thread does.
    pub fn wanted(&self) -> Option<Chore> {
        if self.saver.take() {
            // One request covers everything that is to be saved.
            return Some(Chore::Save);
        }
        (self.maintenance.take() || self.store.maintenance_due()).then_some(Chore::Maintain)
    }

    /// Returns what is needed to do chores while the front ends continue.
    pub fn chores(&self) -> Chores {
        let Self { disk, store, array, shared, .. } = self;
        Chores {
            disk: disk.clone(),
            store: store.clone(),
            array: array.clone(),
            shared: shared.clone(),
        }
    }
}

/// Returns the address of a port of the array.
fn address(port: u16) -> std::net::SocketAddr {
    ([192, 0, 2, 1], port).into()
}

/// Returns a new connection to a port, counted from 1, in the form for a front end.
pub fn opening(link: Link, port: u16, now: Duration, rng: &mut Rng) -> Opening {
    let mut entropy = [0; 32];
    entropy.iter_mut().for_each(|byte| *byte = rng.draw() as u8);
    let [.., high, low] = link.0.to_be_bytes();
    Opening {
        portal_index: usize::from(port) - 1,
        local: address(3000 + port),
        peer: ([198, 51, high, low], 40_000).into(),
        entropy,
        now,
    }
}

mod handing;
#[cfg(test)]
mod tests;
mod thread;
#[cfg(test)]
mod turn_tests;
