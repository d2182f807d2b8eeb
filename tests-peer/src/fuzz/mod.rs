//! Random PDUs and random commands, over real sockets, from several hosts at once, to volumes of
//! 1 GiB to 64 TiB; at the same time another host's good session checks each of its bytes.
//!
//! A round is a number of sessions of each attacker, determined by a seed; then the volumes are
//! destroyed and recreated, so that neither a full pool nor a reservation ends the test early. It
//! fails if the process ends or hangs, if it exceeds its memory limit, if a valid command gets no
//! response, or if the good session reads wrong data.

mod commands;
mod pdus;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use libiscsi::Session;

use crate::array::Array;
use crate::good::Good;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

/// Little memory, so that growth is visible.
pub const SETTINGS: &str = "memory = \"256M\"\nlog_level = \"warn\"\n";
/// The memory limit of the process: 256 MiB of `memory`, the same for data in transit, and the
/// overhead of a program.
const RESIDENT_KIB: u64 = 1 << 20;
/// The number of rounds if no time is given.
const ROUNDS: u64 = 2;
/// The sessions of each attacker in a round.
const SESSIONS: usize = 12;
/// The attacking hosts, and the first LUN of each: they see the volumes under different numbers.
const HOSTS: [(&str, u16); 2] = [("fuzz-a", 1), ("fuzz-b", 11)];
/// Their volumes.
const VOLUMES: [(&str, &str, u64); 3] =
    [("small", "1G", 1 << 30), ("middle", "3T", 3 << 40), ("huge", "64T", 64 << 40)];

/// An attacked logical unit.
#[derive(Clone, Copy, Debug)]
struct Unit {
    lun: [u8; 8],
    blocks: u64,
    naa: libiscsi::Naa,
}

/// Runs some rounds, or for some time. `watched` belongs to another host.
pub fn fuzz(
    report: &mut Report,
    array: &mut Array,
    watched: &Target,
    seed: u64,
    time: Option<Duration>,
) {
    let good = Good::default();
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(watched));
        let name = format!("random PDUs and commands do no harm (seed {seed})");
        report.check(&name, || attack(array, watched, &good, seed, time));
        good.stop.store(true, Ordering::Relaxed);
        report.check("the watched host's commands all ended, with the right data", || {
            worker.join().map_err(|_| anyhow!("it panicked"))?
        });
    });
    report.check("after kill -9 the pool opens with the watched host's data", || {
        array.kill()?;
        let took = array.start()?;
        good.verify(&mut Session::connect(&watched.config())?)?;
        array.stop()?;
        array.inspect()?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
}

fn initiator(host: &str) -> String {
    format!("iqn.2026-01.com.example:{host}")
}

fn attack(
    array: &mut Array,
    watched: &Target,
    good: &Good,
    seed: u64,
    time: Option<Duration>,
) -> Result<String> {
    for (host, _) in HOSTS {
        array.host(host, &[&initiator(host)])?;
    }
    let begin = Instant::now();
    let (mut rounds, mut total) = (0, Count::default());
    let goes_on = |rounds: u64| match time {
        Some(time) => begin.elapsed() < time,
        None => rounds < ROUNDS,
    };
    while goes_on(rounds) {
        let units = make_volumes(array, watched)?;
        let before = good.commands();
        let done = round(watched, &units, seed.wrapping_add(rounds << 16));
        // The end of the process is more informative than any other failure.
        array.must_run()?;
        total.add(done?);
        good.wait_past(before)?;
        let resident = array.peak_kib()?;
        ensure!(resident < RESIDENT_KIB, "round {rounds}: {} MiB of memory", resident >> 10);
        remove_volumes(array)?;
        rounds += 1;
        if time.is_some() {
            let seconds = begin.elapsed().as_secs();
            let slowest = good.take_slowest().as_millis();
            println!(
                "        {seconds} s, {rounds} rounds: {total}; {} MiB; slowest of the watched \
                 host: {slowest} ms",
                resident >> 10
            );
        }
    }
    Ok(format!("{rounds} rounds, {total}, {} MiB", array.peak_kib()? >> 10))
}

fn make_volumes(array: &Array, watched: &Target) -> Result<Vec<Vec<Unit>>> {
    let mut all = vec![Vec::new(); HOSTS.len()];
    for (at, (volume, size, bytes)) in VOLUMES.into_iter().enumerate() {
        array.verb(&["volume", "create", volume, "--size", size])?;
        for ((host, first), units) in HOSTS.into_iter().zip(&mut all) {
            let lun = first + at as u16;
            array.verb(&["connect", volume, host, "--lun", &lun.to_string()])?;
            let target = watched.as_initiator(&initiator(host)).with_lun(lun);
            let naa = Session::connect(&target.config())?.naa()?;
            let naa = naa.ok_or_else(|| anyhow!("{volume} has no name"))?;
            let [high, low] = (if lun < 256 { lun } else { 0x4000 | lun }).to_be_bytes();
            units.push(Unit { lun: [high, low, 0, 0, 0, 0, 0, 0], blocks: bytes / 512, naa });
        }
    }
    Ok(all)
}

fn remove_volumes(array: &Array) -> Result<()> {
    for (volume, ..) in VOLUMES {
        for (host, _) in HOSTS {
            array.verb(&["disconnect", volume, host])?;
        }
        array.verb(&["volume", "destroy", volume, "--eradicate"])?;
    }
    Ok(())
}

/// Runs two attackers of each host: one with commands, one with PDUs.
fn round(watched: &Target, units: &[Vec<Unit>], seed: u64) -> Result<Count> {
    thread::scope(|scope| {
        let mut attackers = Vec::new();
        for (at, ((host, _), units)) in HOSTS.into_iter().zip(units).enumerate() {
            let target = watched.as_initiator(&initiator(host));
            for kind in 0..2_u64 {
                let target = target.clone();
                let mut random = Random::new(seed.wrapping_add((at as u64) << 8 | kind));
                attackers.push(scope.spawn(move || {
                    let mut count = Count::default();
                    for session in 0..SESSIONS {
                        let isid = (at as u32) << 20 | (kind as u32) << 16 | session as u32;
                        match kind {
                            0 => commands::session(&target, units, isid, &mut random, &mut count)?,
                            _ => pdus::session(&target, units, isid, &mut random, &mut count)?,
                        }
                    }
                    Ok::<_, anyhow::Error>(count)
                }));
            }
        }
        let mut total = Count::default();
        for attacker in attackers {
            total.add(attacker.join().map_err(|_| anyhow!("an attacker panicked"))??);
        }
        Ok(total)
    })
}

/// Statistics.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sessions: u64,
    commands: u64,
    good: u64,
    pdus: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.commands += other.commands;
        self.good += other.good;
        self.pdus += other.pdus;
        self.bytes += other.bytes;
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sessions, commands, good, pdus, bytes } = self;
        let mib = bytes >> 20;
        write!(f, "{sessions} sessions, {commands} commands ({good} GOOD), {pdus} PDUs, {mib} MiB")
    }
}
