//! The stored bytes of the pool by object.

use array::{ObjectSpace, PoolFigures};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// The stored data of a volume or a snapshot. All figures are of one point in time, that of the
/// last pass of accounting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Space {
    /// The time of the figures, in milliseconds since 1970.
    pub as_of_ms: u64,
    /// Stored bytes, after reduction, that eradicating only this object would free.
    pub unique_bytes: u64,
    /// Its share of the stored bytes: everything unique to it, and an equal part of what it shares
    /// with others.
    pub share_bytes: u64,
    /// The bytes that hosts have written to it, including zeros and patterns, divided by that
    /// share; `null` if the share is 0.
    #[schema(required = true)]
    pub data_reduction: Option<f64>,
    /// The same without zeros and patterns.
    #[serde(default)]
    #[schema(required = true)]
    pub reduction_without_zeros: Option<f64>,
    /// Its size divided by that share: with thin provisioning.
    #[schema(required = true)]
    pub total_reduction: Option<f64>,
}

impl From<ObjectSpace> for Space {
    fn from(object: ObjectSpace) -> Self {
        let space = object.space;
        Self {
            as_of_ms: object.as_of_s * 1000,
            unique_bytes: space.unique_bytes,
            share_bytes: space.share_bytes,
            data_reduction: ratio(space.mapped_bytes, space.share_bytes),
            reduction_without_zeros: ratio(space.mapped_data_bytes, space.share_bytes),
            total_reduction: ratio(space.size_bytes, space.share_bytes),
        }
    }
}

/// Returns the ratio of bytes to stored bytes; `None` if nothing is stored.
pub(crate) fn ratio(bytes: u64, stored_bytes: u64) -> Option<f64> {
    (stored_bytes > 0).then(|| bytes as f64 / stored_bytes as f64)
}

/// Which objects the pool's bytes are stored for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolSpace {
    /// The figures of the last pass of accounting; `null` until the first pass since the start
    /// ends.
    #[schema(required = true)]
    pub figures: Option<SpaceFigures>,
    /// Whether nothing has changed since, so that the figures are still exact.
    pub current: bool,
    /// Whether a pass is running or requested.
    pub pending: bool,
}

/// The figures of a pass of accounting. All of them are of one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceFigures {
    /// The time of the figures, in milliseconds since 1970.
    pub as_of_ms: u64,
    /// The provisioned size of volumes, in bytes.
    pub provisioned_bytes: u64,
    /// Bytes that hosts had written to volumes and not unmapped.
    pub mapped_bytes: u64,
    /// The part of those that is data: neither zeros nor a pattern of 32 bits.
    #[serde(default)]
    #[schema(required = true)]
    pub mapped_data_bytes: u64,
    /// Stored bytes that are unique to volumes: the sum of theirs.
    pub unique_bytes: u64,
    /// Stored bytes that only snapshots refer to, one or several.
    pub snapshots_bytes: u64,
    /// Stored bytes that a volume shares with another volume or a snapshot.
    pub shared_bytes: u64,
    /// Stored bytes of the array itself: metadata, data that ROD tokens keep, and unreferenced data
    /// that is about to be freed.
    pub system_bytes: u64,
    /// All live stored bytes: the sum of the four.
    pub live_bytes: u64,
    /// The bytes that hosts have written to volumes, including zeros and patterns, divided by the
    /// bytes that volumes and snapshots store; `null` if they store nothing.
    #[schema(required = true)]
    pub data_reduction: Option<f64>,
    /// The same without zeros and patterns.
    #[serde(default)]
    #[schema(required = true)]
    pub reduction_without_zeros: Option<f64>,
    /// The provisioned size of volumes divided by the same: with thin provisioning.
    #[schema(required = true)]
    pub total_reduction: Option<f64>,
}

impl From<PoolFigures> for SpaceFigures {
    fn from(figures: PoolFigures) -> Self {
        Self {
            as_of_ms: figures.as_of_s * 1000,
            provisioned_bytes: figures.provisioned_bytes,
            mapped_bytes: figures.mapped_bytes,
            mapped_data_bytes: figures.mapped_data_bytes,
            unique_bytes: figures.unique_bytes,
            snapshots_bytes: figures.snapshots_bytes,
            shared_bytes: figures.shared_bytes,
            system_bytes: figures.system_bytes,
            live_bytes: figures.live_bytes,
            data_reduction: ratio(figures.mapped_bytes, figures.named_bytes()),
            reduction_without_zeros: ratio(figures.mapped_data_bytes, figures.named_bytes()),
            total_reduction: ratio(figures.provisioned_bytes, figures.named_bytes()),
        }
    }
}

impl From<array::PoolSpace> for PoolSpace {
    fn from(space: array::PoolSpace) -> Self {
        let array::PoolSpace { figures, current, pending } = space;
        Self { figures: figures.map(SpaceFigures::from), current, pending }
    }
}

/// Shows which objects the pool's bytes are stored for.
#[utoipa::path(get, path = "/v1/pool/space", responses(
    (status = 200, body = PoolSpace),
    (status = 401, body = Refusal),
))]
pub(crate) async fn space(State(interface): Shared) -> Result<Json<PoolSpace>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.pool_space().into()))).await
}

/// Requests new figures. They are complete once `pending` is false.
#[utoipa::path(post, path = "/v1/pool/space", responses(
    (status = 200, body = PoolSpace),
    (status = 401, body = Refusal),
))]
pub(crate) async fn refresh(State(interface): Shared) -> Result<Json<PoolSpace>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.refresh_space().into()))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_cover_written_and_provisioned_bytes() {
        let space = store::VolumeSpace {
            size_bytes: 40 << 20,
            mapped_bytes: 12 << 20,
            unique_bytes: 3 << 20,
            share_bytes: 4 << 20,
            ..store::VolumeSpace::default()
        };
        let shown = Space::from(ObjectSpace { as_of_s: 9, space });
        assert_eq!(
            (shown.as_of_ms, shown.unique_bytes, shown.share_bytes),
            (9000, 3 << 20, 4 << 20)
        );
        assert_eq!((shown.data_reduction, shown.total_reduction), (Some(3.0), Some(10.0)));
        let empty = store::VolumeSpace { share_bytes: 0, ..space };
        let shown = Space::from(ObjectSpace { as_of_s: 9, space: empty });
        assert_eq!((shown.data_reduction, shown.total_reduction), (None, None));
        let figures = PoolFigures {
            provisioned_bytes: 60,
            mapped_bytes: 12,
            unique_bytes: 1,
            snapshots_bytes: 2,
            shared_bytes: 3,
            system_bytes: 100,
            ..PoolFigures::default()
        };
        let shown = SpaceFigures::from(figures);
        assert_eq!((shown.data_reduction, shown.total_reduction), (Some(2.0), Some(10.0)));
    }
}
