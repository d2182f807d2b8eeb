//! Hosts that work on a few blocks, log in again at once when a connection is lost, and repeat
//! commands that got no response.
//!
//! A command without a response may take effect until the same session is reinstated at the same
//! port; at any other port, until the end. A COMPARE AND WRITE that is repeated at the same port
//! must get the true result (RFC 0007); a host that changes ports does not repeat it.

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

/// The number of commands that a host has in flight.
const DEPTH: usize = 2;
/// The longest pause of a host between commands, in microseconds: longer histories take longer to
/// judge.
const PAUSE_US_MAX: u64 = 8_000;
/// How long a host may wait for a response.
const STILL: Duration = Duration::from_secs(60);
/// The pause after a refused connection.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);
/// The open end of a command that may still take effect, known to the reader of [`Seen`].
pub const OPEN: u64 = u64::MAX;

/// The state that all hosts share with the thread that causes faults.
pub struct Shared {
    pub field: Field,
    /// Whether they must finish this round.
    pub stop: AtomicBool,
    /// Whether one of them has failed.
    pub has_failed: AtomicBool,
    /// Whether ports may refuse, because no process holds their sockets.
    pub may_refuse: AtomicBool,
    pub marks: Vec<Mark>,
}

/// What is observable of a host.
#[derive(Default)]
pub struct Mark {
    pub answers: AtomicU64,
    /// The longest time without a response, in nanoseconds.
    pub longest: AtomicU64,
}

/// The observations of a host in a round.
#[derive(Default)]
pub struct Told {
    pub seen: Seen,
    /// Unit attentions, by code.
    pub attentions: BTreeMap<u16, u64>,
    /// Commands repeated after a lost connection.
    pub repeated: u64,
    /// Those of them that were COMPARE AND WRITE and ended with GOOD.
    pub repeated_locks: u64,
    pub logins: u64,
    pub refused: u64,
    /// Bytes read and compared.
    pub bytes: u64,
}

/// A command without a response.
struct Command {
    planned: Planned,
    token: u64,
    /// When it was last sent; `None` if it must be sent.
    sent: Option<u64>,
    /// When it was sent on connections that were lost since, and until when it may take effect.
    lost: Vec<(u64, u64)>,
}

/// A host.
pub struct Host<'a> {
    shared: &'a Shared,
    number: usize,
    /// Its paths, and the current one.
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
    /// Creates a host with these paths to a volume.
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

    /// Sends commands until it must stop, and until each of them has a response.
    ///
    /// # Errors
    /// A wrong response, or none.
    pub fn round(&mut self) -> Result<Told> {
        let done = self.work();
        if done.is_err() {
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        done?;
        // Between rounds the array may be restarted.
        self.session = None;
        Ok(std::mem::take(&mut self.told))
    }

    fn work(&mut self) -> Result<()> {
        self.answered = Instant::now();
        let mut poller = Poller::new();
        loop {
            ensure!(self.answered.elapsed() < STILL, "host {}: no response", self.number);
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

    /// Logs in. Returns whether that succeeded.
    fn log_in(&mut self) -> Result<bool> {
        let isid = Some(0x4000 + self.number as u32);
        let config = libiscsi::Config { isid, ..self.paths[self.path].config() };
        match Session::connect(&config) {
            Ok(session) => self.session = Some(session),
            Err(error) => {
                if self.paths[self.path].refuses() {
                    let may_refuse = self.shared.may_refuse.load(Ordering::Relaxed);
                    ensure!(may_refuse, "the array refuses a login: {error}");
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

    /// Handles a lost connection: all commands in flight have no response.
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
            // At another port it would be another host's command, and not be recognised.
            let is_lock = |command: &mut Command| {
                let is_lock = matches!(command.planned.action, Action::Compare { .. });
                is_lock && !command.lost.is_empty()
            };
            let given_up: Vec<Command> = self.waiting.extract_if(.., is_lock).collect();
            given_up.iter().for_each(|command| self.add_lost(command));
        }
    }

    /// No controller is left to which the commands could be repeated.
    fn give_up(&mut self) {
        for command in std::mem::take(&mut self.waiting) {
            self.add_lost(&command);
        }
    }

    /// Records that attempts on lost connections may have taken effect.
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
        let Some(at) = self.waiting.iter().position(is_it) else {
            bail!("a response that matches no command")
        };
        match &completion.status {
            // Its connection is lost.
            Status::Cancelled => return Ok(()),
            // It had no effect, and the host must repeat it.
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
            // GOOD may be the result of any of its attempts.
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
