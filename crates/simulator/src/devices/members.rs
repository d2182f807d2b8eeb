//! Which disks have a share of the pool, and how that changes.

use std::sync::Arc;
use std::time::Duration;

use segments::{DeviceError, DeviceSet, DeviceState, DeviceStatus, Lacking, Segments as _};

use super::drive::Trouble;
use super::{Pool, SEGMENTS, World, disks_of};
use crate::commits::Ground;

/// In every other world a disk that is out counts as lost at once, in the others never.
pub(super) fn set_patience(devices: &DeviceSet, seed: u64) {
    let never = Duration::from_secs(u64::from(u32::MAX));
    devices.set_lost_after(if (seed / 10).is_multiple_of(2) { Duration::ZERO } else { never });
}

fn has_share(device: &DeviceStatus) -> bool {
    device.parts.is_none_or(|parts| parts.used > 0)
}

/// Returns how many disks are needed to have all of a pool on this many.
fn least_of(sharing: usize) -> usize {
    match sharing {
        0..=3 => 1,
        count => count - 2,
    }
}

/// Returns how many disks are needed to have all of this pool.
pub(super) fn least_in(devices: &DeviceSet) -> usize {
    least_of(devices.devices().iter().filter(|device| has_share(device)).count())
}

/// Returns the disks that are in and have a share of the pool.
pub(super) fn sharing_in(devices: &DeviceSet) -> Vec<usize> {
    let statuses = devices.devices();
    let sharing = statuses.iter().filter(|device| has_share(device));
    let names: Vec<usize> = sharing.filter_map(|device| device.name.parse().ok()).collect();
    disks_of(devices, DeviceState::In).into_iter().filter(|at| names.contains(at)).collect()
}

/// Returns how many disks have a share of this pool, and how many may have one soon.
fn sharing(devices: &DeviceSet) -> [usize; 2] {
    let devices = devices.devices();
    let may_come = |state| matches!(state, DeviceState::In | DeviceState::CatchingUp);
    let may_share = |device: &&DeviceStatus| has_share(device) || may_come(device.state);
    let share = devices.iter().filter(|device| has_share(device)).count();
    [share, devices.iter().filter(may_share).count()]
}

/// Returns the batch of columns that is being moved.
fn moving(devices: &DeviceSet) -> Option<u64> {
    let lacking = devices.lacking();
    lacking.iter().find(|(who, _)| *who == Lacking::Parts).map(|(_, batch)| *batch)
}

impl World {
    /// Returns how many disks are needed to have all of the pool.
    pub(super) fn least(&self) -> usize {
        least_of(self.sharing[0])
    }

    /// The same after a power failure, when what was in progress may have happened.
    pub(super) fn least_after_crash(&self) -> usize {
        least_of(self.sharing[1])
    }

    /// Returns the disks that are in and have a share of the pool.
    pub(super) fn sharing_in(&self) -> Vec<usize> {
        self.pool.as_ref().map(|pool| sharing_in(&pool.devices)).unwrap_or_default()
    }

    pub(super) fn note_sharing(&mut self) {
        let Some(pool) = &self.pool else { return };
        self.sharing = sharing(&pool.devices);
        let moving = moving(&pool.devices);
        if self.moving != moving {
            self.seen.batches[0] += u64::from(moving.is_some());
            self.seen.batches[1] += u64::from(self.moving.is_some());
        }
        self.moving = moving;
        self.note_widths();
    }

    /// Records that what happened since the last check may be durable, or not.
    pub(super) fn may_share(&mut self, devices: &DeviceSet) {
        self.sharing[1] = self.sharing[1].max(sharing(devices)[1]);
    }

    /// Counts segments that became narrower or wider.
    fn note_widths(&mut self) {
        let Some(pool) = &self.pool else { return };
        let made_with = (self.drives.len() - self.spares).saturating_sub(2) as u8;
        let columns = |segment| pool.devices.columns(segment).unwrap_or(made_with);
        let now: Vec<u8> = (1..=SEGMENTS as u32).map(columns).collect();
        for (now, before) in now.iter().zip(&self.widths) {
            self.seen.laid[0] += u64::from(now < before);
            self.seen.laid[1] += u64::from(now > before);
        }
        self.widths = now;
    }

    /// Returns whether enough disks are healthy without this one, even if those without a share get
    /// one.
    pub(super) fn can_spare(&self, at: usize) -> bool {
        self.well().iter().filter(|other| **other != at).count() >= self.least_after_crash()
    }

    /// Returns the disks that have what they should have, and are healthy.
    fn well(&self) -> Vec<usize> {
        let mut well = self.disks(DeviceState::In);
        well.retain(|at| self.is_true(*at) && self.drives[*at].trouble() == Trouble::None);
        well
    }

    /// Removes a disk, cancels the removal of one, or completes a move.
    pub(super) fn change_members(&mut self, pool: &Pool) -> Result<(), String> {
        let devices = pool.devices.devices();
        let emptied = devices.iter().find(|it| it.parts.is_some_and(|parts| parts.is_emptied));
        let is_moving = pool.devices.lacking().iter().any(|(who, _)| *who == Lacking::Parts);
        if is_moving && self.rng.chance(70) {
            for _ in 0..self.rng.between(1, 12) {
                self.maintain(pool)?;
            }
            return Ok(());
        }
        if let Some(device) = emptied {
            // One that is out would have to catch up as well.
            if device.state == DeviceState::In && self.rng.chance(20) {
                self.seen.members[1] += 1;
                let were_well = self.all_are_well();
                return self.not_refused(pool.devices.take_back(device.number), were_well);
            }
            return Ok(());
        }
        let at = self.rng.below(self.drives.len() as u64) as usize;
        let number = devices.iter().find(|it| it.name == at.to_string()).map(|it| it.number);
        match number.filter(|_| self.can_spare(at)) {
            Some(number) => {
                self.seen.members[0] += 1;
                self.were_troubled.push(at);
                let were_well = self.all_are_well();
                self.not_refused(pool.devices.remove(number), were_well)
            }
            None => Ok(()),
        }
    }

    /// Checks a result; a refusal is allowed, because others may have no room, the disk may be in a
    /// state that must end first, or have had trouble, which may end with the call that it failed.
    fn not_refused(&self, result: Result<(), DeviceError>, were_well: bool) -> Result<(), String> {
        match result {
            Err(DeviceError::Io(error))
                if were_well && !self.power.has_failed() && self.all_are_well() =>
            {
                Err(format!("members: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn all_are_well(&self) -> bool {
        self.drives.iter().all(|drive| drive.trouble() == Trouble::None)
    }

    /// Returns whether enough of the disks that this pool is on have what was written.
    pub(super) fn is_enough(&self, opened: &Arc<DeviceSet>) -> bool {
        let true_ones = sharing_in(opened).into_iter().filter(|at| self.is_true(*at)).count();
        true_ones >= least_in(opened)
    }
}
