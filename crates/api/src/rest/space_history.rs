//! Space over time, in the lists of space: with `start_time`, `end_time` or `resolution` they have
//! one item for each object and each sample of the history.
//!
//! The space of several volumes is that of those that an object has now, each since its creation.

use array::{AccountedVolume, ObjectSpace, VolumeSpace, VolumesSpace};
use block::VolumeId;
use history::{Range, SpacePoint, VolumeFigures};
use serde::Serialize;
use utoipa::IntoParams;

use super::performance_lists::{ROWS_MAX, Times, refused};
use super::space::{RestJointSpace, RestSpace};
use super::{Listed, Refused};
use crate::Interface;

/// The maximum number of volumes that one request adds up, over all samples.
const SUMMED_MAX: u64 = 4_000_000;
/// The resolution if only an end is given.
const RESOLUTION_MS: u64 = 300_000;

/// Parameters that select a time range, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(super) struct SpaceTimeParams {
    /// The start, in milliseconds since 1970.
    start_time: Option<u64>,
    /// The end; by default now.
    end_time: Option<u64>,
    /// The length of the samples, in milliseconds: 300000 or 1800000 (kept for a day), 3600000,
    /// 7200000 or 28800000 (31 days), 86400000 (366 days).
    resolution: Option<u64>,
}

/// The current volumes of an object, and when each was created, in milliseconds since 1970.
pub(super) type Members = Vec<(VolumeId, u64)>;

/// The volumes of an object in one sample.
pub(super) struct Moment {
    /// When the sample begins, in milliseconds since 1970.
    pub(super) time: u64,
    /// The time of the figures, in seconds since 1970.
    as_of_s: u64,
    volumes: Vec<AccountedVolume>,
}

impl Moment {
    /// Returns the space of all volumes together.
    pub(super) fn joint(&self) -> RestJointSpace {
        VolumesSpace::of_pass(&self.volumes, self.as_of_s).into()
    }

    /// Returns the space of the only volume; `None` if it did not exist yet.
    pub(super) fn single(&self) -> Option<RestSpace> {
        let AccountedVolume { space, snapshots_bytes } = *self.volumes.first()?;
        let of_pass = Some(ObjectSpace { as_of_s: self.as_of_s, space });
        Some(RestSpace::of(space.size_bytes, space.mapped_bytes, of_pass, snapshots_bytes))
    }
}

/// An item of a list over time: one of an object's samples.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub(super) struct Sample<T> {
    item: T,
    #[serde(skip)]
    time: u64,
}

impl<T> Sample<T> {
    pub(super) fn new(time: u64, item: T) -> Self {
        Self { item, time }
    }
}

// `total` has no sums: those of several times mean nothing.
impl<T: Listed> Listed for Sample<T> {
    fn key(&self) -> String {
        format!("{}\n{:020}", self.item.key(), self.time)
    }
}

impl Times {
    /// Returns the range of the space of volumes.
    fn space_range(&self, interface: &Interface) -> Result<Range, Refused> {
        self.range_of((interface.now_ms)(), RESOLUTION_MS, Range::of_space)
    }
}

/// Returns the samples of some objects, in the order of the objects: `item` makes one of the object
/// with this index. Leaves out samples in which a volume is unknown that existed then.
pub(super) fn over_time<T: Clone>(
    interface: &Interface,
    times: &Times,
    objects: &[Members],
    item: impl Fn(usize, &Moment) -> Option<T>,
) -> Result<Vec<Sample<T>>, Refused> {
    let range = times.space_range(interface)?;
    let mut ids: Vec<u64> = objects.iter().flatten().map(|(id, _)| id.0).collect();
    let (rows, sums) = (objects.len() as u64, ids.len() as u64);
    if range.points().saturating_mul(rows) > ROWS_MAX
        || range.points().saturating_mul(sums) > SUMMED_MAX
    {
        let text = format!(
            "That is more than {ROWS_MAX} samples, or {SUMMED_MAX} volumes in all of them: ask \
             for fewer objects, or a coarser resolution."
        );
        return Err(Refused::bad("resolution", text));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut found: Vec<Vec<Sample<T>>> = vec![Vec::new(); objects.len()];
    let each = |point: SpacePoint| {
        for (at, members) in objects.iter().enumerate() {
            let moment = moment(&point, members);
            let row = moment.and_then(|it| Some(Sample::new(it.time, item(at, &it)?)));
            found[at].extend(row);
        }
    };
    interface.history.space_of_volumes(&range, &ids, each).map_err(refused)?;
    Ok(found.into_iter().flat_map(|series| times.cut(series)).collect())
}

/// Returns the volumes of an object that existed at the time of a sample; `None` if the sample
/// lacks one of them.
fn moment(point: &SpacePoint, members: &Members) -> Option<Moment> {
    let as_of_s = point.time_ms / 1000;
    let mut volumes = Vec::with_capacity(members.len());
    for (id, created_ms) in members {
        match point.volumes.binary_search_by_key(&id.0, |(id, _)| *id) {
            // Before its creation, another volume may have had its id. Figures are as of a second.
            Ok(at) if created_ms / 1000 <= as_of_s => volumes.push(accounted(&point.volumes[at].1)),
            Err(_) if *created_ms <= point.time_ms => return None,
            _ => {}
        }
    }
    Some(Moment { time: point.start_ms, as_of_s, volumes })
}

fn accounted(figures: &VolumeFigures) -> AccountedVolume {
    AccountedVolume {
        space: VolumeSpace {
            size_bytes: figures.size_bytes,
            mapped_bytes: figures.mapped_bytes,
            unique_bytes: figures.unique_bytes,
            share_bytes: figures.share_bytes,
            ..VolumeSpace::default()
        },
        snapshots_bytes: figures.snapshots_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_the_volumes_that_existed_and_of_all_of_them() {
        let figures = |size_bytes| VolumeFigures { size_bytes, ..VolumeFigures::default() };
        let volumes = vec![(1, figures(10)), (2, figures(20)), (4, figures(40))];
        let point = SpacePoint { start_ms: 0, time_ms: 5000, volumes };
        let sum = |members: &[(u64, u64)]| {
            let members = members.iter().map(|(id, made_ms)| (VolumeId(*id), *made_ms)).collect();
            Some(moment(&point, &members)?.joint().total_provisioned)
        };
        assert_eq!(sum(&[]), Some(0));
        assert_eq!(sum(&[(2, 0), (1, 5000)]), Some(30));
        // The fourth was created in the same second, and covered; the third is unknown.
        assert_eq!(sum(&[(1, 0), (4, 5900)]), Some(50));
        assert_eq!(sum(&[(1, 0), (3, 5000)]), None);
        // Created afterwards: the fourth's id was another's before.
        assert_eq!(sum(&[(1, 0), (3, 5001), (4, 6000)]), Some(10));
    }
}
