//! For whom the pool's bytes are stored.

use array::{ObjectSpace, PoolFigures};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// What is stored for a volume or a snapshot. All of it is of one moment, that of the last pass of
/// accounting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Space {
    /// When that was, in milliseconds since 1970.
    pub as_of_ms: u64,
    /// Stored bytes, after reduction, that would become free if it ended and nothing else did.
    pub unique_bytes: u64,
    /// Its part of what is stored: all that is unique to it, and of what is shared a part as large
    /// as that of everything else that names it.
    pub share_bytes: u64,
    /// How many times what hosts have written to it, zeros and patterns too, is that part; none
    /// where it has none.
    pub data_reduction: Option<f64>,
    /// The same without zeros and patterns.
    #[serde(default)]
    pub reduction_without_zeros: Option<f64>,
    /// How many times its size is that part: with thin provisioning.
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

/// How many times `stored_bytes` the others are; none where nothing is stored.
pub(crate) fn ratio(bytes: u64, stored_bytes: u64) -> Option<f64> {
    (stored_bytes > 0).then(|| bytes as f64 / stored_bytes as f64)
}

/// For whom the pool's bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolSpace {
    /// What the last pass of accounting found; none before the first one since the start has ended.
    pub figures: Option<SpaceFigures>,
    /// Whether nothing has changed since: the figures are exact still.
    pub current: bool,
    /// Whether a pass is under way, or was asked for.
    pub pending: bool,
}

/// What a pass of accounting found. All of it is of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceFigures {
    /// When that was, in milliseconds since 1970.
    pub as_of_ms: u64,
    /// Bytes that volumes were provisioned for.
    pub provisioned_bytes: u64,
    /// Bytes that hosts had written to volumes and not unmapped.
    pub mapped_bytes: u64,
    /// Of those, data: neither zeros nor a pattern of 32 bits.
    #[serde(default)]
    pub mapped_data_bytes: u64,
    /// Stored bytes that are unique to volumes: the sum of theirs.
    pub unique_bytes: u64,
    /// Stored bytes that only snapshots name, one or several.
    pub snapshots_bytes: u64,
    /// Stored bytes that a volume names, and another volume or a snapshot.
    pub shared_bytes: u64,
    /// Stored bytes of the array itself: metadata, data that ROD tokens keep, and data that nothing
    /// names and that is about to be freed.
    pub system_bytes: u64,
    /// All stored bytes that were live: the sum of the four.
    pub live_bytes: u64,
    /// How many times what hosts have written to volumes, zeros and patterns too, is what volumes
    /// and snapshots store; none where they store nothing.
    pub data_reduction: Option<f64>,
    /// The same without zeros and patterns.
    #[serde(default)]
    pub reduction_without_zeros: Option<f64>,
    /// How many times what volumes are provisioned for is that: with thin provisioning.
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

/// For whom the pool's bytes are stored.
#[utoipa::path(get, path = "/v1/pool/space", responses(
    (status = 200, body = PoolSpace),
    (status = 401, body = Refusal),
))]
pub(crate) async fn space(State(interface): Shared) -> Result<Json<PoolSpace>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.pool_space().into()))).await
}

/// Asks for new figures, which are there when nothing is `pending` any more.
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
    fn reductions_are_of_what_hosts_wrote_and_of_what_they_could() {
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
