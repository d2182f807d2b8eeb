//! Somebody else follows the pool while it is used, as the other one of two controllers does, and
//! goes on from there when the process that used it has ended.

use segments::Shared;
use store::{Follower, Following, OpenOptions, Store, StoreError};

use crate::plan::Plan;
use crate::rng::Rng;

/// The follower looks for new records in one step out of so many.
const FOLLOWS_ONE_IN: u64 = 6;

/// Who follows, if a plan wants it.
pub(crate) struct Pursuit {
    is_wanted: bool,
    /// When it does: runs are what they are without it.
    rng: Rng,
    follower: Option<Follower>,
    /// Records that were applied.
    pub(crate) records: u64,
    /// How often what they came to was taken over; and how often it was of no use.
    pub(crate) takeovers: [u64; 2],
}

impl Pursuit {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (is_wanted, rng) = (plan.follows, Rng::new(!plan.seed));
        Self { is_wanted, rng, follower: None, records: 0, takeovers: [0; 2] }
    }

    /// A step was taken: sometimes, follows what was done; `begin` opens a follower. What it meets
    /// is no failure: it reads what is being written.
    pub(crate) fn step(&mut self, begin: impl FnOnce() -> Option<Follower>) {
        if !self.is_wanted || !self.rng.chance(100 / FOLLOWS_ONE_IN) {
            return;
        }
        let Some(mut follower) = self.follower.take().or_else(begin) else { return };
        let before = follower.records();
        let found = follower.follow();
        self.records += follower.records() - before;
        // One that is of no use any more is left, often enough, for a takeover to refuse it.
        let is_left = self.rng.chance(30);
        self.follower = match found {
            Ok(Following::Current | Following::Behind) => Some(follower),
            Ok(Following::Overtaken) | Err(_) => Some(follower).filter(|_| is_left),
        };
    }

    /// Opens the pool, from where the follower is, if there is one.
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
