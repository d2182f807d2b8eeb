//! `volumes/space`: the space of volumes.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::space::RestSpace;
use super::volumes::listed;
use super::{
    Answer, DestroyedParam, ItemsOf, ListParams, Listed, Listing, Query, Refusals, Selection,
    SelectionParams, answer,
};
use crate::Shared;

/// The space of a volume.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestVolumeSpace {
    /// The volume's id.
    pub id: String,
    /// The volume's name.
    pub name: String,
    /// Its stored data.
    pub space: RestSpace,
    /// The time of the figures, in milliseconds since 1970; `null` if there are none yet.
    #[schema(required = true)]
    pub time: Option<u64>,
}

impl Listed for RestVolumeSpace {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["space"]
    }
}

/// Lists the space of all volumes, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/space",
    tag = "volumes",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumeSpace>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        listed(interface, &selection, &listing, |volume| RestVolumeSpace {
            id: ids.id(Kind::Volume, volume.id.0),
            name: volume.name,
            space: RestSpace::of(
                volume.size_bytes,
                volume.mapped_bytes,
                volume.space,
                volume.snapshots_bytes,
            ),
            time: volume.space.map(|space| space.as_of_s * 1000),
        })
    })
    .await
}
