//! Hosts that do something to a few blocks, log in again at once when a connection is lost, and
//! send what had no answer again.
//!
//! What was sent and not answered may have been done until the same session has begun again at the
//! same port, as that one takes its place; elsewhere, until all is over. A COMPARE AND WRITE that
//! is sent again there has to be told the truth (RFC 0007); a host that goes elsewhere sends none
//! again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use libiscsi::{Completion, Poller, Session, Status};
use tests_peer::linear::history::{Action, Swap};
use tests_peer::linear::seen::{Field, Seen, read_end};
use tests_peer::linear::zone::{Planned, Planner};
use tests_peer::target::Target;

/// Commands that a host has in flight.
const DEPTH: usize = 2;
/// How long a host waits between commands at most, in microseconds: with more of them a history
/// is long to judge.
const PAUSE_US_MAX: u64 = 8_000;
/// How long a host may be without an answer.
const STILL: Duration = Duration::from_secs(60);
/// How long one waits that was refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);
/// The end of what may still be done: [`Seen`]'s reader knows it.
pub const OPEN: u64 = u64::MAX;

/// What all hosts share with the one that strikes.
pub struct Shared {
    pub field: Field,
    /// Whether they are to come to an end of this round.
    pub stop: AtomicBool,
    /// Whether one of them has failed.
    pub has_failed: AtomicBool,
    /// Whether ports may refuse: nobody holds their sockets.
    pub may_refuse: AtomicBool,
    pub marks: Vec<Mark>,
}

/// What is seen of a host from outside.
#[derive(Default)]
pub struct Mark {
    pub answers: AtomicU64,
    /// The longest time without an answer, in nanoseconds.
    pub longest: AtomicU64,
}

/// What a host saw in a round.
#[derive(Default)]
pub struct Told {
    pub seen: Seen,
    /// Unit attentions, by their codes.
    pub attentions: BTreeMap<u16, u64>,
    /// Commands that were sent again after a lost connection.
    pub repeated: u64,
    /// Those of them that were COMPARE AND WRITE and ended GOOD.
    pub repeated_locks: u64,
    pub logins: u64,
    pub refused: u64,
    /// Bytes that were read and compared.
    pub bytes: u64,
}

/// A command without an answer.
struct Command {
    planned: Planned,
    token: u64,
    /// When it was sent the last time; `None` if it is to be sent.
    sent: Option<u64>,
    /// When it was sent on connections that were lost since, and until when it may be done.
    lost: Vec<(u64, u64)>,
}

/// A host.
pub struct Host<'a> {
    shared: &'a Shared,
    number: usize,
    /// Its paths, and which one it uses.
    paths: Vec<Target>,
    path: usize,
    session: Option<Session>,
    planner: Planner<'a>,
    waiting: Vec<Command>,
    tokens: u64,
    answered: Instant,
    told: Told,
}

impl<'a> Host<'a> {
    /// A host with these paths to a volume.
    pub fn new(
        shared: &'a Shared,
        number: usize,
        paths: Vec<Target>,
        volume: usize,
        seed: u64,
    ) -> Self {
        let planner = Planner::new(volume, shared.field.names, &shared.field.values, seed);
        Self {
            shared,
            number,
            paths,
            path: 0,
            session: None,
            planner,
            waiting: Vec::new(),
            tokens: 0,
            answered: Instant::now(),
            told: Told::default(),
        }
    }

    /// Does commands until it is to stop, and all that it has begun is answered.
    ///
    /// # Errors
    /// An answer that no host wants, or none.
    pub fn round(&mut self) -> Result<Told> {
        let done = self.work();
        if done.is_err() {
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        done?;
        // Between rounds the array may be started anew.
        self.session = None;
        Ok(std::mem::take(&mut self.told))
    }

    fn work(&mut self) -> Result<()> {
        self.answered = Instant::now();
        let mut poller = Poller::new();
        loop {
            ensure!(self.answered.elapsed() < STILL, "host {}: no answer", self.number);
            let is_stopping = self.shared.stop.load(Ordering::Relaxed);
            if is_stopping && self.waiting.is_empty() {
                return Ok(());
            }
            while !is_stopping && self.waiting.len() < DEPTH {
                let (planned, token) = (self.planner.some(), self.tokens);
                self.tokens += 1;
                self.waiting.push(Command { planned, token, sent: None, lost: Vec::new() });
            }
            if self.session.is_none() && !self.log_in()? {
                continue;
            }
            self.send()?;
            let Some(session) = &mut self.session else { continue };
            poller.poll(&mut [session], 100);
            let mut ended = Vec::new();
            while let Some(completion) = session.next_completion() {
                ended.push(completion);
            }
            let is_lost = session.is_lost();
            let now = self.shared.field.now();
            for completion in &ended {
                self.ended(completion, now)?;
            }
            if is_lost {
                self.lose();
            } else if !ended.is_empty() {
                thread::sleep(Duration::from_micros(self.planner.below(PAUSE_US_MAX)));
            }
        }
    }

    /// Whether it is logged in.
    fn log_in(&mut self) -> Result<bool> {
        let isid = Some(0x4000 + self.number as u32);
        let config = libiscsi::Config { isid, ..self.paths[self.path].config() };
        match Session::connect(&config) {
            Ok(session) => self.session = Some(session),
            Err(error) => {
                if self.paths[self.path].refuses() {
                    let may_refuse = self.shared.may_refuse.load(Ordering::Relaxed);
                    ensure!(may_refuse, "the array refuses: {error}");
                    self.told.refused += 1;
                    if self.shared.stop.load(Ordering::Relaxed) {
                        self.give_up();
                    }
                    thread::sleep(REFUSED_PAUSE);
                }
                self.path = (self.path + 1) % self.paths.len();
                return Ok(false);
            }
        }
        self.told.logins += 1;
        let now = self.shared.field.now();
        if self.paths.len() == 1 {
            let open = self.waiting.iter_mut().flat_map(|command| &mut command.lost);
            open.filter(|(_, end)| *end == OPEN).for_each(|(_, end)| *end = now);
        }
        Ok(true)
    }

    /// The connection is lost, with all that had no answer.
    fn lose(&mut self) {
        self.session = None;
        self.path = (self.path + 1) % self.paths.len();
        for command in &mut self.waiting {
            if let Some(sent) = command.sent.take() {
                command.lost.push((sent, OPEN));
                self.told.repeated += 1;
            }
        }
        if self.paths.len() > 1 {
            // Behind another port it is another one's: nobody knows it again.
            let is_lock = |command: &mut Command| {
                let is_lock = matches!(command.planned.action, Action::Compare { .. });
                is_lock && !command.lost.is_empty()
            };
            let given_up: Vec<Command> = self.waiting.extract_if(.., is_lock).collect();
            given_up.iter().for_each(|command| self.add_lost(command));
        }
    }

    /// Nobody is there to send it to again.
    fn give_up(&mut self) {
        for command in std::mem::take(&mut self.waiting) {
            self.add_lost(&command);
        }
    }

    /// What was sent on connections that were lost may have been done.
    fn add_lost(&mut self, command: &Command) {
        for times in &command.lost {
            self.told.seen.add(command.planned.action.clone(), *times, false);
        }
    }

    fn send(&mut self) -> Result<()> {
        let Some(session) = &mut self.session else { return Ok(()) };
        for command in self.waiting.iter_mut().filter(|command| command.sent.is_none()) {
            command.sent = Some(self.shared.field.now());
            session.submit(command.planned.cdb, command.planned.data(), command.token)?;
        }
        session.flush();
        Ok(())
    }

    fn ended(&mut self, completion: &Completion, now: u64) -> Result<()> {
        let is_it = |command: &Command| command.token == completion.token;
        let Some(at) = self.waiting.iter().position(is_it) else { bail!("an answer to nothing") };
        match &completion.status {
            // Its connection is lost.
            Status::Cancelled => return Ok(()),
            // Nothing was done, and the host is to send it again.
            Status::CheckCondition(sense) if sense.key == 6 => {
                *self.told.attentions.entry(sense.asc_ascq).or_default() += 1;
                self.waiting[at].sent = None;
                return Ok(());
            }
            _ => {}
        }
        let command = self.waiting.swap_remove(at);
        let action = read_end(&command.planned, &completion.status, &completion.buffer)?;
        self.planner.learn(&action);
        self.told.bytes += match &action {
            Action::Read { .. } => completion.buffer.len() as u64,
            _ => 0,
        };
        let mut start = command.sent.unwrap_or_default();
        if matches!(action, Action::Compare { swap: Swap::Done, .. })
            && let Some((first, _)) = command.lost.first()
        {
            // GOOD may be the answer to any of its attempts.
            start = *first;
            self.told.repeated_locks += 1;
        }
        self.add_lost(&command);
        self.told.seen.add(action, (start, now), true);
        let mark = &self.shared.marks[self.number];
        mark.longest.fetch_max(self.answered.elapsed().as_nanos() as u64, Ordering::Relaxed);
        mark.answers.fetch_add(1, Ordering::Relaxed);
        self.answered = Instant::now();
        Ok(())
    }
}
