//! Command descriptor blocks and parameter lists, in the layouts of SBC-4 and SPC-4. Logical blocks
//! are sectors of 512 bytes; callers count in blocks of 4 KiB.

use crate::array::reservations::Action;

/// Logical blocks in a block of 4 KiB.
const SECTORS: u64 = 8;

/// Returns a CDB of 10 bytes: operation, address, length in logical blocks.
fn ten(operation: u8, block: u64, count: u64) -> Vec<u8> {
    let mut cdb = vec![operation, 0];
    cdb.extend_from_slice(&((block * SECTORS) as u32).to_be_bytes());
    cdb.push(0);
    cdb.extend_from_slice(&((count * SECTORS) as u16).to_be_bytes());
    cdb.push(0);
    cdb
}

/// Returns a CDB of 16 bytes: operation, address, length in logical blocks.
fn sixteen(operation: u8, block: u64, count: u64) -> Vec<u8> {
    let mut cdb = vec![operation, 0];
    cdb.extend_from_slice(&(block * SECTORS).to_be_bytes());
    cdb.extend_from_slice(&((count * SECTORS) as u32).to_be_bytes());
    cdb.extend_from_slice(&[0, 0]);
    cdb
}

/// READ (10) or READ (16).
pub(super) fn read(block: u64, count: u64, is_long: bool) -> Vec<u8> {
    if is_long { sixteen(0x88, block, count) } else { ten(0x28, block, count) }
}

/// WRITE (10) or WRITE (16).
pub(super) fn write(block: u64, count: u64, is_long: bool, forces: bool) -> Vec<u8> {
    let mut cdb = if is_long { sixteen(0x8a, block, count) } else { ten(0x2a, block, count) };
    cdb[1] = u8::from(forces) << 3;
    cdb
}

/// SYNCHRONIZE CACHE (10) or (16).
pub(super) fn synchronize(block: u64, count: u64, is_long: bool) -> Vec<u8> {
    if is_long { sixteen(0x91, block, count) } else { ten(0x35, block, count) }
}

/// WRITE SAME (10) or WRITE SAME (16); its data is one logical block.
pub(super) fn write_same(block: u64, count: u64, is_long: bool, unmaps: bool) -> Vec<u8> {
    let mut cdb = if is_long { sixteen(0x93, block, count) } else { ten(0x41, block, count) };
    cdb[1] = u8::from(unmaps) << 3;
    cdb
}

/// UNMAP, with its parameter list.
pub(super) fn unmap(ranges: &[(u64, u64)]) -> (Vec<u8>, Vec<u8>) {
    let bytes = ranges.len() as u16 * 16;
    let mut list = (bytes + 6).to_be_bytes().to_vec();
    list.extend_from_slice(&bytes.to_be_bytes());
    list.extend_from_slice(&[0; 4]);
    for (block, count) in ranges {
        list.extend_from_slice(&(block * SECTORS).to_be_bytes());
        list.extend_from_slice(&((count * SECTORS) as u32).to_be_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    let [high, low] = (list.len() as u16).to_be_bytes();
    (vec![0x42, 0, 0, 0, 0, 0, 0, high, low, 0], list)
}

/// COMPARE AND WRITE of one block.
pub(super) fn compare_and_write(block: u64) -> Vec<u8> {
    let mut cdb = sixteen(0x89, block, 0);
    cdb[13] = SECTORS as u8;
    cdb
}

/// An NAA designator of 16 bytes (SPC-4, 7.8.6.6.5).
pub(super) type Naa = [u8; 16];

/// EXTENDED COPY (LID1) of one segment, block to block, with its parameter list: no list
/// identifier, CSCD descriptors E4h with NAA designators, segment descriptor 02h (SPC-4, 6.4).
pub(super) fn extended_copy(
    (source, source_block): (&Naa, u64),
    (destination, block): (&Naa, u64),
    count: u64,
) -> (Vec<u8>, Vec<u8>) {
    let mut list = vec![0; 16];
    list[1] = 0x18;
    list[2..4].copy_from_slice(&64_u16.to_be_bytes());
    list[8..12].copy_from_slice(&28_u32.to_be_bytes());
    for naa in [source, destination] {
        let mut cscd = [0; 32];
        cscd[0] = 0xe4;
        cscd[4..8].copy_from_slice(&[0x01, 0x03, 0x00, 16]);
        cscd[8..24].copy_from_slice(naa);
        cscd[29..32].copy_from_slice(&[0, 2, 0]);
        list.extend_from_slice(&cscd);
    }
    let mut segment = [0; 28];
    segment[0] = 0x02;
    segment[2..4].copy_from_slice(&0x18_u16.to_be_bytes());
    segment[6..8].copy_from_slice(&1_u16.to_be_bytes());
    segment[10..12].copy_from_slice(&((count * SECTORS) as u16).to_be_bytes());
    segment[12..20].copy_from_slice(&(source_block * SECTORS).to_be_bytes());
    segment[20..28].copy_from_slice(&(block * SECTORS).to_be_bytes());
    list.extend_from_slice(&segment);
    let mut cdb = vec![0; 16];
    cdb[0] = 0x83;
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    (cdb, list)
}

/// INQUIRY of vital product data page 83h.
pub(super) fn device_identification() -> Vec<u8> {
    vec![0x12, 1, 0x83, 0x02, 0, 0]
}

/// Returns the NAA designator of the logical unit in page 83h (SPC-4, 7.8.6).
pub(super) fn naa_of(page: &[u8]) -> Option<Naa> {
    let mut rest = page.get(4..)?;
    while let [code, kind, _, length, more @ ..] = rest {
        let designator = more.get(..usize::from(*length))?;
        if code & 0x0f == 1 && kind & 0x3f == 3 && designator.len() == 16 {
            return designator.try_into().ok();
        }
        rest = &more[usize::from(*length)..];
    }
    None
}

/// PERSISTENT RESERVE IN: READ KEYS (0) or READ RESERVATION (1).
pub(super) fn persistent_reserve_in(action: u8) -> Vec<u8> {
    vec![0x5e, action, 0, 0, 0, 0, 0, 0x02, 0, 0]
}

/// The destination of a reservation: the name of the initiator port, and the relative identifier of
/// the target port.
pub(super) struct MoveTo {
    pub(super) initiator_name: String,
    pub(super) isid: [u8; 6],
    pub(super) port: u16,
}

/// PERSISTENT RESERVE OUT, with its parameter list. `aborts` makes PREEMPT the one that aborts.
pub(super) fn persistent_reserve_out(
    action: Action,
    aborts: bool,
    move_to: Option<&MoveTo>,
) -> (Vec<u8>, Vec<u8>) {
    let (code, kind, key, action_key) = match action {
        Action::Register { key, new_key, ignores_key: false, .. } => (0, 0, key, new_key),
        Action::Register { key, new_key, .. } => (6, 0, key, new_key),
        Action::Reserve { key, kind } => (1, kind as u8, key, 0),
        Action::Release { key, kind } => (2, kind as u8, key, 0),
        Action::Clear { key } => (3, 0, key, 0),
        Action::Preempt { key, victim, kind } => (4 + u8::from(aborts), kind as u8, key, victim),
        Action::Move { key, new_key, .. } => (7, 0, key, new_key),
    };
    let mut list = key.to_be_bytes().to_vec();
    list.extend_from_slice(&action_key.to_be_bytes());
    list.resize(24, 0);
    match action {
        Action::Register { is_kept, .. } => list[20] = u8::from(is_kept),
        Action::Move { unregisters, is_kept, .. } => {
            list[17] = u8::from(unregisters) << 1 | u8::from(is_kept);
            if let Some(to) = move_to {
                let id = transport_id(to);
                list[18..20].copy_from_slice(&to.port.to_be_bytes());
                list[20..24].copy_from_slice(&(id.len() as u32).to_be_bytes());
                list.extend_from_slice(&id);
            }
        }
        _ => {}
    }
    let mut cdb = vec![0x5f, code, kind, 0, 0];
    cdb.extend_from_slice(&(list.len() as u32).to_be_bytes());
    cdb.push(0);
    (cdb, list)
}

/// The TransportID of an iSCSI initiator port (SPC-4, 7.6.4.6).
fn transport_id(to: &MoveTo) -> Vec<u8> {
    let mut name = to.initiator_name.clone();
    name.push_str(",i,0x");
    to.isid.iter().for_each(|byte| name.push_str(&format!("{byte:02x}")));
    let mut name = name.into_bytes();
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(20), 0);
    let [high, low] = (name.len() as u16).to_be_bytes();
    let mut id = vec![0x45, 0, high, low];
    id.extend_from_slice(&name);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_designator_is_found_among_others() {
        let naa: Naa = std::array::from_fn(|at| 0x60 + at as u8);
        let mut page = vec![0, 0x83, 0, 0];
        page.extend_from_slice(&[0x02, 0x01, 0, 2, 7, 7]);
        page.extend_from_slice(&[0x01, 0x03, 0, 16]);
        page.extend_from_slice(&naa);
        assert_eq!(naa_of(&page), Some(naa));
        assert_eq!(naa_of(&page[..20]), None);
    }

    #[test]
    fn parameter_list_lengths_match_their_headers() {
        let (cdb, list) = unmap(&[(1, 2), (3, 4)]);
        assert_eq!((list.len(), cdb[8], list[1], list[3]), (40, 40, 38, 32));
        let to = MoveTo { initiator_name: "iqn.x:y".into(), isid: [0x80; 6], port: 2 };
        let id = transport_id(&to);
        assert_eq!(id.len(), 4 + usize::from(id[3]));
        assert!(id.starts_with(b"\x45\0\0\x1ciqn.x:y,i,0x808080808080\0"));
    }
}
