//! Simulated hosts: random requests from a seed, over several paths each, which are fed to the
//! monitors.
//!
//! A host has one initiator port (ISID) for each of its paths, which lead to the target ports in
//! turn. A path sends reads, writes, WRITE SAME, UNMAP, COMPARE AND WRITE, EXTENDED COPY,
//! PERSISTENT RESERVE IN and OUT, RESERVE and RELEASE; it aborts what is in flight, resets units,
//! logs out, cuts its connection, or takes its session over with another connection. It behaves
//! like real hosts: what is refused temporarily (BUSY, TASK SET FULL, UNIT ATTENTION) is sent once
//! more; a command without a response is aborted, and if the abort gets none either, the connection
//! is given up.
//!
//! When nothing new is to begin, all blocks are read, and then the hosts are idle.
//!
//! # How to use it
//! [`SimHosts::new`] with a [`Plan`], as the hosts of a [`super::world::World`] whose volumes have
//! the sizes of the plan, with the names of [`Plan::names`].
//!
//! # Assumptions
//! The response to an abort comes when none of the commands that it ends can take effect any longer
//! (RFC 7143, 4.2.3 and 11.6.1), and so does the response to the first command of a session with
//! regard to earlier sessions of the path. A command that ends with GOOD was admitted by
//! reservations at some time in between. An error may leave any part of the command done.

mod answers;
mod attentions;
mod cdb;
mod command;
mod content;
mod disturb;
mod generate;
mod lanes;
mod monitors;
mod path;
mod plan;

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use initiator::{Attribute, Options};

use super::network::{Link, Network};
use super::reservations::Nexus;
use super::summary::Several;
use super::world::{Hosts, Step};
use crate::rng::Rng;
use cdb::{MoveTo, Naa};
use command::{Command, Names, Place};
use generate::Choice;
use monitors::Monitors;
use path::{Flight, Path};
use plan::any_options;
pub use plan::{Counts, Mix, Plan};

/// The number of blocks that are read at once at the end.
const CHECKED_BLOCKS: u64 = 4;

/// Hosts that send random requests.
pub struct SimHosts {
    plan: Plan,
    rng: Rng,
    monitors: Monitors,
    paths: Vec<Path>,
    /// The names of units in copies, once known.
    naas: Vec<Option<Naa>>,
    next_tag: u64,
    /// Commands to be sent once more, by any ready path of the host.
    again: VecDeque<(usize, Command, u32)>,
    /// What is still to be read at the end.
    checks: Option<VecDeque<Place>>,
    answers: u64,
    trace: u64,
    counts: Rc<Cell<Counts>>,
    failure: Option<String>,
}

impl SimHosts {
    /// Creates hosts, none of which has connected yet.
    pub fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let names = plan.names();
        let paths = (0..plan.hosts * plan.paths_per_host).map(|at| {
            let (host, number) = (at / plan.paths_per_host, at % plan.paths_per_host);
            let options = any_options(&names[host], number as u8, &plan, &mut rng);
            let port = at % usize::from(plan.ports) + 1;
            let reserved = plan.reserved_from..plan.units.len();
            Path::new(host, Nexus(at as u32), port as u16, options, reserved)
        });
        Self {
            monitors: Monitors::new(
                plan.hosts * plan.paths_per_host,
                plan.units.len(),
                plan.is_durable,
                plan.mix.copies == 0,
            ),
            paths: paths.collect(),
            naas: vec![None; plan.units.len()],
            plan,
            rng,
            next_tag: 0,
            again: VecDeque::new(),
            checks: None,
            answers: 0,
            trace: 0,
            counts: Rc::default(),
            failure: None,
        }
    }

    /// Returns the counts of all commands, even while a world has the hosts.
    pub fn counts(&self) -> Rc<Cell<Counts>> {
        self.counts.clone()
    }

    fn count(&self, count: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        count(&mut counts);
        self.counts.set(counts);
    }

    /// Does what is due on a path that has a connection.
    fn go_on(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
        begins: bool,
    ) -> Result<Option<Link>, String> {
        let path = &mut self.paths[at];
        let cid = path.any_lane(&mut self.rng).map(|lane| lane.cid());
        if let Some(cid) = cid {
            let carried = path.carry(cid, network, now, &mut self.rng);
            self.events(at, cid, network, now)?;
            if carried? {
                self.connection_failed(at, cid, network, now)?;
                return Ok(None);
            }
        }
        if let Some(late) = self.paths[at].expire(now)? {
            self.connection_failed(at, late, network, now)?;
            return Ok(None);
        }
        let link = self.tend_orphans(at, network, now)?;
        if link.is_some() || !self.paths[at].is_logged_in() {
            return Ok(link);
        }
        if begins {
            let link = self.disturb(at, network, now)?;
            if link.is_some() || self.paths[at].lanes.is_empty() {
                return Ok(link);
            }
        }
        self.begin(at, now, begins);
        Ok(None)
    }

    /// Handles what failed connections have left. Returns one that was opened.
    fn tend_orphans(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
    ) -> Result<Option<Link>, String> {
        let path = &mut self.paths[at];
        if path.orphans.is_empty() || path.is_doomed {
            return Ok(None);
        }
        let plugged = path.plug(&mut self.monitors, now, &mut self.rng)?;
        self.count(|counts| counts.retried += plugged.retried);
        self.count(|counts| counts.plugged += plugged.aborted);
        match self.rng.chance(20) {
            true => self.tend_failed(at, network, now),
            false => Ok(None),
        }
    }

    fn give_up(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
        closes: bool,
    ) -> Result<(), String> {
        let path = &mut self.paths[at];
        path.connect_at = now + Duration::from_micros(self.rng.between(10, 20_000));
        path.give_up(&mut self.monitors, network, now, closes)
    }

    /// Sends a command, if there is one.
    fn begin(&mut self, at: usize, now: Duration, begins: bool) {
        let path = &self.paths[at];
        let room = path.lanes.first().map_or(0, |lane| lane.initiator.room());
        if room > self.plan.window {
            self.failure = Some(format!("the command window grew to {room} commands"));
        }
        let is_full = path.flights.len() >= self.plan.in_flight_max || room == 0;
        if is_full || !path.is_logged_in() {
            return;
        }
        let (host, has_orphans) = (path.host, !path.orphans.is_empty());
        if let Some(command) = self.paths[at].unanswered.pop_front() {
            if self.rng.chance(self.plan.mix.repeated_percent)
                && !self.monitors.is_crowded(&command)
            {
                self.send(at, now, command, 4);
            }
        } else if let Some(found) = self.again.iter().position(|(of, ..)| *of == host) {
            if let Some((_, command, tries)) = self.again.remove(found) {
                self.send(at, now, command, tries);
            }
        } else if begins {
            if self.rng.chance(40) {
                let command = self.choose(at);
                if !self.monitors.is_crowded(&command) {
                    self.send(at, now, command, 4);
                }
            }
        } else if has_orphans {
            // Its response says that what a replaced connection did is over.
            self.send(at, now, Command::Identify { unit: 0 }, 4);
        } else if let Some(place) = self.next_check() {
            self.send(at, now, Command::Read { at: place, is_long: true }, 20);
        }
    }

    fn choose(&mut self, at: usize) -> Command {
        if let Some(unit) = self.naas.iter().position(Option::is_none) {
            return Command::Identify { unit };
        }
        let choice = Choice {
            mix: &self.plan.mix,
            units: &self.plan.units,
            reserved_from: self.plan.reserved_from,
            paths: self.paths.len() as u32,
            may_copy: self.naas.iter().all(Option::is_some),
            nexus: self.paths[at].nexus,
            long_blocks: self.plan.long_blocks,
        };
        choice.command(&mut self.rng, &self.monitors, &mut self.next_tag)
    }

    /// Returns what is to be read when nothing else is in flight.
    fn next_check(&mut self) -> Option<Place> {
        if !self.paths.iter().all(Path::is_idle) {
            return None;
        }
        self.checks.as_mut()?.pop_front()
    }

    fn send(&mut self, at: usize, now: Duration, command: Command, tries_left: u32) {
        let wire = command.wire(&*self);
        let attribute = match self.rng.weighted(&[80, 10, 5, 5]) {
            0 => Attribute::Simple,
            1 => Attribute::Untagged,
            2 => Attribute::Ordered,
            _ => Attribute::HeadOfQueue,
        };
        let path = &mut self.paths[at];
        let watch = self.monitors.begin(path.nexus, &command);
        let loss = path.begin_loss(&mut self.monitors);
        let Some(lane) = path.any_ready(&mut self.rng) else { return };
        let cid = lane.cid();
        let lun = lun(command.unit());
        let (data, expected) = (wire.data_out, wire.expected_in_bytes);
        let sent = lane.initiator.command(lun, &wire.cdb, attribute, data, expected);
        match sent {
            Ok(itt) => {
                let is_promised = self.plan.is_prompt && !self.monitors.may_be_broken(false);
                let deadline = Path::deadline_of_command(now, is_promised);
                let began = now;
                let flight =
                    Flight { command, watch, cid, deadline, tries_left, loss, began, is_promised };
                path.flights.insert(itt, flight);
            }
            // It was logged in, and there was room.
            Err(busy) => self.failure = Some(format!("{command:?} could not be sent: {busy}")),
        }
    }

    fn all_checks(&self) -> VecDeque<Place> {
        let of_unit = |(unit, blocks): (usize, &u64)| {
            let blocks = *blocks;
            (0..blocks).step_by(CHECKED_BLOCKS as usize).map(move |block| Place {
                unit,
                block,
                count: CHECKED_BLOCKS.min(blocks - block),
            })
        };
        self.plan.units.iter().enumerate().flat_map(of_unit).collect()
    }
}

impl Names for SimHosts {
    fn naa(&self, unit: usize) -> Naa {
        self.naas[unit].unwrap_or_default()
    }

    fn path(&self, nexus: Nexus) -> MoveTo {
        let path = &self.paths[nexus.0 as usize];
        let Options { initiator_name, isid, .. } = path.options.clone();
        MoveTo { initiator_name, isid, port: path.port }
    }
}

impl Hosts for SimHosts {
    fn step(&mut self, network: &mut Network, now: Duration, begins: bool) -> Step {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if !begins && self.checks.is_none() {
            self.checks = Some(self.all_checks());
        }
        let at = self.rng.below(self.paths.len() as u64) as usize;
        let path = &mut self.paths[at];
        if self.rng.chance(5) {
            path.close_an_old_one(network, now);
        }
        let opened = if path.has_session() {
            let label = format!("path {at}");
            self.go_on(at, network, now, begins).map_err(|why| format!("{label}: {why}"))?
        } else if path.connect_at <= now && (begins || !self.is_idle()) {
            Some(self.paths[at].connect(network, now, &mut self.rng))
        } else {
            None
        };
        let port = self.paths[at].port;
        Ok(opened.into_iter().map(|link| (link, port)).collect())
    }

    fn due_at(&self) -> Option<Duration> {
        self.paths
            .iter()
            .filter_map(|path| match path.lanes.is_empty() {
                false => path.due_at(),
                true => Some(path.connect_at),
            })
            .min()
    }

    fn is_idle(&self) -> bool {
        let is_checked = self.checks.as_ref().is_some_and(VecDeque::is_empty);
        let none_left = |path: &Path| path.is_idle() && path.unanswered.is_empty();
        is_checked && self.again.is_empty() && self.paths.iter().all(none_left)
    }

    fn answers(&self) -> u64 {
        self.answers
    }

    fn array_started(&mut self) {
        let mut result = self.monitors.array_started();
        for path in &mut self.paths {
            result = result.and_then(|()| path.array_started(&mut self.monitors));
        }
        self.failure = self.failure.take().or(result.err());
    }

    fn array_failed(&mut self) {
        let flights = self.paths.iter_mut().flat_map(|path| path.flights.values_mut());
        flights.for_each(|flight| flight.is_promised = false);
        self.monitors.array_failed();
    }

    fn trace(&self) -> u64 {
        self.trace
    }

    fn several(&self) -> Several {
        let counts = self.counts.get();
        Several {
            answers: counts.further,
            joins: counts.joins,
            replaced: counts.replaced,
            partings: counts.partings + counts.partings_of_others,
            plugged: counts.retried + counts.plugged,
        }
    }

    fn gave_up(&self) -> bool {
        self.monitors.gave_up.get()
    }
}

/// Returns the LUN of a unit, counted from 0.
fn lun(unit: usize) -> [u8; 8] {
    let [high, low] = (unit as u16 + 1).to_be_bytes();
    [high, low, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests;
