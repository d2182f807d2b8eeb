//! A good session beside bad ones: it writes and reads all the while, and looks at every byte.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::{Error, Session, Status};

use crate::random::Random;
use crate::target::Target;

pub const BLOCK: usize = 512;
/// Blocks of a long command of the good session: 64 KiB. Each second one is of 4 KiB.
pub const BLOCKS: usize = 128;
/// Its places, one behind the other from the first block on. Attackers may write there, too: but
/// none of their commands is ever to take effect.
const PLACES: usize = 128;
/// How long it may stand still.
const STILL: Duration = Duration::from_secs(20);

/// The sense key UNIT ATTENTION.
const UNIT_ATTENTION: u8 = 6;

/// The good session.
#[derive(Default)]
pub struct Good {
    pub stop: AtomicBool,
    /// Whether a command that ends with UNIT ATTENTION is sent again.
    resends: bool,
    has_ended: AtomicBool,
    commands: AtomicU64,
    slowest_us: AtomicU64,
    /// What it has written, once it has stopped.
    written: Mutex<Vec<Vec<u8>>>,
}

impl Good {
    /// One that gets unit attentions, and sends the command again.
    pub fn resending() -> Self {
        Self { resends: true, ..Self::default() }
    }

    /// Writes and reads, until it is over.
    pub fn work(&self, target: &Target) -> Result<String> {
        let done = self.work_on(target);
        self.has_ended.store(true, Ordering::Relaxed);
        done
    }

    fn work_on(&self, target: &Target) -> Result<String> {
        let mut session = Session::connect(&target.config())?;
        let mut random = Random::new(1);
        let mut model = vec![vec![0; BLOCKS * BLOCK]; PLACES];
        while !self.stop.load(Ordering::Relaxed) {
            let place = random.below(PLACES as u64) as usize;
            let lba = (place * BLOCKS) as u64;
            let blocks = if random.below(2) == 0 { BLOCKS } else { 8 };
            let begin = Instant::now();
            // A session of libiscsi gives up on a command after 30 s.
            if random.below(2) == 0 {
                let bytes = random.bytes(blocks * BLOCK);
                let write = || session.write(lba, bytes.clone(), BLOCK as u32);
                self.command(write).context("WRITE")?;
                model[place][..bytes.len()].copy_from_slice(&bytes);
            } else {
                let read = || session.read(lba, blocks as u32, BLOCK as u32);
                let bytes = self.command(read).context("READ")?;
                let wanted = &model[place][..bytes.len()];
                ensure!(bytes == wanted, "READ at {lba} brings something else");
            }
            let took = begin.elapsed().as_micros() as u64;
            self.slowest_us.fetch_max(took, Ordering::Relaxed);
            self.commands.fetch_add(1, Ordering::Relaxed);
        }
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = model;
        self.verify(&mut session)?;
        let commands = self.commands.load(Ordering::Relaxed);
        let slowest = self.slowest_us.load(Ordering::Relaxed) / 1000;
        Ok(format!("{commands} commands, the slowest took {slowest} ms"))
    }

    fn command<T>(&self, mut command: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        if self.resends { past_attentions(command) } else { command() }
    }

    /// Reads all that was written, once it has stopped.
    pub fn verify(&self, session: &mut Session) -> Result<()> {
        let model = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(model.len() == PLACES, "the good session did not come to its end");
        for (place, bytes) in model.iter().enumerate() {
            let read = session.read((place * BLOCKS) as u64, BLOCKS as u32, BLOCK as u32)?;
            ensure!(&read == bytes, "in the end place {place} holds something else");
        }
        Ok(())
    }

    /// How many commands it has done.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// How long the slowest of its commands took since this was asked last.
    pub fn take_slowest(&self) -> Duration {
        Duration::from_micros(self.slowest_us.swap(0, Ordering::Relaxed))
    }

    /// Something that goes on beside it: it must not stand still.
    pub fn beside(&self, attack: impl FnOnce() -> Result<String>) -> Result<String> {
        let before = self.commands();
        let detail = attack()?;
        self.wait_past(before)?;
        Ok(detail)
    }

    /// Waits until it has done another command.
    pub fn wait_past(&self, before: u64) -> Result<()> {
        let begin = Instant::now();
        while self.commands() == before {
            ensure!(!self.has_ended.load(Ordering::Relaxed), "the good session has ended");
            ensure!(begin.elapsed() < STILL, "the good session stands still");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// A command that is issued again as long as something else has to be told first.
pub fn past_attentions<T>(mut command: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match command() {
            Err(Error::Command { status: Status::CheckCondition(sense), .. })
                if sense.key == UNIT_ATTENTION => {}
            done => return done,
        }
    }
}
