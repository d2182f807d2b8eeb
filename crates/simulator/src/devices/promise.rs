//! What the minimum number of disks have by themselves.

use std::sync::Arc;

use segments::{Device, DeviceSet, DeviceState};
use store::{CheckOptions, Store};

use super::World;
use crate::commits::Ground;
use crate::history::{Kept, locked, options, read_state, text};
use crate::model::{Model, State};

/// How many choices of disks are tried after a crash, if there are many.
const CHOICES: usize = 12;

/// Reads the whole content of a consistent pool.
///
/// # Errors
/// If it is not consistent, or can't be read.
pub(super) fn read_all(store: &Store, model: &Model, kept: Kept) -> Result<State, String> {
    let report = store.check(CheckOptions { data: true }).map_err(text)?;
    match report.findings.first() {
        Some(first) => Err(format!("check: {first} (and {} more)", report.findings.len() - 1)),
        None => read_state(store, model, kept),
    }
}

impl World {
    /// Checks that the minimum number of the disks that are in durably have everything
    /// acknowledged, and open without the others: each by itself, or some of those in stripes. If
    /// one of them is replaced by one that is catching up they do not open.
    pub(super) fn promise(&mut self) -> Result<(), String> {
        if self.power.has_failed() {
            return Ok(());
        }
        for at in self.disks(DeviceState::CatchingUp) {
            let mut few = self.some_of(self.sharing_in(), self.least() - 1);
            few.push(at);
            if self.open_alone(&few).is_ok() {
                return Err(format!("disks {few:?} open although {at} is catching up"));
            }
        }
        let mut are_in = self.sharing_in();
        are_in.retain(|at| self.is_true(*at));
        let least = self.least();
        // For disks in stripes there are many choices.
        let choices = match least {
            1 => are_in.into_iter().map(|at| vec![at]).collect(),
            _ if are_in.len() < least => Vec::new(),
            _ => vec![self.some_of(are_in, least)],
        };
        for few in choices {
            self.seen.promises[0] += 1;
            let alone = |reason: String| format!("disks {few:?} alone: {reason}");
            let devices = self.open_alone(&few).map_err(alone)?;
            self.holds_all(devices).map_err(alone)?;
        }
        Ok(())
    }

    /// Returns a random choice of this many of these.
    pub(super) fn some_of(&mut self, mut disks: Vec<usize>, count: usize) -> Vec<usize> {
        while disks.len() > count {
            disks.swap_remove(self.rng.below(disks.len() as u64) as usize);
        }
        disks
    }

    fn holds_all(&self, devices: Arc<DeviceSet>) -> Result<(), String> {
        let store = Store::open(devices, options(&self.plan, 1)).map_err(text)?;
        let mut model = locked(&self.desk).model_if_lost();
        let found = read_all(&store, &model, self.kept)?;
        model.resolve(found)
    }

    /// Checks for any disks that are present: if the pool opens by itself, it has everything
    /// acknowledged.
    pub(super) fn nobody_opens_less(&mut self) -> Result<(), String> {
        let all = 1 << self.drives.len();
        // For many disks only some choices, because each costs an opening.
        let choices: Vec<u64> = match self.drives.len() {
            0..=3 => (1..all).collect(),
            _ => (0..CHOICES).map(|_| self.rng.below(all)).collect(),
        };
        for some in choices {
            let is_there = |at: &usize| some >> at & 1 == 1 && !self.is_stale[*at];
            let there: Vec<_> = (0..self.drives.len()).filter(is_there).collect();
            let copies = there.iter().map(|at| self.copy(*at)).collect();
            if let Ok(opened) = DeviceSet::open(copies, false) {
                let opened = Arc::new(opened);
                if !self.is_enough(&opened) {
                    continue;
                }
                self.seen.promises[1] += 1;
                let told = |reason: String| format!("disks {there:?} by themselves: {reason}");
                self.holds_all(opened).map_err(told)?;
            }
        }
        Ok(())
    }

    pub(super) fn copy(&self, at: usize) -> Device {
        Device::over(Arc::new(self.drives[at].copy()), at.to_string())
    }

    /// Returns copies of what is durable on some disks, opened without the others.
    fn open_alone(&self, few: &[usize]) -> Result<Arc<DeviceSet>, String> {
        let opened = DeviceSet::open(few.iter().map(|at| self.copy(*at)).collect(), true);
        opened.map(Arc::new).map_err(|error| error.to_string())
    }
}
