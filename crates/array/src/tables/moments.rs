//! The snapshots of a group that were made at the same time.

use std::collections::BTreeSet;

use block::VolumeId;

use crate::values::name::Suffix;

/// The snapshots of a group that were made at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) suffix: Suffix,
    /// Never empty.
    pub(crate) snapshots: BTreeSet<VolumeId>,
}
