//! A pool in ordinary use: filled beyond half with data that reduces, randomly overwritten in 4
//! KiB, shut down cleanly, started, overwritten again, killed. Every command must end with GOOD,
//! the pool opens each time, and every byte is what was written last.
//!
//! Rates and pauses are printed, but not judged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::Session;

use crate::Arguments;
use crate::array::{Array, Shape};
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const SECTOR: u32 = 512;
const BLOCK: usize = 4096;
const SECTORS: u64 = BLOCK as u64 / SECTOR as u64;
/// The blocks of a command that fills or reads back: 1 MiB.
const MANY: u64 = 256;
/// The number of sessions, each with one command at a time.
const HOSTS: u64 = 8;
/// The interval at which the rate is measured.
const LOOK: Duration = Duration::from_secs(1);

/// How long it is overwritten each time.
#[derive(Clone, Copy)]
enum Span {
    /// This many writes of each host.
    Writes(u64),
    /// This long.
    Time(Duration),
}

impl Span {
    fn goes_on(self, began: Instant, done: u64) -> bool {
        match self {
            Self::Writes(count) => done < count,
            Self::Time(time) => began.elapsed() < time,
        }
    }
}

/// What one host has written: how often each of its blocks.
struct Host {
    first_block: u64,
    written: Vec<u32>,
    random: Random,
}

impl Host {
    /// Returns the content of a block: half of it is noise, so that it takes half of its size.
    fn content(&self, index: usize) -> Vec<u8> {
        let block = self.first_block + index as u64;
        let seed = block << 32 | u64::from(self.written[index]);
        let mut bytes = Random::new(seed).bytes(BLOCK / 2);
        bytes.resize(BLOCK, 0x5A);
        bytes
    }

    /// Returns the locations of the commands that cover all of it.
    fn commands(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.written.len()).step_by(MANY as usize)
    }

    fn contents(&self, at: usize) -> Vec<u8> {
        (at..at + MANY as usize).flat_map(|index| self.content(index)).collect()
    }

    fn sector(&self, index: usize) -> u64 {
        (self.first_block + index as u64) * SECTORS
    }

    fn fill(&mut self, session: &mut Session) -> Result<()> {
        for at in self.commands() {
            let bytes = self.contents(at);
            session.write(self.sector(at), bytes, SECTOR).context("filling")?;
        }
        Ok(())
    }

    fn verify(&mut self, session: &mut Session) -> Result<()> {
        for at in self.commands() {
            let sectors = (MANY * SECTORS) as u32;
            let bytes = session.read(self.sector(at), sectors, SECTOR)?;
            ensure!(bytes == self.contents(at), "sector {} contains other data", self.sector(at));
        }
        Ok(())
    }

    fn overwrite(&mut self, session: &mut Session, span: Span, pace: &Pace) -> Result<()> {
        let (began, mut done) = (Instant::now(), 0);
        while span.goes_on(began, done) {
            let index = self.random.below(self.written.len() as u64) as usize;
            self.written[index] += 1;
            let before = Instant::now();
            let bytes = self.content(index);
            session
                .write(self.sector(index), bytes, SECTOR)
                .with_context(|| format!("overwrite {done} of sector {}", self.sector(index)))?;
            pace.longest_us.fetch_max(before.elapsed().as_micros() as u64, Ordering::Relaxed);
            pace.writes.fetch_add(1, Ordering::Relaxed);
            done += 1;
        }
        Ok(())
    }
}

/// The rate of all of them.
#[derive(Default)]
struct Pace {
    writes: AtomicU64,
    longest_us: AtomicU64,
}

impl Pace {
    /// Measures until all writers have ended. Returns a description.
    fn watch(&self, is_over: impl Fn() -> bool) -> String {
        let began = Instant::now();
        let (mut looked, mut before, mut least) = (began, 0, None::<u64>);
        while !is_over() {
            thread::sleep(LOOK / 20);
            if looked.elapsed() >= LOOK {
                let now = self.writes.load(Ordering::Relaxed);
                let rate = (now - before) * 1000 / looked.elapsed().as_millis() as u64;
                (looked, before) = (Instant::now(), now);
                least = Some(least.map_or(rate, |least| least.min(rate)));
            }
        }
        let writes = self.writes.load(Ordering::Relaxed);
        let mean = writes as f64 / began.elapsed().as_secs_f64();
        let least = least.map_or(String::new(), |least| format!(", {least}/s in the worst second"));
        let longest_ms = self.longest_us.load(Ordering::Relaxed) / 1000;
        format!("{writes} writes, {mean:.0}/s{least}, the longest {longest_ms} ms")
    }
}

/// Runs something on each host at the same time. Returns a description of the rate.
fn all(
    hosts: &mut [Host],
    target: &Target,
    what: impl Fn(&mut Host, &mut Session, &Pace) -> Result<()> + Sync,
) -> Result<String> {
    let pace = Pace::default();
    thread::scope(|scope| {
        let one = |host| {
            let (what, pace) = (&what, &pace);
            scope.spawn(move || what(host, &mut Session::connect(&target.config())?, pace))
        };
        let workers: Vec<_> = hosts.iter_mut().map(one).collect();
        let said = pace.watch(|| workers.iter().all(|worker| worker.is_finished()));
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a host panicked"))??;
        }
        Ok(said)
    })
}

/// Runs it in a pool of 1 GiB, or for the requested time in one of 10 GiB.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let (capacity, bytes, span) = match arguments.seconds {
        None => ("1G", 900 << 20, Span::Writes(2_000)),
        Some(seconds) => ("10G", 12 << 30, Span::Time(Duration::from_secs(seconds))),
    };
    let mut array = crate::array(arguments, Shape { capacity, ..Shape::default() })?;
    let target = array.volume("aged", "12G", "peer", 1)?;
    overwrites(report, &mut array, &target, bytes, span, arguments.seed);
    Ok(())
}

/// Fills `bytes` of an empty volume in an empty pool, which reduce to half, and overwrites them.
fn overwrites(
    report: &mut Report,
    array: &mut Array,
    target: &Target,
    bytes: u64,
    span: Span,
    seed: u64,
) {
    let blocks = bytes / BLOCK as u64 / HOSTS / MANY * MANY;
    let host = |n| Host {
        first_block: n * blocks,
        written: vec![0; blocks as usize],
        random: Random::new(seed << 8 | n),
    };
    let mut hosts: Vec<Host> = (0..HOSTS).map(host).collect();
    report.check("a pool is filled to more than half", || {
        all(&mut hosts, target, |host, session, _| host.fill(session))?;
        in_use(array)
    });
    report.check("each overwrite is accepted", || {
        let said =
            all(&mut hosts, target, |host, session, pace| host.overwrite(session, span, pace))?;
        Ok(format!("{said}; {}", in_use(array)?))
    });
    report.check("after a clean restart it accepts each overwrite again", || {
        array.stop()?;
        let took = array.start()?;
        let said =
            all(&mut hosts, target, |host, session, pace| host.overwrite(session, span, pace))?;
        Ok(format!("ready in {} ms; {said}; {}", took.as_millis(), in_use(array)?))
    });
    report.check("after a kill and restart, all data is from the last writes", || {
        array.kill()?;
        let took = array.start()?;
        all(&mut hosts, target, |host, session, _| host.verify(session))?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
    report.check("the pool is sound", || {
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
}

/// Describes how much of the pool is in use.
fn in_use(array: &Array) -> Result<String> {
    let (used, capacity) = (array.pool_number("used_bytes")?, array.pool_number("capacity_bytes")?);
    let percent = used * 100 / capacity.max(1);
    Ok(format!("{percent}% in use"))
}
