//! Waits until the pool may be taken, and takes it.
//!
//! A controller that did not get a quorum returns what it has, and waits before it retries: a
//! random time, longer each time, so that two that begin together don't block each other.
//!
//! An attempt that is answered too late may have taken a device after all: its key is then silent,
//! and is preempted like any other.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use sys::ReservationError;

use super::super::Controller;
use super::hands::{Answer, Asked, Hands};
use super::key::Key;
use super::lease;
use super::taking::TakeError;
use super::watch::{Takeable, Watch};
use super::{LEASE, Named, quorum};

/// The interval for reading the devices' registrations.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// The time limit for their answers.
const ANSWERS_WITHIN: Duration = Duration::from_millis(700);
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// How often devices are tried that another controller, which wanted the pool too, has just left.
const REST_TRIES: u32 = 4;
/// The base of the longest pause after a failed attempt, which is doubled with each.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_DOUBLINGS_MAX: u32 = 5;

/// A pool that was taken.
pub struct Held {
    pub(super) own: Key,
    /// The configured number of devices of the pool.
    pub(super) devices: usize,
    /// The devices that were taken.
    pub(super) held: Vec<Named>,
    /// When taking began, in milliseconds of the lease's clock.
    pub(super) since_ms: u64,
    /// When hosts may be answered: before that, an owner whose registrations a device has forgotten
    /// could still answer them.
    pub serves_from: Instant,
}

impl Held {
    /// Returns the names of the devices that were taken.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|it| it.name.as_str())
    }
}

/// A controller that waits for the pool.
pub struct Turn {
    controller: Controller,
    devices: usize,
    named: Vec<Named>,
    hands: Hands,
    watch: Watch,
    failures: u32,
    reported: String,
}

impl Turn {
    /// Prepares to wait for a pool configured with `devices` devices, of which `named` are present.
    ///
    /// # Errors
    /// If no threads can be created.
    pub fn new(controller: Controller, devices: usize, named: Vec<Named>) -> io::Result<Self> {
        let hands = Hands::new(&named)?;
        let watch = Watch::new(devices, named.len()).polite(Key::new(controller, 0));
        let reported = String::new();
        Ok(Self { controller, devices, named, hands, watch, failures: 0, reported })
    }

    /// Waits until it has the pool.
    ///
    /// # Errors
    /// What prevents it permanently.
    pub fn wait(mut self) -> io::Result<Held> {
        loop {
            if let Some(held) = self.attempt()? {
                return Ok(held);
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Reads all devices, and takes them if no controller has a quorum of them, or the one that has
    /// a quorum gives no sign of life.
    ///
    /// # Errors
    /// What prevents it permanently: devices without reservations, or no random numbers.
    pub fn attempt(&mut self) -> io::Result<Option<Held>> {
        let all = (0..self.named.len()).map(|index| (index, Asked::Look));
        let mut unsupported = 0;
        let begun = Instant::now();
        let answers = self.hands.ask(all, ANSWERS_WITHIN);
        let all_answer = answers.len() == self.named.len();
        for (index, answer) in answers {
            match answer {
                // The state is at most ANSWERS_WITHIN newer than the request, for which SILENCE has
                // a margin.
                Answer::Seen(Ok(seen)) => self.watch.note(index, seen, begun),
                Answer::Seen(Err(error)) => {
                    unsupported += usize::from(matches!(error, ReservationError::Unsupported(_)));
                    self.tell(index, &error.to_string());
                    self.watch.forget(index);
                }
                _ => {}
            }
        }
        if self.devices - unsupported < quorum(self.devices) {
            let text = "too many devices have no persistent reservations: name others, or serve \
                        without --fence";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        match self.watch.takeable(all_answer) {
            None => Ok(None),
            Some(takeable) => self.take(takeable),
        }
    }

    fn take(&mut self, takeable: Vec<Takeable>) -> io::Result<Option<Held>> {
        let mut entropy = [0; 8];
        sys::entropy(&mut entropy).map_err(io::Error::other)?;
        let [a, b, c, d, rest @ ..] = entropy;
        let own = Key::new(self.controller, u32::from_le_bytes([a, b, c, d]));
        let since_ms = lease::now_ms();
        let mut held = Vec::new();
        let mut was_free = self.take_some(own, takeable, &mut held);
        if held.len() < quorum(self.devices) {
            let leave = held.into_iter().map(|(index, former)| (index, Asked::Leave { former }));
            self.hands.ask(leave, TAKEN_WITHIN);
            self.pause(u32::from_le_bytes(rest));
            return Ok(None);
        }
        for _ in 0..REST_TRIES {
            let is_free = |index: &usize| held.iter().all(|(it, _)| it != index);
            let rest: Vec<usize> = (0..self.named.len()).filter(is_free).collect();
            if rest.is_empty() {
                break;
            }
            let take = |index| Takeable { index, silent: Vec::new() };
            was_free |= self.take_some(own, rest.into_iter().map(take).collect(), &mut held);
            thread::sleep(PAUSE);
        }
        held.sort_unstable();
        let held = held.into_iter().map(|(index, _)| self.named[index].clone()).collect();
        let wait = if was_free { LEASE } else { Duration::ZERO };
        let (devices, serves_from) = (self.devices, Instant::now() + wait);
        Ok(Some(Held { own, devices, held, since_ms, serves_from }))
    }

    /// Tries to take these, and adds those that were taken to `held`. Returns whether one of them
    /// was free.
    fn take_some(&mut self, own: Key, some: Vec<Takeable>, held: &mut Vec<(usize, u64)>) -> bool {
        let take = |Takeable { index, silent }: Takeable| (index, Asked::Take { own, silent });
        let mut was_free = false;
        for (index, answer) in self.hands.ask(some.into_iter().map(take), TAKEN_WITHIN) {
            match answer {
                Answer::Taken(Ok(taken)) => {
                    held.push((index, taken.former));
                    was_free |= taken.was_free;
                }
                Answer::Taken(Err(error)) => {
                    // What was read of it is no longer true.
                    self.watch.forget(index);
                    if !matches!(error, TakeError::Owned(_)) {
                        self.tell(index, &error.to_string());
                    }
                }
                _ => {}
            }
        }
        was_free
    }

    /// Pauses, which may let another controller go first.
    fn pause(&mut self, chance: u32) {
        let longest = PAUSE * (1 << self.failures.min(PAUSE_DOUBLINGS_MAX));
        self.failures += 1;
        thread::sleep(longest.mul_f64(f64::from(chance) / f64::from(u32::MAX)));
    }

    /// Logs a problem of a device, once.
    fn tell(&mut self, index: usize, what: &str) {
        let text = format!("{}: {what}", self.named[index].name);
        if self.reported != text {
            tracing::warn!("{text}");
            self.reported = text;
        }
    }
}
