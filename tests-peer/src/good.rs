//! A good session at the same time as bad ones: it continuously writes and reads, and checks every
//! byte.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::{Error, Session, Status};

use crate::random::Random;
use crate::target::Target;

pub const BLOCK: usize = 512;
/// The length of the good session's long commands in blocks: 64 KiB. Every second command is 4 KiB.
pub const BLOCKS: usize = 128;
/// Its locations, consecutive from the first block on. Attackers may write there too, but none of
/// their commands may ever take effect.
const PLACES: usize = 128;
/// How long it may make no progress.
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
    /// Creates one that gets unit attentions, and repeats the command.
    pub fn resending() -> Self {
        Self { resends: true, ..Self::default() }
    }

    /// Writes and reads, until it is stopped.
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
                ensure!(bytes == wanted, "READ at {lba} returned other data");
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

    /// Reads everything that was written, once it has stopped.
    pub fn verify(&self, session: &mut Session) -> Result<()> {
        let model = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(model.len() == PLACES, "the good session did not finish");
        for (place, bytes) in model.iter().enumerate() {
            let read = session.read((place * BLOCKS) as u64, BLOCKS as u32, BLOCK as u32)?;
            ensure!(&read == bytes, "at the end, location {place} contains other data");
        }
        Ok(())
    }

    /// Returns how many commands it has completed.
    pub fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Returns how long the slowest of its commands took since the last call.
    pub fn take_slowest(&self) -> Duration {
        Duration::from_micros(self.slowest_us.swap(0, Ordering::Relaxed))
    }

    /// Runs an attack at the same time: the session must make progress.
    pub fn beside(&self, attack: impl FnOnce() -> Result<String>) -> Result<String> {
        let before = self.commands();
        let detail = attack()?;
        self.wait_past(before)?;
        Ok(detail)
    }

    /// Waits until it has completed another command.
    pub fn wait_past(&self, before: u64) -> Result<()> {
        let begin = Instant::now();
        while self.commands() == before {
            ensure!(!self.has_ended.load(Ordering::Relaxed), "the good session has ended");
            ensure!(begin.elapsed() < STILL, "the good session makes no progress");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Repeats a command as long as unit attentions are pending.
pub fn past_attentions<T>(mut command: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match command() {
            Err(Error::Command { status: Status::CheckCondition(sense), .. })
                if sense.key == UNIT_ATTENTION => {}
            done => return done,
        }
    }
}
