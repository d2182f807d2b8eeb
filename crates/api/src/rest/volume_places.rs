//! The volume group or pod in which a request places a volume.

use array::{ContainerKind, ContainerName, Placed, VolumeName};

use super::Refused;
use super::containers::name_of;
use super::volume_parts::Reference;
use crate::Interface;

/// Returns a new name of the named volume. Without a container, it stays in the volume's container.
pub(super) fn new_name(
    interface: &Interface,
    names: &[String],
    new_name: &str,
) -> Result<VolumeName, Refused> {
    let name = VolumeName::new(new_name)?;
    let ([old], None) = (names, name.container()) else { return Ok(name) };
    let old = interface.array.volume(old)?.name;
    let container = ContainerKind::split(&old);
    let container = container.map(|(kind, name, _)| ContainerName::new(kind, name)).transpose()?;
    Ok(name.within(container.as_ref()))
}

/// Returns the container in which the references of a request place volumes: at most one is
/// allowed.
pub(super) fn placed(
    interface: &Interface,
    volume_group: Option<Reference>,
    pod: Option<Reference>,
) -> Result<Option<Placed>, Refused> {
    match (volume_group, pod) {
        (Some(_), Some(_)) => {
            let text = "A volume is in a volume group or in a pod: give one of them.";
            Err(Refused::bad("pod", text))
        }
        (Some(group), None) => within(interface, ContainerKind::VolumeGroup, group).map(Some),
        (None, Some(pod)) => within(interface, ContainerKind::Pod, pod).map(Some),
        (None, None) => Ok(None),
    }
}

/// Returns the container that a reference names; no container of its kind if its name is empty.
fn within(
    interface: &Interface,
    kind: ContainerKind,
    Reference { name, id }: Reference,
) -> Result<Placed, Refused> {
    let field = match kind {
        ContainerKind::VolumeGroup => "volume_group",
        ContainerKind::Pod => "pod",
    };
    let name = match (name, id) {
        (Some(name), None) => name,
        (None, Some(id)) => name_of(interface, kind, &id)
            .ok_or_else(|| Refused::bad(&id, format!("The id does not exist: {id}.")))?,
        _ => {
            let text = format!("A {} has either a `name` or an `id`.", kind.one());
            return Err(Refused::bad(field, text));
        }
    };
    if name.is_empty() {
        return Ok(Placed::OutOf(kind));
    }
    // A container that does not exist may have an invalid name.
    let name = interface.array.container(kind, &name)?.name;
    Ok(Placed::Within(ContainerName::new(kind, &name)?))
}
