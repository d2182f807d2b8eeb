//! Somebody else follows the pool while it is used, as the other one of two controllers does, and
//! has it when the process that used it has ended.

use store::{Follower, Following, Store, StoreError};

use super::{History, options};

/// One step in so many has the follower look what there is.
const FOLLOWS_ONE_IN: u64 = 6;

impl History {
    /// Sometimes, follows what was done. What it meets is no failure: it reads what is being
    /// written.
    pub(super) fn follow(&mut self) {
        if !self.plan.follows || !self.follower_rng.chance(100 / FOLLOWS_ONE_IN) {
            return;
        }
        let follower = match self.follower.take() {
            Some(follower) => Ok(follower),
            None => Follower::open(self.disk.clone(), options(&self.plan, 0)),
        };
        let Ok(mut follower) = follower else { return };
        let before = follower.records();
        let found = follower.follow();
        self.done.followed += follower.records() - before;
        // One that is of no use any more is left, often enough, for a takeover to refuse it.
        let is_left = self.follower_rng.chance(30);
        self.follower = match found {
            Ok(Following::Current | Following::Behind) => Some(follower),
            Ok(Following::Overtaken) | Err(_) => Some(follower).filter(|_| is_left),
        };
    }

    /// Opens the pool, from where the follower is, if there is one.
    pub(super) fn open_store(&mut self, opening: u64) -> Result<Store, StoreError> {
        let options = options(&self.plan, opening);
        let Some(follower) = self.follower.take() else {
            return Store::open(self.disk.clone(), options);
        };
        let (store, was_followed) = Store::take_over(self.disk.clone(), options, follower)?;
        self.done.takeovers[usize::from(!was_followed)] += 1;
        Ok(store)
    }
}
