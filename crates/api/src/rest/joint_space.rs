//! `hosts/space`, `host-groups/space`, `protection-groups/space`: the space of the volumes of each
//! object, for the first two also over time.

use std::cell::RefCell;

use array::{Error, Looked, VolumesOf, VolumesSpace};
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::performance_lists::Times;
use super::protection_groups::{find, name_of};
use super::space::RestJointSpace;
use super::space_history::{Members, SpaceTimeParams, over_time};
use super::{
    Answer, DestroyedParam, Glance, Items, ItemsOf, ListParams, Listed, Listing, NameParams, Query,
    Refusals, Refused, Selection, SelectionParams, answer, each,
};
use crate::{Interface, Shared};

/// The maximum number of connections and members that one request adds up.
pub(super) const SUMMED_MAX: usize = 1_000_000;

/// How many names are read at once.
const PIECE: usize = 250;

/// The space of the volumes of a host or a host group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHostSpace {
    /// The name of the host or host group.
    pub name: String,
    /// The stored data of the volumes that are connected to it.
    pub space: RestJointSpace,
    /// The time of the figures, in milliseconds since 1970; `null` if there are none yet.
    #[schema(required = true)]
    pub time: Option<u64>,
}

/// The space of the volumes of a protection group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestProtectionGroupSpace {
    /// The protection group's id.
    pub id: String,
    /// The protection group's name.
    pub name: String,
    /// The stored data of its volumes; `snapshots` are its own.
    pub space: RestJointSpace,
    /// The time of the figures, in milliseconds since 1970; `null` if there are none yet.
    #[schema(required = true)]
    pub time: Option<u64>,
}

// `total` has no sums: a volume may belong to several objects.
impl Listed for RestHostSpace {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Listed for RestProtectionGroupSpace {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl RestHostSpace {
    fn new(name: &str, space: VolumesSpace) -> Self {
        let time = time_of(&space);
        Self { name: name.to_owned(), space: space.into(), time }
    }
}

/// Returns the time of the figures, in milliseconds since 1970.
pub(super) fn time_of(space: &VolumesSpace) -> Option<u64> {
    space.accounted.map(|accounted| accounted.as_of_s * 1000)
}

/// An object before its volumes are added up.
struct ByName<'a>(&'a str);

impl Glance for ByName<'_> {
    fn key(&self) -> String {
        self.0.to_owned()
    }

    fn field(&self, path: &[&str]) -> Option<Value> {
        (path == ["name"]).then(|| Value::from(self.0))
    }
}

/// Returns the list of all objects: `names` reads their names in pieces, `one` adds up one of them.
/// Leaves out objects that were deleted meanwhile.
fn all<T: Listed>(
    listing: &Listing,
    names: impl Fn(Option<&str>, usize) -> Vec<String>,
    one: impl Fn(&str) -> Result<T, Error>,
) -> Result<Items, Refused> {
    let failure = RefCell::new(None);
    let made = |name: &str| match one(name) {
        Ok(item) => Some(item),
        Err(Error::NoSuchHost(_) | Error::NoSuchHostGroup(_) | Error::NoSuchGroup(_)) => None,
        Err(error) => {
            failure.borrow_mut().get_or_insert(error);
            None
        }
    };
    let items = listing.glanced(
        |after, limit, is_worth| {
            let names = names(after, limit);
            let next = names.last().filter(|_| names.len() == limit).cloned();
            let worthy = names.iter().filter(|name| is_worth(&ByName(name)));
            let items = worthy.map_while(|name| match failure.borrow().is_some() {
                true => None,
                false => Some(made(name)),
            });
            let items: Vec<T> = items.flatten().collect();
            match failure.borrow_mut().take() {
                Some(error) => Err(error.into()),
                None => Ok(Looked { items, next }),
            }
        },
        made,
    )?;
    match failure.into_inner() {
        Some(error) => Err(error.into()),
        None => Ok(items),
    }
}

/// What a request selects of the hosts or host groups.
struct Asked {
    names: Vec<String>,
    times: Option<Times>,
    listing: Listing,
}

impl Asked {
    fn take(mut query: Query) -> Result<Self, Refused> {
        let (names, times) = (query.list("names")?, Times::take(&mut query)?);
        let listing = Listing::take(&mut query)?;
        query.end()?;
        Ok(Self { names, times, listing })
    }
}

/// Returns all names, which are read in pieces.
fn all_names(names: impl Fn(Option<&str>, usize) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let piece = names(all.last().map(String::as_str), PIECE);
        let is_last = piece.len() < PIECE;
        all.extend(piece);
        if is_last {
            return all;
        }
    }
}

/// Returns the list of hosts or of host groups.
fn of_hosts(
    interface: &Interface,
    Asked { names: named, times, listing }: &Asked,
    stored_name: impl Fn(&str) -> Result<String, Error>,
    names: impl Fn(Option<&str>, usize) -> Vec<String>,
    of: impl Fn(&str) -> VolumesOf<'_>,
) -> Result<Items, Refused> {
    // The stored name, whatever its case in the request.
    let named = each(named, |name| Ok(stored_name(name)?))?;
    let sums = RefCell::new(interface.array.space_sums(SUMMED_MAX));
    if let Some(times) = times {
        let is_all = named.is_empty();
        let mut found: Vec<(String, Members)> = Vec::new();
        for name in if is_all { all_names(names) } else { named } {
            match sums.borrow_mut().created(of(&name)) {
                // It was deleted after it was listed.
                Err(Error::NoSuchHost(_) | Error::NoSuchHostGroup(_)) if is_all => {}
                volumes => found.push((name, volumes?)),
            }
        }
        let (named, volumes): (Vec<String>, Vec<Members>) = found.into_iter().unzip();
        let rows = over_time(interface, times, &volumes, |at, moment| {
            let (name, time) = (named[at].clone(), Some(moment.time));
            Some(RestHostSpace { name, space: moment.joint(), time })
        })?;
        return listing.all(&rows);
    }
    let one = |name: &str| Ok(RestHostSpace::new(name, sums.borrow_mut().of(of(name))?));
    match named.is_empty() {
        true => all(listing, names, one),
        false => listing.all(&each(&named, |name| Ok(one(name)?))?),
    }
}

/// Lists the space of all hosts, or of some: that of the volumes that each sees.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts/space",
    tag = "hosts",
    params(NameParams, SpaceTimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostSpace>), Refusals)
)]
pub(super) async fn list_of_hosts(State(interface): Shared, query: Query) -> Answer {
    let asked = Asked::take(query)?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let stored = |name: &str| Ok(array.host(name)?.name);
        let names = |after: Option<&str>, limit| {
            array.hosts(after, limit).into_iter().map(|host| host.name).collect()
        };
        of_hosts(interface, &asked, stored, names, |name| VolumesOf::Host(name))
    })
    .await
}

/// Lists the space of all host groups, or of some: that of the volumes that are connected to each.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/space",
    tag = "host-groups",
    params(NameParams, SpaceTimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostSpace>), Refusals)
)]
pub(super) async fn list_of_host_groups(State(interface): Shared, query: Query) -> Answer {
    let asked = Asked::take(query)?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let stored = |name: &str| Ok(array.host_group(name)?.name);
        let names = |after: Option<&str>, limit| {
            array.host_groups(after, limit).into_iter().map(|group| group.name).collect()
        };
        of_hosts(interface, &asked, stored, names, |name| VolumesOf::HostGroup(name))
    })
    .await
}

/// Lists the space of all protection groups, or of some: that of the volumes that each protects.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups/space",
    tag = "protection-groups",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestProtectionGroupSpace>), Refusals)
)]
pub(super) async fn list_of_groups(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (array, destroyed) = (&interface.array, selection.destroyed);
        let ids = Ids::of(array);
        let sums = RefCell::new(array.space_sums(SUMMED_MAX));
        let show = |id: u64, name: &str| {
            let space = sums.borrow_mut().of(VolumesOf::Group(name))?;
            let snapshots_bytes = array.group_snapshots_bytes(id);
            Ok(RestProtectionGroupSpace {
                id: ids.id(Kind::Group, id),
                name: name.to_owned(),
                time: time_of(&space),
                space: VolumesSpace { snapshots_bytes, ..space }.into(),
            })
        };
        if !selection.is_empty() {
            let names = selection.names(|id| name_of(interface, id))?;
            let one = |name: &str| {
                let group = find(interface, name, destroyed)?;
                Ok(show(group.id, &group.name)?)
            };
            return listing.all(&each(&names, one)?);
        }
        let names = |after: Option<&str>, limit| {
            array.groups(after, destroyed, limit).into_iter().map(|group| group.name).collect()
        };
        let one = |name: &str| array.group(name).and_then(|group| show(group.id, &group.name));
        all(&listing, names, one)
    })
    .await
}
