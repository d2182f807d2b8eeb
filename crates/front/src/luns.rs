//! Looks up the volume at a LUN of a PDU, and how much data a command to it transfers.

use std::sync::Arc;

use block::{LunMap, VolumeAttributes, VolumeId};

/// Returns the number in a LUN field with peripheral device addressing on bus 0 or flat space
/// addressing, in one level (SAM-5, 4.7.7.2 and 4.7.7.4).
fn lun_number(lun: [u8; 8]) -> Option<u16> {
    let first = u16::from_be_bytes([lun[0], lun[1]]);
    if lun[2..] != [0; 6] {
        return None;
    }
    match first >> 14 {
        0 if first < 0x100 => Some(first),
        1 => Some(first & 0x3fff),
        _ => None,
    }
}

/// Returns the volume at a LUN.
pub(super) fn volume_at(luns: &LunMap, lun: [u8; 8]) -> Option<VolumeId> {
    attributes_at(luns, lun).map(|volume| volume.id)
}

/// Returns the attributes of the volume at a LUN.
pub(super) fn attributes_at(luns: &LunMap, lun: [u8; 8]) -> Option<&VolumeAttributes> {
    luns.luns.get(&lun_number(lun)?).map(Arc::as_ref)
}

/// Returns how much data a CDB takes from the host: nothing if there is no volume, because every
/// command that transfers data is then refused.
pub(super) fn data_out_bytes(luns: &LunMap, lun: [u8; 8], cdb: &[u8]) -> Option<u64> {
    let bytes = |volume: &VolumeAttributes| scsi::data_out_bytes(cdb, volume.logical_block.bytes());
    Some(attributes_at(luns, lun).map_or(0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lun_is_found_by_each_of_its_fields() {
        for number in [0_u16, 1, 255, 256, 16_383] {
            let [high, low] = number.to_be_bytes();
            assert_eq!(lun_number([0x40 | high, low, 0, 0, 0, 0, 0, 0]), Some(number));
            let peripheral = (number < 256).then_some(number);
            assert_eq!(lun_number([high, low, 0, 0, 0, 0, 0, 0]), peripheral);
        }
        assert_eq!(lun_number([0x80, 1, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(lun_number([0, 1, 0, 1, 0, 0, 0, 0]), None);
    }
}
