//! A step: all activity between two times.

use std::collections::BTreeMap;

use crate::{Activity, Capacity, Tick};

/// The maximum number of objects of a step in memory: about 18 MB.
pub const OBJECTS_MAX: usize = 20_000;

/// An object with activity of its own. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A host, by its id.
    Host(u64),
    /// A volume, by its id.
    Volume(u64),
    /// A port of the array, by its relative identifier.
    Port(u64),
}

/// A step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When it begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// For how many of its milliseconds there is data: fewer if the array was not running.
    pub covered_ms: u64,
    /// The activity of the whole array.
    pub array: Activity,
    /// The state of the pool.
    pub capacity: Capacity,
    /// The activity of each object that had any.
    pub objects: BTreeMap<Object, Activity>,
    /// Whether there were more objects, whose activity is unknown.
    pub left_out: bool,
    /// Whether it was read from a cell that left some out: their activity is incomplete, so no more
    /// is added.
    pub closed: bool,
}

impl Step {
    /// Adds a tick.
    pub(crate) fn add(&mut self, tick: &Tick) {
        self.covered_ms = self.covered_ms.saturating_add(tick.covered_ms);
        self.array.merge(&tick.array);
        if let Some(capacity) = &tick.capacity {
            self.capacity.merge(capacity);
        }
        self.add_objects(&tick.objects);
    }

    /// Merges a part of it.
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
