//! Maps of parts, in their stored form.

use super::*;

fn map() -> PartsMap {
    let mut map =
        PartsMap { sequence: 7, emptied: 1 << 63, spares: 2, ..PartsMap::new([5; 16], 4) };
    let part = |device, number| Part { device, number };
    map.push(&[part(0, 1), part(9, 3), part(63, PART_NUMBER_MAX), part(2, 1)]);
    map.push(&[part(2, 2), part(0, 2), part(9, 1), part(1, 1)]);
    map
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let entries = Header::decode(&bytes).map_or(0, |header| header.entries);
    let end = (HEADER_BYTES + 4 * entries).min(bytes.len());
    let sum = sum_of(&bytes[..end]);
    bytes[SUM_AT..HEADER_BYTES].copy_from_slice(&sum);
    bytes
}

#[test]
fn golden_bytes_of_a_map() {
    let (bytes, named) = map().encode();
    assert_eq!(
        (bytes.len(), bytes[..16].to_vec()),
        (8192, b"HOLDPART\x01\0\0\0\x04\x02\0\0".to_vec())
    );
    assert_eq!((bytes[16], bytes[32], bytes[40], bytes[55]), (5, 7, 3, 0x80));
    assert_eq!(bytes[4096..4104], [1, 0, 0, 0, 3, 0, 0, 9 << 2]);
    assert_eq!(bytes[4104..4108], [0xff; 4]);
    assert_eq!(PartsMap::stored_bytes(&bytes), Ok(8192));
    assert_eq!(PartsMap::decode(&bytes), Ok((map(), named)));
    assert_eq!((map().segment_count(), map().column_on(2, 9)), (3, Some(2)));
    assert_eq!((map().part(1, 3), map().column_on(1, 7)), (Part { device: 2, number: 1 }, None));
}

#[test]
fn unknown_values_are_refused() {
    let (bytes, _) = map().encode();
    for (at, value) in [
        (0, b'h'),
        (8, 3),  // a version
        (8, 2),  // one that these segments do not need
        (12, 2), // columns
        (12, 19),
        (14, 1),
        (40, 0),    // no segments at all
        (42, 1),    // more than there are bytes
        (43, 0xff), // more than there can be
        (44, 1),
        (56, 1),
        (4096, 0),     // part 0
        (4112, 1),     // a part of two segments
        (4096 + 7, 0), // a segment twice on device 0
    ] {
        let mut forged = bytes.clone();
        forged[at] = value;
        assert!(PartsMap::decode(&sealed(forged)).is_err(), "byte {at}");
    }
    assert_eq!(sealed(bytes.clone()), bytes);
    let mut bytes = bytes;
    for at in (0..4128).chain(4100..4128) {
        bytes[at] ^= 0x10;
        assert!(PartsMap::decode(&bytes).is_err(), "byte {at}");
        bytes[at] ^= 0x10;
    }
    for end in [0, 4095, 4096, 4127] {
        assert!(PartsMap::decode(&bytes[..end]).is_err());
    }
}

#[test]
fn segments_may_have_different_widths() {
    let part = |device, number| Part { device, number };
    let mut wide = map();
    wide.push(&[part(1, 5), part(2, 5), part(3, 5), part(4, 5), part(5, 5)]);
    wide.push(&[part(1, 6), part(2, 6), part(3, 6), part(4, 6)]);
    assert_eq!((wide.columns_max(), wide.made_with(), wide.is_uniform()), (5, 4, false));
    assert_eq!([1, 2, 3, 4].map(|segment| wide.columns_of(segment)), [4, 4, 5, 4]);
    assert_eq!(wide.parts(2).collect::<Vec<_>>(), map().parts(2).collect::<Vec<_>>());
    assert_eq!((wide.column_on(3, 5), wide.column_on(4, 5)), (Some(4), None));
    let (bytes, named) = wide.encode();
    assert_eq!((bytes[8], bytes[12], bytes[14]), (2, 5, 4));
    assert_eq!(bytes[4096 + 16..4096 + 20], [0; 4]);
    assert_eq!(PartsMap::decode(&bytes), Ok((wide.clone(), named)));
    // One with three columns, one with a gap, and impossible numbers for a new pool.
    for (at, value) in [(4096 + 60 + 12, 0), (4096 + 60 + 4, 0), (14, 0), (14, 19), (15, 1)] {
        let mut forged = bytes.clone();
        forged[at..at + 4 * usize::from(at >= 4096)].fill(value);
        forged[at] = value;
        assert!(PartsMap::decode(&sealed(forged)).is_err(), "byte {at}");
    }
    wide.lay(4, &[part(1, 6), part(2, 6), part(3, 6), part(6, 6), part(5, 6)]);
    wide.lay(3, &[part(1, 5), part(2, 5), part(3, 5), part(4, 5)]);
    assert_eq!([3, 4].map(|segment| wide.columns_of(segment)), [4, 5]);
    assert_eq!(PartsMap::decode(&wide.encode().0).map(|(map, _)| map), Ok(wide));
}

#[test]
fn a_pool_without_a_map_has_each_segment_on_all_devices() {
    let map = PartsMap::over_all([1; 16], 6, 20);
    assert_eq!((map.sequence, map.segment_count()), (0, 20));
    assert_eq!(map.part(7, 4), Part { device: 5, number: 7 });
    assert_eq!(map.check(), Ok(()));
}

#[test]
fn the_locations_of_the_map_overlap_nothing() {
    use crate::label::LABEL_OFFSETS_BYTES;
    use crate::superblock::{SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES};
    let others = [LABEL_OFFSETS_BYTES, SUPERBLOCK_OFFSETS_BYTES].concat();
    for start in PARTS_MAP_OFFSETS_BYTES {
        let end = start + PARTS_MAP_BYTES_MAX;
        assert!(end <= 16 << 20);
        for other in others.iter().chain(&[SUPERBLOCK_STAND_IN_OFFSET_BYTES]) {
            assert!(*other + (64 << 10) <= start || *other >= end, "{start} and {other}");
        }
    }
    // As many segments as a table of the usual size has, in the widest stripes.
    const { assert!(COLUMNS_IN_MAP_MAX >= 18 * 57_000) };
}
