//! Somebody else follows the pool while it is used, with a view of its own of the devices, and goes
//! on from there when the power has failed.

use std::sync::Arc;

use segments::DeviceSet;
use store::{Follower, Following, Store, StoreError};

use super::{World, device_of};
use crate::history::options;

/// One step in so many has the follower look what there is.
const FOLLOWS_ONE_IN: u64 = 6;

impl World {
    /// Sometimes, follows what was done. What it meets is no failure: it reads what is being
    /// written, of devices of which it does not know how they are.
    pub(super) fn follow(&mut self) {
        if !self.plan.follows || !self.follower_rng.chance(100 / FOLLOWS_ONE_IN) {
            return;
        }
        let follower = self.follower.take().or_else(|| self.new_follower());
        let Some(mut follower) = follower else { return };
        let before = follower.records();
        let found = follower.follow();
        self.seen.followed += follower.records() - before;
        // One that is of no use any more is left, often enough, for a takeover to refuse it.
        let is_left = self.follower_rng.chance(30);
        self.follower = match found {
            Ok(Following::Current | Following::Behind) => Some(follower),
            Ok(Following::Overtaken) | Err(_) => Some(follower).filter(|_| is_left),
        };
    }

    fn new_follower(&self) -> Option<Follower> {
        let devices = DeviceSet::open(self.drives.iter().map(device_of).collect(), true).ok()?;
        Follower::open(Arc::new(devices), options(&self.plan, 0)).ok()
    }

    /// Opens the pool, from where the follower is, if there is one.
    pub(super) fn open_store(&mut self, devices: &Arc<DeviceSet>) -> Result<Store, StoreError> {
        let options = options(&self.plan, self.openings);
        let Some(follower) = self.follower.take() else {
            return Store::open(devices.clone(), options);
        };
        let (store, was_followed) = Store::take_over(devices.clone(), options, follower)?;
        self.seen.takeovers[usize::from(!was_followed)] += 1;
        Ok(store)
    }
}
