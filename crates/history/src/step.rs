//! A step: what everybody did between two times.

use std::collections::BTreeMap;

use crate::{Activity, Capacity, Tick};

/// The most objects of a step in memory: some 9 MB.
pub const OBJECTS_MAX: usize = 20_000;

/// Who did something. Ids are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A host, by its id.
    Host(u64),
    /// A volume, by its id.
    Volume(u64),
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When it begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// Of how many milliseconds of it something is known: fewer where the array did not run.
    pub covered_ms: u64,
    /// What all did.
    pub array: Activity,
    /// How the pool stood.
    pub capacity: Capacity,
    /// What each did that did anything.
    pub objects: BTreeMap<Object, Activity>,
    /// Whether there were more, which are not known.
    pub left_out: bool,
    /// Whether it was read from a cell that left some out: of those not all is known, so no more
    /// come in.
    pub closed: bool,
}

impl Step {
    /// Takes in what happened.
    pub(crate) fn add(&mut self, tick: &Tick) {
        self.covered_ms = self.covered_ms.saturating_add(tick.covered_ms);
        self.array.merge(&tick.array);
        if let Some(capacity) = &tick.capacity {
            self.capacity.merge(capacity);
        }
        self.add_objects(&tick.objects);
    }

    /// Takes a part of it in.
    pub(crate) fn merge(&mut self, part: &Step) {
        self.covered_ms = self.covered_ms.saturating_add(part.covered_ms);
        self.array.merge(&part.array);
        self.capacity.merge(&part.capacity);
        self.left_out |= part.left_out;
        self.add_objects(&part.objects);
    }

    fn add_objects(&mut self, objects: &BTreeMap<Object, Activity>) {
        for (object, activity) in objects {
            if let Some(sum) = self.objects.get_mut(object) {
                sum.merge(activity);
            } else if self.closed || self.objects.len() >= OBJECTS_MAX {
                self.left_out = true;
            } else {
                self.objects.insert(*object, *activity);
            }
        }
    }
}
