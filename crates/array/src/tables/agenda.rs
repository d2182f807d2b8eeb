//! When groups need attention: for their schedules, and for their retention.

use std::collections::{BTreeMap, BTreeSet};

use crate::objects::groups::GroupId;

/// The time of the next check of each group: for its schedule, or for its retention.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    when: BTreeMap<GroupId, u64>,
    order: BTreeSet<(u64, GroupId)>,
}

impl Agenda {
    /// Sets the time of the next check of a group; `None`: only when it changes.
    pub(crate) fn set(&mut self, group: GroupId, when_ms: Option<u64>) {
        if let Some(old) = self.when.remove(&group) {
            self.order.remove(&(old, group));
        }
        if let Some(when) = when_ms {
            self.when.insert(group, when);
            self.order.insert((when, group));
        }
    }

    /// Schedules a check of a group soon, because something in it has changed.
    pub(crate) fn touch(&mut self, group: GroupId) {
        self.set(group, Some(0));
    }

    /// Returns a group that is due, if any.
    pub(crate) fn due(&self, now_ms: u64) -> Option<GroupId> {
        self.order.first().filter(|(when, _)| *when <= now_ms).map(|(_, group)| *group)
    }
}

/// The times of turns.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pub(crate) last_ms: u64,
    /// No turn before this time, after a refusal of the store.
    pub(crate) not_before_ms: u64,
    /// The result of the last due snapshots of each group that had any since the start: the error,
    /// or `None` if they were taken.
    pub(crate) last: BTreeMap<GroupId, Option<String>>,
}
