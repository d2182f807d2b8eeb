//! Datastores that a scenario has finished with: unmounted, and checked.

use super::ScenarioError;
use super::bench::Bench;
use crate::datastore::{FsckReport, fsck};
use crate::disk::Place;

impl Bench {
    /// Unmounts a unit's datastore on all hosts, and checks it.
    ///
    /// # Errors
    /// If it can't be unmounted or read, is damaged, or has unreferenced blocks.
    pub(super) async fn retire(&self, index: usize) -> Result<(), ScenarioError> {
        let lun = self.plan().luns.get(index).copied();
        let here = self.take_places(|place| Some(place.device.lun()) == lun);
        self.check(&here).await
    }

    /// Does the same for all units, at the end of a scenario, successful or not.
    ///
    /// # Errors
    /// The first finding; all units are checked.
    pub(super) async fn retire_all(&self) -> Result<(), ScenarioError> {
        let mut end = Ok(());
        for index in 0..self.plan().luns.len() {
            end = end.and(self.retire(index).await);
        }
        end
    }

    async fn check(&self, mounts: &[Place]) -> Result<(), ScenarioError> {
        let Some(first) = mounts.first() else { return Ok(()) };
        let mut unmounted = Ok(());
        for place in mounts {
            unmounted = unmounted.and(place.datastore.unmount().await);
        }
        let found = fsck(&first.device).await?;
        self.note_check();
        verdict(&found)?;
        Ok(unmounted?)
    }
}

/// Returns an error for damage, and for leaks: no host has died, so there must not be any.
/// Remaining locks are not a finding: they belong to files that the scenario has not closed, and an
/// unmount ends them.
fn verdict(found: &FsckReport) -> Result<(), ScenarioError> {
    if found.is_damaged() || found.has_leaks() {
        return Err(ScenarioError::Wrong(format!("a check of its datastore found: {found}")));
    }
    if found.hosts > 0 {
        let what = format!("{} hosts still have its datastore mounted", found.hosts);
        return Err(ScenarioError::Wrong(what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_leaks_and_hosts_are_findings_and_stale_locks_are_not() {
        let sound = FsckReport { locks_stale: 3, blocks: 9, ..FsckReport::default() };
        assert!(verdict(&sound).is_ok());
        let findings = [
            FsckReport { damage_count: 1, damage: vec!["a torn lock".into()], ..sound.clone() },
            FsckReport { blocks_leaked: 1, ..sound.clone() },
            FsckReport { pointer_blocks_leaked: 1, ..sound.clone() },
            FsckReport { descriptors_leaked: 1, ..sound.clone() },
            FsckReport { hosts: 1, ..sound },
        ];
        for found in findings {
            assert!(matches!(verdict(&found), Err(ScenarioError::Wrong(_))), "{found}");
        }
    }
}
