//! The loop that keeps a number of commands in flight.

use std::time::{Duration, Instant};

use libiscsi::{Completion, Poller, Session, Status};

use super::measure::{Meter, Report};
use super::pattern::Pattern;
use super::rate::Rate;
use super::{LoadArgs, Offload};
use crate::process;
use crate::target;

/// How long to wait for a target to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of one write while the span is filled.
const PREFILL_BYTES: u64 = 256 << 10;
/// Writes in flight while the span is filled.
const PREFILL_DEPTH: usize = 16;

/// Runs a load, and returns what it measured.
pub fn run(args: &LoadArgs) -> Result<Report, String> {
    let config = args.connect.config(&args.url)?;
    let (mut sessions, capacity) = target::connect_many(&config, args.sessions, PATIENCE)?;
    let naa = match args.command {
        Some(Offload::Xcopy) => sessions[0]
            .naa()
            .map_err(|e| e.to_string())?
            .ok_or("the unit has no NAA type 6 identifier, so it can't be copied")?,
        _ => [0; 16],
    };
    if args.prefill {
        // Another seed, so that the data written during the measurement is new.
        let (block, seed) = (PREFILL_BYTES, !args.seed);
        let wide = LoadArgs { block, seed, command: None, ..args.clone() };
        let mut pattern = Pattern::new(&wide, capacity, naa)?;
        prefill(&mut sessions[0], &mut pattern)?;
    }
    let pattern = Pattern::new(args, capacity, naa)?;
    Load::new(args, sessions, pattern)?.run()
}

/// Writes the span once, sequentially.
fn prefill(session: &mut Session, pattern: &mut Pattern) -> Result<(), String> {
    let slots = pattern.slots();
    let mut buffers: Vec<_> = (0..PREFILL_DEPTH).map(|_| pattern.buffer()).collect();
    let mut poller = Poller::new();
    let (mut next, mut again, mut done) = (0..slots, Vec::new(), 0);
    while done < slots {
        while let Some(buffer) = buffers.pop() {
            let Some(slot) = again.pop().or_else(|| next.next()) else {
                buffers.push(buffer);
                break;
            };
            let (cdb, data) = pattern.write_slot(slot, buffer);
            session.submit(cdb, data, slot).map_err(|e| e.to_string())?;
        }
        poller.poll(&mut [&mut *session], 1000);
        while let Some(completion) = session.next_completion() {
            match &completion.status {
                Status::Good => done += 1,
                status if is_put_off(status) => again.push(completion.token),
                status => return Err(format!("filling the span: {status}")),
            }
            buffers.push(completion.buffer);
        }
    }
    Ok(())
}

/// A command in flight.
#[derive(Clone, Copy)]
struct Slot {
    started: Instant,
    bytes: u64,
}

struct Load<'a> {
    args: &'a LoadArgs,
    sessions: Vec<Session>,
    slots: Vec<Vec<Slot>>,
    pattern: Pattern,
    meter: Meter,
    measuring: bool,
    /// Free slots of sessions, with their buffers, if there is a rate.
    rate: Option<Rate<(usize, usize, Vec<u8>)>>,
}

impl<'a> Load<'a> {
    fn new(args: &'a LoadArgs, sessions: Vec<Session>, pattern: Pattern) -> Result<Self, String> {
        let empty = Slot { started: Instant::now(), bytes: 0 };
        let slots = vec![vec![empty; args.depth.max(1)]; sessions.len()];
        let rate = args.rate.map(|rate| Rate::new(rate, Instant::now()));
        let meter = Meter::new(args.part.map(Duration::from_secs_f64))?;
        Ok(Self { args, sessions, slots, pattern, meter, measuring: false, rate })
    }

    fn run(mut self) -> Result<Report, String> {
        for session in 0..self.sessions.len() {
            for slot in 0..self.args.depth.max(1) {
                let buffer = self.pattern.buffer();
                self.go_on(session, slot, buffer)?;
            }
        }
        self.drive(self.args.ramp, true)?;
        self.measuring = true;
        let started = (Instant::now(), process::own_cpu_time(), self.target_cpu());
        self.meter.begin(started.0);
        self.drive(self.args.seconds, true)?;
        let elapsed = started.0.elapsed();
        let own = process::own_cpu_time().saturating_sub(started.1);
        let target = match (self.target_cpu(), started.2) {
            (Some(end), Some(start)) => Some(end.saturating_sub(start)),
            _ => None,
        };
        let mut report = self.meter.report(elapsed, own, target);
        self.measuring = false;
        self.drive(self.args.timeout(), false)?;
        for session in &self.sessions {
            let wire = session.wire_bytes();
            report.wire_sent_bytes += wire.sent;
            report.wire_received_bytes += wire.received;
        }
        Ok(report)
    }

    fn target_cpu(&self) -> Option<Duration> {
        process::cpu_time(&self.args.target_pid?.to_string())
    }

    /// Serves the sessions for a time. With `refill`, each command that ends makes room for the
    /// next; without, it runs until none is in flight.
    fn drive(&mut self, seconds: f64, refill: bool) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e6));
        let mut poller = Poller::new();
        loop {
            if refill {
                self.submit_due()?;
            }
            let rate = self.rate.as_ref().filter(|_| refill);
            let pause_ms = rate.map_or(100, |rate| rate.pause_ms(Instant::now()));
            let mut all: Vec<_> = self.sessions.iter_mut().collect();
            poller.poll(&mut all, pause_ms);
            for session in 0..self.sessions.len() {
                while let Some(completion) = self.sessions[session].next_completion() {
                    self.complete(session, completion, refill)?;
                }
                if self.sessions[session].is_lost() {
                    return Err(String::from("the connection to the target is lost"));
                }
            }
            let enough = self.args.commands.is_some_and(|n| self.meter.commands() >= n);
            let idle = self.sessions.iter().all(|session| session.in_flight() == 0);
            if Instant::now() >= end || (refill && enough) || (!refill && idle) {
                return Ok(());
            }
        }
    }

    fn complete(
        &mut self,
        session: usize,
        completion: Completion,
        refill: bool,
    ) -> Result<(), String> {
        let slot = completion.token as usize;
        let Slot { started, bytes } = self.slots[session][slot];
        match &completion.status {
            Status::Good if self.measuring => {
                let now = Instant::now();
                self.meter.record(now, now.saturating_duration_since(started), bytes);
            }
            Status::Good => {}
            status if is_put_off(status) => self.meter.put_off += 1,
            status if self.args.allow_full && is_full(status) => self.meter.refused += 1,
            status => return Err(format!("a command ended with {status}")),
        }
        if refill { self.go_on(session, slot, completion.buffer) } else { Ok(()) }
    }

    /// Handles a free slot: it sends its next command, at once or when that is due.
    fn go_on(&mut self, session: usize, slot: usize, buffer: Vec<u8>) -> Result<(), String> {
        let now = Instant::now();
        match &mut self.rate {
            Some(rate) => rate.add((session, slot, buffer), now),
            None => self.submit(session, slot, buffer, now)?,
        }
        Ok(())
    }

    fn submit_due(&mut self) -> Result<(), String> {
        while let Some(rate) = &mut self.rate
            && let Some((started, (session, slot, buffer))) = rate.take_due(Instant::now())
        {
            self.submit(session, slot, buffer, started)?;
        }
        Ok(())
    }

    fn submit(
        &mut self,
        session: usize,
        slot: usize,
        buffer: Vec<u8>,
        started: Instant,
    ) -> Result<(), String> {
        let (cdb, data, bytes) = self.pattern.next(buffer);
        self.slots[session][slot] = Slot { started, bytes };
        self.sessions[session].submit(cdb, data, slot as u64).map_err(|e| e.to_string())
    }
}

impl LoadArgs {
    /// Returns how long to wait for the last commands.
    fn timeout(&self) -> f64 {
        f64::from(self.connect.timeout_s.max(1)) + 1.0
    }
}

/// Returns whether a status says that a thin unit has no space (SBC-4, 4.7.3.6).
fn is_full(status: &Status) -> bool {
    matches!(status, Status::CheckCondition(sense) if (sense.key, sense.asc_ascq) == (7, 0x2707))
}

/// Returns whether a status only says "not now".
pub(crate) fn is_put_off(status: &Status) -> bool {
    match status {
        Status::Other(code) => matches!(code, 0x08 | 0x28),
        Status::CheckCondition(sense) => sense.key == 6,
        _ => false,
    }
}
