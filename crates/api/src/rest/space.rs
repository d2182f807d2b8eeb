//! Space in the terms of REST 2.x.
//!
//! Sizes are in bytes. If nothing is stored, a ratio is 1, as clients expect of an empty array.
//! Figures that the last accounting pass does not cover yet are 0, because these clients need a
//! number: `/v1` distinguishes the two.

use array::{ObjectSpace, PoolFigures, VolumesSpace};
use history::Capacity;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ratio;

/// The space of an array, a volume or a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RestSpace {
    /// The bytes that hosts have written divided by the bytes stored for them.
    pub data_reduction: f64,
    /// Stored bytes for replication: 0, not supported. Only for the array, where clients add it to
    /// `system` without checking whether it is there.
    #[schema(required = true)]
    pub replication: Option<u64>,
    /// Stored bytes that a volume shares with another volume or a snapshot. Only for the array.
    #[schema(required = true)]
    pub shared: Option<u64>,
    /// Stored bytes that only snapshots refer to: for a volume, those of any one of its snapshots
    /// alone; for a snapshot, those that only it refers to.
    pub snapshots: u64,
    /// Stored bytes of the array itself. Only for the array.
    #[schema(required = true)]
    pub system: Option<u64>,
    /// The part of the provisioned bytes that hosts have not written: 0 to 1.
    pub thin_provisioning: f64,
    /// Stored bytes: for the array all bytes in use, otherwise the unique ones.
    pub total_physical: u64,
    /// Provisioned bytes.
    pub total_provisioned: u64,
    /// The provisioned bytes divided by the bytes stored for them.
    pub total_reduction: f64,
    /// Bytes that hosts have written and not unmapped; the same as `virtual`.
    pub total_used: u64,
    /// Stored bytes that destroying and eradicating only this object would free.
    pub unique: u64,
    /// Bytes that hosts have written and not unmapped.
    pub r#virtual: u64,
}

impl RestSpace {
    /// Returns the space of a volume or a snapshot with these sizes; `snapshots_bytes` is the size
    /// of its snapshots.
    pub(crate) fn of(
        size_bytes: u64,
        mapped_bytes: u64,
        space: Option<ObjectSpace>,
        snapshots_bytes: u64,
    ) -> Self {
        let stored = space.map(|object| object.space);
        let reduction = |bytes: Option<u64>| {
            let share = stored.map_or(0, |stored| stored.share_bytes);
            bytes.and_then(|bytes| ratio(bytes, share)).unwrap_or(1.0)
        };
        let unique = stored.map_or(0, |stored| stored.unique_bytes);
        Self {
            data_reduction: reduction(stored.map(|stored| stored.mapped_bytes)),
            replication: None,
            shared: None,
            snapshots: snapshots_bytes,
            system: None,
            thin_provisioning: thin(size_bytes, mapped_bytes),
            total_physical: unique,
            total_provisioned: size_bytes,
            total_reduction: reduction(stored.map(|stored| stored.size_bytes)),
            total_used: mapped_bytes,
            unique,
            r#virtual: mapped_bytes,
        }
    }

    /// Returns the space of the array.
    pub(crate) fn of_array(array: &array::Array) -> Self {
        let (pool, space) = (array.pool(), array.pool_space());
        let of_pass = |bytes: fn(&PoolFigures) -> u64| space.figures.as_ref().map(bytes);
        Self::of_sizes(&ArraySizes {
            used_bytes: pool.used_bytes,
            data_bytes: pool.data_bytes,
            provisioned_bytes: pool.provisioned_bytes,
            mapped_bytes: pool.mapped_bytes,
            unique_bytes: of_pass(|figures| figures.unique_bytes),
            shared_bytes: of_pass(|figures| figures.shared_bytes),
            snapshots_bytes: of_pass(|figures| figures.snapshots_bytes),
            system_bytes: of_pass(|figures| figures.system_bytes),
        })
    }

    /// Returns the mean space of the array in a sample; `None` if there is none in it.
    pub(super) fn of_capacity(capacity: &Capacity) -> Option<Self> {
        let mean = |name| capacity.gauge(name)?.mean();
        Some(Self::of_sizes(&ArraySizes {
            used_bytes: mean("used")?,
            data_bytes: mean("data")?,
            provisioned_bytes: mean("provisioned")?,
            mapped_bytes: mean("mapped")?,
            unique_bytes: mean("unique"),
            shared_bytes: mean("shared"),
            snapshots_bytes: mean("snapshots"),
            system_bytes: mean("system"),
        }))
    }

    fn of_sizes(sizes: &ArraySizes) -> Self {
        let ArraySizes { data_bytes, provisioned_bytes, mapped_bytes, .. } = *sizes;
        Self {
            data_reduction: ratio(mapped_bytes, data_bytes).unwrap_or(1.0),
            replication: Some(0),
            shared: sizes.shared_bytes,
            snapshots: sizes.snapshots_bytes.unwrap_or(0),
            system: sizes.system_bytes,
            thin_provisioning: thin(provisioned_bytes, mapped_bytes),
            total_physical: sizes.used_bytes,
            total_provisioned: provisioned_bytes,
            total_reduction: ratio(provisioned_bytes, data_bytes).unwrap_or(1.0),
            total_used: mapped_bytes,
            unique: sizes.unique_bytes.unwrap_or(0),
            r#virtual: mapped_bytes,
        }
    }
}

/// The sizes of the array; those of accounting are `None` before the first pass.
struct ArraySizes {
    used_bytes: u64,
    data_bytes: u64,
    provisioned_bytes: u64,
    mapped_bytes: u64,
    unique_bytes: Option<u64>,
    shared_bytes: Option<u64>,
    snapshots_bytes: Option<u64>,
    system_bytes: Option<u64>,
}

/// The space of several volumes together: those of a host, a host group or a protection group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RestJointSpace {
    /// The bytes that hosts have written divided by the bytes stored for them.
    pub data_reduction: f64,
    /// Stored bytes that only one snapshot of one of the volumes refers to.
    pub snapshots: u64,
    /// The part of the provisioned bytes that hosts have not written: 0 to 1.
    pub thin_provisioning: f64,
    /// The same as `unique`.
    #[schema(required = true)]
    pub total_physical: Option<u64>,
    /// Provisioned bytes.
    pub total_provisioned: u64,
    /// The provisioned bytes divided by the bytes stored for them.
    pub total_reduction: f64,
    /// Bytes that hosts have written and not unmapped; the same as `virtual`.
    pub total_used: u64,
    /// Stored bytes that destroying and eradicating all of the volumes would free; `null` if that
    /// is not known: one of them shares data, which may be with another of them, or is not
    /// accounted for yet.
    #[schema(required = true)]
    pub unique: Option<u64>,
    /// Bytes that hosts have written and not unmapped.
    pub r#virtual: u64,
}

impl From<VolumesSpace> for RestJointSpace {
    fn from(space: VolumesSpace) -> Self {
        let accounted = space.accounted.unwrap_or_default();
        let reduction = |bytes| ratio(bytes, accounted.share_bytes).unwrap_or(1.0);
        Self {
            data_reduction: reduction(accounted.mapped_bytes),
            snapshots: space.snapshots_bytes,
            thin_provisioning: thin(space.size_bytes, space.mapped_bytes),
            total_physical: space.unique_bytes,
            total_provisioned: space.size_bytes,
            total_reduction: reduction(accounted.size_bytes),
            total_used: space.mapped_bytes,
            unique: space.unique_bytes,
            r#virtual: space.mapped_bytes,
        }
    }
}

/// The space of the snapshots of a protection group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestSnapshotsSpace {
    /// Stored bytes that only one of them refers to.
    pub snapshots: u64,
    /// The same.
    pub total_physical: u64,
}

impl RestSnapshotsSpace {
    /// Returns the space of snapshots that store this many bytes of their own.
    pub(super) fn of(snapshots_bytes: u64) -> Self {
        Self { snapshots: snapshots_bytes, total_physical: snapshots_bytes }
    }
}

fn thin(size_bytes: u64, mapped_bytes: u64) -> f64 {
    1.0 - ratio(mapped_bytes.min(size_bytes), size_bytes).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use array::AccountedSpace;

    use super::*;

    #[test]
    fn nothing_stored_is_a_ratio_of_one() {
        let empty = RestSpace::of(4096, 0, None, 0);
        assert_eq!((empty.data_reduction, empty.thin_provisioning, empty.unique), (1.0, 1.0, 0));
        let space = store::VolumeSpace {
            size_bytes: 40,
            mapped_bytes: 12,
            unique_bytes: 3,
            share_bytes: 4,
            ..store::VolumeSpace::default()
        };
        let full = RestSpace::of(40, 10, Some(ObjectSpace { as_of_s: 9, space }), 7);
        assert_eq!((full.data_reduction, full.total_reduction), (3.0, 10.0));
        assert_eq!(full.snapshots, 7);
        assert_eq!((full.unique, full.thin_provisioning), (3, 0.75));
    }

    #[test]
    fn ratios_of_several_volumes_are_those_of_their_sums() {
        let none = RestJointSpace::from(VolumesSpace::default());
        assert_eq!((none.data_reduction, none.total_reduction, none.unique), (1.0, 1.0, None));
        let accounted =
            AccountedSpace { as_of_s: 9, size_bytes: 80, mapped_bytes: 24, share_bytes: 8 };
        let space = RestJointSpace::from(VolumesSpace {
            size_bytes: 160,
            mapped_bytes: 40,
            snapshots_bytes: 7,
            unique_bytes: Some(5),
            accounted: Some(accounted),
        });
        assert_eq!((space.data_reduction, space.total_reduction), (3.0, 10.0));
        assert_eq!((space.thin_provisioning, space.snapshots, space.r#virtual), (0.75, 7, 40));
        assert_eq!((space.unique, space.total_physical), (Some(5), Some(5)));
    }
}
