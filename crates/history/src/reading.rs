//! Reading: series of points.

use std::collections::BTreeMap;
use std::io;

use crate::cell::{self, ARRAY_BYTES_MAX};
use crate::{Activity, Capacity, History, Object, Range, Ring, Step, Tick};

/// What one object did in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// When the step begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// Of how many milliseconds of it is known what the object did: what it did a second is over
    /// these. Fewer than the step has where the array did not run, or the step is under way, or the
    /// object was not among those that are kept. Never 0.
    pub covered_ms: u64,
    /// What it did.
    pub activity: Activity,
    /// How the pool stood; nothing for others than the array.
    pub capacity: Capacity,
}

/// The points of an object, in the order of time. Steps of which nothing is known are not there.
pub type Series = Vec<Point>;

impl Point {
    /// What the array did in a tick, which begins where the last one ended.
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
    /// What the array did.
    ///
    /// # Errors
    /// The medium can't be read.
    pub fn of_array(&self, range: &Range) -> io::Result<Series> {
        let mut series = Series::new();
        let mut bytes = vec![0; ARRAY_BYTES_MAX];
        for start_ms in range.starts() {
            let mut point = Point { start_ms, ..Point::default() };
            for step_ms in parts(range, start_ms) {
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

    /// What each of these objects did.
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
            for step_ms in parts(range, start_ms) {
                let Some(step) = self.step(range.ring, step_ms)? else { continue };
                for (object, series) in &mut all {
                    take_part(series, start_ms, &step, *object);
                }
            }
        }
        Ok(all)
    }

    /// What the array did in each second that is kept, from one time to another.
    pub fn seconds(&self, from_ms: u64, to_ms: u64) -> Series {
        let state = self.state.lock();
        let wanted = |point: &&Point| (from_ms..to_ms).contains(&point.start_ms);
        state.seconds.iter().filter(wanted).copied().collect()
    }
}

/// When each of the ring's steps begins that a step of the range is made of.
fn parts(range: &Range, start_ms: u64) -> impl Iterator<Item = u64> + use<> {
    let Ring { step_ms, .. } = *range.ring;
    (start_ms..start_ms + range.step_ms).step_by(step_ms as usize)
}

/// Takes in what an object did in a part of a step. If it is not in there it did nothing, unless
/// some were left out: then nobody knows.
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
