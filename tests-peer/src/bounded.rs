//! Bounded work: each row of the command table in its largest legal form, issued by one host as
//! deep as its window goes, while another host reads and writes 4 KiB and 64 KiB and looks at each
//! byte.
//!
//! A row passes if every command is answered, the other host goes on, the array's memory grows by
//! no more than it may, and what the commands write to the device is no more than their data and a
//! bounded part for each. Times are printed, and judge nothing, but for a watchdog. In the end the
//! process is killed, and the pool opens with the other host's data.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::{Cdb, CopySegment, Direction, Naa, Session, copy_parameters, unmap_parameters};

use crate::array::Array;
use crate::good::Good;
use crate::initiator::{Initiator, Sent, opcode};
use crate::random::Random;
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
/// Commands at once: the window.
const DEPTH: usize = 128;
/// How long one answer may take: a watchdog.
const ANSWER: Duration = Duration::from_secs(120);
/// Blocks of the volumes: 64 TiB.
const BLOCKS: u64 = (64 << 40) / 512;
/// The longest transfer (Block Limits): 32 MiB.
const TRANSFER: u32 = 65_536;

/// What the commands are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// A volume on which nothing was written.
    Empty,
    /// One that is full of one block.
    Same,
    /// One of which many others were cloned, each with writes of its own.
    Cloned,
    /// One with many snapshots, and writes between them.
    Snapshots,
}

/// A row of the table, and what is asked for.
struct Form {
    name: &'static str,
    on: On,
    cdb: Cdb,
    data: Vec<u8>,
    /// Bytes that come in.
    bytes: usize,
    depth: usize,
}

/// All of it. `units` are the volumes in the order of [`On`], with their names.
pub fn bounded(report: &mut Report, array: &mut Array, watched: &Target, units: &[Target; 4]) {
    let good = Good::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(watched));
        report.check("volumes full of one block, of clones and of snapshots", || {
            good.beside(|| fill(array, units))
        });
        let before = array.peak_kib();
        let forms = names(units).map(|names| forms(&names));
        match forms {
            Ok(forms) => {
                for form in forms {
                    let target = &units[form.on as usize];
                    let name = format!("{} on a volume {}", form.name, form.on.says());
                    report.check(&name, || good.beside(|| run(array, target, &form, &good)));
                }
            }
            Err(error) => report.check("the volumes have names", || Err(error)),
        }
        report.check("memory grows by less than 256 MiB over all of them", || {
            let grown = array.peak_kib()?.saturating_sub(before?);
            ensure!(grown < GROWTH_KIB, "it grew by {} MiB", grown >> 10);
            Ok(format!("{} MiB", grown >> 10))
        });
        good.stop.store(true, Ordering::Relaxed);
        report.check("every command of the other host ended, and every byte is right", || {
            worker.join().map_err(|_| anyhow!("it panicked"))?
        });
    });
    report.check("after kill -9 the pool opens, and the other host's bytes are there", || {
        array.kill()?;
        let took = array.start()?;
        good.verify(&mut Session::connect(&watched.config())?)?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
}

impl On {
    fn says(self) -> &'static str {
        match self {
            Self::Empty => "that is empty",
            Self::Same => "full of one block",
            Self::Cloned => "of clones",
            Self::Snapshots => "with snapshots",
        }
    }
}

fn names(units: &[Target; 4]) -> Result<Vec<Naa>> {
    let name = |unit: &Target| Session::connect(&unit.config())?.naa()?.context("it has no name");
    units.iter().map(name).collect()
}

/// Makes the volumes what their rows say.
fn fill(array: &Array, units: &[Target; 4]) -> Result<String> {
    let mut random = Random::new(3);
    let mut same = Session::connect(&units[On::Same as usize].config())?;
    let block = libiscsi::Data::Out(random.bytes(512));
    same.execute(Cdb::write_same_16(0, 0, false), block)?;
    for (on, verb) in [(On::Cloned, "clone"), (On::Snapshots, "snapshot")] {
        let mut session = Session::connect(&units[on as usize].config())?;
        let source = if on == On::Cloned { "cloned" } else { "snapped" };
        for n in 0..32 {
            for _ in 0..32 {
                let lba = 8 * random.below(BLOCKS / 8);
                session.write(lba, random.bytes(4096), 512)?;
            }
            let name = format!("s{n}");
            array.verb(&["snapshot", "create", source, "--suffix", &name])?;
            if verb == "clone" {
                let clone = format!("clone-{n}");
                let of = format!("{source}.{name}");
                array.verb(&["volume", "clone", &of, &clone])?;
            }
        }
    }
    Ok("64 TiB each".into())
}

/// Issues a form as deep as it says, until each is answered.
fn run(array: &Array, target: &Target, form: &Form, good: &Good) -> Result<String> {
    let begin = Instant::now();
    good.take_slowest();
    let written = array.written_bytes()?;
    let mut initiator = Initiator::login(target, 0x62_6f00)?;
    for _ in 0..8 {
        // What happened before is told first.
        if initiator.execute(&Cdb::test_unit_ready(), &[], 0)?.0 == 0 {
            break;
        }
    }
    let bytes = form.data.len().max(form.bytes);
    let mut open: HashMap<u32, Sent> = HashMap::new();
    for _ in 0..form.depth {
        let sent = initiator.command(&form.cdb, bytes)?;
        open.insert(sent.tag, sent);
    }
    let mut good_ones = 0;
    while !open.is_empty() {
        let pdu = initiator.receive_within(ANSWER)?;
        let pdu =
            pdu.with_context(|| format!("{} of {} are not answered", open.len(), form.depth))?;
        let over = match pdu.opcode() {
            opcode::R2T => {
                initiator.answer(&pdu, &form.data)?;
                false
            }
            opcode::SCSI_RESPONSE => true,
            opcode::DATA_IN => pdu.header[1] & 1 != 0,
            _ => false,
        };
        if over {
            open.remove(&pdu.tag()).context("an answer to nothing")?;
            good_ones += usize::from(pdu.header[3] == 0);
        }
    }
    let sent = (form.data.len() * form.depth) as u64;
    let most = WRITTEN_BYTES_BASE + 2 * sent + WRITTEN_BYTES_EACH * form.depth as u64;
    let grown = array.written_bytes()?.saturating_sub(written);
    ensure!(grown <= most, "{grown} bytes were written for {sent} bytes of data");
    let slowest = good.take_slowest().as_millis();
    let took = begin.elapsed().as_millis();
    Ok(format!(
        "{good_ones} of {} GOOD, {took} ms; the other host's slowest {slowest} ms",
        form.depth
    ))
}

/// The largest form of each command: one row or several of each entry of the command table.
fn forms(names: &[Naa]) -> Vec<Form> {
    let mut random = Random::new(9);
    let mut all = Vec::new();
    let block = random.bytes(512);
    let long = random.bytes(TRANSFER as usize * 512);
    let mut add = |name, on, cdb: Cdb, data: &[u8], bytes: usize, depth: usize| {
        all.push(Form { name, on, cdb, data: data.to_vec(), bytes, depth });
    };
    let sixteen = |code: u8, flags: u8, lba: u64, blocks: u32, direction| {
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (code, flags);
        bytes[2..10].copy_from_slice(&lba.to_be_bytes());
        bytes[10..14].copy_from_slice(&blocks.to_be_bytes());
        Cdb::raw(&bytes, direction)
    };
    let ten = |code: u8, flags: u8, lba: u32, blocks: u16, direction| {
        let mut bytes = [0; 10];
        (bytes[0], bytes[1]) = (code, flags);
        bytes[2..6].copy_from_slice(&lba.to_be_bytes());
        bytes[7..9].copy_from_slice(&blocks.to_be_bytes());
        Cdb::raw(&bytes, direction)
    };
    let twelve = |code: u8, flags: u8, blocks: u32, direction| {
        let mut bytes = [0; 12];
        (bytes[0], bytes[1]) = (code, flags);
        bytes[6..10].copy_from_slice(&blocks.to_be_bytes());
        Cdb::raw(&bytes, direction)
    };
    let (none, within, out) = (Direction::None, Direction::In, Direction::Out);
    let bytes = long.len();
    for on in [On::Empty, On::Same, On::Cloned, On::Snapshots] {
        add("READ (16) of 32 MiB", on, sixteen(0x88, 0, 1, TRANSFER, within), &[], bytes, 16);
        let verify = sixteen(0x8f, 0, 1, TRANSFER, none);
        add("VERIFY (16) of 32 MiB", on, verify, &[], 0, 32);
        let verify = sixteen(0x8f, 0, 0, u32::MAX, none);
        add("VERIFY (16) of 2 TiB", on, verify, &[], 0, DEPTH);
        let verify = sixteen(0x8f, 6, 1, TRANSFER, out);
        add("VERIFY (16) of 32 MiB with one block", on, verify, &block, 0, 32);
        add(
            "WRITE SAME (16) of a random block to the end",
            on,
            sixteen(0x93, 0, 1, 0, out),
            &block,
            0,
            DEPTH,
        );
        add("WRITE SAME (16) of zeros", on, sixteen(0x93, 1, 3, 0, none), &[], 0, DEPTH);
        add("WRITE SAME (16) that unmaps", on, sixteen(0x93, 9, 5, 0, none), &[], 0, DEPTH);
        add("SYNCHRONIZE CACHE (16)", on, sixteen(0x91, 0, 0, 0, none), &[], 0, DEPTH);
        add("PRE-FETCH (16) of 2 TiB", on, sixteen(0x90, 0, 0, u32::MAX, none), &[], 0, DEPTH);
        let mut status = sixteen(0x9e, 0x12, 0, 1 << 20, within);
        add("GET LBA STATUS of 1 MiB", on, status, &[], 1 << 20, DEPTH);
        status = sixteen(0x9e, 0x12, BLOCKS / 2 + 1, 1 << 20, within);
        add("GET LBA STATUS from the middle", on, status, &[], 1 << 20, DEPTH);
        let ranges: Vec<(u64, u32)> =
            (0..512_u64).map(|n| (n * (BLOCKS / 512) + n % 9, (BLOCKS / 512 - 9) as u32)).collect();
        let list = unmap_parameters(&ranges);
        let mut unmap = [0; 10];
        unmap[0] = 0x42;
        unmap[7..9].copy_from_slice(&(list.len() as u16).to_be_bytes());
        add("UNMAP of 512 ranges", on, Cdb::raw(&unmap, out), &list, 0, 32);
        for (name, shift) in [
            ("EXTENDED COPY of 64 aligned segments", 0),
            ("EXTENDED COPY of 64 segments at 4 KiB", 8),
            ("EXTENDED COPY of 64 segments at 64 KiB", 128),
            ("EXTENDED COPY of 64 segments at 512 bytes", 1),
        ] {
            // 31 MiB: whole leaves.
            let step = 31 * 2048_u64;
            let segments: Vec<CopySegment> = (0..64_u64)
                .map(|n| CopySegment {
                    source: on as u16,
                    destination: on as u16,
                    blocks: step as u16,
                    source_lba: n * step,
                    destination_lba: BLOCKS / 2 + n * step + shift,
                })
                .collect();
            let list = copy_parameters(names, &segments, 512);
            add(name, on, Cdb::extended_copy(list.len() as u32), &list, 0, 32);
        }
        for (name, shift) in
            [("POPULATE TOKEN of 64 GiB", 0), ("POPULATE TOKEN of 64 GiB at 4 KiB", 8)]
        {
            let mut list = vec![0; 16];
            let each = (1_u64 << 30) / 512;
            for n in 0..64 {
                list.extend((n * each + shift).to_be_bytes());
                list.extend((each as u32).to_be_bytes());
                list.extend([0; 4]);
            }
            let length = list.len() as u16;
            list[0..2].copy_from_slice(&(length - 2).to_be_bytes());
            list[14..16].copy_from_slice(&(length - 16).to_be_bytes());
            let mut cdb = [0; 16];
            (cdb[0], cdb[1]) = (0x83, 0x10);
            cdb[10..14].copy_from_slice(&u32::from(length).to_be_bytes());
            add(name, on, Cdb::raw(&cdb, out), &list, 0, DEPTH);
        }
    }
    let on = On::Empty;
    add("READ (6)", on, Cdb::raw(&[0x08, 0, 0, 0, 0, 0], within), &[], 256 * 512, DEPTH);
    add("WRITE (6)", on, Cdb::raw(&[0x0a, 0, 0, 0, 0, 0], out), &long[..256 * 512], 0, DEPTH);
    let short = 65_535 * 512;
    add("READ (10)", on, ten(0x28, 0, 1, 65_535, within), &[], short, 8);
    add("READ (12)", on, twelve(0xa8, 0, TRANSFER, within), &[], bytes, 8);
    add("WRITE (10)", on, ten(0x2a, 0, 1, 65_535, out), &long[..short], 0, 4);
    add("WRITE (12)", on, twelve(0xaa, 0, TRANSFER, out), &long, 0, 4);
    add("WRITE (16) of 32 MiB", on, sixteen(0x8a, 8, 1, TRANSFER, out), &long, 0, 8);
    add("WRITE AND VERIFY (10)", on, ten(0x2e, 0, 1, 65_535, out), &long[..short], 0, 4);
    add("WRITE AND VERIFY (12)", on, twelve(0xae, 0, TRANSFER, out), &long, 0, 4);
    add("WRITE AND VERIFY (16)", on, sixteen(0x8e, 0, 1, TRANSFER, out), &long, 0, 4);
    add("ORWRITE (16)", on, sixteen(0x8b, 0, 1, TRANSFER, out), &long, 0, 4);
    add("VERIFY (10)", on, ten(0x2f, 0, 0, 65_535, none), &[], 0, DEPTH);
    add("VERIFY (12) of 2 TiB", on, twelve(0xaf, 0, u32::MAX, none), &[], 0, DEPTH);
    add("VERIFY (16) with as many blocks", on, sixteen(0x8f, 2, 1, TRANSFER, out), &long, 0, 4);
    add("PRE-FETCH (10)", on, ten(0x34, 0, 0, 65_535, none), &[], 0, DEPTH);
    add("SYNCHRONIZE CACHE (10)", on, ten(0x35, 0, 0, 0, none), &[], 0, DEPTH);
    add("WRITE SAME (10) to the end", on, ten(0x41, 0, 1, 0, out), &block, 0, DEPTH);
    let mut compare = [0; 16];
    (compare[0], compare[13]) = (0x89, 255);
    let pair = &long[..2 * 255 * 512];
    add("COMPARE AND WRITE of 255 blocks", on, Cdb::raw(&compare, out), pair, 0, DEPTH);
    let mut atomic = [0; 16];
    atomic[0] = 0x9c;
    atomic[12..14].copy_from_slice(&8192_u16.to_be_bytes());
    add("WRITE ATOMIC (16)", on, Cdb::raw(&atomic, out), &long[..4 << 20], 0, 16);
    let ids = transport_ids(8 << 20);
    let mut register = [0; 10];
    register[0] = 0x5f;
    register[5..9].copy_from_slice(&(ids.len() as u32).to_be_bytes());
    let register = Cdb::raw(&register, out);
    add("REGISTER with 8 MiB of TransportIDs", on, register, &ids, 0, 16);
    for (name, code, service, at, width) in [
        ("INQUIRY", 0x12, 0, 3, 2),
        ("REQUEST SENSE", 0x03, 0, 4, 1),
        ("MODE SENSE (10)", 0x5a, 0, 7, 2),
        ("LOG SENSE", 0x4d, 0, 7, 2),
        ("READ KEYS", 0x5e, 0, 7, 2),
        ("READ RESERVATION", 0x5e, 1, 7, 2),
        ("REPORT CAPABILITIES", 0x5e, 2, 7, 2),
        ("READ FULL STATUS", 0x5e, 3, 7, 2),
        ("RECEIVE COPY OPERATING PARAMETERS", 0x84, 3, 10, 4),
        ("RECEIVE COPY STATUS (LID1)", 0x84, 0, 10, 4),
        ("RECEIVE ROD TOKEN INFORMATION", 0x84, 7, 10, 4),
        ("REPORT ALL ROD TOKENS", 0x84, 8, 10, 4),
        ("READ CAPACITY (16)", 0x9e, 0x10, 10, 4),
        ("REPORT LUNS", 0xa0, 0, 6, 4),
        ("REPORT TARGET PORT GROUPS", 0xa3, 0x0a, 6, 4),
        ("REPORT SUPPORTED OPERATION CODES", 0xa3, 0x0c, 6, 4),
        ("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", 0xa3, 0x0d, 6, 4),
        ("READ DEFECT DATA (10)", 0x37, 0, 7, 2),
        ("READ DEFECT DATA (12)", 0xb7, 0, 6, 4),
    ] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (code, service);
        cdb[at..at + width].fill(0xff);
        let size = [6, 10, 10, 0, 16, 12][usize::from(code >> 5).min(5)];
        if code == 0x4d {
            cdb[2] = 0x0c;
        }
        if code == 0x5a {
            cdb[2] = 0x3f;
        }
        add(name, on, Cdb::raw(&cdb[..size], within), &[], 1 << 20, DEPTH);
    }
    all
}

/// The list of PERSISTENT RESERVE OUT, with SPEC_I_PT and as many TransportIDs as fit.
fn transport_ids(most: usize) -> Vec<u8> {
    let mut list = vec![0; 28];
    list[15] = 1;
    list[20] = 8;
    let mut n = 0;
    loop {
        let mut id = vec![0x05, 0, 0, 0];
        id.extend(format!("iqn.2026-01.com.example:{n}\0").into_bytes());
        id.resize(id.len().next_multiple_of(4), 0);
        let length = id.len() as u16 - 4;
        id[2..4].copy_from_slice(&length.to_be_bytes());
        if list.len() + id.len() > most {
            break;
        }
        list.extend(id);
        n += 1;
    }
    let length = list.len() as u32 - 28;
    list[24..28].copy_from_slice(&length.to_be_bytes());
    list
}
