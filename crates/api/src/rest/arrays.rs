//! The array itself: `arrays`, `arrays/space`.

use array::{Banner, HostName, SettingsChange, TimeServers};
use axum::extract::State;
use history::Point;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::performance_lists::{TimeParams, Times, samples_of_array};
use super::space::RestSpace;
use super::space_history::Sample;
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, Query, Refusals, Refused, answer,
};
use crate::{Interface, Shared};

/// The reported software version of FlashArrays: clients derive the available requests from it.
/// This is the first version with the latest REST version implemented here. `GET /v1/version`
/// returns the version of this program.
pub const COMPATIBLE_VERSION: &str = "6.4.10";

/// The idle timeout of a session, in milliseconds.
const IDLE_TIMEOUT_MS: u64 = 30 * 60 * 1000;

/// The array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestArray {
    /// Its id, which never changes.
    pub id: String,
    /// The array's name.
    pub name: String,
    /// Its operating environment.
    pub os: String,
    /// The software version whose interface this is: see [`COMPATIBLE_VERSION`].
    pub version: String,
    /// The time of the array, in milliseconds since 1970.
    pub as_of: u64,
    /// The text shown before a login; empty for none.
    pub banner: String,
    /// The capacity of the pool, in bytes.
    pub capacity: u64,
    /// Whether the console is locked; there is no console.
    pub console_lock_enabled: bool,
    /// Encryption at rest: none.
    pub encryption: RestEncryption,
    /// How long destroyed objects can be recovered.
    pub eradication_config: RestEradication,
    /// The idle time after which a session ends, in milliseconds.
    pub idle_timeout: u64,
    /// The time servers that are queried for the clock offset, each `HOST` or `HOST:PORT`.
    pub ntp_servers: Vec<String>,
    /// The fraction of redundancy that is intact: 1 is all.
    pub parity: f64,
    /// The timeout of a command, in milliseconds: 0, there is none.
    pub scsi_timeout: u64,
    /// The time zone of schedules: `UTC`.
    pub time_zone: String,
    /// Which objects the pool's bytes are stored for.
    pub space: RestSpace,
}

/// Encryption at rest.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestEncryption {
    /// Whether data is encrypted at rest.
    pub data_at_rest: RestAtRest,
}

/// Whether data is encrypted at rest.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAtRest {
    /// Whether it is.
    pub enabled: bool,
}

/// For how long destroyed objects can be recovered, in milliseconds.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestEradication {
    /// For how long.
    pub eradication_delay: u64,
    /// 0: objects protected from earlier eradication have no delay of their own.
    pub disabled_delay: u64,
    /// 0: nor have all others.
    pub enabled_delay: u64,
    /// `all-enabled`: every destroyed object can be eradicated earlier.
    pub manual_eradication: String,
}

/// The space of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestArraySpace {
    /// The array's id.
    pub id: String,
    /// The array's name.
    pub name: String,
    /// The capacity of the pool, in bytes.
    pub capacity: u64,
    /// The fraction of redundancy that is intact: 1 is all.
    pub parity: f64,
    /// Which objects the pool's bytes are stored for.
    pub space: RestSpace,
    /// The time of the figures, in milliseconds since 1970; of a sample, when it begins.
    pub time: u64,
}

impl RestArray {
    fn of(interface: &Interface) -> Self {
        let (array, settings) = (&interface.array, interface.array.settings());
        let delay = settings.eradication_delay_s * 1000;
        Self {
            id: Ids::of(array).id(Kind::Array, 0),
            name: settings.name.to_string(),
            os: "Holdfast".into(),
            version: COMPATIBLE_VERSION.into(),
            as_of: (interface.now_ms)(),
            banner: settings.banner.as_str().to_owned(),
            capacity: array.pool().capacity_bytes,
            console_lock_enabled: false,
            encryption: RestEncryption { data_at_rest: RestAtRest { enabled: false } },
            eradication_config: RestEradication {
                eradication_delay: delay,
                disabled_delay: 0,
                enabled_delay: 0,
                manual_eradication: "all-enabled".into(),
            },
            idle_timeout: IDLE_TIMEOUT_MS,
            ntp_servers: settings.time_servers.names().to_vec(),
            parity: 1.0,
            scsi_timeout: 0,
            time_zone: "UTC".into(),
            space: RestSpace::of_array(array),
        }
    }
}

/// Implements [`Listed`] for short lists, which are complete at once.
macro_rules! listed_by_name {
    ($($item:ident),*) => {
        $(impl Listed for $item {
            fn key(&self) -> String {
                self.name.clone()
            }
        })*
    };
}

listed_by_name!(RestArray, RestArraySpace);
pub(super) use listed_by_name;

/// Returns a short list: the named items, or all if none is named.
pub(super) async fn short<T: Listed + Clone>(
    interface: std::sync::Arc<Interface>,
    mut query: Query,
    all: impl Fn(&Interface) -> Vec<T> + Send + 'static,
) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let all = all(interface);
        let is_there = |name: &&String| all.iter().any(|one| one.key().eq_ignore_ascii_case(name));
        if let Some(missing) = names.iter().find(|name| !is_there(name)) {
            return Err(Refused::missing(missing));
        }
        let is_named = |one: &&T| names.iter().any(|name| one.key().eq_ignore_ascii_case(name));
        let wanted = all.iter().filter(|one| names.is_empty() || is_named(one));
        listing.all(&wanted.cloned().collect::<Vec<_>>())
    })
    .await
}

/// The array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/arrays",
    tag = "arrays",
    params(super::NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestArray>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| vec![RestArray::of(interface)]).await
}

/// The changes of the array.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayPatch {
    /// A new name.
    pub name: Option<String>,
    /// How long destroyed objects can be recovered.
    pub eradication_config: Option<EradicationPatch>,
    /// The text shown before a login: up to 2,000 characters, in one line or several; empty for
    /// none.
    pub banner: Option<String>,
    /// Must be `false`: there is no console.
    pub console_lock_enabled: Option<bool>,
    /// Must be 1800000 (half an hour).
    pub idle_timeout: Option<u64>,
    /// Up to 4 time servers, each `HOST` or `HOST:PORT`: they are queried for the clock offset, and
    /// do not set the clock.
    pub ntp_servers: Option<Vec<String>>,
    /// Must be empty: time servers are queried without keys.
    pub ntp_symmetric_key: Option<String>,
}

impl ArrayPatch {
    /// Refuses changes of values that are fixed.
    fn check_fixed(&self) -> Result<(), Refused> {
        let Self { console_lock_enabled, idle_timeout, ntp_symmetric_key, .. } = self;
        for (is_so, field, what) in [
            (*console_lock_enabled != Some(true), "console_lock_enabled", "Locking the console"),
            (
                idle_timeout.is_none_or(|timeout| timeout == IDLE_TIMEOUT_MS),
                "idle_timeout",
                "An idle timeout other than 30 minutes",
            ),
            (
                ntp_symmetric_key.as_deref().is_none_or(str::is_empty),
                "ntp_symmetric_key",
                "Keys of time servers",
            ),
        ] {
            if !is_so {
                return Err(Refused::unsupported(field, what));
            }
        }
        Ok(())
    }
}

/// How long destroyed objects can be recovered.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EradicationPatch {
    /// In milliseconds: whole seconds, up to 30 days.
    pub eradication_delay: Option<u64>,
}

/// Changes the array.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/arrays",
    tag = "arrays",
    request_body = ArrayPatch,
    responses((status = 200, body = ItemsOf<RestArray>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<ArrayPatch>,
) -> Answer {
    query.end()?;
    asked.check_fixed()?;
    let delay = asked.eradication_config.and_then(|config| config.eradication_delay);
    if delay.is_some_and(|delay| delay % 1000 != 0) {
        let text = "The delay is given in milliseconds, and must be whole seconds.";
        return Err(Refused::bad("eradication_config", text));
    }
    answer(interface, move |interface| {
        interface.array.change_settings(SettingsChange {
            name: asked.name.map(|name| HostName::of_array(&name)).transpose()?,
            eradication_delay_s: delay.map(|delay| delay / 1000),
            time_servers: asked.ntp_servers.map(TimeServers::new).transpose()?,
            banner: asked.banner.map(Banner::new).transpose()?,
            ..SettingsChange::default()
        })?;
        Items::of([RestArray::of(interface)])
    })
    .await
}

/// Shows the space of the array, now or over time: in samples it is the mean.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/arrays/space",
    tag = "arrays",
    params(super::NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestArraySpace>), Refusals)
)]
pub(super) async fn space(State(interface): Shared, mut query: Query) -> Answer {
    let Some(times) = Times::take(&mut query)? else {
        return short(interface, query, |interface| {
            let RestArray { id, name, capacity, parity, space, as_of, .. } =
                RestArray::of(interface);
            vec![RestArraySpace { id, name, capacity, parity, space, time: as_of }]
        })
        .await;
    };
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let RestArray { id, name, parity, .. } = RestArray::of(interface);
        if let Some(missing) = names.iter().find(|one| !one.eq_ignore_ascii_case(&name)) {
            return Err(Refused::missing(missing));
        }
        let sample = |point: &Point| {
            let capacity = point.capacity.gauge("capacity")?.mean()?;
            let (space, time) = (RestSpace::of_capacity(&point.capacity)?, point.start_ms);
            let (id, name) = (id.clone(), name.clone());
            Some(Sample::new(time, RestArraySpace { id, name, capacity, parity, space, time }))
        };
        let rows = samples_of_array(interface, &times)?;
        listing.all(&times.cut(rows.iter().filter_map(sample).collect()))
    })
    .await
}
