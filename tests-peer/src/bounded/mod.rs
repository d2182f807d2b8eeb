//! Bounded work: each command of the command table in its largest legal form, issued by one host
//! with a full window, while another host reads and writes 4 KiB and 64 KiB and checks each byte.
//!
//! A row passes if every command gets its expected response, or ends when it is aborted after a
//! while, the other host continues, and the commands write no more to the device than their data
//! and a bounded amount for each. In total the array's memory grows by no more than its limit.
//! Times are printed, but not judged, except by a watchdog. At the end the process is killed, and
//! the pool opens with the other host's data.

mod forms;
mod full;
mod lists;
mod volumes;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::{Cdb, Direction, Naa, Session};

use self::forms::{DEPTH, Form, forms};
pub use self::volumes::{On, fill_two, units};
use crate::array::Array;
use crate::good::Good;
use crate::initiator::{Function, Initiator, NO_TAG, Pdu, Sent, opcode};
use crate::report::Report;
use crate::target::Target;

/// Little memory, so that growth is visible and not a cache that fills.
pub const SETTINGS: &str = "memory = \"64M\"\nlog_level = \"warn\"\n";
/// The most that memory may grow over all rows.
const GROWTH_KIB: u64 = 256 << 10;
/// The most that one command may write to the device beyond its data, for its record and changed
/// maps.
const WRITTEN_BYTES_EACH: u64 = 4 << 20;
/// The most that may be written meanwhile for earlier work: checkpoints, and freeing.
const WRITTEN_BYTES_BASE: u64 = 1 << 30;
/// How long one response may take: a watchdog.
const ANSWER: Duration = Duration::from_secs(120);
/// How long a row runs, at least so long that all commands are in progress at once. Commands
/// without a response are then aborted: a window of the longest copies runs for an hour.
const ROW: Duration = Duration::from_secs(1);
/// The number of the other host's commands while a long copy is in progress, before that is
/// aborted.
const COMMANDS_BESIDE: u64 = 50;

/// Runs all rows, or those with `rows` in their names. `units` are the volumes in the order of
/// [`On`].
pub fn bounded(
    report: &mut Report,
    array: &mut Array,
    watched: &Target,
    units: &[Target; 4],
    rows: &str,
) {
    let good = Good::default();
    let mut slowest = Slowest::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(watched));
        let mut names = Vec::new();
        report.check("volumes full of one block, of clones and of snapshots", || {
            names = volumes::names(units)?;
            good.beside(|| volumes::fill(array, units, &names))
        });
        let before = array.peak_kib();
        let forms = forms(&names);
        report.check("each reported command has a row", || every_command(&units[0], &forms));
        for form in &forms {
            let target = &units[form.on as usize];
            let name = format!("{} ({})", form.name, form.on.says());
            if !name.contains(rows) {
                continue;
            }
            report.check(&name, || {
                let detail = good.beside(|| run(array, target, form, &good))?;
                let peak = array.peak_kib()? >> 10;
                Ok(format!("{detail}{}; peak {peak} MiB", slowest.note(&name, good.take_slowest())))
            });
        }
        for (name, way) in
            [("ABORT TASK", Abort::Task), ("COPY OPERATION ABORT", Abort::CopyOperation)]
        {
            report.check(&format!("the longest copy ends after {name}"), || {
                good.beside(|| abort(&units[On::Empty as usize], &names, &good, way))
            });
        }
        check_growth(report, array, before);
        good.stop.store(true, Ordering::Relaxed);
        report.check("the other host's commands all ended, with the right data", || {
            let detail = worker.join().map_err(|_| anyhow!("it panicked"))??;
            Ok(format!("{detail}; {}", slowest.says()))
        });
    });
    report.check("after kill -9 the pool opens with the other host's data", || {
        array.kill()?;
        let took = array.start()?;
        good.verify(&mut Session::connect(&watched.config())?)?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
}

/// Checks how much the array's memory has grown since its peak was `before_kib`.
pub fn check_growth(report: &mut Report, array: &Array, before_kib: Result<u64>) {
    report.check("memory grows by less than 256 MiB in all of them", || {
        let grown = array.peak_kib()?.saturating_sub(before_kib?);
        ensure!(grown < GROWTH_KIB, "it grew by {} MiB", grown >> 10);
        Ok(format!("{} MiB", grown >> 10))
    });
}

/// The row in which the other host had to wait longest.
#[derive(Default)]
pub struct Slowest {
    time: Duration,
    row: String,
}

impl Slowest {
    /// Notes the other host's longest wait in a row, and describes it.
    pub fn note(&mut self, row: &str, time: Duration) -> String {
        if time > self.time {
            *self = Self { time, row: row.to_owned() };
        }
        format!("; the other host's slowest command {} ms", time.as_millis())
    }

    pub fn says(&self) -> String {
        format!("{} ms in {}", self.time.as_millis(), self.row)
    }
}

/// Logs in, and takes pending unit attentions.
fn login(target: &Target, isid: u32) -> Result<Initiator> {
    let mut initiator = Initiator::login(target, isid)?;
    for _ in 0..8 {
        if initiator.execute(&Cdb::test_unit_ready(), &[], 0)?.0 == 0 {
            break;
        }
    }
    Ok(initiator)
}

/// REPORT SUPPORTED OPERATION CODES must contain no command without a form.
fn every_command(target: &Target, forms: &[Form]) -> Result<String> {
    let mut cdb = [0; 12];
    (cdb[0], cdb[1]) = (0xa3, 0x0c);
    cdb[6..10].copy_from_slice(&65_536_u32.to_be_bytes());
    let cdb = Cdb::raw(&cdb, Direction::In);
    let (status, data) = login(target, 0x62_6e00)?.execute(&cdb, &[], 65_536)?;
    ensure!(status == 0, "status {status:02X}h");
    let length = u32::from_be_bytes([data[0], data[1], data[2], data[3]]) as usize;
    let told = data.get(4..4 + length).context("the list is truncated")?;
    let codes: BTreeSet<(u8, u8)> = forms.iter().map(Form::code).collect();
    let opcodes: BTreeSet<u8> = codes.iter().map(|(opcode, _)| *opcode).collect();
    for row in told.chunks_exact(8) {
        let (opcode, action, has_action) = (row[0], row[3], row[5] & 1 != 0);
        let is_there = match has_action {
            true => codes.contains(&(opcode, action)),
            false => opcodes.contains(&opcode),
        };
        ensure!(is_there, "{opcode:02X}h/{action:02X}h has no row");
    }
    Ok(format!("{} of {} rows", told.len() / 8, forms.len()))
}

/// Commands of one form in progress.
struct Flight<'a> {
    form: &'a Form,
    /// The data of each, except what distinguishes them.
    data: Arc<[u8]>,
    /// Commands by tag, with how many were issued before.
    open: HashMap<u32, usize>,
    good: usize,
    refused: Option<Pdu>,
}

impl Flight<'_> {
    /// Processes a PDU for one of the commands.
    fn take(&mut self, initiator: &mut Initiator, pdu: Pdu) -> Result<()> {
        if pdu.opcode() == opcode::R2T {
            let n = *self.open.get(&pdu.tag()).context("an R2T that matches no command")?;
            return match self.form.is_stamped {
                false => initiator.answer(&pdu, &self.data),
                true => initiator.answer_with(&pdu, &self.stamped(n, &pdu)?),
            };
        }
        if ends(&pdu) {
            self.open.remove(&pdu.tag()).context("a response that matches no command")?;
            match pdu.header[3] {
                0 => self.good += 1,
                _ => drop(self.refused.get_or_insert(pdu)),
            }
        }
        Ok(())
    }

    /// Returns the data that an R2T solicits, with a number in each sector that no other command
    /// has there.
    fn stamped(&self, n: usize, r2t: &Pdu) -> Result<Vec<u8>> {
        let (start, length) = (r2t.field(40) as usize, r2t.field(44) as usize);
        let wanted = self.data.get(start..start + length);
        let mut wanted = wanted.context("the R2T requests more than the command has")?.to_vec();
        for (at, sector) in wanted.chunks_exact_mut(512).enumerate() {
            let stamp = ((n + 1) as u64) << 32 | (start / 512 + at) as u64;
            sector[..8].copy_from_slice(&stamp.to_be_bytes());
        }
        Ok(wanted)
    }
}

/// Issues a form as often as the window allows, until each has a response, or until the time of a
/// row is over: then the rest is aborted, and the abort gets a response.
fn run(array: &Array, target: &Target, form: &Form, good: &Good) -> Result<String> {
    let begin = Instant::now();
    let mut initiator = login(target, 0x62_6f00)?;
    good.take_slowest();
    let written = array.written_bytes()?;
    let data = prepare(&mut initiator, form)?;
    let bytes = data.len().max(form.bytes);
    let (open, refused) = (HashMap::new(), None);
    let mut flight = Flight { form, data, open, good: 0, refused };
    for n in 0..DEPTH {
        let sent = initiator.command(&form.cdb_of(n), bytes)?;
        flight.open.insert(sent.tag, n);
    }
    let end = Instant::now() + ROW;
    while !flight.open.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        match initiator.receive_within(left)? {
            Some(pdu) => flight.take(&mut initiator, pdu)?,
            None => break,
        }
    }
    let cut = if flight.open.is_empty() {
        String::new()
    } else {
        abort_rest(&mut initiator, &mut flight)?
    };
    let moved = (flight.data.len() as u64 + form.moves) * DEPTH as u64;
    let most = WRITTEN_BYTES_BASE + 2 * moved + WRITTEN_BYTES_EACH * DEPTH as u64;
    let grown = array.written_bytes()?.saturating_sub(written);
    ensure!(grown <= most, "{grown} bytes were written although only {moved} are moved");
    if let Some(pdu) = flight.refused.filter(|_| form.is_good) {
        let sense = pdu.data.get(2..).unwrap_or(&[]);
        let status = pdu.header[3];
        anyhow::bail!("one did not end with GOOD, but with {status:02X}h and {sense:02X?}");
    }
    let took = begin.elapsed().as_millis();
    Ok(format!("{} of {DEPTH} GOOD, {took} ms{cut}", flight.good))
}

/// Returns the data of each command: with the token that it uses, if it does.
fn prepare(initiator: &mut Initiator, form: &Form) -> Result<Arc<[u8]>> {
    let Some(first) = form.token_of else { return Ok(form.data.clone()) };
    let list = lists::populate_list(first);
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[6]) = (0x83, 0x10, 0xff);
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    let (status, sense) = initiator.execute(&Cdb::raw(&cdb, Direction::Out), &list, 0)?;
    ensure!(status == 0, "POPULATE TOKEN: {sense:02X?}");
    let ask = Cdb::raw(&[0x84, 0x07, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0], Direction::In);
    let (status, told) = initiator.execute(&ask, &[], 1024)?;
    ensure!(status == 0, "RECEIVE ROD TOKEN INFORMATION: {told:02X?}");
    let mut list = form.data.to_vec();
    lists::put_token(&mut list, told.get(38..38 + 512).context("no token was returned")?);
    Ok(list.into())
}

/// Ends commands in progress with ABORT TASK SET, whose response arrives when all have ended.
fn abort_rest(initiator: &mut Initiator, flight: &mut Flight<'_>) -> Result<String> {
    let begin = Instant::now();
    let nothing = Sent { tag: NO_TAG, cmd_sn: 0 };
    let tag = initiator.manage(Function::AbortTaskSet, nothing)?;
    loop {
        let pdu = receive(initiator)?;
        match pdu.opcode() {
            opcode::TASK_MANAGEMENT_RESPONSE => {
                ensure!(pdu.tag() == tag && pdu.header[2] == 0, "{:02X?}", pdu.header);
                break;
            }
            // Data of aborted commands need not be sent.
            opcode::R2T => {}
            _ => flight.take(initiator, pdu)?,
        }
    }
    let (count, took) = (flight.open.len(), begin.elapsed().as_millis());
    Ok(format!(", {count} aborted, which took {took} ms"))
}

/// Returns whether a PDU is the last of a command.
fn ends(pdu: &Pdu) -> bool {
    match pdu.opcode() {
        opcode::SCSI_RESPONSE => true,
        opcode::DATA_IN => pdu.header[1] & 1 != 0,
        _ => false,
    }
}

/// How a copy is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abort {
    /// By task management; only the request gets a response.
    Task,
    /// By another command: both get a response, the copy first.
    CopyOperation,
}

/// The list identifier of the aborted copy.
const LIST_ID: u8 = 7;

/// A copy that moves 256 GiB block by block runs while the other host works, and ends when
/// it is aborted.
fn abort(target: &Target, names: &[Naa], good: &Good, way: Abort) -> Result<String> {
    let mut initiator = login(target, 0x62_7000)?;
    let segments = lists::segments(On::Empty, forms::LONGEST_SEGMENT, 1);
    let mut list = lists::copy_list(names, &segments);
    // With a list identifier, by which it can be aborted.
    (list[0], list[1]) = (LIST_ID, 0);
    let sent = initiator.command(&Cdb::extended_copy(list.len() as u32), list.len())?;
    let r2t = initiator.receive()?;
    initiator.answer(&r2t, &list)?;
    let enough = good.commands() + COMMANDS_BESIDE;
    while good.commands() < enough {
        good.wait_past(good.commands())?;
    }
    let begin = Instant::now();
    match way {
        Abort::Task => {
            let tag = initiator.manage(Function::AbortTask, sent)?;
            let answer = receive(&mut initiator)?;
            ensure!(answer.opcode() == opcode::TASK_MANAGEMENT_RESPONSE, "{:02X?}", answer.header);
            ensure!(answer.tag() == tag && answer.header[2] == 0, "{:02X?}", answer.header);
        }
        Abort::CopyOperation => {
            let mut cdb = [0; 16];
            (cdb[0], cdb[1], cdb[5]) = (0x83, 0x1c, LIST_ID);
            let abort = initiator.command(&Cdb::raw(&cdb, Direction::None), 0)?;
            let copy = receive(&mut initiator)?;
            ensure!(copy.tag() == sent.tag, "its response comes first: {:02X?}", copy.header);
            let sense = copy.data.get(2..).unwrap_or(&[]);
            let told = (sense.get(2), sense.get(12), sense.get(13));
            ensure!(told == (Some(&0x0a), Some(&0x00), Some(&0x06)), "{sense:02X?}");
            let answer = receive(&mut initiator)?;
            ensure!(answer.tag() == abort.tag && answer.header[3] == 0, "{:02X?}", answer.header);
        }
    }
    let took = begin.elapsed().as_millis();
    let (status, _) = initiator.execute(&Cdb::test_unit_ready(), &[], 0)?;
    ensure!(status == 0, "the session's next command ended with {status:02X}h");
    Ok(format!("response after {took} ms"))
}

fn receive(initiator: &mut Initiator) -> Result<Pdu> {
    initiator.receive_within(ANSWER)?.context("no response")
}
