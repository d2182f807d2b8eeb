//! Encoding and decoding entries.

use super::*;
use crate::codec::Reader;
use crate::log::RecordVersion;

fn one_of_each() -> Vec<Entry> {
    let fingerprints = vec![Fingerprint([1; 16]), Fingerprint([2; 16])];
    let volume = VolumeId(3);
    vec![
        Entry::Store {
            first: ChunkId(1),
            payload_units: 64,
            flags: StoreFlags { staged: true, ..StoreFlags::default() },
            fingerprints: fingerprints.clone(),
        },
        Entry::StoreGroup {
            first: ChunkId(1),
            payload_units: 64,
            stored_units: 70,
            codec: Codec::Lz4,
            flags: StoreFlags {
                handling: Handling { uncompressed: false, unshared: true },
                staged: false,
            },
            fingerprints: fingerprints.clone(),
        },
        Entry::Map { volume, start: 9, count: 2, first: ChunkId(1) },
        Entry::Fill { volume, start: 9, count: 1 << 34, entry: MapEntry::Pattern(7) },
        Entry::Copy {
            source: volume,
            source_start: 1,
            destination: VolumeId(4),
            destination_start: 5,
            count: 6,
        },
        Entry::VolumeCreate { volume, size_blocks: 10 },
        Entry::VolumeResize { volume, size_blocks: 11 },
        Entry::VolumeDestroy { volume },
        Entry::VolumeClone { source: volume, volume: VolumeId(5), snapshot: true },
        Entry::Config { key: b"k".to_vec(), value: Some(b"value".to_vec()) },
        Entry::Config { key: b"k".to_vec(), value: None },
        Entry::TargetState { key: b"Si".to_vec(), value: Some(b"value".to_vec()) },
        Entry::TargetState { key: b"Si".to_vec(), value: None },
        Entry::Relocate { first: ChunkId(8), payload_units: 128, fingerprints },
        Entry::Release { first: ChunkId(8), count: 2 },
        Entry::VolumeHandling {
            volume,
            handling: Handling { uncompressed: true, unshared: false },
        },
        Entry::RelocateGroup {
            payload_units: 3,
            stored_units: 9,
            codec: Codec::Zstd,
            chunks: vec![(ChunkId(9), Fingerprint([3; 16])), (ChunkId(5), Fingerprint([4; 16]))],
        },
        Entry::Alias { chunk: ChunkId(9), original: ChunkId(5) },
        Entry::VolumeOverwrite { source: volume, volume: VolumeId(5) },
        Entry::Compared(Box::new(Compared {
            volume,
            start: 77,
            count: 255,
            nexus: Fingerprint([5; 16]),
            old: Fingerprint([6; 16]),
            new: Fingerprint([7; 16]),
            session: 8,
            command: 9,
            at_ms: 1 << 40,
        })),
    ]
}

#[test]
fn entries_survive_and_know_their_size() {
    for entry in one_of_each() {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        assert_eq!(bytes.len() + ENTRY_LENGTH_BYTES, entry.encoded_bytes(), "{entry:?}");
        let mut reader = Reader::new(&bytes);
        assert_eq!(Entry::decode(&mut reader), Ok(entry.clone()));
        assert_eq!(reader.remaining(), 0);
        for cut in 0..bytes.len() {
            assert!(Entry::decode(&mut Reader::new(&bytes[..cut])).is_err(), "{entry:?}");
        }
    }
}

#[test]
fn golden_bytes_of_a_copy() {
    let mut bytes = Vec::new();
    Entry::Copy {
        source: VolumeId(1),
        source_start: 0x0203,
        destination: VolumeId(4),
        destination_start: 5,
        count: 0x10_0000,
    }
    .encode(&mut bytes);
    let mut expected = vec![5, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0, 0, 0x10, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, expected);
}

#[test]
fn golden_bytes_of_a_compare_and_write() {
    let mut bytes = Vec::new();
    Entry::Compared(Box::new(Compared {
        volume: VolumeId(1),
        start: 0x0203,
        count: 4,
        nexus: Fingerprint([5; 16]),
        old: Fingerprint([6; 16]),
        new: Fingerprint([7; 16]),
        session: 8,
        command: 9,
        at_ms: 0x10_0000,
    }))
    .encode(&mut bytes);
    let mut expected = vec![17, 1, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0, 4];
    expected.extend([[5; 16], [6; 16], [7; 16]].concat());
    expected.extend_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[0, 0, 0x10, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, expected);
    // A command without sectors compares nothing, and is never recorded.
    bytes[17] = 0;
    assert!(Entry::decode(&mut Reader::new(&bytes)).is_err());
}

#[test]
fn impossible_counts_are_refused_before_memory_is_taken() {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.push(0);
    assert!(Entry::decode(&mut Reader::new(&bytes)).is_err());
}

#[test]
fn entries_have_their_declared_length_and_some_unknown_ones_are_skipped() {
    let decode = |bytes: &[u8]| Entry::decode_with_length(&mut Reader::new(bytes));
    for entry in one_of_each() {
        let mut bytes = Vec::new();
        RecordVersion::V3.add(&entry, &mut bytes);
        assert_eq!(bytes.len(), entry.encoded_bytes(), "{entry:?}");
        assert_eq!(decode(&bytes), Ok(Some(entry.clone())));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "{entry:?}");
        }
        // Longer than its fields, with another byte after them.
        bytes[0] = bytes[0].wrapping_add(1);
        bytes.push(0);
        assert!(decode(&bytes).is_err(), "{entry:?}");
    }
    assert_eq!(decode(&[3, 0, 0, 0, 128, 1, 2]), Ok(None));
    assert!(decode(&[3, 0, 0, 0, 127, 1, 2]).is_err());
    assert!(decode(&[4, 0, 0, 0, 128, 1, 2]).is_err());
    assert!(decode(&[0; 4]).is_err());
}
