//! `serve --supervised`: the array is repeatedly killed or stopped, and its supervisor restarts it,
//! while hosts write. None of them is refused, and all acknowledged data is present.
//!
//! The longest time without a response is printed, but not judged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use libiscsi::{Config, Error, Session, Status};

use crate::Arguments;
use crate::array::{Array, Shape};
use crate::command;
use crate::good::past_attentions;
use crate::process;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

/// The number of hosts, each with its own volume.
const HOSTS: u16 = 2;
const BLOCK: usize = 4096;
const SECTORS: u64 = (BLOCK / 512) as u64;
/// The blocks that a host writes, sequentially and repeatedly.
const BLOCKS: u64 = 512;
/// How long a host may wait for a response.
const STILL: Duration = Duration::from_secs(20);

/// A host that reconnects as soon as its connection is lost.
#[derive(Default)]
pub struct Host {
    pub stop: AtomicBool,
    answers: AtomicU64,
    longest_us: AtomicU64,
    /// Whether it logs in again when a command gets no response in time, like hosts that ping
    /// (NOP-Out): a machine that is gone no longer sends anything.
    is_impatient: bool,
}

/// How long an impatient host waits.
const IMPATIENT_S: u32 = 5;

impl Host {
    /// Creates one that is impatient, and that may be refused by a machine that has lost its
    /// controller.
    pub fn impatient() -> Self {
        Self { is_impatient: true, ..Self::default() }
    }

    /// Writes until it must stop, and then reads everything.
    pub fn work(&self, target: &Target, seed: u64) -> Result<String> {
        let (mut random, mut model) = (Random::new(seed), vec![Vec::new(); BLOCKS as usize]);
        let mut session = Some(self.connect(target)?);
        let (mut at, mut answered) = (0, Instant::now());
        while !self.stop.load(Ordering::Relaxed) {
            let bytes = random.bytes(BLOCK);
            self.insist(&mut session, target, |session| {
                session.write(at * SECTORS, bytes.clone(), 512)
            })?;
            model[at as usize] = bytes;
            self.longest_us.fetch_max(answered.elapsed().as_micros() as u64, Ordering::Relaxed);
            answered = Instant::now();
            self.answers.fetch_add(1, Ordering::Relaxed);
            at = (at + 1) % BLOCKS;
        }
        for (at, bytes) in (0..).zip(&model).filter(|(_, bytes)| !bytes.is_empty()) {
            let read = self.insist(&mut session, target, |session| {
                session.read(at * SECTORS, SECTORS as u32, 512)
            })?;
            ensure!(read == *bytes, "block {at} contains other data");
        }
        Ok(format!("{} writes", self.answers.load(Ordering::Relaxed)))
    }

    fn connect(&self, target: &Target) -> Result<Session, Error> {
        let config = target.config();
        let timeout_s = if self.is_impatient { IMPATIENT_S } else { config.timeout_s };
        Session::connect(&Config { timeout_s, ..config })
    }

    /// Repeats a command until it gets a response, over as many connections as necessary.
    fn insist<T>(
        &self,
        session: &mut Option<Session>,
        target: &Target,
        mut command: impl FnMut(&mut Session) -> Result<T, Error>,
    ) -> Result<T> {
        let begin = Instant::now();
        loop {
            ensure!(begin.elapsed() < STILL, "no response for {} s", STILL.as_secs());
            let connected = match session {
                Some(connected) => connected,
                // An array that ends may lose an accepted connection, but refuses none.
                None => match self.connect(target) {
                    Ok(connected) => session.insert(connected),
                    Err(error) if !self.is_impatient && target.refuses() => {
                        bail!("the array refused a login: {error}")
                    }
                    Err(_) => continue,
                },
            };
            match past_attentions(|| command(connected)) {
                Ok(done) => return Ok(done),
                Err(Error::Lost | Error::Command { status: Status::Cancelled, .. }) => {
                    *session = None;
                }
                Err(Error::Command { status: Status::Timeout, .. }) if self.is_impatient => {
                    *session = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The group `restarts`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = crate::array(arguments, Shape { supervised: true, ..Shape::default() })?;
    let volume = |host| format!("volume-{host}");
    let targets: Vec<Target> = (1..=HOSTS)
        .map(|host| array.volume(&volume(host), "1G", "peer", host))
        .collect::<Result<_>>()?;
    let hosts: Vec<Host> = targets.iter().map(|_| Host::default()).collect();
    let mut random = Random::new(arguments.seed);
    let name = |host| format!("host {}: never refused, every byte is right", host + 1);
    beside_hosts(report, (&hosts, &targets, arguments.seed), name, |report| {
        for round in 1..=arguments.kill_rounds {
            // The supervisor detects and kills a stopped process.
            for signal in ["KILL", "STOP"] {
                let after = Duration::from_millis(200 + random.below(500));
                report.check(
                    &format!("kill -{signal} {round}: hosts recover by themselves"),
                    || {
                        thread::sleep(after);
                        one_round(&array, &hosts, signal)
                    },
                );
            }
        }
    });
    report.check("its memory is in huge pages, so that a killed one ends at once", || {
        let pid = array.run_file()?["pid"].as_u64().context("the run file holds no pid")?;
        in_huge_pages(pid)
    });
    report.check("after a shutdown the pool is sound", || {
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
    Ok(())
}

/// Lets hosts work, each on its own target, while something happens, and then checks each of them
/// under its name.
pub fn beside_hosts(
    report: &mut Report,
    (hosts, targets, seed): (&[Host], &[Target], u64),
    name: impl Fn(usize) -> String,
    happens: impl FnOnce(&mut Report),
) {
    thread::scope(|scope| {
        let working: Vec<_> = (seed..)
            .zip(hosts.iter().zip(targets))
            .map(|(seed, (host, target))| scope.spawn(move || host.work(target, seed)))
            .collect();
        happens(report);
        hosts.iter().for_each(|host| host.stop.store(true, Ordering::Relaxed));
        for (number, worker) in working.into_iter().enumerate() {
            report.check(&name(number), || {
                worker.join().map_err(|_| anyhow!("the host panicked"))?
            });
        }
    });
}

/// The kernel frees the memory of a killed process before it releases its file locks.
fn in_huge_pages(pid: u64) -> Result<String> {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if setting.is_ok_and(|setting| setting.contains("[never]")) {
        return Ok("the system provides none".into());
    }
    let kib =
        |field| process::kib(pid, "smaps_rollup", field).context("smaps_rollup lacks the field");
    let (huge, all) = (kib("AnonHugePages:")?, kib("Anonymous:")?);
    ensure!(huge >= all / 4, "{huge} of {all} KiB are in huge pages");
    Ok(format!("{huge} of {all} KiB"))
}

fn one_round(array: &Array, hosts: &[Host], signal: &str) -> Result<String> {
    let pid = array.run_file()?["pid"].as_u64().context("the run file holds no pid")?;
    go_on(hosts, || {
        command::run(5, "kill", &[&format!("-{signal}"), &pid.to_string()])?.good().map(drop)
    })
}

/// Checks that all hosts continue while `happens` runs. Reports the longest time without a
/// response.
pub fn go_on(hosts: &[Host], happens: impl FnOnce() -> Result<()>) -> Result<String> {
    go_on_for(100, hosts, happens)
}

/// The same, for at least this many responses each: the first may be those of a process that has
/// ended since.
pub fn go_on_for(
    least: u64,
    hosts: &[Host],
    happens: impl FnOnce() -> Result<()>,
) -> Result<String> {
    hosts.iter().for_each(|host| host.longest_us.store(0, Ordering::Relaxed));
    happens()?;
    let answers = |host: &Host| host.answers.load(Ordering::Relaxed);
    let before: Vec<u64> = hosts.iter().map(answers).collect();
    let begin = Instant::now();
    while hosts.iter().zip(&before).any(|(host, before)| answers(host) < before + least) {
        ensure!(begin.elapsed() < STILL, "a host had no response for {} s", STILL.as_secs());
        thread::sleep(Duration::from_millis(5));
    }
    let longest = hosts.iter().map(|host| host.longest_us.load(Ordering::Relaxed)).max();
    Ok(format!("at most {} ms without a response", longest.unwrap_or_default() / 1000))
}
