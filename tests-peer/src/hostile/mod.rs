//! Invariant 7 from outside: initiators that take resources and return none, together with a good
//! one.
//!
//! The good one continuously writes and reads, and checks every byte. It may become slower, but
//! each of its commands ends, and everything the others took is returned when they are gone.

pub mod attacks;
mod slow;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use libiscsi::Session;

use self::attacks::Field;
use crate::array::Array;
use crate::good::{BLOCK, BLOCKS, Good};
use crate::random::Random;
use crate::report::Report;
use crate::target::{self, Target};

/// The most that the array's memory may grow. All limits of a connection together are about 50 MiB,
/// and at most eight that take that much are open at once.
const GROWTH_KIB: u64 = 512 << 10;
/// How long unused connections may take to be closed.
const GONE: Duration = Duration::from_secs(20);

/// An attack: its row's name, and its function, which returns a description.
type Attack = (&'static str, fn(&Field) -> Result<String>);

const ATTACKS: [Attack; 5] = [
    ("128 reads of 1 MiB whose data is never received", attacks::deaf),
    ("R2Ts that never get their data", attacks::r2ts),
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
        report.check("logins of one byte a second are closed", || {
            good.beside(|| drips.join().map_err(|_| anyhow!("it panicked"))?)
        });
        good.stop.store(true, Ordering::Relaxed);
        report.check("the good session's commands all ended, with the right data", || {
            worker.join().map_err(|_| anyhow!("it panicked"))?
        });
    });
    report.check("the attackers' resources are freed, and the array serves", || {
        before?.compare(array)?;
        array.must_run()?;
        let mut session = Session::connect(&target.config())?;
        let bytes = Random::new(7).bytes(BLOCKS * BLOCK);
        session.write(0, bytes.clone(), BLOCK as u32)?;
        ensure!(session.read(0, BLOCKS as u32, BLOCK as u32)? == bytes, "it reads other data");
        Ok(format!("at most {} MiB of memory", array.peak_kib()? >> 10))
    });
}

/// The resources that initiators have taken.
struct Taken {
    connections: u64,
    /// Sessions begun.
    begun: usize,
    peak_kib: u64,
}

impl Taken {
    fn of(array: &Array) -> Result<Self> {
        let (connections, (begun, _)) = (array.open_connections()?, array.sessions()?);
        Ok(Self { connections, begun, peak_kib: array.peak_kib()? })
    }

    /// Returns an error if more is in use than before, when no session was open.
    fn compare(&self, array: &Array) -> Result<()> {
        let grown = array.peak_kib()?.saturating_sub(self.peak_kib);
        ensure!(grown < GROWTH_KIB, "the array's memory grew by {} MiB", grown >> 10);
        let wait = Instant::now();
        loop {
            let (connections, (begun, ended)) = (array.open_connections()?, array.sessions()?);
            // The check relies on the log, so it must contain all sessions.
            let told = begun - self.begun;
            ensure!(told > attacks::VANISHING as usize, "the log has {told} sessions");
            if connections <= self.connections && ended == begun {
                return Ok(());
            }
            let open = begun - ended;
            let late = wait.elapsed() > GONE;
            ensure!(!late, "{connections} connections and {open} sessions are still open");
            thread::sleep(Duration::from_millis(50));
        }
    }
}
