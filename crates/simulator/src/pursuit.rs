//! A follower of the pool while it is used, like the other one of two controllers, which takes over
//! when the process that used the pool has ended.

use segments::Shared;
use store::{Follower, Following, OpenOptions, Store, StoreError};

use crate::plan::Plan;
use crate::rng::Rng;

/// The follower looks for new records in one step out of this many.
const FOLLOWS_ONE_IN: u64 = 6;

/// The follower, if a plan wants one.
pub(crate) struct Pursuit {
    is_wanted: bool,
    /// When it acts: runs are the same without it.
    rng: Rng,
    follower: Option<Follower>,
    /// The number of applied records.
    pub(crate) records: u64,
    /// How often its state was taken over; and how often it could not be used.
    pub(crate) takeovers: [u64; 2],
}

impl Pursuit {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (is_wanted, rng) = (plan.follows, Rng::new(!plan.seed));
        Self { is_wanted, rng, follower: None, records: 0, takeovers: [0; 2] }
    }

    /// Sometimes follows what was done in a step; `begin` opens a follower. Its errors are no
    /// failure, because it reads what is being written.
    pub(crate) fn step(&mut self, begin: impl FnOnce() -> Option<Follower>) {
        if !self.is_wanted || !self.rng.chance(100 / FOLLOWS_ONE_IN) {
            return;
        }
        let Some(mut follower) = self.follower.take().or_else(begin) else { return };
        let before = follower.records();
        let found = follower.follow();
        self.records += follower.records() - before;
        // An obsolete one is kept often enough, for a takeover to refuse it.
        let is_left = self.rng.chance(30);
        self.follower = match found {
            Ok(Following::Current | Following::Behind) => Some(follower),
            Ok(Following::Overtaken) | Err(_) => Some(follower).filter(|_| is_left),
        };
    }

    /// Opens the pool, from the follower's state, if there is one.
    pub(crate) fn open_store(
        &mut self,
        disk: impl Into<Shared>,
        options: OpenOptions,
    ) -> Result<Store, StoreError> {
        let Some(follower) = self.follower.take() else { return Store::open(disk, options) };
        let (store, was_followed) = Store::take_over(disk, options, follower)?;
        self.takeovers[usize::from(!was_followed)] += 1;
        Ok(store)
    }
}
