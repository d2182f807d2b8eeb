//! All decoders of the on-disk format. Decoded values are encoded again and must give the same
//! bytes, which finds decoders that ignore bytes, and wrong encoders.
//!
//! The first byte of an input selects the decoder; the others are its input.

use format::codec::Reader;
use format::label::LABEL_BYTES;
use format::log::{LogPosition, RECORD_HEADER_BYTES};
use format::map::{Fanout, MapEntry, NODE_BYTES, Node};
use format::page::{PageRef, REFS_PER_DIRECTORY, StreamRef, TableRoot};
use format::page::{decode_stream_piece, encode_stream_piece};
use format::row::ROW_BYTES;
use format::segment_row::{SEGMENT_ROW_BYTES, SHORT_SEGMENT_ROW_BYTES};
use format::superblock::SUPERBLOCK_BYTES;
use format::{
    ChunkId, ChunkRow, Compared, Entry, Fingerprint, Geometry, Handling, HostState, Keys, Label,
    NodeId, NodeRow, PartsMap, Place, RecordHeader, Seal, SegmentRow, StoreFlags, Superblock,
    VolumeRow,
};

use crate::input::Input;

/// The offset of a superblock's own checksum.
pub const SUPERBLOCK_SUM_AT: usize = 4064;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.u8() % 13 {
        0 => superblock(input.rest()),
        1 => record(input.rest()),
        2 => entries(input.rest()),
        3 => node(&mut input),
        4 => chunk_row(&input.array()),
        5 => node_row(&input.array()),
        6 => volume_row(&input.array()),
        7 => segment_row(&input.array()),
        8 => stream_piece(input.rest()),
        9 => host_state(&[input.rest()]),
        10 => {
            let rest = input.rest();
            let (one, two) = rest.split_at(rest.len() / 2);
            host_state(&[one, two]);
        }
        11 => directory(input.rest()),
        _ => label(input.rest()),
    }
}

/// Writes the right checksum into a superblock.
pub fn seal_superblock(superblock: &mut [u8]) {
    let sum = format::checksum::superblock_sum(&superblock[..SUPERBLOCK_SUM_AT]);
    superblock[SUPERBLOCK_SUM_AT..].copy_from_slice(&sum);
}

fn parts_map(bytes: &[u8]) {
    let length = PartsMap::stored_bytes(bytes);
    if let Ok((map, named)) = PartsMap::decode(bytes) {
        let (again, sum) = map.encode();
        assert_eq!((Ok(again.len()), sum), (length, named));
    }
}

fn label(bytes: &[u8]) {
    parts_map(bytes);
    assert!(bytes.len() == LABEL_BYTES || Label::decode(bytes).is_err());
    let mut raw = bytes.to_vec();
    raw.resize(LABEL_BYTES, 0);
    // Its checksum has the same offset as that of a superblock.
    seal_superblock(&mut raw);
    if let Ok(decoded) = Label::decode(&raw) {
        assert_eq!(decoded.encode(), raw);
    }
}

fn superblock(bytes: &[u8]) {
    assert!(bytes.len() == SUPERBLOCK_BYTES || Superblock::decode(bytes).is_err());
    let mut raw = bytes.to_vec();
    raw.resize(SUPERBLOCK_BYTES, 0);
    seal_superblock(&mut raw);
    if let Ok(decoded) = Superblock::decode(&raw) {
        assert_eq!(Superblock::decode(&decoded.encode()).as_ref(), Ok(&decoded));
        let Geometry { part_bytes, segment_count, .. } = decoded.geometry;
        assert!(part_bytes * u64::from(segment_count) <= decoded.capacity_bytes);
    }
}

fn host_state(parts: &[&[u8]]) {
    if let Ok(state) = HostState::decode(parts.iter().copied()) {
        let again = state.encode();
        assert_eq!(HostState::decode(again.iter().map(|part| &part[..])), Ok(state));
    }
}

fn record(bytes: &[u8]) {
    let keys = Keys::derive(&[1; 32]);
    let Ok(header) = RecordHeader::decode(bytes) else { return };
    header.verify(bytes, &keys);
    let _ = header.entries(bytes);
    assert!(header.total_blocks() >= 1);
    // Sealed again, it must be valid.
    let end = RECORD_HEADER_BYTES + (header.entries_bytes + header.copied_bytes) as usize;
    let mut sealed = bytes.to_vec();
    sealed.resize(end.max(sealed.len()), 0);
    header.seal(&mut sealed, &keys);
    let again = RecordHeader::decode(&sealed).expect("it was decoded before");
    assert!(again.verify(&sealed, &keys));
    let _ = again.entries(&sealed);
}

fn entries(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(entry) = { Entry::decode(&mut reader) } {
        let mut encoded = Vec::new();
        entry.encode(&mut encoded);
        let with_length = encoded.len() + format::entry::ENTRY_LENGTH_BYTES;
        assert_eq!(with_length, entry.encoded_bytes(), "{entry:?}");
        let again = Entry::decode(&mut Reader::new(&encoded));
        assert_eq!(again.as_ref(), Ok(&entry));
    }
}

fn node(input: &mut Input<'_>) {
    let level = input.u8();
    let mut raw = input.rest().to_vec();
    assert!(raw.len() == NODE_BYTES || Node::decode(&raw, level).is_err());
    raw.resize(NODE_BYTES, 0);
    if let Ok(node) = Node::decode(&raw, level) {
        let mut encoded = [0; NODE_BYTES];
        node.encode(&mut encoded);
        assert_eq!(encoded[..], raw[..]);
        assert_eq!(node.entries().count(), 256);
    }
}

fn chunk_row(raw: &[u8; ROW_BYTES]) {
    let Some(row) = ChunkRow::decode(raw) else { return };
    let mut encoded = [0; ROW_BYTES];
    row.encode(&mut encoded);
    assert_eq!(encoded, *raw);
    assert!(row.share_units() <= u32::from(row.stored_units));
    for change in [1, -1, i32::MIN] {
        let mut counted = *raw;
        let count = ChunkRow::count_references(&mut counted, change);
        assert_eq!(count, format::row::counted(row.reference_count, change));
    }
}

fn node_row(raw: &[u8; ROW_BYTES]) {
    let Some(row) = NodeRow::decode(raw) else { return };
    let mut encoded = [0; ROW_BYTES];
    row.encode(&mut encoded);
    assert_eq!(encoded, *raw);
    assert_eq!(NodeRow::block_counts(raw), Some((row.mapped_blocks, row.data_blocks)));
}

fn volume_row(raw: &[u8; ROW_BYTES]) {
    let Some(row) = VolumeRow::decode(raw, Fanout::DEFAULT) else { return };
    let mut encoded = [0; ROW_BYTES];
    row.encode(&mut encoded);
    assert_eq!(VolumeRow::decode(&encoded, Fanout::DEFAULT), Some(row));
}

fn segment_row(raw: &[u8; SEGMENT_ROW_BYTES]) {
    if let Some(row) = SegmentRow::decode_short(&raw[..SHORT_SEGMENT_ROW_BYTES]) {
        assert_eq!(SegmentRow::decode_short(&row.encode_short()), Some(row));
    }
    let segment = raw[52..56].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let Ok(row) = SegmentRow::decode(raw, segment) else { return };
    let mut encoded = [0; SEGMENT_ROW_BYTES];
    row.encode(segment, &mut encoded);
    assert_eq!(encoded, *raw);
}

fn stream_piece(bytes: &[u8]) {
    let Ok((next, content)) = decode_stream_piece(bytes) else { return };
    let again = encode_stream_piece(next, content);
    assert_eq!(decode_stream_piece(&again), Ok((next, content)));
}

fn directory(bytes: &[u8]) {
    let mut raw = bytes.to_vec();
    raw.resize(format::page::PAGE_BYTES, 0);
    let geometry = Geometry::for_capacity(1 << 30).expect("1 GiB is enough");
    for index in 0..REFS_PER_DIRECTORY as usize {
        let reference = PageRef::in_directory(&raw, index);
        let mut copy = raw.clone();
        reference.put_in_directory(&mut copy, index);
        assert_eq!(copy, raw);
        geometry.contains(reference.place, 4096);
    }
}

fn superblock_seed() -> Vec<u8> {
    let page = PageRef { place: Place { segment: 2, offset_units: 3 }, checksum: 4 };
    let stream = StreamRef { page, length_bytes: 5 };
    let superblock = Superblock {
        version: format::FormatVersion::default(),
        features: format::Features::KNOWN,
        incarnation: 1,
        pool_id: [1; 16],
        root_key: [2; 32],
        sequence: 3,
        epoch: 4,
        capacity_bytes: 1 << 30,
        geometry: Geometry::for_capacity(1 << 30).expect("1 GiB is enough"),
        metadata_segment: 5,
        metadata_block: 6,
        next_chunk: ChunkId(7),
        next_node: NodeId(8),
        next_volume: block::VolumeId(9),
        log: LogPosition { segment: 1, block: 1, next_segment: 2, lsn: 3, previous: Seal([4; 16]) },
        chunks: TableRoot { page, height: 1 },
        nodes: TableRoot { page, height: 2 },
        volumes: TableRoot::default(),
        segments: StreamRef::default(),
        config: StreamRef::default(),
        pending: stream,
        leaves: TableRoot { page, height: 0 },
        segment_table: TableRoot { page, height: 0 },
    };
    superblock.encode()
}

/// Returns one entry of each kind.
pub fn all_entries() -> Vec<Entry> {
    let (volume, other) = (block::VolumeId(1), block::VolumeId(2));
    let (first, payload_units) = (ChunkId(40), 64);
    let fingerprints = vec![Fingerprint([9; 16]); 2];
    let codec = format::Codec::Lz4;
    let flags = StoreFlags::default();
    vec![
        Entry::Store { first, payload_units, flags, fingerprints: fingerprints.clone() },
        Entry::StoreGroup {
            first,
            payload_units,
            stored_units: 64,
            codec,
            flags: StoreFlags { staged: true, ..flags },
            fingerprints: fingerprints.clone(),
        },
        Entry::Map { volume, start: 8, count: 2, first },
        Entry::Fill { volume, start: 0, count: 256, entry: MapEntry::Pattern(7) },
        Entry::Copy {
            source: volume,
            source_start: 0,
            destination: other,
            destination_start: 256,
            count: 256,
        },
        Entry::VolumeCreate { volume: other, size_blocks: 1024 },
        Entry::VolumeResize { volume, size_blocks: 2048 },
        Entry::VolumeDestroy { volume },
        Entry::VolumeClone { source: volume, volume: other, snapshot: true },
        Entry::VolumeOverwrite { source: volume, volume: other },
        Entry::Config { key: b"k".to_vec(), value: Some(b"v".to_vec()) },
        Entry::Config { key: b"k".to_vec(), value: None },
        Entry::RelocateGroup {
            payload_units,
            stored_units: 9,
            codec: format::Codec::Zstd,
            chunks: vec![(first, fingerprints[0]), (ChunkId(7), fingerprints[1])],
        },
        Entry::Compared(Box::new(Compared {
            volume,
            start: 3,
            count: 1,
            nexus: fingerprints[0],
            old: fingerprints[0],
            new: fingerprints[1],
            session: 4,
            command: 5,
            at_ms: 6,
        })),
        Entry::Relocate { first, payload_units, fingerprints },
        Entry::Release { first, count: 2 },
        Entry::Alias { chunk: first, original: ChunkId(7) },
        Entry::VolumeHandling {
            volume,
            handling: Handling { uncompressed: true, unshared: false },
        },
    ]
}

fn record_seed(entries: &[Entry]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let version = format::RecordVersion::V3;
    entries.iter().for_each(|entry| version.add(entry, &mut encoded));
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend(&encoded);
    record.resize(4096, 0);
    let header = RecordHeader {
        version,
        lsn: 5,
        epoch: 2,
        flushed_lsn: 4,
        previous: Seal([3; 16]),
        header_blocks: 1,
        payload_blocks: 2,
        entries_bytes: encoded.len() as u32,
        entry_count: entries.len() as u32,
        next_segment: 3,
        copied_bytes: 0,
        seal: Seal::default(),
    };
    header.seal(&mut record, &Keys::derive(&[1; 32]));
    record
}

/// Returns a valid input for each decoder.
pub fn seeds() -> Vec<Vec<u8>> {
    let place = Place { segment: 2, offset_units: 128 };
    let mut node = [0; NODE_BYTES + 1];
    node[0] = 1;
    Node::uniform(MapEntry::Chunk(ChunkId(9)), Fanout::DEFAULT).encode(&mut node[1..]);
    let row = NodeRow {
        place,
        reference_count: 1,
        checksum: 2,
        mapped_blocks: 3,
        data_blocks: 3,
        level: 1,
    };
    let (mut node_row, mut volume_row) = ([0; ROW_BYTES], [0; ROW_BYTES]);
    row.encode(&mut node_row);
    let root = MapEntry::Node(NodeId(1));
    let handling = Handling::default();
    VolumeRow { root, size_blocks: 512, level: 2, snapshot: true, handling }
        .encode(&mut volume_row);
    let chunk_row = [2, 0, 0, 0, 64, 0, 0, 0, 64, 0, 1, 0x10, 1, 0, 0, 0];
    let piece = encode_stream_piece(StreamRef::default(), b"content");
    let mut seeds = vec![
        [&[0][..], &superblock_seed()].concat(),
        [&[1][..], &record_seed(&all_entries())].concat(),
        [&[3][..], &node].concat(),
        [&[4][..], &chunk_row].concat(),
        [&[5][..], &node_row].concat(),
        [&[6][..], &volume_row].concat(),
        [&[7][..], &[1, 0, 0, 0, 9, 0, 0, 0, 1]].concat(),
        [&[8][..], &piece].concat(),
        [&[9][..], &[2, 0, 0, 0, 64, 0, 0, 0, 1]].concat(),
    ];
    for entry in all_entries() {
        let mut seed = vec![2];
        entry.encode(&mut seed);
        seeds.push(seed);
    }
    seeds
}
