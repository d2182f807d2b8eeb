//! Invariant 7 from outside: initiators that take and give nothing back, beside a good one.
//!
//! The good one writes and reads all the while, and looks at every byte. It may get slower; each of
//! its commands ends, and what the others took is given back when they are gone.

mod attacks;
mod slow;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::Session;

use self::attacks::Field;
use crate::array::Array;
use crate::random::Random;
use crate::report::Report;
use crate::target::{self, Target};

const BLOCK: usize = 512;
/// Blocks of a command of the good session: 64 KiB.
const BLOCKS: usize = 128;
/// Its places, one behind the other from the first block on. Attackers write there, too: but none
/// of their commands is ever to take effect.
const PLACES: usize = 128;
/// What the array's memory may grow by. All limits of a connection together are some 50 MiB, and
/// the most that are open at once and take that much are eight.
const GROWTH_KIB: u64 = 512 << 10;
/// How long connections may take to go away once nobody wants them.
const GONE: Duration = Duration::from_secs(20);

/// An attack: its row's name, and what it does; it tells what it did.
type Attack = (&'static str, fn(&Field) -> Result<String>);

const ATTACKS: [Attack; 5] = [
    ("128 reads of 1 MiB whose data nobody takes", attacks::deaf),
    ("R2Ts that are never answered", attacks::r2ts),
    ("floods of pings, task management and text requests", attacks::floods),
    ("headers that claim huge data segments and additional headers", attacks::headers),
    ("500 sessions that vanish with a TCP reset", attacks::vanish),
];

/// Attacks an array with one volume.
pub fn hostile(report: &mut Report, array: &mut Array, target: &Target) {
    let before = Taken::of(array);
    let good = Good::default();
    let field = Field::new(target);
    let own = target.as_initiator(&target::second(&target.initiator));
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(&own));
        let drips = scope.spawn(|| slow::drip(&field));
        for (name, attack) in ATTACKS {
            report.check(name, || good.beside(|| attack(&field)));
        }
        report.check("logins of a byte a second are ended", || {
            good.beside(|| drips.join().map_err(|_| anyhow!("it panicked"))?)
        });
        good.stop.store(true, Ordering::Relaxed);
        report.check("every command of the good session ended, and every byte is right", || {
            worker.join().map_err(|_| anyhow!("it panicked"))?
        });
    });
    report.check("what the attackers took is given back, and the array serves", || {
        before?.compare(array)?;
        array.must_run()?;
        let mut session = Session::connect(&target.config())?;
        let bytes = Random::new(7).bytes(BLOCKS * BLOCK);
        session.write(0, bytes.clone(), BLOCK as u32)?;
        ensure!(session.read(0, BLOCKS as u32, BLOCK as u32)? == bytes, "it reads otherwise");
        Ok(format!("at most {} MiB of memory", array.peak_kib()? >> 10))
    });
}

/// What the array has given to initiators.
struct Taken {
    connections: u64,
    /// Sessions that have begun.
    begun: usize,
    peak_kib: u64,
}

impl Taken {
    fn of(array: &Array) -> Result<Self> {
        let (connections, (begun, _)) = (array.open_connections()?, array.sessions()?);
        Ok(Self { connections, begun, peak_kib: array.peak_kib()? })
    }

    /// An error if more stays than there was before, when no session was open.
    fn compare(&self, array: &Array) -> Result<()> {
        let grown = array.peak_kib()? - self.peak_kib;
        ensure!(grown < GROWTH_KIB, "the array's memory grew by {} MiB", grown >> 10);
        let wait = Instant::now();
        loop {
            let (connections, (begun, ended)) = (array.open_connections()?, array.sessions()?);
            // The log is what is looked at, so it has to tell of all that came.
            let told = begun - self.begun;
            ensure!(told > attacks::VANISHING as usize, "the log tells of {told} sessions");
            if connections <= self.connections && ended == begun {
                return Ok(());
            }
            let open = begun - ended;
            let late = wait.elapsed() > GONE;
            ensure!(!late, "{connections} connections and {open} sessions are still there");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The good session.
#[derive(Default)]
struct Good {
    stop: AtomicBool,
    commands: AtomicU64,
}

impl Good {
    /// Writes and reads, until it is over.
    fn work(&self, target: &Target) -> Result<String> {
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(1);
        let mut model = vec![vec![0; BLOCKS * BLOCK]; PLACES];
        let mut slowest = Duration::ZERO;
        while !self.stop.load(Ordering::Relaxed) {
            let place = random.below(PLACES as u64) as usize;
            let lba = (place * BLOCKS) as u64;
            let begin = Instant::now();
            // A session of libiscsi gives up on a command after 30 s.
            if random.below(2) == 0 {
                let bytes = random.bytes(BLOCKS * BLOCK);
                session.write(lba, bytes.clone(), BLOCK as u32).context("WRITE")?;
                model[place] = bytes;
            } else {
                let bytes = session.read(lba, BLOCKS as u32, BLOCK as u32).context("READ")?;
                ensure!(bytes == model[place], "READ at {lba} brings something else");
            }
            slowest = slowest.max(begin.elapsed());
            self.commands.fetch_add(1, Ordering::Relaxed);
        }
        for (place, bytes) in model.iter().enumerate() {
            let read = session.read((place * BLOCKS) as u64, BLOCKS as u32, BLOCK as u32)?;
            ensure!(&read == bytes, "in the end place {place} holds something else");
        }
        let commands = self.commands.load(Ordering::Relaxed);
        Ok(format!("{commands} commands, the slowest took {} ms", slowest.as_millis()))
    }

    /// Something that goes on beside it: it must not stand still.
    fn beside(&self, attack: impl FnOnce() -> Result<String>) -> Result<String> {
        let before = self.commands.load(Ordering::Relaxed);
        let detail = attack()?;
        let begin = Instant::now();
        while self.commands.load(Ordering::Relaxed) == before {
            ensure!(begin.elapsed() < GONE, "the good session stands still");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(detail)
    }
}
