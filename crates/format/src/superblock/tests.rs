//! How superblocks are stored and validated.

use super::*;
use crate::geometry::Place;

fn superblock() -> Superblock {
    let page = PageRef { place: Place { segment: 2, offset_units: 3 }, checksum: 4 };
    let stream = StreamRef { page, length_bytes: 5 };
    Superblock {
        version: FormatVersion::V3,
        features: Features { compatible: 1 << 63 | 1, read_compatible: 1, incompatible: 3 },
        incarnation: 15,
        pool_id: [1; 16],
        root_key: [2; 32],
        sequence: 3,
        epoch: 4,
        capacity_bytes: 1 << 30,
        geometry: Geometry::for_capacity(1 << 30).unwrap(),
        metadata_segment: 5,
        metadata_block: 6,
        next_chunk: ChunkId(7),
        next_node: NodeId(8),
        next_volume: VolumeId(9),
        log: LogPosition {
            segment: 10,
            block: 11,
            next_segment: 12,
            lsn: 13,
            previous: Seal([14; 16]),
        },
        chunks: TableRoot { page, height: 1 },
        nodes: TableRoot { page, height: 2 },
        volumes: TableRoot::default(),
        segments: StreamRef::default(),
        config: StreamRef::default(),
        pending: stream,
        leaves: TableRoot { page, height: 0 },
        segment_table: TableRoot { page, height: 3 },
    }
}

#[test]
fn a_superblock_survives_and_every_flipped_byte_is_found() {
    let bytes = superblock().encode();
    assert_eq!(bytes.len(), SUPERBLOCK_BYTES);
    assert_eq!(Superblock::decode(&bytes), Ok(superblock()));
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        assert!(Superblock::decode(&flipped).is_err(), "byte {at}");
    }
}

#[test]
fn unknown_features_are_refused_according_to_their_kind() {
    let found = Superblock::decode(&superblock().encode()).unwrap();
    assert_eq!(found.features.unknown().read_compatible, 1);
    let mut next = superblock();
    next.features.incompatible = 1 << 40;
    let error = Superblock::decode(&next.encode()).unwrap_err();
    assert_eq!(error.offset, 336);
}

#[test]
fn version_2_has_no_later_fields() {
    let mut old = superblock();
    old.version = FormatVersion::V2;
    let bytes = old.encode();
    assert_eq!((bytes[8], &bytes[320..400]), (2, &[0; 80][..]));
    let found = Superblock::decode(&bytes).unwrap();
    assert_eq!((found.features, found.incarnation), Default::default());
    assert_eq!((found.leaves, found.segment_table), Default::default());
    assert_eq!(found.version, FormatVersion::V2);
    let mut later = superblock().encode();
    later[8] = 4;
    let sum = superblock_sum(&later[..SUM_AT]);
    later[SUM_AT..].copy_from_slice(&sum);
    assert_eq!(Superblock::decode(&later).unwrap_err().offset, 8);
}

#[test]
fn golden_offsets() {
    let bytes = superblock().encode();
    assert_eq!(&bytes[..8], b"HOLDFAST");
    assert_eq!(bytes[72], 4);
    assert_eq!(bytes[136..140], [10, 0, 0, 0]);
    assert_eq!(bytes[152..160], [13, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[192], 1);
    assert_eq!(bytes[296..300], [2, 0, 0, 0]);
    assert_eq!((bytes[8], bytes[327], bytes[328], bytes[344]), (3, 0x80, 1, 15));
    assert_eq!((bytes[336], bytes[352], bytes[360]), (3, 2, 4));
    assert_eq!((bytes[376], bytes[384], bytes[392]), (2, 4, 3));
}

#[test]
fn a_key_value_space_is_in_leaves_or_a_stream() {
    let both = Superblock { config: superblock().pending, ..superblock() };
    assert_eq!(Superblock::decode(&both.encode()).unwrap_err().offset, 352);
    let mut without = superblock();
    without.features.incompatible = Features::SEGMENT_TABLE;
    assert_eq!(Superblock::decode(&without.encode()).unwrap_err().offset, 352);
    without.leaves = TableRoot::default();
    assert!(Superblock::decode(&without.encode()).is_ok());
    // It becomes one of leaves with the next checkpoint.
    let next = Superblock { leaves: TableRoot::default(), ..both };
    assert!(Superblock::decode(&next.encode()).is_ok());
}

#[test]
fn a_segment_table_is_in_pages_or_a_stream() {
    let both = Superblock { segments: superblock().pending, ..superblock() };
    assert_eq!(Superblock::decode(&both.encode()).unwrap_err().offset, 376);
    let mut without = superblock();
    without.features.incompatible = Features::LEAVES;
    assert_eq!(Superblock::decode(&without.encode()).unwrap_err().offset, 376);
    without.segment_table = TableRoot::default();
    assert!(Superblock::decode(&without.encode()).is_ok());
    // It becomes one of pages with the next checkpoint.
    let next = Superblock { segment_table: TableRoot::default(), ..both };
    assert!(Superblock::decode(&next.encode()).is_ok());
}

#[test]
fn more_than_65_536_segments_need_the_table() {
    let mut large = superblock();
    large.capacity_bytes = 2 << 40;
    large.geometry.segment_count = 65_537;
    assert_eq!(Superblock::decode(&large.encode()), Ok(large.clone()));
    large.segment_table = TableRoot::default();
    large.features.incompatible = Features::LEAVES;
    assert!(Superblock::decode(&large.encode()).is_err());
    large.geometry.segment_count = 65_536;
    assert!(Superblock::decode(&large.encode()).is_ok());
}

#[test]
fn only_the_latest_has_all_features() {
    let mut old = Superblock { features: Features::default(), ..superblock() };
    assert!(superblock().is_latest() && !old.is_latest());
    old.features = old.features.with_known();
    assert!(old.is_latest());
    old.version = FormatVersion::V2;
    assert!(!old.is_latest());
}

#[test]
fn key_slots_are_refused() {
    for at in [1024, 3071] {
        let mut bytes = superblock().encode();
        bytes[at] = 1;
        let sum = superblock_sum(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum);
        assert_eq!(Superblock::decode(&bytes).unwrap_err().what, KEY_IN_SLOT);
    }
}
