//! Reduction: how a volume's switches affect what hosts write, and what the background pass does
//! with it later.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Poller, Session};
use serde_json::Value;

use crate::array::Array;
use crate::offload::good;
use crate::random::Random;
use crate::report::Report;
use crate::space::{copy, data_bytes};
use crate::target::Target;

const BLOCK: u32 = 512;
const POOL_BLOCK: usize = 4096;
const MIB: u64 = 1 << 20;
/// The logical blocks of a MiB.
const MIB_BLOCKS: u64 = MIB / BLOCK as u64;
/// The MiB of each kind of data.
const SOME: u64 = 4;
/// Concurrent writes of the same data.
const AT_ONCE: u64 = 16;
/// How long a pass, or two that begin by themselves, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The values of `--deduplication` and `--compression`.
const SWITCHES: [(&str, &str); 4] = [("off", "off"), ("off", "on"), ("on", "off"), ("on", "on")];
/// The names of the volumes, in this order.
const NAMES: [&str; 4] = ["left", "packed", "shared", "reduced"];

/// Creates volumes with all combinations of switches, and writes the same to each.
pub fn switches(report: &mut Report, array: &mut Array) {
    let texts: Vec<Vec<u8>> = (0..NAMES.len() as u64).map(|seed| text(SOME, seed)).collect();
    let mut targets = Vec::new();
    report.check("stored data depends on the volume's switches", || {
        for (lun, (name, (dedup, compress))) in (1..).zip(NAMES.iter().zip(SWITCHES)) {
            let switches = ["--deduplication", dedup, "--compression", compress];
            let create = ["volume", "create", name, "--size", "1G"];
            array.verb(&[&create[..], &switches].concat())?;
            array.verb(&["connect", name, "peer", "--lun", &lun.to_string()])?;
            targets.push(array.target(lun)?);
        }
        let mut told = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let (dedup, compress) = SWITCHES[index];
            let mut session = Session::connect(&target.config())?;
            let first = grown(array, || write(&mut session, 0, &texts[index]))?;
            let again = grown(array, || write(&mut session, SOME, &texts[index]))?;
            let whole = SOME * MIB;
            let fits = if compress == "on" { first * 2 < whole } else { first == whole };
            ensure!(fits && first > 0, "{}: {first} bytes for {whole}", NAMES[index]);
            let expected = if dedup == "on" { 0 } else { first };
            ensure!(again == expected, "{}: {first} bytes, then {again}", NAMES[index]);
            told.push(format!("{} {} KiB", NAMES[index], (first + again) >> 10));
        }
        Ok(told.join(", "))
    });
    report.check("a copy shares blocks with any setting of the switches", || {
        let mut session = Session::connect(&targets[0].config())?;
        let more = grown(array, || copy(&mut session, 0, 10 * SOME, SOME))?;
        ensure!(more == 0, "{more} bytes");
        Ok(String::new())
    });
    report.check("switches persist over a kill, and apply to clones", || {
        hold(array, &targets, &texts)
    });
    report.check("a snapshot has no switches", || {
        array.verb(&["snapshot", "create", "left", "--suffix", "then"])?;
        let refused = array.try_verb(&["volume", "set", "left.then", "--compression", "off"])?;
        ensure!(refused.code == 1, "it ended with {}: {}", refused.code, refused.text);
        Ok(String::new())
    });
    report.check("all data reads back as written", || {
        for (target, text) in targets.iter().zip(&texts) {
            let mut session = Session::connect(&target.config())?;
            verify(&mut session, 0, text)?;
            verify(&mut session, SOME, text)?;
        }
        let mut session = Session::connect(&targets[0].config())?;
        [20 * SOME, 30 * SOME]
            .into_iter()
            .try_for_each(|at| verify(&mut session, at, &texts[0]))?;
        Ok(String::new())
    });
}

/// Changes switches, and after a kill writes data to which they must apply.
fn hold(array: &mut Array, targets: &[Target], texts: &[Vec<u8>]) -> Result<String> {
    array.verb(&["volume", "set", "left", "--deduplication", "on", "--compression", "on"])?;
    array.verb(&["volume", "set", "reduced", "--compression", "off"])?;
    array.kill()?;
    array.start()?;
    array.verb(&["volume", "clone", "packed", "twin"])?;
    let expected = [("left", true, true), ("twin", false, true), ("reduced", true, false)];
    for (name, dedup, compress) in expected {
        let shown = array.verb(&["volume", "show", name])?;
        let fits = shown["deduplication"] == dedup && shown["compression"] == compress;
        ensure!(fits, "{shown}");
    }
    // Data stored without sharing stays that way, and is not found as a duplicate.
    let mut session = Session::connect(&targets[0].config())?;
    let new = grown(array, || write(&mut session, 20 * SOME, &texts[0]))?;
    ensure!(new > 0 && new * 2 < SOME * MIB, "{new} bytes");
    let again = grown(array, || write(&mut session, 30 * SOME, &texts[0]))?;
    ensure!(again == 0, "{again} bytes were stored for data that can be shared now");
    let mut session = Session::connect(&targets[3].config())?;
    let whole = grown(array, || write(&mut session, 20 * SOME, &text(SOME, 99)))?;
    ensure!(whole == SOME * MIB, "{whole} bytes uncompressed");
    Ok(String::new())
}

/// Tests the background pass over what hosts wrote to `target`, a volume of a fresh array that
/// begins no pass by itself.
pub fn pass(report: &mut Report, array: &mut Array, target: &Target) {
    let noise = Random::new(31).bytes(MIB as usize);
    let mut before = 0;
    report.check("duplicates written at the same time are stored once after a pass", || {
        before = data_bytes(array)?;
        let mut session = Session::connect(&target.config())?;
        let places: Vec<u64> = (0..AT_ONCE).collect();
        write_at_once(&mut session, places.iter().map(|mib| (mib * MIB_BLOCKS, &noise[..])))?;
        let missed = data_bytes(array)? - before - MIB;
        ensure!(missed > 0, "no duplicate was missed: this does not test the pass");
        let ended = array.verb(&["pool", "optimize", "--wait"])?;
        let left = data_bytes(array)? - before;
        ensure!(left == MIB, "{left} bytes after the pass: {ended}");
        ensure!(ended["aliased_chunks"] == missed / POOL_BLOCK as u64, "{missed}: {ended}");
        ensure!(ended["running"] == false && ended["passes"] == 1, "{ended}");
        Ok(format!("{} KiB", missed >> 10))
    });
    let prose = text(16, 5);
    report.check("separately compressed blocks are packed together", || {
        let mut session = Session::connect(&target.config())?;
        let blocks: Vec<(u64, &[u8])> = (0..).zip(prose.chunks(POOL_BLOCK)).collect();
        let small = grown(array, || {
            for some in blocks.chunks(64) {
                let places = some.iter().map(|(block, bytes)| (lba(*block), *bytes));
                write_at_once(&mut session, places)?;
            }
            Ok(())
        })?;
        // So that it is not stored where the log is.
        let mut random = Random::new(32);
        let more = grown(array, || write(&mut session, 200, &random.bytes(40 << 20)))?;
        let before = data_bytes(array)?;
        let ended = array.verb(&["pool", "optimize", "--wait"])?;
        let less = before.saturating_sub(data_bytes(array)?);
        ensure!(more == 40 << 20 && less * 4 > small, "{small} became {less} less: {ended}");
        ensure!(ended["rewritten_segments"].as_u64() > Some(0), "{ended}");
        let counted = &array.counters()?["optimize"];
        ensure!(*counted == ended, "counters report {counted}, the verb {ended}");
        Ok(format!("{} KiB became {} KiB", small >> 10, (small - less) >> 10))
    });
    report.check("only one pass runs, it can be stopped, and a kill does no harm", || {
        let mut refused = 0;
        for _ in 0..10 {
            array.verb(&["pool", "optimize"])?;
            refused += usize::from(array.try_verb(&["pool", "optimize"])?.code == 1);
            let stopped = array.verb(&["pool", "optimize", "stop"])?;
            ensure!(stopped["running"] == false, "{stopped}");
        }
        ensure!(refused > 0, "a second pass was started each time");
        array.verb(&["pool", "optimize"])?;
        array.kill()?;
        array.inspect()?;
        array.start()?;
        let mut session = Session::connect(&target.config())?;
        (0..AT_ONCE).try_for_each(|mib| verify(&mut session, mib, &noise))?;
        verify(&mut session, 100, &prose)?;
        Ok(String::new())
    });
}

/// Passes begin by themselves, and find what was missed. `target` is a volume of a fresh array with
/// [`OFTEN_SETTINGS`].
pub fn schedule(report: &mut Report, array: &Array, target: &Target) {
    report.check("passes start automatically, and find missed duplicates", || {
        let before = data_bytes(array)?;
        let mut session = Session::connect(&target.config())?;
        let noise = Random::new(33).bytes(MIB as usize);
        let places = (0..AT_ONCE).map(|mib| (mib * MIB_BLOCKS, &noise[..]));
        write_at_once(&mut session, places)?;
        let passes = |status: &Value| status["optimize"]["passes"].as_u64().context("no passes");
        let (first, begin) = (passes(&array.verb(&["status"])?)?, Instant::now());
        loop {
            let status = array.verb(&["status"])?;
            if passes(&status)? >= first + 2 {
                break;
            }
            ensure!(begin.elapsed() < PATIENCE, "no passes ended: {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
        let left = data_bytes(array)? - before;
        ensure!(left == MIB, "{left} bytes after two passes");
        (0..AT_ONCE).try_for_each(|mib| verify(&mut session, mib, &noise))?;
        Ok(format!("two after {:.1} s", begin.elapsed().as_secs_f64()))
    });
}

/// A pass follows the previous one after a second.
pub const OFTEN_SETTINGS: &str = "optimize = \"1s\"\n";
/// A pass only on request.
pub const NEVER_SETTINGS: &str = "optimize = \"off\"\n";

/// Returns the location of the text of [`pass`].
fn lba(block: u64) -> u64 {
    100 * MIB_BLOCKS + block * (POOL_BLOCK as u64 / u64::from(BLOCK))
}

/// Returns this many MiB that compress to less than a half, and in which no block of the pool
/// occurs twice.
fn text(mib: u64, seed: u64) -> Vec<u8> {
    let words = ["the volume ", "a segment ", "one log ", "of chunks ", "in maps, ", "and so on. "];
    let mut random = Random::new(seed);
    let length = (mib * MIB) as usize;
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        let word = words[random.below(words.len() as u64) as usize];
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Returns by how much the stored data grows.
fn grown(array: &Array, act: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = data_bytes(array)?;
    act()?;
    Ok(data_bytes(array)?.saturating_sub(before))
}

fn write(session: &mut Session, mib: u64, data: &[u8]) -> Result<()> {
    for (index, piece) in (mib..).zip(data.chunks(MIB as usize)) {
        session.write(index * MIB_BLOCKS, piece.to_vec(), BLOCK)?;
    }
    Ok(())
}

fn verify(session: &mut Session, mib: u64, data: &[u8]) -> Result<()> {
    for (index, piece) in (mib..).zip(data.chunks(MIB as usize)) {
        let read = session.read(index * MIB_BLOCKS, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(read == piece, "MiB {index} is wrong");
    }
    Ok(())
}

/// Issues writes that are all in progress before the first one ends.
fn write_at_once<'a>(
    session: &mut Session,
    writes: impl Iterator<Item = (u64, &'a [u8])>,
) -> Result<()> {
    for (token, (lba, data)) in (0..).zip(writes) {
        let cdb = Cdb::write_16(lba, (data.len() / BLOCK as usize) as u32);
        session.submit(cdb, Data::Out(data.to_vec()), token)?;
    }
    let mut poller = Poller::new();
    while session.in_flight() > 0 {
        poller.poll(&mut [&mut *session], 100);
        while let Some(ended) = session.next_completion() {
            good(ended.status).context("WRITE")?;
        }
    }
    Ok(())
}
