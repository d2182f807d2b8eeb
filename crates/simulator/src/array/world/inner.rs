//! What happens in a world while a chore waits, and at any other time.

use std::sync::Arc;
use std::time::Duration;

use super::super::controller::{Controller, SimClock};
use super::super::network::{Cut, Link, Network};
use super::Hosts;
use crate::disk::SimDisk;
use crate::rng::Rng;

/// The maximum time that passes with a step, in nanoseconds.
const STEP_NS_MAX: u64 = 20_000;

/// Everything except chores: what continues while one waits.
pub(super) struct Inner {
    pub(super) disk: Arc<SimDisk>,
    pub(super) clock: Arc<SimClock>,
    pub(super) network: Network,
    pub(super) array: Controller,
    pub(super) hosts: Box<dyn Hosts>,
    pub(super) rng: Rng,
    /// Until when requests of each front end to the disk stall.
    pub(super) stalled: Vec<Duration>,
    /// Whether hosts begin something new.
    pub(super) begins: bool,
    pub(super) failure: Option<String>,
    /// For how many steps the array continues on a disk that has failed.
    pub(super) broken_steps_left: Option<u64>,
}

impl Inner {
    /// Does one step of a front end, of the disk, or of a host; time passes.
    pub(super) fn go_on(&mut self) -> Result<(), String> {
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

    /// Advances the time a little or, if no party has anything to do, to the next event.
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

    /// Ends, with errors that are no longer received, what others have in flight when the disk has
    /// failed while a chore waits for it.
    pub(super) fn run_down(&mut self) {
        let now = self.clock.time();
        let links: Vec<Link> = self.network.links().collect();
        links.into_iter().for_each(|link| self.network.cut(link, Cut::AtOnce, now));
        let Self { array, network, rng, .. } = self;
        let index = rng.below(array.thread_count() as u64) as usize;
        match array.is_busy(index) && rng.chance(60) {
            true => array.disk_step(index, rng),
            false => array.turn(index, network, rng),
        }
    }

    /// Returns whether the array still runs on a disk that has failed: hosts may see it for a
    /// while.
    pub(super) fn goes_on_broken(&mut self, steps_max: u64) -> bool {
        if self.disk.is_dead() || steps_max == 0 {
            return false;
        }
        if self.broken_steps_left.is_none() {
            self.hosts.array_failed();
        }
        let left = match self.broken_steps_left {
            Some(left) => left,
            None => self.rng.below(steps_max),
        };
        self.broken_steps_left = Some(left.saturating_sub(1));
        left > 0
    }

    /// Makes the disk requests of a front end take long.
    pub(super) fn stall_disk(&mut self) {
        let index = self.rng.below(self.stalled.len() as u64) as usize;
        let most_us = 10_u64.pow(self.rng.between(2, 6) as u32);
        let stall = Duration::from_micros(self.rng.below(most_us));
        self.stalled[index] = self.clock.time() + stall;
    }

    /// Cuts a connection, or stalls it.
    pub(super) fn cut(&mut self) {
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
