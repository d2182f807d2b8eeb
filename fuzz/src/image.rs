//! A pool with changed bytes, with or without corrected checksums. The pool is refused, or it is
//! opened, checked and read. If the check finds nothing, it is used, closed and checked again, and
//! must still be sound.
//!
//! The lowest bit of an input's first byte selects whether checksums are corrected; then come
//! changes.

use std::sync::Arc;

use block::{SectorRange, VolumeId, VolumeReply, VolumeRequest};
use format::log::RECORD_HEADER_BYTES;
use format::map::MapEntry;
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSETS_BYTES};
use format::{ChunkId, Codec, Entry, Fingerprint, Handling, RecordHeader, Seal, StoreFlags};
use store::{CheckOptions, InspectOptions, Store};

use crate::disk::MemoryDisk;
use crate::input::{Input, Script};
use crate::pool::{Pool, open, reseal, write};

/// The maximum number of changes of an input.
const CHANGES_MAX: usize = 16;
/// The maximum numbers of added records, and of entries in each.
const RECORDS_MAX: usize = 4;
const ENTRIES_MAX: usize = 8;
/// The bytes of entries that fit into a header of one block.
const ENTRIES_BYTES_MAX: usize = 4096 - RECORD_HEADER_BYTES;
/// The number of volume ids to try.
const VOLUMES: std::ops::RangeInclusive<u64> = 1..=6;

fn chunk(input: &mut Input<'_>, pool: &Pool) -> ChunkId {
    let next = pool.superblock.next_chunk.0;
    ChunkId(match input.u8() {
        // Addresses in the log are also allocated.
        near @ 0..=127 => (next + 16).saturating_sub(u64::from(near & 0x3f)),
        128..=191 => u64::from(input.u8()),
        _ => input.number() >> 4,
    })
}

fn volume(input: &mut Input<'_>) -> VolumeId {
    VolumeId(match input.u8() {
        0xff => input.number(),
        few => u64::from(few & 7),
    })
}

fn sums(input: &mut Input<'_>) -> Vec<Fingerprint> {
    (0..=input.below(9)).map(|_| Fingerprint([input.u8(); 16])).collect()
}

fn handling(input: &mut Input<'_>) -> Handling {
    Handling { uncompressed: input.coin(), unshared: input.coin() }
}

fn flags(input: &mut Input<'_>) -> StoreFlags {
    StoreFlags { handling: handling(input), staged: input.coin() }
}

fn codec(input: &mut Input<'_>) -> Codec {
    if input.coin() { Codec::Lz4 } else { Codec::Zstd }
}

/// Returns an entry that the decoder accepts.
fn entry(input: &mut Input<'_>, pool: &Pool) -> Entry {
    let kind = input.u8() % 15;
    match kind {
        0 | 10 => {
            let (first, payload_units) = (chunk(input, pool), input.number() as u32);
            let fingerprints = sums(input);
            if kind == 10 {
                return Entry::Relocate { first, payload_units, fingerprints };
            }
            Entry::Store { first, payload_units, flags: flags(input), fingerprints }
        }
        1 => Entry::StoreGroup {
            first: chunk(input, pool),
            payload_units: input.number() as u32,
            stored_units: input.u16(),
            codec: codec(input),
            flags: flags(input),
            fingerprints: sums(input).into_iter().take(8).collect(),
        },
        2 => Entry::Map {
            volume: volume(input),
            start: input.number(),
            count: input.number() as u32,
            first: chunk(input, pool),
        },
        3 => Entry::Fill {
            volume: volume(input),
            start: input.number(),
            count: input.number(),
            entry: match input.u8() & 3 {
                0 => MapEntry::Hole,
                1 => MapEntry::Zero,
                2 => MapEntry::Pattern(input.u32()),
                _ => MapEntry::Chunk(chunk(input, pool)),
            },
        },
        4 => Entry::Copy {
            source: volume(input),
            source_start: input.number(),
            destination: volume(input),
            destination_start: input.number(),
            count: input.number(),
        },
        5..=8 | 12 => volume_entry(kind, input),
        9 => {
            let len = input.below(20);
            let key = input.bytes(len).to_vec();
            Entry::Config { key, value: input.coin().then(|| input.content()) }
        }
        13 => {
            let original = ChunkId(chunk(input, pool).0.max(1));
            let after = u64::from(input.u8()).saturating_add(1);
            Entry::Alias { chunk: ChunkId(original.0.saturating_add(after)), original }
        }
        14 => Entry::RelocateGroup {
            payload_units: input.number() as u32,
            stored_units: input.u16(),
            codec: codec(input),
            chunks: sums(input).into_iter().take(8).map(|sum| (chunk(input, pool), sum)).collect(),
        },
        _ => Entry::Release { first: chunk(input, pool), count: input.number() as u32 },
    }
}

/// Returns an entry that concerns a whole volume.
fn volume_entry(kind: u8, input: &mut Input<'_>) -> Entry {
    match kind {
        5 => Entry::VolumeCreate { volume: volume(input), size_blocks: input.number() },
        6 => Entry::VolumeResize { volume: volume(input), size_blocks: input.number() },
        7 => Entry::VolumeDestroy { volume: volume(input) },
        8 if input.coin() => {
            Entry::VolumeOverwrite { source: volume(input), volume: volume(input) }
        }
        8 => Entry::VolumeClone {
            source: volume(input),
            volume: volume(input),
            snapshot: input.coin(),
        },
        _ => Entry::VolumeHandling { volume: volume(input), handling: handling(input) },
    }
}

/// Returns encoded entries for a record, and their number.
fn entries(input: &mut Input<'_>, pool: &Pool) -> (Vec<u8>, u32) {
    let (mut encoded, mut count) = (Vec::new(), 0);
    for _ in 0..=input.below(ENTRIES_MAX) {
        let entry = entry(input, pool);
        if encoded.len() + entry.encoded_bytes() > ENTRIES_BYTES_MAX {
            break;
        }
        entry.encode(&mut encoded);
        count += 1;
    }
    (encoded, count)
}

/// The image being changed.
struct Changing<'a> {
    pool: &'a Pool,
    disk: &'a MemoryDisk,
    /// The offsets of the records, and the header of the last.
    records: Vec<u64>,
    last: (u64, RecordHeader),
}

impl Changing<'_> {
    /// Returns the offset and the length of a structure.
    fn structure(&self, input: &mut Input<'_>) -> (u64, usize) {
        let kind = input.u8();
        match kind >> 6 {
            0 => (SUPERBLOCK_OFFSETS_BYTES[usize::from(kind & 1)], SUPERBLOCK_BYTES.min(320)),
            1 => (self.records[usize::from(kind & 0x3f) % self.records.len()], 256),
            _ => {
                let piece = self.pool.pieces[usize::from(kind & 0x7f) % self.pool.pieces.len()];
                // Rows and entries in use are at the beginning.
                let bytes = self.disk.bytes(piece.at, piece.len);
                let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 33;
                (piece.at, used.min(piece.len))
            }
        }
    }

    fn change(&mut self, input: &mut Input<'_>) {
        match input.u8() % 8 {
            0..=2 => {
                let (at, len) = self.structure(input);
                let at = at + (usize::from(input.u16()) % len) as u64;
                let old = self.disk.bytes(at, 1)[0];
                self.disk.set_bytes(at, &[old ^ input.u8()]);
            }
            3 | 4 => {
                let (at, len) = self.structure(input);
                let width = input.pick(&[2, 4, 8, 4]);
                let at = at + (usize::from(input.u16()) % len) as u64 / 4 * 4;
                self.disk.set_bytes(at, &input.number().to_le_bytes()[..width]);
            }
            5 => {
                let record = self.records[input.below(self.records.len())];
                let (encoded, count) = entries(input, self.pool);
                self.set_entries(record, &encoded, count);
            }
            6 => {
                // A whole structure over another, like a misdirected write.
                let ((from, len), (to, room)) = (self.structure(input), self.structure(input));
                let bytes = self.disk.bytes(from, len.min(room));
                self.disk.set_bytes(to, &bytes);
            }
            _ => self.append(input),
        }
    }

    fn set_entries(&self, record: u64, encoded: &[u8], count: u32) {
        self.disk.set_bytes(record + RECORD_HEADER_BYTES as u64, encoded);
        self.disk.set_bytes(record + 52, &(encoded.len() as u32).to_le_bytes());
        self.disk.set_bytes(record + 60, &count.to_le_bytes());
    }

    /// Appends a record after the last.
    fn append(&mut self, input: &mut Input<'_>) {
        let (at, header) = self.last;
        let at = at + header.total_blocks() * 4096;
        if self.records.len() >= self.pool.records.len() + RECORDS_MAX {
            return;
        }
        let (encoded, entry_count) = entries(input, self.pool);
        let header = RecordHeader {
            lsn: header.lsn + 1,
            flushed_lsn: if input.coin() { header.lsn } else { input.number() },
            previous: header.seal,
            header_blocks: 1,
            payload_blocks: input.below(4) as u32,
            entries_bytes: encoded.len() as u32,
            entry_count,
            next_segment: if input.coin() { header.next_segment } else { input.number() as u32 },
            seal: Seal::default(),
            ..header
        };
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend(&encoded);
        record.resize(4096, 0);
        header.seal(&mut record, &format::Keys::derive(&self.pool.superblock.root_key));
        self.disk.set_bytes(at, &record);
        self.records.push(at);
        self.last = (at, header);
    }
}

fn changed(input: &mut Input<'_>) -> Arc<MemoryDisk> {
    let pool = Pool::get();
    let disk = pool.disk();
    let flags = input.u8();
    let last = *pool.records.last().expect("the pool has records");
    let records = pool.records.iter().map(|(at, _)| *at).collect();
    let mut changing = Changing { pool, disk: &disk, records, last };
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        changing.change(input);
    }
    if flags & 1 == 1 {
        reseal(&disk, pool, &changing.records);
    }
    disk
}

/// Reads like a host. Any answer is acceptable, but not a panic.
fn read_all(store: &Store) {
    for volume in VOLUMES.map(VolumeId) {
        let Some(status) = store.volume_status(volume) else { continue };
        let end = status.size.0;
        for (start, count) in [(0, 96), (2048, 64), (4096, 2048), (end.saturating_sub(8), 8)] {
            let range = SectorRange::new(start, count);
            let reply = store.execute(VolumeRequest::Read { volume, range });
            assert!(reply.is_err() || matches!(reply, Ok(VolumeReply::Data(_))));
        }
        let range = SectorRange::new(0, end);
        let _ = store.execute(VolumeRequest::Extents { volume, range, limit: 64 });
        let _ = store.execute(VolumeRequest::Space { volume });
    }
    let _ = (store.config(), store.pool_status());
}

fn is_sound(store: &Store) -> bool {
    store.check(CheckOptions { data: true }).is_ok_and(|report| report.findings.is_empty())
}

/// Uses a sound pool, and checks it again.
fn use_pool(store: Store, disk: &Arc<MemoryDisk>) {
    for volume in VOLUMES.map(VolumeId) {
        let Some(status) = store.volume_status(volume) else { continue };
        // A changed row may have turned a volume into a snapshot, which can't be written.
        if status.snapshot {
            continue;
        }
        if status.size.0 >= 64 {
            write(&store, volume, 1, 2, 17);
        }
        let range = SectorRange::new(0, status.size.0.min(4096));
        let unmap = VolumeRequest::Unmap { volume, ranges: vec![range] };
        if volume == VolumeId(2) {
            store.execute(unmap).expect("the pool is sound");
        }
    }
    store.checkpoint().expect("the pool is sound");
    let report = store.check(CheckOptions { data: true }).expect("the pool was sound");
    assert!(report.findings.is_empty(), "after its use: {:?}", report.findings);
    drop(store);
    let again = open(disk).expect("the pool was closed in order");
    let report = again.check(CheckOptions { data: true }).expect("the pool was sound");
    assert!(report.findings.is_empty(), "after it was opened again: {:?}", report.findings);
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let disk = changed(&mut input);
    let options = InspectOptions { volume: Some(VolumeId(3)), data: false };
    if let Ok(report) = store::inspect(disk.clone(), options) {
        assert!(!report.to_string().is_empty());
    }
    let Ok(store) = open(&disk) else { return };
    let sound = is_sound(&store);
    read_all(&store);
    if sound {
        use_pool(store, &disk);
    }
}

/// Returns the unchanged pool, changes of each kind, and each kind of entry after the log.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![0], vec![1]];
    for structure in [0u8, 1, 0x40, 0x43, 0x80, 0x83, 0x86, 0x89, 0x8c, 0x90] {
        for place in [0u16, 9, 40, 100, 200] {
            let start = Script::new().u8(1);
            seeds.push(start.clone().u8(0).u8(structure).u16(place).u8(1).done());
            seeds.push(start.u8(3).u8(structure).u8(1).u16(place).number(1 << 20).done());
        }
    }
    for kind in 0..12u8 {
        for what in [5u8, 7] {
            let start = Script::new().u8(1).u8(what);
            let start = if what == 5 { start.u8(2) } else { start };
            seeds.push(start.u8(0).u8(kind).u8(1).number(8).number(8).u8(2).number(4).done());
        }
    }
    seeds
}
