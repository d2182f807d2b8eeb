//! `volumes/space`: the space of volumes, now or over time.

use array::VolumeInfo;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::performance_lists::{Times, selected};
use super::space::RestSpace;
use super::space_history::{Members, SpaceTimeParams, over_time};
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
    params(SelectionParams, DestroyedParam, SpaceTimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumeSpace>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let times = Times::take(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        if let Some(times) = &times {
            let volumes = selected(interface, &selection)?;
            let members = |volume: &VolumeInfo| vec![(volume.id, volume.created_ms)];
            let objects: Vec<Members> = volumes.iter().map(members).collect();
            let rows = over_time(interface, times, &objects, |at, moment| {
                let (id, name) = (ids.id(Kind::Volume, volumes[at].id.0), volumes[at].name.clone());
                Some(RestVolumeSpace { id, name, space: moment.single()?, time: Some(moment.time) })
            })?;
            return listing.all(&rows);
        }
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
