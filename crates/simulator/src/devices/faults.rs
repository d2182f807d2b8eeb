//! Faults of disks, and their repair.
//!
//! Enough disks are always healthy to have all of the pool; the others may have any trouble.

use segments::{DeviceError, DeviceState};
use sys::Disk as _;

use super::drive::{Drive, Trouble};
use super::{Pool, World, device_of};
use crate::commits::Ground;
use crate::disk::WriteFault;
use crate::history::locked;

impl World {
    /// Makes a disk fail, if it can be spared.
    pub(super) fn fault(&mut self, pool: &Pool) -> Result<(), String> {
        let at = self.rng.below(self.drives.len() as u64) as usize;
        if !self.can_spare(at) {
            return Ok(());
        }
        let times = if self.rng.chance(50) { u64::MAX } else { self.rng.between(1, 5) };
        let is_in = self.disks(DeviceState::In).contains(&at);
        let trouble = match self.rng.below(10) {
            0..3 => Trouble::Gone,
            3..5 => Trouble::Errors(times),
            5 => Trouble::ReadErrors(times),
            6 => Trouble::Full(times),
            // A disk that is not in is not read, and one that catches up is given what was read.
            7 if is_in
                && self.liar.is_none()
                && self.catching_up.is_empty()
                && self.spares == 0 =>
            {
                self.lie(at);
                return Ok(());
            }
            _ if is_in => return self.take_out(pool, at),
            _ => Trouble::Gone,
        };
        self.seen.faults[0] += 1;
        self.drives[at].set_trouble(trouble);
        Ok(())
    }

    /// Makes a disk lie: it has something else than what was written, or will with the next write.
    fn lie(&mut self, at: usize) {
        let drive = &self.drives[at];
        self.seen.faults[0] += 1;
        self.seen.faults[1] += 1;
        if self.rng.chance(60) {
            for _ in 0..self.rng.between(1, 30) {
                let block = drive.disk.rot(&mut self.rng);
                self.power.note(&format!("disk {at}: rot {block:?}"));
            }
        } else {
            let any = self.rng.below(self.plan.pool_bytes / block::BLOCK_BYTES);
            let fault = match self.rng.below(3) {
                0 => WriteFault::Lost,
                1 => WriteFault::Shorn,
                _ => WriteFault::Misdirected(any.max(4096)),
            };
            self.power.note(&format!("disk {at}: {fault:?}"));
            drive.disk.set_write_fault(&[], fault);
        }
        locked(&self.desk).may_wait = true;
        self.liar = Some(at);
    }

    fn missing(&self, pool: &Pool) -> Option<u16> {
        let devices = pool.store.segments().devices();
        let missing = devices.iter().find(|device| device.state == DeviceState::Missing);
        missing.map(|device| device.number)
    }

    fn number_of(&self, pool: &Pool, at: usize) -> Option<u16> {
        let devices = pool.store.segments().devices();
        let found = devices.iter().find(|device| device.name == at.to_string());
        found.map(|device| device.number)
    }

    fn take_out(&mut self, pool: &Pool, at: usize) -> Result<(), String> {
        let Some(number) = self.number_of(pool, at) else { return Ok(()) };
        // If the power fails meanwhile labels may say so, or not.
        self.were_troubled.push(at);
        let result = pool.store.segments().take_out(number, "an administrator");
        self.seen.changed[0] += 1;
        self.settled("take out", result.map_err(|error| error.to_string()))
    }

    /// Unless the power has failed, it is done.
    fn settled(&mut self, what: &str, result: Result<(), String>) -> Result<(), String> {
        match result {
            Err(error) if !self.power.has_failed() => Err(format!("{what}: {error}")),
            _ => Ok(()),
        }
    }

    /// Heals a disk, or replaces it by another one.
    pub(super) fn recovers(&mut self, pool: &Pool) -> Result<(), String> {
        let at = self.rng.below(self.drives.len() as u64) as usize;
        let is_written = [DeviceState::In, DeviceState::CatchingUp]
            .iter()
            .any(|state| self.disks(*state).contains(&at));
        if self.drives[at].trouble() != Trouble::None {
            // Reset to an earlier state, if the others know that it is out.
            if !is_written && self.rng.chance(40) {
                self.drives[at].disk.set_content(self.earlier[at].clone());
                self.is_stale[at] = true;
            }
            self.drives[at].set_trouble(Trouble::None);
            return Ok(());
        }
        if self.rng.chance(30) {
            self.earlier[at] = self.drives[at].copy().content();
        }
        if self.liar == Some(at) && is_written && self.can_spare(at) {
            self.take_out(pool, at)?;
        } else if is_written {
            return Ok(());
        }
        if self.power.has_failed() {
            return Ok(());
        }
        if self.liar == Some(at) {
            self.liar = None;
        }
        self.bring_back(pool, at)
    }

    /// Makes a disk that is out, or missing, catch up.
    fn bring_back(&mut self, pool: &Pool, at: usize) -> Result<(), String> {
        let mut entropy = [0; 16];
        entropy.iter_mut().for_each(|byte| *byte = self.rng.draw() as u8);
        let known = self.number_of(pool, at);
        let result = match known {
            Some(number) if self.rng.chance(70) => {
                self.seen.changed[1] += 1;
                pool.store.segments().take_back(number)
            }
            Some(number) => {
                self.seen.changed[2] += 1;
                let seed = self.rng.draw();
                let name = at.to_string();
                let len_bytes = self.drives[at].len_bytes();
                let blank = Drive::new(name, len_bytes, seed, &self.power);
                self.drives[at] = blank.clone();
                if self.drives.len() <= 3 && self.rng.chance(50) {
                    let removed = pool.devices.remove(number);
                    removed.and_then(|()| pool.devices.add(device_of(&blank), entropy).map(drop))
                } else {
                    pool.devices.replace(number, device_of(&blank), entropy).map(drop)
                }
            }
            None => {
                self.seen.changed[1] += 1;
                let device = device_of(&self.drives[at]);
                match (pool.devices.add(device.clone(), entropy), self.missing(pool)) {
                    // One of another time: it replaces one that is lost.
                    (Err(DeviceError::Full(_) | DeviceError::InStripes(_)), Some(lost)) => {
                        pool.devices.replace(lost, device, entropy).map(drop)
                    }
                    (result, _) => result.map(drop),
                }
            }
        };
        self.settled("bring back", result.map_err(|error| error.to_string()))
    }

    /// After a crash heals some disks, and lets others not return; enough of those return that had
    /// what they should have.
    pub(super) fn come_back(&mut self) {
        for at in 0..self.drives.len() {
            match self.rng.below(10) {
                0..6 => self.drives[at].set_trouble(Trouble::None),
                6 | 7 => self.drives[at].set_trouble(Trouble::Gone),
                _ => {}
            }
        }
        let had_all: Vec<usize> =
            self.were_in.iter().copied().filter(|at| self.is_true(*at)).collect();
        let is_troubled = |at: &usize| self.drives[*at].trouble() != Trouble::None;
        let mut troubled: Vec<usize> = had_all.iter().copied().filter(is_troubled).collect();
        while had_all.len() - troubled.len() < self.least_after_crash() && !troubled.is_empty() {
            let at = troubled.swap_remove(self.rng.below(troubled.len() as u64) as usize);
            self.drives[at].set_trouble(Trouble::None);
        }
        if had_all.len() - troubled.len() < self.least_after_crash() {
            // What a power failure has taken out only in memory is in by its labels.
            self.drives.iter().for_each(|drive| drive.set_trouble(Trouble::None));
        }
        let gone = self.were_in.iter().filter(|at| self.drives[**at].trouble() == Trouble::Gone);
        self.seen.crashes[2] += gone.count() as u64;
    }
}
