//! A host that takes a lock repeatedly, like a datastore's heartbeat, and writes and zeroes in
//! parallel: at the end it detects what was lost, done twice or done too late in a failover.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::answers::Answers;
use crate::host::{Device, Host, HostError, Swap};
use crate::random::Random;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
const SECTOR: usize = 512;
/// The number of slots that are written in turn, from the second MiB on.
const SLOTS: u64 = 64;
const SLOT_BYTES: u64 = 64 << 10;

/// Increments a number in a unit's first sector, only by COMPARE AND WRITE.
pub struct Locking {
    device: Device,
    stop: Cell<bool>,
    rounds: Cell<u64>,
    by_reading: Cell<u64>,
    /// Times without a response.
    pub answers: RefCell<Answers>,
}

impl Locking {
    /// Creates one on a unit of zeros.
    pub fn new(device: Device) -> Rc<Self> {
        Rc::new(Self {
            device,
            stop: Cell::default(),
            rounds: Cell::default(),
            by_reading: Cell::default(),
            answers: RefCell::default(),
        })
    }

    /// Returns its host.
    pub fn host(&self) -> &Host {
        self.device.host()
    }

    /// Ends [`Locking::run`].
    pub fn stop(&self) {
        self.stop.set(true);
    }

    /// Returns how often it has taken the lock.
    pub fn rounds(&self) -> u64 {
        self.rounds.get()
    }

    /// Returns how often only reading the lock showed that it had been taken: the response was
    /// lost, and the command was repeated over another port.
    pub fn by_reading(&self) -> u64 {
        self.by_reading.get()
    }

    /// Runs until it is stopped, and compares everything that it has written.
    pub async fn run(self: Rc<Self>) -> Result<(), String> {
        let failed = |error: HostError| format!("the locking host: {error}");
        while !self.stop.get() {
            self.answers.borrow_mut().begin(Instant::now());
            self.take().await?;
            self.answers.borrow_mut().answered(Instant::now());
            self.write().await.map_err(failed)?;
            self.answers.borrow_mut().end(Instant::now());
            self.rounds.set(self.rounds.get() + 1);
            self.device.host().reactor().sleep(PAUSE).await;
        }
        self.verify().await
    }

    /// Takes the lock once. The host repeats a command whose response was lost: over the same port
    /// the array recognizes it, over another one it miscompares with what it has written itself.
    async fn take(&self) -> Result<(), String> {
        let failed = |error: HostError| format!("the lock: {error}");
        let (old, new) = (lock(self.rounds.get()), lock(self.rounds.get() + 1));
        let before = self.device.totals().retries;
        if self.device.compare_and_write(0, &old, &new).await.map_err(failed)? == Swap::Done {
            return Ok(());
        }
        let was_repeated = self.device.totals().retries > before;
        let found = self.device.read(0, SECTOR as u64).await.map_err(failed)?;
        if !was_repeated || found != new {
            return Err(format!("the lock was lost after {} rounds", self.rounds.get()));
        }
        self.by_reading.set(self.by_reading.get() + 1);
        Ok(())
    }

    /// Writes a slot, and zeroes the second half of it.
    async fn write(&self) -> Result<(), HostError> {
        let at = place(self.rounds.get());
        self.device.write(at, &pattern(self.rounds.get())).await?;
        self.answers.borrow_mut().answered(Instant::now());
        self.device.write_same_zeros(at + SLOT_BYTES / 2, SLOT_BYTES / 2).await
    }

    async fn verify(&self) -> Result<(), String> {
        let failed = |error: HostError| format!("reading the locked unit: {error}");
        let rounds = self.rounds.get();
        if self.device.read(0, SECTOR as u64).await.map_err(failed)? != lock(rounds) {
            return Err(format!("the lock's counter is not {rounds}, the number of rounds"));
        }
        for round in rounds.saturating_sub(SLOTS)..rounds {
            let mut expected = pattern(round);
            expected[SLOT_BYTES as usize / 2..].fill(0);
            if self.device.read(place(round), SLOT_BYTES).await.map_err(failed)? != expected {
                return Err(format!("the data written by round {round} is missing"));
            }
        }
        Ok(())
    }
}

/// Returns the sector with the number of rounds: zeros at the start.
fn lock(number: u64) -> Vec<u8> {
    let mut sector = vec![0; SECTOR];
    sector[..8].copy_from_slice(&number.to_le_bytes());
    sector
}

fn place(round: u64) -> u64 {
    (1 << 20) + round % SLOTS * SLOT_BYTES
}

fn pattern(round: u64) -> Vec<u8> {
    let mut bytes = vec![0; SLOT_BYTES as usize];
    Random::new(round).fill(&mut bytes);
    bytes
}

/// The minimum size of the unit.
pub const UNIT_BYTES: u64 = (1 << 20) + SLOTS * SLOT_BYTES;
