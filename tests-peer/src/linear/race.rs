//! Hosts that race, and what they saw.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use libiscsi::{Completion, Naa, Poller, Session, Status};

use super::history::{Action, Step, Swap, steps};
use super::zone::{Planned, Planner, VOLUMES, Values};
use crate::initiator::{Function, Initiator, opcode};
use crate::offload::information;
use crate::target::Target;

/// Turns of 1 s without an answer before something hangs.
const PATIENCE: usize = 30;

/// What all hosts share.
pub struct Field {
    /// The one clock.
    pub clock: Instant,
    /// Values that nobody else writes.
    pub values: Values,
    /// The volumes' names.
    pub names: [Naa; VOLUMES],
}

impl Field {
    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

/// What one thread saw in a round.
#[derive(Default)]
pub struct Seen {
    /// The steps of all its commands; the numbers of the commands are of this thread.
    pub steps: Vec<Step>,
    /// How many commands.
    pub commands: usize,
    /// COMPARE AND WRITE that ended GOOD, and with MISCOMPARE.
    pub compared: (usize, usize),
    /// Commands that were aborted before they were answered.
    pub aborted: usize,
}

impl Seen {
    fn add(&mut self, action: Action, times: (u64, u64), certain: bool) {
        match &action {
            Action::Compare { swap: Swap::Done, .. } => self.compared.0 += 1,
            Action::Compare { swap: Swap::Miscompare(_), .. } => self.compared.1 += 1,
            _ => {}
        }
        if certain || !matches!(action, Action::Read { .. }) {
            self.steps.extend(steps(action, times, certain, self.commands));
        }
        self.commands += 1;
    }

    /// Adds what another thread saw.
    pub fn join(&mut self, other: Seen) {
        for mut step in other.steps {
            step.command += self.commands;
            self.steps.push(step);
        }
        self.commands += other.commands;
        self.compared.0 += other.compared.0;
        self.compared.1 += other.compared.1;
        self.aborted += other.aborted;
    }
}

/// One session, and the command that it has in flight.
struct Host<'a> {
    session: Session,
    planner: Planner<'a>,
    current: Option<(Planned, u64)>,
    left: usize,
}

/// Some sessions in one thread, each with one command in flight.
pub struct Hosts<'a> {
    field: &'a Field,
    hosts: Vec<Host<'a>>,
    poller: Poller,
}

impl<'a> Hosts<'a> {
    /// Connects each to its target; the number of the volume is beside it.
    pub fn connect(field: &'a Field, targets: &[(Target, usize)], seed: u64) -> Result<Self> {
        let mut hosts = Vec::new();
        for (index, (target, volume)) in targets.iter().enumerate() {
            let session = Session::connect(&target.config())?;
            let planner = Planner::new(*volume, field.names, &field.values, seed + index as u64);
            hosts.push(Host { session, planner, current: None, left: 0 });
        }
        Ok(Self { field, hosts, poller: Poller::new() })
    }

    /// Every session does so many commands.
    pub fn round(&mut self, commands: usize) -> Result<Seen> {
        let mut seen = Seen::default();
        for host in &mut self.hosts {
            host.left = commands;
            host.next(self.field)?;
        }
        let mut silent = 0;
        while self.hosts.iter().any(|host| host.current.is_some()) {
            let mut sessions: Vec<&mut Session> =
                self.hosts.iter_mut().map(|host| &mut host.session).collect();
            self.poller.poll(&mut sessions, 1000);
            silent += 1;
            for host in &mut self.hosts {
                while let Some(completion) = host.session.next_completion() {
                    silent = 0;
                    host.ended(self.field, &completion, &mut seen)?;
                    host.next(self.field)?;
                }
            }
            if silent > PATIENCE || self.hosts.iter().any(|host| host.session.is_lost()) {
                bail!("a session is lost, or hangs");
            }
        }
        Ok(seen)
    }

    /// Every cell of the volume that a session is connected to, as it is now.
    pub fn look(&mut self, index: usize, what: &Planned) -> Result<Seen> {
        let host = self.hosts.get_mut(index).context("no such session")?;
        let mut seen = Seen::default();
        let start = self.field.now();
        let completion = host.session.execute(what.cdb, what.data())?;
        let times = (start, self.field.now());
        seen.add(read_end(what, &completion.status, &completion.buffer)?, times, true);
        Ok(seen)
    }
}

impl Host<'_> {
    fn next(&mut self, field: &Field) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let planned = self.planner.any();
        let start = field.now();
        self.session.submit(planned.cdb, planned.data(), 0)?;
        self.session.flush();
        self.current = Some((planned, start));
        Ok(())
    }

    fn ended(&mut self, field: &Field, completion: &Completion, seen: &mut Seen) -> Result<()> {
        let end = field.now();
        let (planned, start) = self.current.take().context("an answer to nothing")?;
        let action = read_end(&planned, &completion.status, &completion.buffer)?;
        self.planner.learn(&action);
        seen.add(action, (start, end), true);
        Ok(())
    }
}

/// What a command did that was answered.
fn read_end(planned: &Planned, status: &Status, bytes: &[u8]) -> Result<Action> {
    match (status, &planned.action) {
        (Status::Good, _) => planned.done(bytes),
        (Status::CheckCondition(sense), Action::Compare { .. })
            if (sense.key, sense.asc_ascq) == (0x0e, 0x1d00) =>
        {
            let place = information(&sense.raw).context("MISCOMPARE without a place")?;
            Ok(planned.ended(Swap::Miscompare(place as usize)))
        }
        (status, action) => bail!("{action:x?} ended with {status}"),
    }
}

/// A host that aborts what it began, at any moment.
pub struct Aborter<'a> {
    field: &'a Field,
    initiator: Initiator,
    planner: Planner<'a>,
}

impl<'a> Aborter<'a> {
    /// Logs in.
    pub fn connect(field: &'a Field, target: &Target, volume: usize, seed: u64) -> Result<Self> {
        let mut initiator = Initiator::login(target, seed as u32)?;
        // The first command tells of the power on.
        initiator.execute(&libiscsi::Cdb::test_unit_ready(), &[], 0)?;
        let planner = Planner::new(volume, field.names, &field.values, seed);
        Ok(Self { field, initiator, planner })
    }

    /// Looks, and does something and aborts it; so many times.
    pub fn round(&mut self, commands: usize) -> Result<Seen> {
        let mut seen = Seen::default();
        for _ in 0..commands {
            let planned = self.planner.read_short();
            let start = self.field.now();
            let (status, bytes) = self.initiator.execute(&planned.cdb, &[], planned.in_bytes)?;
            let end = self.field.now();
            if status != 0 {
                bail!("READ ended with status {status:02X}h");
            }
            let action = planned.done(&bytes)?;
            self.planner.learn(&action);
            seen.add(action, (start, end), true);
            self.abort_one(&mut seen)?;
        }
        Ok(seen)
    }

    fn abort_one(&mut self, seen: &mut Seen) -> Result<()> {
        let planned = self.planner.change();
        let start = self.field.now();
        let sent = self.initiator.command(&planned.cdb, planned.out.len())?;
        if self.planner.below(8) > 0 {
            let r2t = self.initiator.receive()?;
            self.initiator.answer(&r2t, &planned.out)?;
            // While it is under way, as far as that is a matter of waiting.
            for _ in 0..self.planner.below(4) * 2000 {
                std::hint::spin_loop();
            }
        }
        let management = self.initiator.manage(Function::AbortTask, sent)?;
        let mut answered = None;
        loop {
            let pdu = self.initiator.receive()?;
            let now = self.field.now();
            match pdu.opcode() {
                opcode::R2T => {}
                opcode::SCSI_RESPONSE if pdu.tag() == sent.tag => {
                    let status = response_status(&pdu.header, &pdu.data);
                    answered = Some((read_end(&planned, &status, &[])?, now));
                }
                opcode::TASK_MANAGEMENT_RESPONSE if pdu.tag() == management => {
                    return self.aborted(&planned, (start, now), pdu.header[2], answered, seen);
                }
                _ => bail!("an unexpected answer: {:02X?}", pdu.header),
            }
        }
    }

    fn aborted(
        &mut self,
        planned: &Planned,
        (start, end): (u64, u64),
        response: u8,
        answered: Option<(Action, u64)>,
        seen: &mut Seen,
    ) -> Result<()> {
        match (answered, response) {
            (Some((action, end)), 0 | 1) => {
                self.planner.learn(&action);
                seen.add(action, (start, end), true);
            }
            (None, 0) => {
                seen.aborted += 1;
                seen.add(planned.action.clone(), (start, end), false);
            }
            (answered, response) => {
                bail!("ABORT TASK was answered with {response}; its task: {answered:?}")
            }
        }
        Ok(())
    }
}

/// The status of a SCSI Response PDU; the sense data stands behind its length.
fn response_status(header: &[u8], data: &[u8]) -> Status {
    match header[3] {
        0 => Status::Good,
        2 => {
            let byte = |at: usize| data.get(2 + at).copied().unwrap_or(0);
            let asc_ascq = u16::from_be_bytes([byte(12), byte(13)]);
            let raw = data.to_vec();
            Status::CheckCondition(libiscsi::Sense { key: byte(2) & 0xf, asc_ascq, raw })
        }
        other => Status::Other(other),
    }
}
