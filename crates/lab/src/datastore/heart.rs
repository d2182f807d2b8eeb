//! The heartbeat of a mount, from taking a slot to its end; and how a host finds out that another
//! one is dead.
//!
//! A host may write what its locks allow for three quarters of the liveness time after its last
//! beat was begun; others consider it dead only after they have seen the beat unchanged for all of
//! that time, and end it on disk first, by an exchange that fails if the host has returned. So
//! commands may be in flight for a quarter of the time.

use std::rc::{Rc, Weak};
use std::time::Instant;

use super::disk::{Disk, Fence};
use super::error::DatastoreError;
use super::layout::Layout;
use super::lock_record::{HOSTS_MAX, Holder};
use super::mount::{Core, MountOptions};
use super::pulse::Pulse;
use super::sector::SECTOR_BYTES;
use crate::host::{HostError, Swap};

/// How often to try a slot for which others are quicker.
const CLAIMS_MAX: u32 = 200;
/// How often to try one beat that finds an earlier one of its own.
const BEATS_MAX: u32 = 8;

/// What another host's heartbeat says about it.
pub(super) enum Verdict {
    Dead,
    /// It was alive at this beat, as far as is known.
    Perhaps(Pulse),
}

/// Takes a heartbeat slot.
pub(super) async fn claim_slot(
    disk: &Disk,
    layout: &Layout,
    options: &MountOptions,
) -> Result<(Holder, Pulse), DatastoreError> {
    let mut seen: Option<Vec<Pulse>> = None;
    for attempt in 0..CLAIMS_MAX {
        let pulses = read_pulses(disk, layout).await?;
        let own = pulses.iter().position(|pulse| pulse.is_alive && pulse.host == options.host);
        let slot = match (own, &seen) {
            // It may be an earlier run of this host that has ended without unmounting: see whether
            // it beats.
            (Some(slot), Some(before)) if before[slot] == pulses[slot] => slot,
            (Some(_), Some(_)) => return Err(DatastoreError::MountedAlready(options.host)),
            (Some(_), None) => {
                disk.medium.sleep(options.liveness).await;
                seen = Some(pulses);
                continue;
            }
            (None, before) => match choose_slot(&pulses, before.as_deref(), options) {
                Some(slot) => slot,
                None if before.is_some() => return Err(DatastoreError::NoSlot),
                None => {
                    disk.medium.sleep(options.liveness).await;
                    seen = Some(pulses);
                    continue;
                }
            },
        };
        let offset = layout.heartbeat(slot as u32);
        let pulse = pulses[slot].taken_by(options.host, disk.nonce());
        if disk.exchange(offset, &pulses[slot].encode(offset), &pulse.encode(offset)).await? {
            let generation = pulse.generation;
            return Ok((Holder { host: options.host, slot: slot as u32, generation }, pulse));
        }
        seen = None;
        disk.back_off(attempt).await;
    }
    Err(DatastoreError::NoSlot)
}

/// Chooses the slot that this host had, or a free one, or one of a host that has not beaten.
fn choose_slot(
    pulses: &[Pulse],
    before: Option<&[Pulse]>,
    options: &MountOptions,
) -> Option<usize> {
    let free = |pulse: &Pulse| !pulse.is_alive;
    let dead = |slot: &usize| before.is_some_and(|before| before[*slot] == pulses[*slot]);
    pulses
        .iter()
        .position(|pulse| free(pulse) && pulse.host == options.host)
        .or_else(|| pulses.iter().position(free))
        .or_else(|| (0..pulses.len()).find(dead))
}

/// Reads all heartbeats.
pub(super) async fn read_pulses(
    disk: &Disk,
    layout: &Layout,
) -> Result<Vec<Pulse>, DatastoreError> {
    let bytes = u64::from(HOSTS_MAX) * SECTOR_BYTES;
    let all = disk.read(layout.heartbeat(0), bytes).await?;
    let sectors = all.chunks_exact(SECTOR_BYTES as usize).zip(0..);
    sectors.map(|(sector, slot)| Pulse::decode(sector, layout.heartbeat(slot))).collect()
}

/// Beats once, and from then on until the mount is gone.
pub(super) async fn start(core: &Rc<Core>) -> Result<(), DatastoreError> {
    // Claiming the slot may have taken long, so it does not count as a beat.
    let mut attempt = 0;
    loop {
        match core.beat().await {
            Err(DatastoreError::Host(HostError::Reserved)) if attempt < CLAIMS_MAX => {
                attempt += 1;
                core.disk.back_off(attempt).await;
            }
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    let weak = Rc::downgrade(core);
    let medium = core.disk.medium.clone();
    let heart = core.disk.medium.spawn(Box::pin(async move {
        let mut pause = match weak.upgrade() {
            Some(core) => core.options.heartbeat_interval,
            None => return,
        };
        loop {
            medium.sleep(pause).await;
            match beat_of(&weak).await {
                Some(next) => pause = next,
                None => return,
            }
        }
    }));
    *core.heart.borrow_mut() = Some(heart);
    Ok(())
}

/// Beats once; returns how long to wait for the next; `None` at the end.
async fn beat_of(weak: &Weak<Core>) -> Option<std::time::Duration> {
    let core = weak.upgrade()?;
    let interval = core.options.heartbeat_interval;
    match core.beat().await {
        Ok(()) => Some(interval),
        Err(DatastoreError::Lost) => None,
        // Soon again: there is time until others consider this host dead.
        Err(_) => Some(interval / 8),
    }
}

impl Core {
    fn allow_until(&self, begun: Instant) {
        self.disk.set_fence(Fence::Until(begun + self.options.liveness * 3 / 4));
    }

    /// One heartbeat.
    pub(super) async fn beat(&self) -> Result<(), DatastoreError> {
        let _turn = self.beating.lock().await;
        for attempt in 0..BEATS_MAX {
            let begun = self.disk.medium.now();
            let next = self.pulse.get().next(self.disk.nonce());
            let found = match self.beat_once(self.pulse.get(), next).await {
                Ok(found) => found,
                Err(error) => {
                    let reserved = matches!(error, DatastoreError::Host(HostError::Reserved));
                    self.disk.count(|counters| {
                        counters.conflicts += u64::from(reserved);
                        counters.heartbeats_failed += 1;
                    });
                    return Err(error);
                }
            };
            if !found.is_of(&self.me) {
                self.disk.set_fence(Fence::Lost);
                return Err(DatastoreError::Lost);
            }
            self.pulse.set(found);
            if found == next {
                self.allow_until(begun);
                self.disk.count(|counters| counters.heartbeats += 1);
                return Ok(());
            }
            // The slot contains an earlier beat of ours, whose outcome was unknown (002).
            self.disk.back_off(attempt).await;
        }
        self.disk.count(|counters| counters.heartbeats_failed += 1);
        Err(DatastoreError::HeartbeatLate)
    }

    /// Tries one; returns what is on disk then.
    async fn beat_once(&self, last: Pulse, next: Pulse) -> Result<Pulse, DatastoreError> {
        let offset = self.layout.heartbeat(self.me.slot);
        let (old, new) = (last.encode(offset), next.encode(offset));
        let medium = &self.disk.medium;
        if medium.locking().heartbeat_by_ats {
            match medium.compare_and_write(offset, &old, &new).await {
                Ok(Swap::Done) => return Ok(next),
                Ok(Swap::Miscompare) => {
                    // As 6.5 does: it is read again, and a miscompare counts only if it is another
                    // host's.
                    let found = self.read_pulse(offset).await?;
                    self.disk.count(|counters| {
                        counters.miscompares += 1;
                        counters.false_miscompares += u64::from(found.is_of(&self.me));
                    });
                    return Ok(found);
                }
                Err(HostError::Unsupported { .. }) => {
                    self.disk.count(|counters| counters.ats_refused += 1);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.disk.may_write().is_err() {
            // Another host may be about to end it: what was read may be outdated.
            let exchange = self.disk.exchange_by_reservation(offset, SECTOR_BYTES, &old, &new);
            return if exchange.await?.is_none() {
                Ok(next)
            } else {
                self.read_pulse(offset).await
            };
        }
        let found = self.read_pulse(offset).await?;
        if !found.is_of(&self.me) {
            return Ok(found);
        }
        medium.write(offset, &new).await?;
        Ok(next)
    }

    async fn read_pulse(&self, offset: u64) -> Result<Pulse, DatastoreError> {
        let bytes = self.disk.medium.read(offset, SECTOR_BYTES).await?;
        Pulse::decode(&bytes, offset)
    }

    /// Returns whether a holder of a lock is dead. One that has not beaten for the liveness time is
    /// ended on disk first, so that all hosts see it in the same way, including itself.
    pub(super) async fn judge(&self, holder: &Holder) -> Result<Verdict, DatastoreError> {
        let offset = self.layout.heartbeat(holder.slot);
        let image = self.disk.read_sector(offset).await?;
        let pulse = Pulse::decode(&image, offset)?;
        if !pulse.is_of(holder) {
            return Ok(Verdict::Dead);
        }
        let now = self.disk.medium.now();
        let since = {
            let mut watched = self.watched.borrow_mut();
            let seen = watched.entry(holder.slot).or_insert((pulse, now));
            if seen.0 != pulse {
                *seen = (pulse, now);
            }
            seen.1
        };
        if now.duration_since(since) < self.options.liveness {
            return Ok(Verdict::Perhaps(pulse));
        }
        let ended = pulse.ended(self.disk.nonce()).encode(offset);
        if !self.disk.exchange(offset, &image, &ended).await? {
            return Ok(Verdict::Perhaps(pulse));
        }
        self.disk.count(|counters| counters.buried += 1);
        Ok(Verdict::Dead)
    }

    /// Ends the own heartbeat permanently.
    pub(super) async fn stop_heart(&self) -> Result<(), DatastoreError> {
        let _turn = self.beating.lock().await;
        self.heart.borrow_mut().take();
        let offset = self.layout.heartbeat(self.me.slot);
        let mut end = Ok(());
        for attempt in 0..BEATS_MAX {
            let last = self.pulse.get();
            let ended = last.ended(self.disk.nonce()).encode(offset);
            match self.disk.exchange(offset, &last.encode(offset), &ended).await {
                Ok(false) => {}
                done => {
                    end = done.map(drop);
                    break;
                }
            }
            let found = self.disk.read_sector(offset).await;
            match found.and_then(|sector| Pulse::decode(&sector, offset)) {
                Ok(found) if found.is_of(&self.me) => self.pulse.set(found),
                found => {
                    end = found.map(drop);
                    break;
                }
            }
            self.disk.back_off(attempt).await;
        }
        self.disk.set_fence(Fence::Unmounted);
        end
    }
}
