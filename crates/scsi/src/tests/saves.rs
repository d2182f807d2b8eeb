//! Saving the target's state of hosts, and restoring it.

use std::collections::BTreeMap;

use block::VolumeId;
use target::{Kept, KeptRods, KeptState, Start, Subject};

use super::world::World;

impl World {
    /// Saves the state of a volume, or fails to.
    pub(crate) fn save(&mut self, volume: VolumeId) {
        let Some(unsaved) = self.server.unsaved(volume) else { return };
        let result = self.save_failure.take().map_or(Ok(()), Err);
        if result.is_ok() {
            match unsaved.record() {
                Some(record) => drop(self.kept.insert(volume, record.clone())),
                None => drop(self.kept.remove(&volume)),
            }
        }
        self.server.saved(unsaved, result);
    }

    pub(crate) fn save_subject(&mut self, subject: Subject) {
        match subject {
            Subject::Volume(volume) => self.save(volume),
            Subject::Tokens => self.save_tokens(),
        }
    }

    pub(crate) fn save_tokens(&mut self) {
        let Some(unsaved) = self.server.unsaved_tokens() else { return };
        let result = self.save_failure.take().map_or(Ok(()), Err);
        if result.is_ok() {
            self.kept_maker = unsaved.maker.or(self.kept_maker);
            for (id, row) in &unsaved.rows {
                match row {
                    Some(row) => drop(self.kept_rods.insert(*id, row.clone())),
                    None => drop(self.kept_rods.remove(id)),
                }
            }
        }
        self.server.saved_tokens(unsaved, result);
    }

    /// The power fails and comes back: unsaved state is gone.
    pub(crate) fn restart(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        let all = kept.into_iter().map(|(volume, kept)| (volume, kept.after_power_on()));
        self.go_on(Start::PowerOn, all.collect());
    }

    /// Another controller takes over: the power was never lost.
    pub(crate) fn take_over(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        self.go_on(Start::Takeover, kept);
    }

    /// Continues with another device server with the same ports and this stored state.
    fn go_on(&mut self, start: Start, kept: BTreeMap<VolumeId, Kept>) {
        self.kept.clone_from(&kept);
        self.start(self.server.target.ports().to_vec(), [6; 32]);
        let rods = self.kept_rods.values().cloned().collect();
        let rods = self.kept_maker.map(|maker| KeptRods { maker, rods });
        let all = KeptState { volumes: kept.into_iter().collect(), rods };
        assert_eq!(self.server.restore(start, all), Ok(()));
    }

    /// Restores the state of a volume, before any session.
    pub(crate) fn restore(&mut self, volume: VolumeId, kept: Kept) {
        let all = KeptState { volumes: vec![(volume, kept)], rods: None };
        assert_eq!(self.server.restore(Start::PowerOn, all), Ok(()));
    }
}
