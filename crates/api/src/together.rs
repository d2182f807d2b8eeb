//! Objects whose activity is summed up: the hosts of a host group, the volumes of a volume group or
//! pod, as they are now.

use std::collections::BTreeMap;

use array::{Array, ContainerInfo, HostGroupInfo};
use history::{Object, Point, Series};

/// An item of a list, and the objects whose activity it sums up.
pub(crate) struct Members {
    pub(crate) name: String,
    /// The objects, and when each was created, in milliseconds since 1970.
    pub(crate) objects: Vec<(Object, u64)>,
}

impl Members {
    /// Returns the hosts of a host group.
    pub(crate) fn of_host_group(array: &Array, group: HostGroupInfo) -> Self {
        let host = |name: &String| {
            let host = array.host(name).ok()?;
            Some((Object::Host(host.id), host.created_ms))
        };
        Self { objects: group.hosts.iter().filter_map(host).collect(), name: group.name }
    }

    /// Returns the volumes of a volume group or pod.
    pub(crate) fn of_container(array: &Array, container: ContainerInfo) -> Self {
        let volume = |name: &String| {
            let volume = array.volume(name).ok()?;
            Some((Object::Volume(volume.id.0), volume.created_ms))
        };
        let objects = container.volumes.iter().filter_map(volume).collect();
        Self { objects, name: container.name }
    }
}

/// Returns the sums of the samples of all members. Leaves out samples that are not known for all of
/// them; a member did nothing before it was created.
pub(crate) fn together(of: &Members, found: &BTreeMap<Object, Series>, step_ms: u64) -> Series {
    let mut sums: BTreeMap<u64, (Point, usize)> = BTreeMap::new();
    let series = of.objects.iter().filter_map(|(object, _)| found.get(object));
    let covered = series.clone().flatten().fold(BTreeMap::new(), |mut most, point| {
        let known: &mut u64 = most.entry(point.start_ms).or_default();
        *known = point.covered_ms.max(*known);
        most
    });
    for point in series.flatten() {
        if covered.get(&point.start_ms) == Some(&point.covered_ms) {
            let new = Point { start_ms: point.start_ms, ..Point::default() };
            let (sum, count) = sums.entry(point.start_ms).or_insert((new, 0));
            sum.covered_ms = point.covered_ms;
            sum.activity.merge(&point.activity);
            *count += 1;
        }
    }
    let is_whole = |(point, count): &(Point, usize)| {
        let end_ms = point.start_ms.saturating_add(step_ms);
        of.objects.iter().filter(|(_, created_ms)| *created_ms < end_ms).count() == *count
    };
    sums.into_values().filter(is_whole).map(|(point, _)| point).collect()
}

#[cfg(test)]
mod tests {
    use history::{Activity, ClassSums};

    use super::*;

    fn point(start_ms: u64, covered_ms: u64, ok: u64) -> Point {
        let mut activity = Activity::default();
        activity.0[0] = ClassSums { ok, ..ClassSums::default() };
        Point { start_ms, covered_ms, activity, ..Point::default() }
    }

    #[test]
    fn a_sample_of_a_group_needs_those_of_all_members() {
        let (one, other) = (Object::Host(1), Object::Host(2));
        // The other was made in the second step; its fourth is not known, its fifth in part.
        let group = Members { name: "g".into(), objects: vec![(one, 0), (other, 150)] };
        let of_one = (0..6).map(|n| point(n * 100, 100, 1)).collect();
        let of_other = [(1, 100), (2, 100), (4, 50), (5, 100)]
            .map(|(n, covered_ms)| point(n * 100, covered_ms, 10))
            .to_vec();
        let found = [(one, of_one), (other, of_other)].into();
        let known: Vec<_> = together(&group, &found, 100)
            .iter()
            .map(|it| (it.start_ms, it.covered_ms, it.activity.0[0].ok))
            .collect();
        assert_eq!(known, [(0, 100, 1), (100, 100, 11), (200, 100, 11), (500, 100, 11)]);
        let nobody = Members { name: "n".into(), objects: vec![] };
        assert!(together(&nobody, &found, 100).is_empty());
    }
}
