//! Bounded work: each command of the command table in its largest legal form, issued by one host as
//! deep as its window goes, while another host reads and writes 4 KiB and 64 KiB and looks at each
//! byte.
//!
//! A row passes if every command is answered, and as it is to be, the other host goes on, and what
//! the commands write to the device is no more than their data and a bounded part for each. All
//! together the array's memory grows by no more than it may. Times are printed, and judge nothing,
//! but for a watchdog. In the end the process is killed, and the pool opens with the other host's
//! data.

mod forms;
mod lists;
mod volumes;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::{Cdb, Direction, Naa, Session};

use self::forms::{Form, forms};
pub use self::volumes::On;
use crate::array::Array;
use crate::good::Good;
use crate::initiator::{Function, Initiator, Pdu, Sent, opcode};
use crate::report::Report;
use crate::target::Target;

/// Little memory, so that growth is seen.
pub const SETTINGS: &str = "memory = \"256M\"\nlog_level = \"warn\"\n";
/// What all rows together may take beyond what was there before.
const GROWTH_KIB: u64 = 256 << 10;
/// What one command may write to the device beyond its own data, for its record and what it has
/// changed of maps.
const WRITTEN_BYTES_EACH: u64 = 4 << 20;
/// What may be written meanwhile for what was before: checkpoints, and freeing.
const WRITTEN_BYTES_BASE: u64 = 1 << 30;
/// How long one answer may take: a watchdog.
const ANSWER: Duration = Duration::from_secs(120);
/// What the other host does while a long copy is under way, before that is aborted.
const COMMANDS_BESIDE: u64 = 50;

/// All of it, or those rows with `rows` in their names. `units` are the volumes in the order of
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
        report.check("each command that the array tells of has a row", || {
            every_command(&units[0], &forms)
        });
        for form in &forms {
            let target = &units[form.on as usize];
            let name = format!("{} ({})", form.name, form.on.says());
            if !name.contains(rows) {
                continue;
            }
            report.check(&name, || {
                let detail = good.beside(|| run(array, target, form, &good))?;
                Ok(format!("{detail}{}", slowest.note(&name, good.take_slowest())))
            });
        }
        for (name, way) in
            [("ABORT TASK", Abort::Task), ("COPY OPERATION ABORT", Abort::CopyOperation)]
        {
            report.check(&format!("the longest copy ends behind {name}"), || {
                good.beside(|| abort(&units[On::Empty as usize], &names, &good, way))
            });
        }
        report.check("memory grows by less than 256 MiB over all of them", || {
            let grown = array.peak_kib()?.saturating_sub(before?);
            ensure!(grown < GROWTH_KIB, "it grew by {} MiB", grown >> 10);
            Ok(format!("{} MiB", grown >> 10))
        });
        good.stop.store(true, Ordering::Relaxed);
        report.check("every command of the other host ended, and every byte is right", || {
            let detail = worker.join().map_err(|_| anyhow!("it panicked"))??;
            Ok(format!("{detail}; {}", slowest.says()))
        });
    });
    report.check("after kill -9 the pool opens, and the other host's bytes are there", || {
        array.kill()?;
        let took = array.start()?;
        good.verify(&mut Session::connect(&watched.config())?)?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
}

/// Where another host had to wait longest.
#[derive(Default)]
struct Slowest {
    time: Duration,
    row: String,
}

impl Slowest {
    /// Notes what a row has cost the other host, and says it.
    fn note(&mut self, row: &str, time: Duration) -> String {
        if time > self.time {
            *self = Self { time, row: row.to_owned() };
        }
        format!("; the other host's slowest {} ms", time.as_millis())
    }

    fn says(&self) -> String {
        format!("{} ms in {}", self.time.as_millis(), self.row)
    }
}

/// A session that has been told all that happened before.
fn login(target: &Target, isid: u32) -> Result<Initiator> {
    let mut initiator = Initiator::login(target, isid)?;
    for _ in 0..8 {
        if initiator.execute(&Cdb::test_unit_ready(), &[], 0)?.0 == 0 {
            break;
        }
    }
    Ok(initiator)
}

/// REPORT SUPPORTED OPERATION CODES names nothing that no form is of.
fn every_command(target: &Target, forms: &[Form]) -> Result<String> {
    let mut cdb = [0; 12];
    (cdb[0], cdb[1]) = (0xa3, 0x0c);
    cdb[6..10].copy_from_slice(&65_536_u32.to_be_bytes());
    let cdb = Cdb::raw(&cdb, Direction::In);
    let (status, data) = login(target, 0x62_6e00)?.execute(&cdb, &[], 65_536)?;
    ensure!(status == 0, "status {status:02X}h");
    let length = u32::from_be_bytes([data[0], data[1], data[2], data[3]]) as usize;
    let told = data.get(4..4 + length).context("the list is cut")?;
    let codes: BTreeSet<(u8, u8)> = forms.iter().map(Form::code).collect();
    let opcodes: BTreeSet<u8> = codes.iter().map(|(opcode, _)| *opcode).collect();
    for row in told.chunks_exact(8) {
        let (opcode, action, has_action) = (row[0], row[3], row[5] & 1 != 0);
        let is_there = match has_action {
            true => codes.contains(&(opcode, action)),
            false => opcodes.contains(&opcode),
        };
        ensure!(is_there, "{opcode:02X}h/{action:02X}h has none");
    }
    Ok(format!("{} of {} rows", told.len() / 8, forms.len()))
}

/// Issues a form as often as it says, until each is answered.
fn run(array: &Array, target: &Target, form: &Form, good: &Good) -> Result<String> {
    let begin = Instant::now();
    let mut initiator = login(target, 0x62_6f00)?;
    good.take_slowest();
    let written = array.written_bytes()?;
    let bytes = form.data.len().max(form.bytes);
    let mut open: HashMap<u32, Sent> = HashMap::new();
    for n in 0..form.depth {
        let sent = initiator.command(&form.cdb_of(n), bytes)?;
        open.insert(sent.tag, sent);
    }
    let mut good_ones = 0;
    let mut refused = None;
    while !open.is_empty() {
        let pdu = initiator.receive_within(ANSWER)?;
        let pdu =
            pdu.with_context(|| format!("{} of {} are not answered", open.len(), form.depth))?;
        if pdu.opcode() == opcode::R2T {
            initiator.answer(&pdu, &form.data)?;
            continue;
        }
        if !ends(&pdu) {
            continue;
        }
        open.remove(&pdu.tag()).context("an answer to nothing")?;
        match pdu.header[3] {
            0 => good_ones += 1,
            _ => drop(refused.get_or_insert(pdu)),
        }
    }
    let sent = (form.data.len() * form.depth) as u64;
    let most = WRITTEN_BYTES_BASE + 2 * sent + WRITTEN_BYTES_EACH * form.depth as u64;
    let grown = array.written_bytes()?.saturating_sub(written);
    ensure!(grown <= most, "{grown} bytes were written for {sent} bytes of data");
    if let Some(pdu) = refused.filter(|_| form.is_good) {
        let sense = pdu.data.get(2..).unwrap_or(&[]);
        let left = form.depth - good_ones;
        anyhow::bail!("{left} end with {:02X}h, the first with {sense:02X?}", pdu.header[3]);
    }
    let took = begin.elapsed().as_millis();
    Ok(format!("{good_ones} of {} GOOD, {took} ms", form.depth))
}

/// Whether a PDU is the last of a command.
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
    /// By task management, which is answered alone.
    Task,
    /// By another command: both are answered, the copy first.
    CopyOperation,
}

/// The list identifier of the copy that is aborted.
const LIST_ID: u8 = 7;

/// A copy that moves 256 GiB block by block goes on while the other host works, and ends when it is
/// aborted.
fn abort(target: &Target, names: &[Naa], good: &Good, way: Abort) -> Result<String> {
    let mut initiator = login(target, 0x62_7000)?;
    let segments = lists::segments(On::Empty, forms::LONGEST_SEGMENT, 1);
    let mut list = lists::copy_list(names, &segments);
    // With a list identifier, by which it can be named.
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
            ensure!(copy.tag() == sent.tag, "it is answered first: {:02X?}", copy.header);
            let sense = copy.data.get(2..).unwrap_or(&[]);
            let told = (sense.get(2), sense.get(12), sense.get(13));
            ensure!(told == (Some(&0x0a), Some(&0x00), Some(&0x06)), "{sense:02X?}");
            let answer = receive(&mut initiator)?;
            ensure!(answer.tag() == abort.tag && answer.header[3] == 0, "{:02X?}", answer.header);
        }
    }
    let took = begin.elapsed().as_millis();
    let (status, _) = initiator.execute(&Cdb::test_unit_ready(), &[], 0)?;
    ensure!(status == 0, "the session goes on with {status:02X}h");
    Ok(format!("answered after {took} ms"))
}

fn receive(initiator: &mut Initiator) -> Result<Pdu> {
    initiator.receive_within(ANSWER)?.context("no answer")
}
