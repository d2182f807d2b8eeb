//! The world: hosts, the network, the array and its disk, one step after the other, as chance says.
//!
//! A step is a turn of one front end, a step of one request to the disk, something that a host
//! does, a chore of the array, or that time passes. So mail between front ends is late, completions
//! come in any order, and hosts ask for anything meanwhile. Chores wait on the spot, as the threads
//! do that do them in a process: between two of their I/Os, and while they wait for others, all
//! else goes on ([`Inner::go_on`]).
//!
//! The power fails, or the process is killed, at any step: the network cuts all connections, and
//! the array starts anew from what the disk holds.
//!
//! The same plan gives the same [`Summary::trace`].

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::chores::Chore;
use super::controller::{Controller, Setup, SimClock, make};
use super::network::{Cut, Link, Network, Rules};
use super::summary::Summary;
use crate::disk::{SimDisk, Survival};
use crate::rng::{Rng, mix};

/// Steps of all others between two I/Os of a chore.
const STEPS_BESIDE: u32 = 6;
/// How far time goes on with a step, in nanoseconds, at most.
const STEP_NS_MAX: u64 = 20_000;
/// How long what lies between two looks at the clock takes in half of the worlds, in nanoseconds,
/// at most.
const TICK_NS_MAX: u64 = 20_000;
/// Steps without an answer, while all that is under way is waited for, before it is taken for lost.
const IDLE_STEPS_MAX: u64 = 400_000;

/// Steps in which memory for data is given back, once nothing is under way.
const REST_STEPS_MAX: u64 = 100_000;

/// The hosts of a world.
pub trait Hosts {
    /// One of them does something, by chance: something new only if `begins`. Returns connections
    /// that were opened, with the ports that they were opened to, counted from 1.
    ///
    /// # Errors
    /// What the array has done wrong.
    fn step(&mut self, network: &mut Network, now: Duration, begins: bool) -> Step;

    /// When one of them has to do something by the clock.
    fn due_at(&self) -> Option<Duration>;

    /// Whether nothing is under way.
    fn is_idle(&self) -> bool;

    /// How many commands were answered, and other requests.
    fn answers(&self) -> u64;

    /// The array has started anew: what was not answered has taken effect, or never will.
    fn array_started(&mut self);

    /// A hash of all that they were told.
    fn trace(&self) -> u64;

    /// Whether an error means no more than that too much may have happened to be judged.
    fn gave_up(&self) -> bool {
        false
    }
}

/// What came of a step of the hosts.
pub type Step = Result<Vec<(Link, u16)>, String>;

/// What happens in a world, beside what hosts do.
#[derive(Clone, Debug)]
pub struct Events {
    /// Of 10,000 steps, so many times the power fails.
    pub crashes: u64,
    /// … the process is killed.
    pub kills: u64,
    /// … something is done that nobody asked for: a checkpoint, reclaim, a step of a pass.
    pub chores: u64,
    /// … a connection is cut, or stalls.
    pub cuts: u64,
    /// … requests of a front end to the disk stall.
    pub stalls: u64,
}

/// A world, apart from its hosts.
#[derive(Clone, Debug)]
pub struct World {
    /// What all chance comes from.
    pub seed: u64,
    /// The array.
    pub setup: Setup,
    /// The size of the pool's segments.
    pub segment_bytes: u64,
    /// The size of the pool.
    pub pool_bytes: u64,
    /// What happens.
    pub events: Events,
    /// Steps, before all that is under way is finished.
    pub steps: u64,
    /// How the network behaves.
    pub rules: Rules,
}

/// All but chores: what goes on while one waits.
struct Inner {
    disk: Arc<SimDisk>,
    clock: Arc<SimClock>,
    network: Network,
    array: Controller,
    hosts: Box<dyn Hosts>,
    rng: Rng,
    /// Until when requests of each front end to the disk stall.
    stalled: Vec<Duration>,
    /// Whether hosts begin something new.
    begins: bool,
    failure: Option<String>,
}

thread_local! {
    /// The world, while a chore is done.
    static MEANWHILE: RefCell<Option<Inner>> = const { RefCell::new(None) };
}

impl World {
    /// Runs it. `hosts` are of no chance but that of a seed.
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

/// A world that runs.
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
        let tick_ns = if rng.chance(50) { rng.below(TICK_NS_MAX) } else { 0 };
        let clock = Arc::new(SimClock::new(tick_ns));
        let array = Controller::open(&disk, &world.setup, &clock)?;
        let network = Network::new(rng.draw(), world.rules);
        let (begins, failure) = (true, None);
        let stalled = vec![Duration::ZERO; world.setup.threads];
        let inner = Inner { disk, clock, network, array, hosts, rng, stalled, begins, failure };
        Ok(Self { world, inner: Some(inner), done: Summary::default() })
    }

    /// The world, which is whole between two chores.
    fn inner(&mut self) -> Result<&mut Inner, String> {
        self.inner.as_mut().ok_or_else(|| "the world is lost".into())
    }

    fn step(&mut self) -> Result<(), String> {
        let Events { crashes, kills, chores, cuts, stalls } = self.world.events;
        let inner = self.inner()?;
        if inner.disk.has_failed() {
            return self.restart(true);
        }
        let usual = 10_000_u64.saturating_sub(crashes + kills + chores + cuts + stalls);
        match inner.rng.weighted(&[usual, crashes, kills, chores, cuts, stalls]) {
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
            _ => self.usual(),
        }
    }

    /// What is wanted of the array is done soon, but not at once.
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

    /// The power fails, or the process is killed: all connections are gone, and the array starts
    /// anew.
    fn restart(&mut self, power_fails: bool) -> Result<(), String> {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        let Some(inner) = self.inner.take() else { return Err("the world is lost".into()) };
        let Inner { disk, clock, mut network, array, mut hosts, mut rng, begins, .. } = inner;
        let stalled = vec![Duration::ZERO; self.world.setup.threads];
        drop(array);
        let now = clock.time();
        let links: Vec<Link> = network.links().collect();
        for link in links {
            let cut = if rng.chance(50) { Cut::AtOnce } else { Cut::AfterSome };
            network.cut(link, cut, now);
            network.close(link, super::network::Side::Array, now);
        }
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
        let array = Controller::open(&disk, &self.world.setup, &clock)
            .map_err(|error| format!("a start: {error}"))?;
        hosts.array_started();
        let failure = None;
        self.inner =
            Some(Inner { disk, clock, network, array, hosts, rng, stalled, begins, failure });
        Ok(())
    }

    /// Finishes all that is under way.
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
                return Err("something is never answered".into());
            }
        }
        self.rest()
    }

    /// Nobody wants anything any more: what data took of memory is given back.
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
        Err(format!("{} bytes of memory for data stay taken", self.inner()?.array.data_bytes()))
    }

    fn gave_up(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.hosts.gave_up())
    }

    fn summary(&self) -> Summary {
        let Some(inner) = &self.inner else { return self.done };
        let trace = mix(inner.disk.trace() ^ inner.hosts.trace());
        let (answers, io_count) = (inner.hosts.answers(), inner.disk.io_count());
        let given_up = u64::from(inner.hosts.gave_up());
        Summary { answers, io_count, given_up, trace, ..self.done }
    }
}

/// Called between two I/Os of a chore, and while it waits.
fn meanwhile() {
    let Some(mut inner) = MEANWHILE.take() else { return };
    for _ in 0..STEPS_BESIDE {
        if inner.failure.is_none() && !inner.disk.has_failed() {
            inner.failure = inner.go_on().err();
        }
    }
    MEANWHILE.set(Some(inner));
}

impl Inner {
    /// One step of a front end, of the disk, or of a host; time passes.
    fn go_on(&mut self) -> Result<(), String> {
        let Self { clock, network, array, hosts, rng, .. } = self;
        let now = clock.time();
        let count = array.thread_count();
        let due: Vec<usize> = (0..count).filter(|index| array.is_due(*index, network)).collect();
        let goes_on = |index: &usize| array.is_busy(*index) && self.stalled[*index] <= now;
        let busy: Vec<usize> = (0..count).filter(goes_on).collect();
        let weight = |is_there: bool, weight| if is_there { weight } else { 0 };
        match rng.weighted(&[weight(!due.is_empty(), 4), weight(!busy.is_empty(), 3), 4]) {
            0 => {
                let index = due[rng.below(due.len() as u64) as usize];
                array.turn(index, network, rng);
            }
            1 => array.disk_step(busy[rng.below(busy.len() as u64) as usize], rng),
            _ => {
                for (link, port) in hosts.step(network, now, self.begins)? {
                    array.accept(link, port);
                }
            }
        }
        let is_quiet = due.is_empty() && busy.is_empty();
        self.let_time_pass(is_quiet);
        Ok(())
    }

    /// A little; if nobody has anything to do, to what happens next.
    fn let_time_pass(&mut self, is_quiet: bool) {
        let now = self.clock.time();
        let mut next = now + Duration::from_nanos(self.rng.below(STEP_NS_MAX));
        if is_quiet && self.rng.chance(30) {
            let network = self.network.next_event_at(now);
            let stall = self.stalled.iter().copied().filter(|until| *until > now).min();
            let all = [network, self.hosts.due_at(), Some(self.array.due_at()), stall];
            next = all.into_iter().flatten().min().map_or(next, |at| at.max(next));
        }
        self.clock.advance_to(next);
    }

    /// What a front end has asked of the disk takes long.
    fn stall_disk(&mut self) {
        let index = self.rng.below(self.stalled.len() as u64) as usize;
        let most_us = 10_u64.pow(self.rng.between(2, 6) as u32);
        let stall = Duration::from_micros(self.rng.below(most_us));
        self.stalled[index] = self.clock.time() + stall;
    }

    /// A connection is cut, or stalls.
    fn cut(&mut self) {
        let links: Vec<Link> = self.network.links().collect();
        if links.is_empty() {
            return;
        }
        let link = links[self.rng.below(links.len() as u64) as usize];
        let now = self.clock.time();
        match self.rng.below(3) {
            0 => self.network.cut(link, Cut::AtOnce, now),
            1 => self.network.cut(link, Cut::AfterSome, now),
            _ => {
                let until = now + Duration::from_millis(self.rng.between(1, 2000));
                self.network.stall(link, until);
            }
        }
    }
}

#[cfg(test)]
mod tests;
