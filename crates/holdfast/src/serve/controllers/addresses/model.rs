//! A model of two machines in simulated time: their clocks and kernels, a process on each that
//! keeps addresses, the link between them, and the devices that decide which one has the pool.

use std::collections::VecDeque;
use std::io;

use super::keeper::{Keeper, Kernel, Moved};
use super::plan::{Plan, VALID_S, Whose};
use super::{Beats, answer_of};

/// One step of the model.
pub(super) const STEP_MS: u64 = 50;
const BEAT_MS: u64 = 250;
/// The timeout of the link and of the fence.
const SILENCE_MS: u64 = 2000;
const LEASE_MS: u64 = 2000;
const SIGN_MS: u64 = 500;
const FENCED_AFTER_MS: u64 = 3000;

/// The addresses of a machine: until when the kernel has each, by the clock of the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    until_ms: [u64; 2],
    now_ms: u64,
    /// The kernel's additional delay.
    late_ms: u64,
    refuses: bool,
    pub(super) announced: u32,
}

impl Kernel for Table {
    fn put(&mut self, at: usize) -> io::Result<()> {
        if self.refuses {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.until_ms[at] = self.now_ms + u64::from(VALID_S) * 1000 + self.late_ms;
        Ok(())
    }

    fn remove(&mut self, at: usize) -> io::Result<bool> {
        if self.refuses {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(std::mem::take(&mut self.until_ms[at]) > self.now_ms)
    }

    fn announce(&mut self, _: usize) -> io::Result<()> {
        self.announced += 1;
        Ok(())
    }
}

/// A process that keeps addresses.
pub(super) struct Process {
    plan: Plan,
    keeper: Keeper<Table>,
    beats: Beats,
    pub(super) is_owner: bool,
    /// When it gave its last sign of life as the owner.
    signed_ms: u64,
    /// When it last heard the other one, and what.
    heard: Option<(u64, u8)>,
    said_ms: u64,
}

/// A machine: its clock, a kernel, and possibly a process.
pub(super) struct Machine {
    /// The rate of its clock, in thousandths.
    rate: u64,
    pub(super) process: Option<Process>,
    is_stopped: bool,
    reaches_devices: bool,
    table: Table,
    starts_ms: u64,
}

/// Messages in transit: time of arrival, destination machine, content, and whether from the owner.
type Mail = VecDeque<(u64, usize, u8, bool)>;

pub(super) struct World {
    now_ms: u64,
    pub(super) machines: [Machine; 2],
    /// Since when messages to this machine are lost.
    cut_since_ms: [Option<u64>; 2],
    delay_ms: u64,
    mail: Mail,
    /// The last sign of life on the devices: when, and of which machine.
    sign: Option<(u64, usize)>,
    pub(super) moves: u32,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Kill(usize),
    Stop(usize),
    GoOn(usize),
    Cut(usize),
    Heal,
    Devices(usize, bool),
    Refuse(usize, bool),
    Delay(u64),
}

impl Machine {
    fn new(rate: u64, late_ms: u64) -> Self {
        Self {
            rate,
            process: None,
            is_stopped: false,
            reaches_devices: true,
            table: Table { late_ms, ..Table::default() },
            starts_ms: 0,
        }
    }

    fn clock_ms(&self, true_ms: u64) -> u64 {
        // No clock starts at 0.
        1_000_000 + true_ms * self.rate / 1000
    }

    pub(super) fn table(&self) -> &Table {
        self.process.as_ref().map_or(&self.table, |process| &process.keeper.kernel)
    }

    fn table_mut(&mut self) -> &mut Table {
        match &mut self.process {
            Some(process) => &mut process.keeper.kernel,
            None => &mut self.table,
        }
    }

    fn kill(&mut self, starts_ms: u64) {
        if let Some(process) = self.process.take() {
            self.table = process.keeper.kernel;
        }
        (self.is_stopped, self.starts_ms) = (false, starts_ms);
    }

    fn start(&mut self, now_ms: u64) {
        let all = vec![Whose::Own, Whose::Others];
        self.process = Some(Process {
            plan: Plan::default(),
            keeper: Keeper::new(self.table.clone(), all, now_ms),
            beats: Beats::default(),
            is_owner: false,
            signed_ms: 0,
            heard: None,
            said_ms: 0,
        });
    }
}

impl World {
    pub(super) fn new(rates: [u64; 2], late_ms: u64) -> Self {
        Self {
            now_ms: 0,
            machines: rates.map(|rate| Machine::new(rate, late_ms)),
            cut_since_ms: [None; 2],
            delay_ms: 1,
            mail: Mail::new(),
            sign: None,
            moves: 0,
        }
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Kill(at) => self.machines[at].kill(self.now_ms + 300),
            Event::Stop(at) => self.machines[at].is_stopped = true,
            Event::GoOn(at) => self.machines[at].is_stopped = false,
            Event::Cut(at) => {
                self.cut_since_ms[at].get_or_insert(self.now_ms);
            }
            Event::Heal => self.cut_since_ms = [None; 2],
            Event::Devices(at, reaches) => self.machines[at].reaches_devices = reaches,
            Event::Refuse(at, refuses) => self.machines[at].table_mut().refuses = refuses,
            Event::Delay(ms) => self.delay_ms = ms,
        }
    }

    pub(super) fn run(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms += STEP_MS;
            self.deliver();
            (0..2).for_each(|at| self.step(at));
            self.check();
        }
    }

    /// Messages to a stopped process wait in its socket.
    fn deliver(&mut self) {
        for (due_ms, to, byte, of_owner) in std::mem::take(&mut self.mail) {
            let machine = &mut self.machines[to];
            if due_ms > self.now_ms || machine.is_stopped {
                self.mail.push_back((due_ms, to, byte, of_owner));
                continue;
            }
            // A connection ends if nothing is acknowledged: both directions are needed.
            let unconfirmed = self.cut_since_ms[1 - to].map(|since| self.now_ms - since);
            if unconfirmed.is_some_and(|ms| ms > SILENCE_MS) {
                continue;
            }
            let now_ms = machine.clock_ms(self.now_ms);
            let Some(process) = &mut machine.process else { continue };
            // From an owner to a controller that forwards, or the other way round.
            if of_owner == process.is_owner {
                continue;
            }
            process.heard = Some((now_ms, byte));
            match of_owner {
                true => {
                    process.plan.follow();
                    if let Some(sent_ms) = process.beats.granted(byte) {
                        process.plan.grant(sent_ms);
                    }
                }
                false => process.plan.hear(now_ms),
            }
        }
    }

    fn step(&mut self, at: usize) {
        let (true_ms, machine) = (self.now_ms, &mut self.machines[at]);
        let now_ms = machine.clock_ms(true_ms);
        machine.table_mut().now_ms = now_ms;
        if machine.is_stopped {
            return;
        }
        if machine.process.is_none() && true_ms >= machine.starts_ms {
            machine.start(now_ms);
        }
        let Some(process) = &mut machine.process else { return };
        if process.is_owner && self.sign.is_some_and(|(_, of)| of != at) && machine.reaches_devices
        {
            // It finds itself fenced.
            return machine.kill(true_ms + 300);
        }
        if machine.reaches_devices {
            let silent_ms = self.sign.map_or(u64::MAX, |(sign_ms, _)| {
                machine_ms(machine.rate, true_ms.saturating_sub(sign_ms))
            });
            if process.is_owner && now_ms >= process.signed_ms + SIGN_MS {
                self.sign = Some((true_ms, at));
                process.signed_ms = now_ms;
            } else if !process.is_owner && silent_ms >= FENCED_AFTER_MS {
                self.sign = Some((true_ms, at));
                (process.is_owner, process.signed_ms, process.heard) = (true, now_ms, None);
                process.plan.own(now_ms);
            }
        }
        let is_there = process.heard.is_some_and(|(heard, _)| now_ms <= heard + SILENCE_MS);
        let may_serve = !process.is_owner || now_ms < process.signed_ms + LEASE_MS;
        let count = |moved| self.moves += u32::from(matches!(moved, Moved::Came(_)));
        let _ = process.keeper.step(now_ms, &process.plan, may_serve, is_there, count);
        if now_ms >= process.said_ms + BEAT_MS {
            process.said_ms = now_ms;
            let byte = match (process.is_owner, process.heard) {
                (true, Some((_, beat))) if is_there => {
                    answer_of(beat, process.keeper.has_none_of_other(now_ms))
                }
                (true, _) => return,
                (false, _) => process.beats.next(now_ms),
            };
            if self.cut_since_ms[1 - at].is_none() {
                let due_ms = true_ms + self.delay_ms;
                self.mail.push_back((due_ms, 1 - at, byte, process.is_owner));
            }
        }
    }

    /// Checks that no address is at both machines. Machine 0's own addresses are the other
    /// controller's for machine 1.
    fn check(&self) {
        for address in 0..2 {
            let is_at = |at: usize| {
                let machine = &self.machines[at];
                let place = usize::from(at != address);
                machine.table().until_ms[place] > machine.clock_ms(self.now_ms)
            };
            assert!(!is_at(0) || !is_at(1), "address {address} is at both at {} ms", self.now_ms);
        }
    }

    /// Returns which machines have an address: of each controller, 0 and 1.
    pub(super) fn places(&self) -> [[bool; 2]; 2] {
        [0, 1].map(|address| {
            [0, 1].map(|at| {
                let machine = &self.machines[at];
                let place = usize::from(at != address);
                machine.table().until_ms[place] > machine.clock_ms(self.now_ms)
            })
        })
    }
}

fn machine_ms(rate: u64, true_ms: u64) -> u64 {
    true_ms * rate / 1000
}
