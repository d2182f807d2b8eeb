//! What a CSCD descriptor names: a volume that the sender may reach, or nothing.

use std::sync::Arc;

use block::{Offload, VolumeAttributes};

use crate::copy::parse::{CscdDescriptor, List};
use crate::copy::{NO_SUCH_CSCD, NOT_REACHABLE, WRONG_TYPE};
use crate::sense::{FieldPointer, Sense};
use crate::server::{Context, Unit};
use crate::vpd::is_named;

/// The id that names the logical unit to which the command was sent (SPC-4, table 146).
pub(crate) const OWN_UNIT: u16 = 0xffff;

/// NAA designators: binary, type 3.
const NAA: (u8, u8) = (1, 3);

/// A descriptor, looked up.
pub(crate) type Cscd = Result<Arc<VolumeAttributes>, Sense>;

/// Looks a descriptor up among the volumes of the sender.
pub(crate) fn resolve(context: &Context<'_>, descriptor: &CscdDescriptor) -> Cscd {
    let failed = |sense: Sense| {
        let byte = u16::try_from(descriptor.at).unwrap_or(u16::MAX);
        Sense { field: Some(FieldPointer { in_cdb: false, byte, bit: None }), ..sense }
    };
    if descriptor.nul || descriptor.association != 0 {
        return Err(failed(NOT_REACHABLE));
    }
    let volume = by_designator(context, descriptor)
        // A volume whose Full Copy was switched off takes no part in a copy of another either.
        .filter(|volume| volume.offloads.has(Offload::ExtendedCopy))
        .ok_or_else(|| failed(NOT_REACHABLE))?;
    if descriptor.device_type != 0 {
        return Err(failed(WRONG_TYPE));
    }
    let block = volume.logical_block.bytes();
    if descriptor.block_bytes != 0 && u64::from(descriptor.block_bytes) != block {
        return Err(failed(Sense::new(crate::sense::SenseKey::CopyAborted, 0x26, 0)));
    }
    Ok(volume)
}

fn by_designator(
    context: &Context<'_>,
    descriptor: &CscdDescriptor,
) -> Option<Arc<VolumeAttributes>> {
    let CscdDescriptor { code_set, designator_type, designator, .. } = descriptor;
    if (*code_set, *designator_type) == NAA {
        let naa: &[u8; 16] = designator.as_slice().try_into().ok()?;
        return context.luns.by_naa(naa).cloned();
    }
    let vendor = &context.server.identity.vendor;
    let named = |volume: &&Arc<VolumeAttributes>| {
        is_named(vendor, volume, *code_set, *designator_type, designator)
    };
    context.luns.luns.values().find(named).cloned()
}

/// The volume that a segment names by the id of a descriptor.
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
