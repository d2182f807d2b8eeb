//! Reading: series of points.

use std::collections::BTreeMap;
use std::io;

use crate::cell::{self, ARRAY_BYTES_MAX};
use crate::{Activity, Capacity, History, Object, Range, Step, Tick};

/// The activity of one object in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// When the step begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// For how many milliseconds of the step the activity is known; rates are over these. This is
    /// less than the step if the array was not running, the step is in progress, or the object was
    /// left out of a part of it. Never 0.
    pub covered_ms: u64,
    /// Its activity.
    pub activity: Activity,
    /// The state of the pool; empty for objects other than the array.
    pub capacity: Capacity,
}

/// The points of an object, in chronological order. Steps without data are absent.
pub type Series = Vec<Point>;

impl Point {
    /// Returns the activity of the array in a tick, which begins where the last one ended.
    pub(crate) fn of_second(tick: &Tick) -> Self {
        Self {
            start_ms: tick.now_ms.saturating_sub(tick.covered_ms),
            covered_ms: tick.covered_ms,
            activity: tick.array,
            capacity: tick.capacity.unwrap_or_default(),
        }
    }
}

impl History {
    /// Returns the activity of the array.
    ///
    /// # Errors
    /// The medium can't be read.
    pub fn of_array(&self, range: &Range) -> io::Result<Series> {
        let mut series = Series::new();
        let mut bytes = vec![0; ARRAY_BYTES_MAX];
        for start_ms in range.starts() {
            let mut point = Point { start_ms, ..Point::default() };
            for step_ms in range.parts(start_ms) {
                self.medium.read().read(range.ring.offset_of(step_ms), &mut bytes)?;
                let Some(step) = cell::decode_array(range.ring, step_ms, &bytes) else { continue };
                point.covered_ms = point.covered_ms.saturating_add(step.covered_ms);
                point.activity.merge(&step.array);
                point.capacity.merge(&step.capacity);
            }
            if point.covered_ms > 0 {
                series.push(point);
            }
        }
        Ok(series)
    }

    /// Returns the activity of each of these objects.
    ///
    /// # Errors
    /// The medium can't be read.
    pub fn of_objects(
        &self,
        range: &Range,
        objects: &[Object],
    ) -> io::Result<BTreeMap<Object, Series>> {
        let mut all: BTreeMap<Object, Series> = objects.iter().map(|it| (*it, vec![])).collect();
        for start_ms in range.starts() {
            for step_ms in range.parts(start_ms) {
                let Some(step) = self.step(range.ring, step_ms)? else { continue };
                for (object, series) in &mut all {
                    take_part(series, start_ms, &step, *object);
                }
            }
        }
        Ok(all)
    }

    /// Returns the activity of the array in each second that is kept, between two times.
    pub fn seconds(&self, from_ms: u64, to_ms: u64) -> Series {
        let state = self.state.lock();
        let wanted = |point: &&Point| (from_ms..to_ms).contains(&point.start_ms);
        state.seconds.iter().filter(wanted).copied().collect()
    }
}

/// Adds an object's activity in a part of a step. If the part does not list it, it was idle, unless
/// objects were left out: then its activity is unknown.
fn take_part(series: &mut Series, start_ms: u64, step: &Step, object: Object) {
    let activity = match step.objects.get(&object) {
        Some(activity) => *activity,
        None if step.left_out => return,
        None => Activity::default(),
    };
    if series.last().is_none_or(|last| last.start_ms != start_ms) && step.covered_ms > 0 {
        series.push(Point { start_ms, ..Point::default() });
    }
    if let Some(point) = series.last_mut().filter(|point| point.start_ms == start_ms) {
        point.covered_ms = point.covered_ms.saturating_add(step.covered_ms);
        point.activity.merge(&activity);
    }
}
