//! Which volume group a volume is to be in.

use array::{VolumeGroupName, VolumeName};

use super::Refused;
use super::ids::{Ids, Kind};
use crate::Interface;

/// The name of the volume group with this id.
pub(super) fn name_of(interface: &Interface, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(Kind::VolumeGroup, id)?;
    interface.array.volume_group_name(number)
}

/// A new name of the volume that is named. Without a group it stays in that of the volume.
pub(super) fn new_name(
    interface: &Interface,
    names: &[String],
    new_name: &str,
) -> Result<VolumeName, Refused> {
    let name = VolumeName::new(new_name)?;
    let ([old], None) = (names, name.group()) else { return Ok(name) };
    let old = interface.array.volume(old)?.name;
    let group = old.split_once('/').map(|(group, _)| VolumeGroupName::new(group)).transpose()?;
    Ok(name.within(group.as_ref()))
}

/// The volume group that a reference names; `None` if its name is empty.
pub(super) fn group_of(
    interface: &Interface,
    name: Option<String>,
    id: Option<String>,
) -> Result<Option<VolumeGroupName>, Refused> {
    let name = match (name, id) {
        (Some(name), None) => name,
        (None, Some(id)) => name_of(interface, &id)
            .ok_or_else(|| Refused::bad(&id, format!("The id does not exist: {id}.")))?,
        _ => {
            let text = "A volume group has either a `name` or an `id`.";
            return Err(Refused::bad("volume_group", text));
        }
    };
    if name.is_empty() {
        return Ok(None);
    }
    // A group that is not there may have a name that none can have.
    let name = interface.array.volume_group(&name)?.name;
    Ok(Some(VolumeGroupName::new(&name)?))
}
