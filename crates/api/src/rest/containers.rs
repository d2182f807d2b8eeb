//! The common parts of `volume-groups` and `pods`: selection, and the volumes in them.

use std::sync::Arc;

use array::{ContainerInfo, ContainerKind, ContainerName, VolumesOf, VolumesSpace};

use super::ids::{Ids, Kind};
use super::members::{Members, Only, RestMember};
use super::{Answer, Items, Listed, Listing, Named, Query, Refused, Selection, answer, each};
use crate::Interface;

/// Returns the kind of the container's ids.
pub(super) fn id_kind(kind: ContainerKind) -> Kind {
    match kind {
        ContainerKind::VolumeGroup => Kind::VolumeGroup,
        ContainerKind::Pod => Kind::Pod,
    }
}

/// Returns the name of the container with this id.
pub(super) fn name_of(interface: &Interface, kind: ContainerKind, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(id_kind(kind), id)?;
    interface.array.container_name(kind, number)
}

/// Finds a container that is destroyed or not, as requested. Refuses one that does not match as
/// nonexistent: clients take an empty list for success.
pub(super) fn find(
    interface: &Interface,
    kind: ContainerKind,
    name: &str,
    destroyed: Option<bool>,
) -> Result<ContainerInfo, array::Error> {
    let found = interface.array.container(kind, name)?;
    match destroyed {
        Some(destroyed) if destroyed != found.eradicate_ms.is_some() => {
            Err(array::Error::NoSuchContainer(kind, found.name))
        }
        _ => Ok(found),
    }
}

/// Returns the selected containers; if none is named, all, without destroyed ones unless they are
/// asked for: a client reads the lists without destroyed ones, and looks up each item of a list of
/// samples in them.
pub(super) fn selected(
    interface: &Interface,
    kind: ContainerKind,
    selection: &Selection,
) -> Result<Vec<ContainerInfo>, Refused> {
    let destroyed = selection.destroyed;
    if selection.is_empty() {
        let destroyed = destroyed.or(Some(false));
        return Ok(interface.array.containers(kind, None, destroyed, array::CONTAINERS_MAX));
    }
    let names = selection.names(|id| name_of(interface, kind, id))?;
    each(&names, |name| Ok(find(interface, kind, name, destroyed)?))
}

/// Returns the names in a request that creates containers.
pub(super) fn new_names(
    kind: ContainerKind,
    names: &[String],
) -> Result<Vec<ContainerName>, Refused> {
    each(names, |name| ContainerName::new(kind, name).map_err(|error| Refused::about(name, &error)))
}

/// Returns the space of the volumes of a container.
pub(super) fn sum_of(
    interface: &Interface,
    kind: ContainerKind,
    container: &ContainerInfo,
) -> VolumesSpace {
    // A container has few volumes, so the sum is bounded.
    let mut sums = interface.array.space_sums(array::CONTAINER_VOLUMES_MAX);
    // A container that was deleted meanwhile stores nothing.
    let space = sums.of(VolumesOf::Container(kind, &container.name));
    space.unwrap_or_else(|_| VolumesSpace::default())
}

/// Returns the containers that a query selects.
pub(super) async fn listed<T: Listed + Clone>(
    interface: Arc<Interface>,
    kind: ContainerKind,
    mut query: Query,
    show: impl Fn(&Interface, Vec<ContainerInfo>) -> Vec<T> + Send + 'static,
) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let destroyed = selection.destroyed;
        if !selection.is_empty() {
            let names = selection.names(|id| name_of(interface, kind, id))?;
            let found = each(&names, |name| Ok(find(interface, kind, name, destroyed)?))?;
            return listing.all(&show(interface, found));
        }
        listing.pieces(|after, limit| {
            Ok(show(interface, interface.array.containers(kind, after, destroyed, limit)))
        })
    })
    .await
}

/// Destroys the named containers, with their volumes if `contents`, or recovers them; or renames
/// one. Without any of these changes, returns them unchanged.
pub(super) fn changed(
    interface: &Interface,
    kind: ContainerKind,
    names: &[String],
    (destroyed, contents): (Option<bool>, bool),
    new_name: Option<String>,
) -> Result<Vec<ContainerInfo>, Refused> {
    let array = &interface.array;
    Ok(match (destroyed, new_name) {
        (Some(true), _) => array.destroy_containers(kind, names, contents, (interface.now_ms)())?,
        (Some(false), _) => array.recover_containers(kind, names)?,
        (None, None) => each(names, |name| Ok(find(interface, kind, name, Some(false))?))?,
        (None, Some(new_name)) => {
            let [name] = names else {
                return Err(Refused::bad("names", "Only one at a time can be renamed."));
            };
            vec![array.rename_container(name, ContainerName::new(kind, &new_name)?)?]
        }
    })
}

/// Eradicates the selected containers, with their volumes if `contents`.
pub(super) async fn eradicated(
    interface: Arc<Interface>,
    kind: ContainerKind,
    selection: Selection,
    contents: bool,
) -> Answer {
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, kind, id))?;
        interface.array.eradicate_containers(kind, &names, contents)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}

/// Returns the pairs of a container and a volume in it that is not destroyed.
fn members(
    interface: &Interface,
    kind: ContainerKind,
    members: &Members,
) -> Result<Vec<RestMember>, Refused> {
    let containers = members.groups.names(|id| name_of(interface, kind, id))?;
    let volumes = members.members.names(|id| super::volumes::name_of(interface, id))?;
    let found = match containers.is_empty() {
        true => interface.array.containers(kind, None, Some(false), array::CONTAINERS_MAX),
        false => each(&containers, |name| Ok(find(interface, kind, name, None)?))?,
    };
    let only = Only::of(&volumes);
    let pairs = found.into_iter().map(|one| RestMember::all(&one.name, one.volumes, &only));
    Ok(pairs.flatten().collect())
}

/// Returns the list of these pairs that a query selects.
pub(super) async fn list_members(
    interface: Arc<Interface>,
    kind: ContainerKind,
    mut query: Query,
) -> Answer {
    let (asked, listing) = (Members::take(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| listing.all(&members(interface, kind, &asked)?)).await
}
