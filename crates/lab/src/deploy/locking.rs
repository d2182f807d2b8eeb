//! A host that takes a lock again and again, as a datastore's heartbeat does, and writes and zeroes
//! beside it: what is lost, doubled or done too late in a failover is seen at the end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::answers::Answers;
use crate::host::{Device, Host, HostError, Swap};
use crate::random::Random;

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(5);
const SECTOR: usize = 512;
/// Places that are written in turn, from the second MiB on.
const SLOTS: u64 = 64;
const SLOT_BYTES: u64 = 64 << 10;

/// Counts up a number in a unit's first sector, by COMPARE AND WRITE alone.
pub struct Locking {
    device: Device,
    stop: Cell<bool>,
    rounds: Cell<u64>,
    by_reading: Cell<u64>,
    /// When it had no answer.
    pub answers: RefCell<Answers>,
}

impl Locking {
    /// On a unit of zeros.
    pub fn new(device: Device) -> Rc<Self> {
        Rc::new(Self {
            device,
            stop: Cell::default(),
            rounds: Cell::default(),
            by_reading: Cell::default(),
            answers: RefCell::default(),
        })
    }

    /// The host that does.
    pub fn host(&self) -> &Host {
        self.device.host()
    }

    /// Has [`Locking::run`] end.
    pub fn stop(&self) {
        self.stop.set(true);
    }

    /// How often it has taken the lock.
    pub fn rounds(&self) -> u64 {
        self.rounds.get()
    }

    /// How often of that only reading the lock told that it had been taken: the answer was lost,
    /// and the command was repeated over another port.
    pub fn by_reading(&self) -> u64 {
        self.by_reading.get()
    }

    /// Goes on until it is to stop, and compares all that it has written.
    pub async fn run(self: Rc<Self>) -> Result<(), String> {
        let failed = |error: HostError| format!("the host that locks: {error}");
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

    /// One more. A command whose answer was lost is sent again by the host: over the same port the
    /// array knows it again, over another one it miscompares with what it has written itself.
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

    /// Writes a place, and zeroes the second half of it.
    async fn write(&self) -> Result<(), HostError> {
        let at = place(self.rounds.get());
        self.device.write(at, &pattern(self.rounds.get())).await?;
        self.answers.borrow_mut().answered(Instant::now());
        self.device.write_same_zeros(at + SLOT_BYTES / 2, SLOT_BYTES / 2).await
    }

    async fn verify(&self) -> Result<(), String> {
        let failed = |error: HostError| format!("reading what was locked: {error}");
        let rounds = self.rounds.get();
        if self.device.read(0, SECTOR as u64).await.map_err(failed)? != lock(rounds) {
            return Err(format!("the lock does not hold {rounds}, as often as it was taken"));
        }
        for round in rounds.saturating_sub(SLOTS)..rounds {
            let mut expected = pattern(round);
            expected[SLOT_BYTES as usize / 2..].fill(0);
            if self.device.read(place(round), SLOT_BYTES).await.map_err(failed)? != expected {
                return Err(format!("what round {round} wrote is not there"));
            }
        }
        Ok(())
    }
}

/// The sector that says how often the lock was taken: zeros at the start.
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

/// The size of the unit that it needs.
pub const UNIT_BYTES: u64 = (1 << 20) + SLOTS * SLOT_BYTES;
