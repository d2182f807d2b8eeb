//! The volume that a CSCD descriptor identifies, if the sender may access it.

use std::collections::HashMap;
use std::sync::Arc;

use block::{Offload, VolumeAttributes};

use crate::copy::parse::{CscdDescriptor, List};
use crate::device::{Context, Unit};
use crate::limits::OWN_UNIT;
use crate::sense::{FieldPointer, Sense, SenseKey};
use crate::unit::vpd::CscdName;

/// COPY TARGET DEVICE NOT REACHABLE.
const NOT_REACHABLE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x02);
/// UNREACHABLE COPY TARGET: a segment refers to a descriptor that is not in the list.
const NO_SUCH_CSCD: Sense = Sense::new(SenseKey::CopyAborted, 0x08, 0x04);
/// INCORRECT COPY TARGET DEVICE TYPE.
const WRONG_TYPE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x03);
/// The volume of a descriptor.
pub(crate) type Cscd = Result<Arc<VolumeAttributes>, Sense>;

/// Looks up descriptors among the sender's volumes, examining each volume once, however many
/// descriptors there are.
pub(crate) fn resolve(context: &Context<'_>, descriptors: &[CscdDescriptor]) -> Vec<Cscd> {
    let kind = |descriptor: &CscdDescriptor| (descriptor.code_set, descriptor.designator_type);
    let name =
        |descriptor: &CscdDescriptor| CscdName::new(kind(descriptor), &descriptor.designator);
    let mut named: HashMap<CscdName, Option<&Arc<VolumeAttributes>>> =
        descriptors.iter().filter_map(name).map(|name| (name, None)).collect();
    let mut kinds: Vec<(u8, u8)> = descriptors.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let vendor = &context.server.identity.vendor;
    for volume in context.luns.luns.values() {
        for name in kinds.iter().filter_map(|kind| CscdName::of(vendor, volume, *kind)) {
            if let Some(found) = named.get_mut(&name) {
                found.get_or_insert(volume);
            }
        }
    }
    let found = |descriptor| named.get(&name(descriptor)?).copied().flatten();
    descriptors.iter().map(|descriptor| check(descriptor, found(descriptor))).collect()
}

/// Checks whether a volume may take part as the descriptor says.
fn check(descriptor: &CscdDescriptor, volume: Option<&Arc<VolumeAttributes>>) -> Cscd {
    let failed = |sense: Sense| {
        let byte = u16::try_from(descriptor.at).unwrap_or(u16::MAX);
        Sense { field: Some(FieldPointer { in_cdb: false, byte, bit: None }), ..sense }
    };
    if descriptor.nul || descriptor.association != 0 {
        return Err(failed(NOT_REACHABLE));
    }
    let volume = volume
        // A volume whose Full Copy is off can't take part in a copy of another volume either.
        .filter(|volume| volume.offloads.has(Offload::ExtendedCopy))
        .ok_or_else(|| failed(NOT_REACHABLE))?;
    if descriptor.device_type != 0 {
        return Err(failed(WRONG_TYPE));
    }
    let block = volume.logical_block.bytes();
    if descriptor.block_bytes != 0 && u64::from(descriptor.block_bytes) != block {
        return Err(failed(Sense::new(crate::sense::SenseKey::CopyAborted, 0x26, 0)));
    }
    Ok(volume.clone())
}

/// Returns the volume that a segment refers to by the id of a descriptor.
pub(crate) fn find<'a>(
    context: &Context<'a>,
    list: &List,
    cscds: &'a [Cscd],
    id: u16,
) -> Result<&'a Arc<VolumeAttributes>, Sense> {
    if id == OWN_UNIT {
        return match context.unit {
            Unit::Volume(volume) => Ok(volume),
            _ => Err(NO_SUCH_CSCD),
        };
    }
    let index = id.checked_sub(list.first_cscd).ok_or(NO_SUCH_CSCD)?;
    match cscds.get(usize::from(index)) {
        Some(Ok(volume)) => Ok(volume),
        Some(Err(sense)) => Err(*sense),
        None => Err(NO_SUCH_CSCD),
    }
}
