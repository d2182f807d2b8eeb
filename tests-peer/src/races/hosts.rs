//! Hosts that race, and what they saw.

use anyhow::{Context, Result, bail};
use libiscsi::{Completion, Poller, Session, Status};

use crate::initiator::{Function, Initiator, opcode};
use crate::linear::history::Action;
use crate::linear::seen::{Field, Seen, read_end};
use crate::linear::zone::{Planned, Planner};
use crate::target::Target;

/// Turns of 1 s without a response before something hangs.
const PATIENCE: usize = 30;

/// One session, and its command in flight.
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
    /// Connects each to its target, paired with the number of the volume.
    pub fn connect(field: &'a Field, targets: &[(Target, usize)], seed: u64) -> Result<Self> {
        let mut hosts = Vec::new();
        for (index, (target, volume)) in targets.iter().enumerate() {
            let session = Session::connect(&target.config())?;
            let planner = Planner::new(*volume, field.names, &field.values, seed + index as u64);
            hosts.push(Host { session, planner, current: None, left: 0 });
        }
        Ok(Self { field, hosts, poller: Poller::new() })
    }

    /// Has every session execute this many commands.
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

    /// Reads every cell of the volume to which a session is connected.
    pub fn look(&mut self, index: usize, what: &Planned) -> Result<Seen> {
        let host = self.hosts.get_mut(index).context("the session does not exist")?;
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
        let (planned, start) = self.current.take().context("a response that matches no command")?;
        let action = read_end(&planned, &completion.status, &completion.buffer)?;
        self.planner.learn(&action);
        seen.add(action, (start, end), true);
        Ok(())
    }
}

/// A host that aborts its commands at random moments.
pub struct Aborter<'a> {
    field: &'a Field,
    initiator: Initiator,
    planner: Planner<'a>,
}

impl<'a> Aborter<'a> {
    /// Logs in.
    pub fn connect(field: &'a Field, target: &Target, volume: usize, seed: u64) -> Result<Self> {
        let mut initiator = Initiator::login(target, seed as u32)?;
        // The first command reports the power on.
        initiator.execute(&libiscsi::Cdb::test_unit_ready(), &[], 0)?;
        let planner = Planner::new(volume, field.names, &field.values, seed);
        Ok(Self { field, initiator, planner })
    }

    /// Reads, then executes and aborts a command; this many times.
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
            // While it is in progress, as far as waiting achieves that.
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
                _ => bail!("an unexpected response: {:02X?}", pdu.header),
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
                bail!("ABORT TASK got response {response}; its task: {answered:?}")
            }
        }
        Ok(())
    }
}

/// Returns the status of a SCSI Response PDU; the sense data follows its length.
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
