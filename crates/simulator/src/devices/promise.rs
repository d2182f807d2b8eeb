//! What each disk holds by itself.

use std::sync::Arc;

use segments::{Device, DeviceState, Mirrored};
use store::{CheckOptions, Store};

use super::World;
use crate::commits::Ground;
use crate::history::{Kept, locked, options, read_state, text};
use crate::model::{Model, State};

/// All that a sound pool holds.
///
/// # Errors
/// If it is not sound, or can't be read.
pub(super) fn read_all(store: &Store, model: &Model, kept: Kept) -> Result<State, String> {
    let report = store.check(CheckOptions { data: true }).map_err(text)?;
    match report.findings.first() {
        Some(first) => Err(format!("check: {first} (and {} more)", report.findings.len() - 1)),
        None => read_state(store, model, kept),
    }
}

impl World {
    /// Each disk that is in holds durably all that was acknowledged, and opens without the others;
    /// one that is catching up does not open.
    pub(super) fn promise(&mut self) -> Result<(), String> {
        if self.power.has_failed() {
            return Ok(());
        }
        for at in self.disks(DeviceState::CatchingUp) {
            if self.open_alone(at).is_ok() {
                return Err(format!("disk {at} opens alone while it is catching up"));
            }
        }
        for at in self.disks(DeviceState::In) {
            if !self.is_true(at) {
                continue;
            }
            self.seen.promises[0] += 1;
            let alone = |reason: String| format!("disk {at} alone: {reason}");
            let devices = self.open_alone(at).map_err(alone)?;
            self.holds_all(devices).map_err(alone)?;
        }
        Ok(())
    }

    fn holds_all(&self, devices: Arc<Mirrored>) -> Result<(), String> {
        let store = Store::open(devices, options(&self.plan, 1)).map_err(text)?;
        let mut model = locked(&self.desk).model_if_lost();
        let found = read_all(&store, &model, self.kept)?;
        model.resolve(found)
    }

    /// Whichever disks are there: if the pool opens by itself, it holds all that was acknowledged.
    pub(super) fn nobody_opens_less(&mut self) -> Result<(), String> {
        for some in 1..1 << self.drives.len() {
            let is_there = |at: &usize| some >> at & 1 == 1 && !self.is_stale[*at];
            let there: Vec<_> = (0..self.drives.len()).filter(is_there).collect();
            if !there.iter().any(|at| self.is_true(*at)) {
                continue;
            }
            let copies = there.iter().map(|at| self.copy(*at)).collect();
            if let Ok(opened) = Mirrored::open(copies, false) {
                self.seen.promises[1] += 1;
                let told = |reason: String| format!("disks {there:?} by themselves: {reason}");
                self.holds_all(Arc::new(opened)).map_err(told)?;
            }
        }
        Ok(())
    }

    fn copy(&self, at: usize) -> Device {
        Device::over(Arc::new(self.drives[at].copy()), at.to_string())
    }

    /// A copy of what is durable on a disk, opened without the others.
    fn open_alone(&self, at: usize) -> Result<Arc<Mirrored>, String> {
        let opened = Mirrored::open(vec![self.copy(at)], true);
        opened.map(Arc::new).map_err(|error| error.to_string())
    }
}
