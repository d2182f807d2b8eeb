//! Space: what costs none, what is shared, what comes back, and what a full pool says. And the cost
//! of an offload: one commit, whatever its length.

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
/// Logical blocks in a MiB.
const MIB_BLOCKS: u64 = MIB / BLOCK as u64;
/// MiB of each kind of data.
const SOME: u64 = 32;
/// How long freed space may take to be accounted.
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers of `holdfast status`.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    data: u64,
    mapped: u64,
    commits: u64,
    checkpoints: u64,
}

/// What writes and offloads cost in space and commits. `target` is an empty volume of 64 TiB.
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
    report.check("data takes its space, and a copy of it none", || {
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
    report.check("what nobody maps any more is given back", || {
        let mut session = Session::connect(&target.config())?;
        let before = numbers(array)?;
        good(session.unmap(&[(100 * MIB_BLOCKS, (SOME * MIB_BLOCKS) as u32)])?)?;
        let shared = numbers(array)?;
        ensure!(shared.data == before.data, "the copy still needs it: {before:?}, {shared:?}");
        drop(session);
        array.verb(&["disconnect", name, "peer"])?;
        array.verb(&["volume", "destroy", name])?;
        let begin = Instant::now();
        loop {
            let now = numbers(array)?;
            if now.data == 0 && now.mapped == 0 {
                return Ok(format!("after {} ms", begin.elapsed().as_millis()));
            }
            ensure!(begin.elapsed() < PATIENCE, "the volume is gone, but {now:?}");
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

/// A pool that is full says so in the words that make a host wait, and goes on reading.
pub fn full(report: &mut Report, array: &mut Array, target: &Target) {
    report.check("a full pool says 07/27/07, reads and unmaps", || {
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(5);
        let first = random.bytes(MIB as usize);
        session.write(0, first.clone(), BLOCK)?;
        let mut written = 1u64;
        let sense = loop {
            let cdb = libiscsi::Cdb::write_16(written * MIB_BLOCKS, MIB_BLOCKS as u32);
            let data = libiscsi::Data::Out(random.bytes(MIB as usize));
            match session.execute(cdb, data)?.status {
                Status::Good => written += 1,
                Status::CheckCondition(sense) => break sense,
                status => bail!("WRITE ended with {status} after {written} MiB"),
            }
            ensure!(written < 4096, "4 GiB fit into a pool of 1 GiB");
        };
        ensure!(sense.key == 7 && sense.asc_ascq == 0x2707, "sense {sense:?}");
        ensure!(written > 256, "only {written} MiB fit into a pool of 1 GiB");
        ensure!(session.read(0, MIB_BLOCKS as u32, BLOCK)? == first, "what was written is gone");
        good(session.unmap(&[(0, MIB_BLOCKS as u32)])?).context("UNMAP")?;
        let zeros = session.write_same(MIB_BLOCKS, 2048, vec![0; BLOCK as usize], false)?;
        good(zeros).context("WRITE SAME of zeros")?;
        let read = session.read(0, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(read.iter().all(|byte| *byte == 0), "what was unmapped does not read as zeros");
        Ok(format!("{written} MiB in a pool of 1 GiB"))
    });
    report.check("a full pool starts again, and inspect finds nothing", || {
        array.kill()?;
        array.inspect()?;
        let took = array.start()?;
        let mut session = Session::connect(&target.config())?;
        let read = session.read(0, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(read.iter().all(|byte| *byte == 0), "what was unmapped came back");
        Ok(format!("in {} ms", took.as_millis()))
    });
}

/// EXTENDED COPY inside one volume, in segments of 30 MiB as ESXi sends them; positions in MiB.
fn copy(session: &mut Session, from: u64, to: u64, mib: u64) -> Result<()> {
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
