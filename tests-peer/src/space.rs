//! Space: what uses none, what is shared, what is freed, and the responses of a full pool. And
//! the cost of an offload: one commit of any length.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{CopySegment, Session, Status};

use crate::array::Array;
use crate::offload::good;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
const MIB: u64 = 1 << 20;
/// The logical blocks of a MiB.
const MIB_BLOCKS: u64 = MIB / BLOCK as u64;
/// The MiB of each kind of data.
const SOME: u64 = 32;
/// How long accounting for freed space may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers of `holdfast status`.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    data: u64,
    mapped: u64,
    commits: u64,
    checkpoints: u64,
}

/// The cost of writes and offloads in space and commits. `target` is an empty volume of 64 TiB.
pub fn accounting(report: &mut Report, array: &Array, target: &Target, name: &str) {
    report.check("zeros and patterns take no space", || {
        let before = numbers(array)?;
        let mut session = Session::connect(&target.config())?;
        for mib in 0..SOME {
            session.write(mib * MIB_BLOCKS, vec![0; MIB as usize], BLOCK)?;
            let pattern = vec![0xEE; MIB as usize];
            session.write((SOME + mib) * MIB_BLOCKS, pattern, BLOCK)?;
        }
        let after = numbers(array)?;
        ensure!(after.data == before.data, "{before:?}, then {after:?}");
        ensure!(after.mapped - before.mapped == 2 * SOME * MIB, "{before:?}, then {after:?}");
        Ok(String::new())
    });
    report.check("data takes space, a copy takes none", || {
        let before = numbers(array)?;
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(11);
        for mib in 0..SOME {
            session.write((100 + mib) * MIB_BLOCKS, random.bytes(MIB as usize), BLOCK)?;
        }
        let written = numbers(array)?;
        ensure!(written.data - before.data == SOME * MIB, "{before:?}, then {written:?}");
        copy(&mut session, 100, 1_000_000, SOME)?;
        let copied = numbers(array)?;
        ensure!(copied.data == written.data, "{written:?}, then {copied:?}");
        ensure!(copied.mapped - written.mapped == SOME * MIB, "{written:?}, then {copied:?}");
        Ok(format!("{SOME} MiB"))
    });
    report.check("an offload of any length is one commit", || one_commit(array, target));
    report.check("unreferenced space is freed", || {
        let mut session = Session::connect(&target.config())?;
        let before = numbers(array)?;
        good(session.unmap(&[(100 * MIB_BLOCKS, (SOME * MIB_BLOCKS) as u32)])?)?;
        let shared = numbers(array)?;
        ensure!(shared.data == before.data, "the copy still refers to it: {before:?}, {shared:?}");
        drop(session);
        array.verb(&["disconnect", name, "peer"])?;
        array.verb(&["volume", "destroy", name, "--eradicate"])?;
        let begin = Instant::now();
        loop {
            let now = numbers(array)?;
            if now.data == 0 && now.mapped == 0 {
                return Ok(format!("after {} ms", begin.elapsed().as_millis()));
            }
            ensure!(
                begin.elapsed() < PATIENCE,
                "the volume is gone, but its space is not free: {now:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

/// Copies, fills and unmaps of 4 MiB, 240 MiB and 1 TiB.
fn one_commit(array: &Array, target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    let mut longest = Duration::ZERO;
    for (what, mib) in [
        ("copy", 4),
        ("copy", 240),
        ("fill", 4),
        ("fill", 240),
        ("fill", 1 << 20),
        ("unmap", 240),
        ("unmap", 1 << 20),
    ] {
        let before = numbers(array)?;
        let begin = Instant::now();
        match what {
            "copy" => copy(&mut session, 0, 2_000_000, mib)?,
            "fill" => {
                let blocks = (mib * MIB_BLOCKS) as u32;
                good(session.write_same(4_000_000, blocks, vec![0; BLOCK as usize], false)?)?;
            }
            _ => good(session.unmap(&[(4_000_000, (mib * MIB_BLOCKS) as u32)])?)?,
        }
        longest = longest.max(begin.elapsed());
        let after = numbers(array)?;
        let commits = after.commits - before.commits;
        let fits = commits == 1 || after.checkpoints > before.checkpoints;
        ensure!(fits, "{what} of {mib} MiB made {commits} commits");
    }
    ensure!(longest < Duration::from_secs(1), "one took {} ms", longest.as_millis());
    Ok(format!("the slowest took {:.1} ms", longest.as_secs_f64() * 1000.0))
}

/// A full pool returns the sense data that makes a host wait, and still serves reads.
pub fn full(report: &mut Report, array: &mut Array, target: &Target) {
    report.check("a full pool reports 07h 27h/07h, and still reads and unmaps", || {
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(5);
        let first = random.bytes(MIB as usize);
        session.write(0, first.clone(), BLOCK)?;
        let written = fill(&mut session, &mut random, 1)?;
        ensure!(written > 256, "only {written} MiB fit into a pool of 1 GiB");
        ensure!(session.read(0, MIB_BLOCKS as u32, BLOCK)? == first, "written data is lost");
        good(session.unmap(&[(0, MIB_BLOCKS as u32)])?).context("UNMAP")?;
        let zeros = session.write_same(MIB_BLOCKS, 2048, vec![0; BLOCK as usize], false)?;
        good(zeros).context("WRITE SAME of zeros")?;
        let read = session.read(0, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(read.iter().all(|byte| *byte == 0), "an unmapped range does not read as zeros");
        Ok(format!("{written} MiB in a pool of 1 GiB"))
    });
    report.check("a full pool runs commands that need no space, without BUSY", || no_space(target));
    report.check("after a full pool grows, the same session continues", || {
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(6);
        // Space that earlier tests have unmapped is used first.
        let mut filled = 2048;
        while write_mib(&mut session, &mut random, filled)? == Status::Good {
            filled += 1;
            ensure!(filled < 4096, "2 GiB more fit into a pool of 1 GiB");
        }
        let status = write_mib(&mut session, &mut random, filled)?;
        ensure!(is_full(&status), "it is not full");
        let before = array.verb(&["status"])?["pool"]["capacity_bytes"].as_u64();
        let grown = array.verb(&["pool", "grow", "--capacity", "2G"])?["capacity_bytes"].as_u64();
        ensure!(grown > before.map(|before| before + (1000 << 20)), "{before:?} became {grown:?}");
        for mib in filled..filled + 512 {
            // The host is notified that the mode page of thresholds is based on another pool size
            // (2A/01).
            let status = match write_mib(&mut session, &mut random, mib)? {
                Status::CheckCondition(sense) if sense.key == 6 => {
                    write_mib(&mut session, &mut random, mib)?
                }
                status => status,
            };
            good(status).context("after it has grown")?;
        }
        let refused = array.try_verb(&["pool", "grow", "--capacity", "1G"])?;
        ensure!(refused.code == 1, "growing to a smaller size ended with {}", refused.code);
        Ok(String::new())
    });
    report.check("a full pool can be restarted, and inspect finds nothing", || {
        array.kill()?;
        array.inspect()?;
        let took = array.start()?;
        let mut session = Session::connect(&target.config())?;
        let read = session.read(0, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(read.iter().all(|byte| *byte == 0), "unmapped data came back");
        Ok(format!("in {} ms", took.as_millis()))
    });
    report.check("a full pool starts with a new portal address", || {
        let mut session = Session::connect(&target.config())?;
        let filled = fill(&mut session, &mut Random::new(7), 3072)?;
        array.kill()?;
        array.add_portal()?;
        let took = array.start()?;
        let last = array.portals.last().context("the array has no portal")?.clone();
        let mut session = Session::connect(&Target { portal: last, ..target.clone() }.config())?;
        session.read(0, MIB_BLOCKS as u32, BLOCK)?;
        let status = write_mib(&mut session, &mut Random::new(8), filled)?;
        ensure!(is_full(&status), "it is not full: {status}");
        Ok(format!("in {} ms", took.as_millis()))
    });
}

/// Writes unique data to a MiB of the volume.
fn write_mib(session: &mut Session, random: &mut Random, mib: u64) -> Result<Status> {
    let cdb = libiscsi::Cdb::write_16(mib * MIB_BLOCKS, MIB_BLOCKS as u32);
    let data = libiscsi::Data::Out(random.bytes(MIB as usize));
    Ok(session.execute(cdb, data)?.status)
}

/// Writes from `mib` on until the pool is full. Returns the first MiB that did not fit.
fn fill(session: &mut Session, random: &mut Random, mut mib: u64) -> Result<u64> {
    loop {
        match write_mib(session, random, mib)? {
            Status::Good => mib += 1,
            // On the way the pool crosses its threshold, which is reported once.
            status if is_told(&status) => {}
            status if is_full(&status) => return Ok(mib),
            status => bail!("WRITE ended with {status} at {mib} MiB"),
        }
        ensure!(mib < 4096, "more fits into the pool than it has");
    }
}

fn is_full(status: &Status) -> bool {
    matches!(status, Status::CheckCondition(sense) if sense.key == 7 && sense.asc_ascq == 0x2707)
}

/// On a full pool, reads, zeros, patterns, UNMAP, COMPARE AND WRITE and copies of existing data
/// succeed; commands that need space are refused with 07/27/07, and nothing else, until there is
/// some.
fn no_space(target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    let mut random = Random::new(9);
    let mut refused = 0;
    let kept = session.read(4 * MIB_BLOCKS, 8, BLOCK)?;
    for round in 0..64u64 {
        let lba = (8 + round) * MIB_BLOCKS;
        let cdb = libiscsi::Cdb::write_16((3000 + round) * MIB_BLOCKS, MIB_BLOCKS as u32);
        match session.execute(cdb, libiscsi::Data::Out(random.bytes(MIB as usize)))?.status {
            Status::Good => {}
            status if is_full(&status) => refused += 1,
            status => bail!("a write that needs space ended with {status}"),
        }
        session.write(lba, vec![0; 4096], BLOCK).context("zeros over data")?;
        session.write(lba + 8, vec![0x77; 4096], BLOCK).context("a pattern over data")?;
        good(session.write_same(lba + 16, 8, vec![0; BLOCK as usize], true)?)?;
        good(session.unmap(&[(lba + 24, 8)])?)?;
        copy(&mut session, 4, 2000 + round, 1).context("a copy of existing data")?;
        ensure!(session.read(4 * MIB_BLOCKS, 8, BLOCK)? == kept, "existing data has changed");
    }
    ensure!(refused > 0, "64 MiB fit into a full pool");
    Ok(format!("{refused} of 64 writes refused"))
}

/// Hosts are notified once when a threshold is crossed, and again after it was armed again.
/// `target` is a volume of a pool of 1 GiB with a threshold at 30%.
pub fn thresholds(report: &mut Report, target: &Target) {
    report.check("crossing a threshold is reported once per session", || {
        // Until the array has read the new setting, which it reports too.
        std::thread::sleep(Duration::from_secs(1));
        let other = target.as_initiator(&crate::target::second(&target.initiator));
        let mut first = Session::connect(&target.config())?;
        let mut second = Session::connect(&other.config())?;
        good(first.test_unit_ready()?)?;
        good(second.test_unit_ready()?)?;
        let mut random = Random::new(12);
        for round in 0..2 {
            let mut told = 0;
            for mib in 0..400 {
                let cdb = libiscsi::Cdb::write_16(mib * MIB_BLOCKS, MIB_BLOCKS as u32);
                let data = libiscsi::Data::Out(random.bytes(MIB as usize));
                match session_status(&mut first, cdb, data)? {
                    status if is_told(&status) => told += 1,
                    status => good(status)?,
                }
            }
            told += told_within(&mut first, if told == 0 { PATIENCE } else { PATIENCE / 8 })?;
            ensure!(told == 1, "round {round}: the writer got {told} unit attentions");
            let told = told_within(&mut second, PATIENCE)?;
            ensure!(told == 1, "round {round}: the other session got {told} unit attentions");
            good(first.unmap(&[(0, (400 * MIB_BLOCKS) as u32)])?)?;
            // Freed in the background, and then noticed: below the threshold nothing is reported.
            std::thread::sleep(Duration::from_secs(3));
            for session in [&mut first, &mut second] {
                good(session.test_unit_ready()?).context("below the threshold")?;
            }
        }
        Ok(String::new())
    });
    report.check("mode page and log page agree with the reported state", || {
        let mut session = Session::connect(&target.config())?;
        let page = |session: &mut Session, cdb: [u8; 10]| -> Result<Vec<u8>> {
            let cdb = libiscsi::Cdb::raw(&cdb, libiscsi::Direction::In);
            let answer = session.execute(cdb, libiscsi::Data::In(vec![0; 255]))?;
            good(answer.status)?;
            Ok(answer.buffer)
        };
        let mode = page(&mut session, [0x5A, 8, 0x1C, 2, 0, 0, 0, 0, 255, 0])?;
        ensure!(mode[8..10] == [0x5C, 2], "not the expected page: {:02X?}", &mode[..10]);
        let log = page(&mut session, [0x4D, 0, 0x4C, 0, 0, 0, 0, 0, 255, 0])?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let (free, used) = (number(&log[8..12]), number(&log[20..24]));
        let threshold = number(&mode[28..32]);
        ensure!(mode[24..26] == [0x81, 2], "descriptor {:02X?}", &mode[24..32]);
        ensure!(threshold == (free + used) * 30 / 100, "{threshold} of {free} + {used} MiB");
        ensure!(used < threshold, "{used} MiB are in use after all was unmapped");
        Ok(format!("at {threshold} of {} MiB", free + used))
    });
}

fn session_status(
    session: &mut Session,
    cdb: libiscsi::Cdb,
    data: libiscsi::Data,
) -> Result<Status> {
    Ok(session.execute(cdb, data)?.status)
}

/// Returns whether a command ended with 06/38/07.
fn is_told(status: &Status) -> bool {
    matches!(status, Status::CheckCondition(sense) if (sense.key, sense.asc_ascq) == (6, 0x3807))
}

/// Returns how often 06/38/07 is reported within a while; slightly longer than until the first
/// time.
fn told_within(session: &mut Session, patience: Duration) -> Result<usize> {
    let (begin, mut told) = (Instant::now(), 0);
    while begin.elapsed() < patience && told == 0 || begin.elapsed() < PATIENCE / 8 {
        match session.test_unit_ready()? {
            Status::Good => std::thread::sleep(Duration::from_millis(20)),
            status if is_told(&status) => told += 1,
            status => bail!("TEST UNIT READY ended with {status}"),
        }
    }
    Ok(told)
}

/// EXTENDED COPY inside one volume, in segments of 30 MiB as ESXi sends them; positions in MiB.
pub fn copy(session: &mut Session, from: u64, to: u64, mib: u64) -> Result<()> {
    let name = session.naa()?.context("the volume has no NAA name")?;
    let mut segments = Vec::new();
    let mut done = 0;
    while done < mib {
        let length = (mib - done).min(30);
        segments.push(CopySegment {
            source: 0,
            destination: 0,
            blocks: (length * MIB_BLOCKS) as u16,
            source_lba: (from + done) * MIB_BLOCKS,
            destination_lba: (to + done) * MIB_BLOCKS,
        });
        done += length;
    }
    good(session.extended_copy(&[name], &segments, BLOCK)?)
}

/// Returns the bytes of stored volume data, after reduction.
pub fn data_bytes(array: &Array) -> Result<u64> {
    Ok(numbers(array)?.data)
}

fn numbers(array: &Array) -> Result<Numbers> {
    let status = array.verb(&["status"])?;
    let number = |field: &str| {
        status["pool"][field].as_u64().with_context(|| format!("no pool.{field} in {status}"))
    };
    Ok(Numbers {
        data: number("data_bytes")?,
        mapped: number("mapped_bytes")?,
        commits: number("commit_count")?,
        checkpoints: number("checkpoint_count")?,
    })
}
