//! The world: hosts, the network, the array and its disk, one random step after the other.
//!
//! A step is a turn of one front end, a step of one request to the disk, something that a host
//! does, a chore of the array, or the passing of time. So mail between front ends is late,
//! completions come in any order, and hosts send anything meanwhile. Chores block, as the threads
//! do that perform them in a process: between two of their I/Os, and while they wait for others,
//! everything else continues ([`inner`]).
//!
//! The power fails, or the process is killed, at any step: the network cuts all connections, and
//! the array restarts from the content of the disk.
//!
//! The same plan gives the same [`Summary::trace`].

mod events;
mod inner;
mod switching;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use store::Durability;

use super::chores::Chore;
use super::controller::{Controller, Setup, SimClock, make};
use super::network::{Cut, Link, Network, Rules};
use super::summary::{Several, Summary};
use crate::disk::{SimDisk, Survival};
use crate::rng::{Rng, mix};
use events::any_limits;
pub use events::{Events, Trouble};
use inner::Inner;

/// Steps of everything else between two I/Os of a chore.
const STEPS_BESIDE: u32 = 6;
/// In half of the worlds, the maximum time between two reads of the clock, in nanoseconds.
const TICK_NS_MAX: u64 = 20_000;
/// After this many steps without an answer, while waiting for everything in flight, it counts as
/// lost.
const IDLE_STEPS_MAX: u64 = 400_000;

/// The number of steps in which memory for data must be released, once nothing is in flight.
const REST_STEPS_MAX: u64 = 100_000;

/// The hosts of a world.
pub trait Hosts {
    /// One of them does something, chosen randomly: something new only if `begins`. Returns
    /// connections that were opened, with their ports, counted from 1.
    ///
    /// # Errors
    /// What the array has done wrong.
    fn step(&mut self, network: &mut Network, now: Duration, begins: bool) -> Step;

    /// Returns the next deadline of any of them.
    fn due_at(&self) -> Option<Duration>;

    /// Returns whether nothing is in flight.
    fn is_idle(&self) -> bool;

    /// Returns how many commands and other requests got a response.
    fn answers(&self) -> u64;

    /// Records a restart of the array: commands without a response have taken effect, or never
    /// will.
    fn array_started(&mut self);

    /// Records a permanently failed write: the array may fail requests until it restarts, but may
    /// not return anything wrong.
    fn array_failed(&mut self) {}

    /// Returns a hash of all responses that they received.
    fn trace(&self) -> u64;

    /// Returns the counts of sessions with several connections.
    fn several(&self) -> Several {
        Several::default()
    }

    /// Returns whether an error only means that too much may have happened to be judged.
    fn gave_up(&self) -> bool {
        false
    }
}

/// The result of a step of the hosts.
pub type Step = Result<Vec<(Link, u16)>, String>;

/// A world, except its hosts.
#[derive(Clone, Debug)]
pub struct World {
    /// The seed of all randomness.
    pub seed: u64,
    /// The array.
    pub setup: Setup,
    /// The size of the pool's segments.
    pub segment_bytes: u64,
    /// The size of the pool.
    pub pool_bytes: u64,
    /// What happens.
    pub events: Events,
    /// The number of steps, before everything in flight is finished.
    pub steps: u64,
    /// The behavior of the network.
    pub rules: Rules,
    /// The behavior of the disk.
    pub trouble: Trouble,
}

thread_local! {
    /// The world, while a chore is done.
    static MEANWHILE: RefCell<Option<Inner>> = const { RefCell::new(None) };
}

impl World {
    /// Runs it. `hosts` have no other randomness than that of a seed.
    ///
    /// # Errors
    /// What was wrong, and after how many steps.
    pub fn run(&self, hosts: Box<dyn Hosts>) -> Result<Summary, (u64, String)> {
        let mut run = Run::begin(self, hosts).map_err(|reason| (0, reason))?;
        for step in 0..self.steps {
            match run.step() {
                Ok(()) => {}
                Err(_) if run.gave_up() => return Ok(run.summary()),
                Err(reason) => return Err((step, reason)),
            }
        }
        match run.end() {
            Err(_) if run.gave_up() => Ok(run.summary()),
            Err(reason) => Err((self.steps, reason)),
            Ok(()) => Ok(run.summary()),
        }
    }
}

/// The parts of a world that exist while there is no array.
struct Parts {
    disk: Arc<SimDisk>,
    clock: Arc<SimClock>,
    network: Network,
    hosts: Box<dyn Hosts>,
    rng: Rng,
    begins: bool,
}

/// A running world.
struct Run<'a> {
    world: &'a World,
    inner: Option<Inner>,
    done: Summary,
}

impl<'a> Run<'a> {
    fn begin(world: &'a World, hosts: Box<dyn Hosts>) -> Result<Self, String> {
        let mut rng = Rng::new(world.seed);
        let disk = Arc::new(SimDisk::new(world.pool_bytes, rng.draw()));
        make(&disk, &world.setup, world.segment_bytes, &mut rng)?;
        disk.set_faults(world.trouble.faults);
        let tick_ns = if rng.chance(50) { rng.below(TICK_NS_MAX) } else { 0 };
        let clock = Arc::new(SimClock::new(tick_ns));
        let array = Controller::open(&disk, &world.setup, &clock)?;
        let network = Network::new(rng.draw(), world.rules);
        let stalled = vec![Duration::ZERO; world.setup.threads];
        let inner = Inner {
            disk,
            clock,
            network,
            array,
            hosts,
            rng,
            stalled,
            begins: true,
            failure: None,
            broken_steps_left: None,
        };
        Ok(Self { world, inner: Some(inner), done: Summary::default() })
    }

    /// Returns the world, which is complete between two chores.
    fn inner(&mut self) -> Result<&mut Inner, String> {
        self.inner.as_mut().ok_or_else(|| "the world is lost".into())
    }

    fn step(&mut self) -> Result<(), String> {
        let Events { crashes, kills, chores, cuts, stalls, bad_places, failures, limits, .. } =
            self.world.events;
        let switches = self.world.events.switches;
        let broken_steps = self.world.trouble.broken_steps;
        let volumes = self.world.setup.volume_bytes.len() as u64;
        let inner = self.inner()?;
        if inner.disk.has_failed() {
            return match inner.goes_on_broken(broken_steps) {
                true => inner.go_on(),
                false => self.restart(true),
            };
        }
        let events = [crashes, kills, chores, cuts, stalls, bad_places, failures, limits, switches];
        let usual = 10_000_u64.saturating_sub(events.iter().sum());
        let weights: Vec<u64> = [usual].into_iter().chain(events).collect();
        match inner.rng.weighted(&weights) {
            1 => self.restart(true),
            2 => self.restart(false),
            3 => {
                const ANY: [Chore; 5] = [
                    Chore::Checkpoint,
                    Chore::Reclaim,
                    Chore::Scrub,
                    Chore::Optimize,
                    Chore::Sweep,
                ];
                let chore = ANY[inner.rng.below(ANY.len() as u64) as usize];
                self.chore(chore)
            }
            4 => {
                self.done.cuts += 1;
                self.inner()?.cut();
                Ok(())
            }
            5 => {
                self.inner()?.stall_disk();
                Ok(())
            }
            6 => {
                inner.disk.go_bad(&mut inner.rng);
                Ok(())
            }
            7 => {
                inner.disk.strike_soon(&mut inner.rng);
                Ok(())
            }
            8 => {
                let volume = inner.rng.below(volumes) as usize;
                let limits = any_limits(&mut inner.rng);
                self.chore(Chore::Limit(volume, limits))
            }
            9 => self.switch(),
            _ => self.usual(),
        }
    }

    /// Does what the array has requested soon, but not at once.
    fn usual(&mut self) -> Result<(), String> {
        let inner = self.inner()?;
        if inner.rng.chance(10)
            && let Some(chore) = inner.array.wanted()
        {
            return self.chore(chore);
        }
        self.inner()?.go_on()
    }

    fn chore(&mut self, chore: Chore) -> Result<(), String> {
        self.done.chores += 1;
        let Some(inner) = self.inner.take() else { return Err("the world is lost".into()) };
        inner.disk.note(&format!("chore {chore:?}"));
        let (disk, chores) = (inner.disk.clone(), inner.array.chores());
        let now_s = inner.clock.time().as_secs();
        MEANWHILE.set(Some(inner));
        disk.set_hook(Some(Box::new(meanwhile)));
        let done = chores.run(chore, now_s);
        disk.set_hook(None);
        let mut inner = MEANWHILE.take().ok_or("the world is lost")?;
        let failure = inner.failure.take();
        self.inner = Some(inner);
        match failure {
            Some(reason) => Err(reason),
            None => done,
        }
    }

    /// Makes the power fail, or kills the process: all connections are lost, and the array
    /// restarts.
    fn restart(&mut self, power_fails: bool) -> Result<(), String> {
        let Some(inner) = self.inner.take() else { return Err("the world is lost".into()) };
        let Inner { disk, clock, mut network, array, hosts, mut rng, begins, .. } = inner;
        drop(array);
        let now = clock.time();
        let links: Vec<Link> = network.links().collect();
        // What was acknowledged before it was durable must not be reported when it is gone.
        let is_volatile = self.world.setup.options.durability == Durability::Flush;
        for link in links {
            let at_once = rng.chance(50) || is_volatile;
            let cut = if at_once { Cut::AtOnce } else { Cut::AfterSome };
            network.cut(link, cut, now);
            network.close(link, super::network::Side::Array, now);
        }
        self.start_anew(Parts { disk, clock, network, hosts, rng, begins }, power_fails)
    }

    /// Restarts the array, with no connection left.
    fn start_anew(&mut self, parts: Parts, mut power_fails: bool) -> Result<(), String> {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        let Parts { disk, clock, network, mut hosts, mut rng, begins } = parts;
        let array = loop {
            if power_fails {
                self.done.crashes += 1;
                let survival = ANY[rng.below(ANY.len() as u64) as usize];
                disk.note(&format!("crash, survival {survival:?}"));
                disk.crash(survival, &mut rng);
            } else {
                self.done.kills += 1;
                disk.note("kill");
                disk.restart();
            }
            if rng.chance(self.world.trouble.starts_struck_percent) {
                disk.set_fuse(Some(disk.io_count() + rng.between(1, 12)));
            }
            match Controller::open(&disk, &self.world.setup, &clock) {
                Ok(array) => break array,
                Err(_) if disk.has_failed() => power_fails = true,
                Err(error) => return Err(format!("starting: {error}")),
            }
        };
        hosts.array_started();
        self.go_on_with(Parts { disk, clock, network, hosts, rng, begins }, array);
        Ok(())
    }

    fn go_on_with(&mut self, parts: Parts, array: Controller) {
        let Parts { disk, clock, network, hosts, rng, begins } = parts;
        let stalled = vec![Duration::ZERO; self.world.setup.threads];
        let (failure, broken_steps_left) = (None, None);
        self.inner = Some(Inner {
            disk,
            clock,
            network,
            array,
            hosts,
            rng,
            stalled,
            begins,
            failure,
            broken_steps_left,
        });
    }

    /// Finishes everything in flight.
    fn end(&mut self) -> Result<(), String> {
        self.inner()?.begins = false;
        let (mut answers, mut idle) = (0, 0);
        while !self.inner()?.hosts.is_idle() {
            if self.inner()?.disk.has_failed() {
                self.restart(true)?;
            }
            self.usual()?;
            let now = self.inner()?.hosts.answers();
            idle = if now == answers { idle + 1 } else { 0 };
            answers = now;
            if idle > IDLE_STEPS_MAX {
                return Err("a request never got a response".into());
            }
        }
        self.rest()
    }

    /// Checks that memory for data is released once there are no more requests.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..REST_STEPS_MAX {
            if self.inner()?.disk.has_failed() {
                self.restart(true)?;
            }
            if self.inner()?.array.data_bytes() == 0 {
                return Ok(());
            }
            self.usual()?;
        }
        Err(format!("{} bytes of data memory were not freed", self.inner()?.array.data_bytes()))
    }

    fn gave_up(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.hosts.gave_up())
    }

    fn summary(&self) -> Summary {
        let Some(inner) = &self.inner else { return self.done };
        let trace = mix(inner.disk.trace() ^ inner.hosts.trace());
        let (answers, io_count) = (inner.hosts.answers(), inner.disk.io_count());
        let given_up = u64::from(inner.hosts.gave_up());
        let several = inner.hosts.several();
        Summary { answers, io_count, given_up, several, trace, ..self.done }
    }
}

/// Called between two I/Os of a chore, and while it waits.
fn meanwhile() {
    let Some(mut inner) = MEANWHILE.take() else { return };
    for _ in 0..STEPS_BESIDE {
        if inner.disk.has_failed() {
            inner.run_down();
        } else if inner.failure.is_none() {
            inner.failure = inner.go_on().err();
        }
    }
    MEANWHILE.set(Some(inner));
}

#[cfg(test)]
mod tests;
