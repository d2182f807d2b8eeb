//! Taking locks, giving them back, and breaking those of dead hosts.
//!
//! With ATS a lock costs a read and a COMPARE AND WRITE, and another one to give it back; without,
//! RESERVE, read, write and RELEASE each time (002). What is done under it lies between.

use std::future::Future;
use std::time::Duration;

use super::error::DatastoreError;
use super::heart::Verdict;
use super::lock_record::{Holder, HostId, LockRecord, Mode};
use super::mount::Core;
use super::pulse::Pulse;
use super::sector::Sector;

/// How many liveness times a lock is waited for that hosts hold which live.
const PATIENCE: u32 = 8;
/// How often it is tried to give back a lock that others come and go in.
const GIVE_BACKS_MAX: u32 = 1000;

/// How long a lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until it is free: it is held for some commands only.
    UntilFree,
    /// Until it is known that its holder lives: it is held for long.
    UnlessAlive,
    /// Not at all.
    Never,
}

/// A lock that is held.
#[derive(Clone, Debug)]
pub(super) struct Held {
    offset: u64,
    /// As it was written.
    image: Box<Sector>,
}

/// What has come of it.
#[derive(Debug)]
pub(super) enum Taken {
    Held(Held),
    /// Another host has it.
    By(HostId),
}

/// What was seen of others while waiting for one lock.
#[derive(Default)]
struct Seen {
    lock: Option<(LockRecord, std::time::Instant)>,
    pulses: Vec<(u32, Pulse)>,
}

impl Seen {
    /// For how long the lock has been as it is.
    fn unchanged_for(&mut self, record: &LockRecord, now: std::time::Instant) -> Duration {
        match &self.lock {
            Some((known, since)) if known == record => now.duration_since(*since),
            _ => {
                self.lock = Some((record.clone(), now));
                Duration::ZERO
            }
        }
    }

    /// Whether a host has moved since it was first looked at.
    fn has_moved(&mut self, slot: u32, pulse: Pulse) -> bool {
        match self.pulses.iter().find(|(known, _)| *known == slot) {
            Some((_, first)) => *first != pulse,
            None => {
                self.pulses.push((slot, pulse));
                false
            }
        }
    }
}

impl Core {
    /// Takes the lock at `offset`.
    pub(super) async fn acquire(
        &self,
        offset: u64,
        mode: Mode,
        wait: Wait,
    ) -> Result<Taken, DatastoreError> {
        let started = self.disk.medium.now();
        let mut seen = Seen::default();
        for attempt in 0.. {
            let image = self.disk.read_sector(offset).await?;
            let record = LockRecord::decode(&image, offset)?;
            let (dead, alive) = self.examine(&record, mode, wait, &mut seen).await?;
            match record.without(|holder| dead.contains(holder)).with(self.me, mode) {
                Some(next) => {
                    let next = LockRecord { nonce: self.disk.nonce(), ..next }.encode(offset);
                    if self.disk.exchange(offset, &image, &next).await? {
                        self.disk.count(|counters| {
                            counters.acquired += 1;
                            counters.broken += u64::from(!dead.is_empty());
                        });
                        return Ok(Taken::Held(Held { offset, image: Box::new(next) }));
                    }
                }
                None => {
                    if let Some(host) = alive.or((wait == Wait::Never).then(|| other(&record))) {
                        return Ok(Taken::By(host));
                    }
                }
            }
            self.disk.count(|counters| counters.retries += 1);
            let waited = self.disk.medium.now().duration_since(started);
            if waited > self.options.liveness * PATIENCE {
                break;
            }
            match wait {
                Wait::UnlessAlive => {
                    self.disk.medium.sleep(self.options.heartbeat_interval / 8).await;
                }
                _ => self.disk.back_off(attempt).await,
            }
        }
        Err(DatastoreError::LockTimeout { offset_bytes: offset })
    }

    /// Who of those that are in the way is dead, and one that is known to live.
    async fn examine(
        &self,
        record: &LockRecord,
        mode: Mode,
        wait: Wait,
        seen: &mut Seen,
    ) -> Result<(Vec<Holder>, Option<HostId>), DatastoreError> {
        let (mut dead, mut alive) = (Vec::new(), None);
        if record.with(self.me, mode).is_some() {
            return Ok((dead, alive));
        }
        let unchanged_for = seen.unchanged_for(record, self.disk.medium.now());
        if wait == Wait::UntilFree && unchanged_for < self.options.heartbeat_interval {
            return Ok((dead, alive));
        }
        for holder in record.holders.iter().filter(|holder| **holder != self.me) {
            match self.judge(holder).await? {
                Verdict::Dead => dead.push(*holder),
                Verdict::Perhaps(pulse) => {
                    if seen.has_moved(holder.slot, pulse) && wait != Wait::UntilFree {
                        alive = Some(holder.host);
                    }
                }
            }
        }
        Ok((dead, alive))
    }

    /// Gives a lock back.
    pub(super) async fn give_up(&self, held: &Held) -> Result<(), DatastoreError> {
        let offset = held.offset;
        let mut image = *held.image;
        for attempt in 0..GIVE_BACKS_MAX {
            let record = LockRecord::decode(&image, offset)?;
            if !record.holders.contains(&self.me) {
                // It was given back by a command whose end was lost, or broken; a host that this
                // has happened to hears of it from its heartbeat.
                return Ok(());
            }
            let next = record.without(|holder| *holder == self.me);
            let next = LockRecord { nonce: self.disk.nonce(), ..next }.encode(offset);
            if self.disk.exchange(offset, &image, &next).await? {
                self.disk.count(|counters| counters.released += 1);
                return Ok(());
            }
            self.disk.back_off(attempt).await;
            image = self.disk.read_sector(offset).await?;
        }
        Err(DatastoreError::LockTimeout { offset_bytes: offset })
    }

    /// Does something under a lock that is held for some commands only. The tasks of this host
    /// must have taken turns before.
    pub(super) async fn under_lock<T>(
        &self,
        offset: u64,
        work: impl Future<Output = Result<T, DatastoreError>>,
    ) -> Result<T, DatastoreError> {
        let held = match self.acquire(offset, Mode::Exclusive, Wait::UntilFree).await? {
            Taken::Held(held) => held,
            Taken::By(_) => return Err(DatastoreError::LockTimeout { offset_bytes: offset }),
        };
        let end = work.await;
        let freed = self.give_up(&held).await;
        let value = end?;
        freed?;
        Ok(value)
    }
}

fn other(record: &LockRecord) -> HostId {
    record.holders.first().map_or(HostId([0; 16]), |holder| holder.host)
}
