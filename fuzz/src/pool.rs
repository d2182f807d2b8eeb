//! A small pool on a disk: creates it, locates its structures, and corrects their checksums after
//! changes.

use std::sync::{Arc, OnceLock};

use block::{
    CopySegment, DataOut, Frame, FrameMut, Sector, SectorCount, SectorRange, VolumeId,
    VolumeRequest,
};
use format::log::{LogPosition, RECORD_HEADER_BYTES};
use format::map::NODE_BYTES;
use format::page::decode_stream_piece;
use format::page::{PAGE_BYTES, PageRef, REF_BYTES, REFS_PER_DIRECTORY, StreamRef, TableRoot};
use format::row::ROW_BYTES;
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSETS_BYTES};
use format::{Keys, LeafRow, NodeRow, Place, RecordHeader, Superblock};
use store::{Change, OpenOptions, Store, VolumeChange};

use crate::decode::seal_superblock;
use crate::disk::{Image, MemoryDisk};

/// The size of the pool, which is the minimum.
pub const POOL_BYTES: u64 = 256 << 20;

/// The offsets in a superblock of the root key, the log and the tables.
const ROOT_KEY_AT: u64 = 32;
const LOG_PREVIOUS_AT: u64 = 160;
const ROOTS_AT: [u64; 5] = [176, 200, 224, 352, 376];
const STREAMS_AT: [u64; 3] = [248, 272, 296];
/// What the rows of a table point to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Nodes,
    Leaves,
    Others,
}

/// The offset of the checksum in a reference and in the row of a node.
const SUM_IN_REFERENCE: u64 = 8;
const SUM_IN_NODE_ROW: u64 = 12;

/// A structure whose checksum is in its parent.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Its first byte on the disk.
    pub at: u64,
    /// Its length.
    pub len: usize,
    sum_at: u64,
}

/// A pool, and the locations of its structures.
pub struct Pool {
    image: Arc<Image>,
    /// The newest superblock.
    pub superblock: Superblock,
    /// Its location.
    pub superblock_at: u64,
    /// Pages, nodes and pieces of streams: children before their parents.
    pub pieces: Vec<Piece>,
    /// The records of the log, with their headers.
    pub records: Vec<(u64, RecordHeader)>,
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() }
}

/// Opens the pool on a disk.
pub fn open(disk: &Arc<MemoryDisk>) -> Result<Store, store::StoreError> {
    Store::open(disk.clone(), options())
}

fn done(result: Result<block::VolumeReply, block::VolumeError>) {
    result.expect("the pool is sound and has room");
}

/// Writes distinct blocks.
pub fn write(store: &Store, volume: VolumeId, block: u64, blocks: u64, seed: u8) {
    let bytes: Vec<u8> =
        (0..blocks * 4096).map(|at| (at / 4096) as u8 ^ (at as u8).wrapping_mul(seed)).collect();
    let range = SectorRange::new(block * 8, blocks * 8);
    let data = DataOut::from_bytes(&bytes, 0);
    done(store.execute(VolumeRequest::Write { volume, range, data, fua: false }));
}

fn copy(store: &Store, source: VolumeId, from: u64, destination: VolumeId, to: u64, blocks: u64) {
    let segment = CopySegment {
        source,
        source_start: Sector(from * 8),
        destination,
        destination_start: Sector(to * 8),
        count: SectorCount(blocks * 8),
    };
    done(store.execute(VolumeRequest::Copy { segments: vec![segment] }));
}

fn fill(store: &Store, volume: VolumeId, block: u64, blocks: u64, pattern: Frame) {
    let range = SectorRange::new(block * 8, blocks * 8);
    done(store.execute(VolumeRequest::Fill { volume, range, pattern, fua: false }));
}

fn create(store: &Store, blocks: u64) -> VolumeId {
    let id = store.allocate_volume_id();
    let volumes = vec![VolumeChange::Create { id, size: SectorCount(blocks * 8) }];
    let config = vec![(id.0.to_be_bytes().to_vec(), Some(b"a volume".to_vec()))];
    store.change(Change { volumes, config, ..Change::default() }).expect("the pool has room");
    id
}

/// Fills a pool: volumes of one, two and three levels, with data, patterns and copies that share
/// leaves; a checkpoint, and some records after it. The log is near the end of its segment, because
/// recovery scans the rest of the segment.
fn fill_pool(disk: &Arc<MemoryDisk>) {
    Store::create(&**disk, &[3; 64]).expect("the disk is large enough");
    let store = open(disk).expect("it was just made");
    let (small, middle, large) = (create(&store, 40), create(&store, 4096), create(&store, 80_000));
    for part in 0..4 {
        write(&store, middle, part * 900, 900, 3);
    }
    let unmap = |start: u64, blocks: u64| VolumeRequest::Unmap {
        volume: middle,
        ranges: vec![SectorRange::new(start * 8, blocks * 8)],
    };
    done(store.execute(unmap(0, 4096)));
    write(&store, small, 0, 12, 5);
    write(&store, middle, 256, 6, 7);
    write(&store, large, 70_000, 3, 9);
    copy(&store, middle, 256, large, 512, 256);
    copy(&store, middle, 256, large, 65_536, 256);
    fill(&store, large, 1024, 700, FrameMut::from_bytes(&[7; 4096]).freeze());
    store.checkpoint().expect("the disk does not fail");
    write(&store, small, 20, 2, 11);
    copy(&store, small, 0, middle, 300, 9);
    done(store.execute(unmap(258, 1)));
    create(&store, 300);
    fill(&store, large, 520, 5, Frame::zeros());
    write(&store, large, 600, 1, 13);
    let range = SectorRange::new(3, 2);
    done(store.execute(VolumeRequest::Zero { volume: small, range, fua: true }));
}

impl Pool {
    /// Returns the pool that all inputs change.
    pub fn get() -> &'static Self {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| {
            let disk = Arc::new(MemoryDisk::new(POOL_BYTES, Arc::default()));
            fill_pool(&disk);
            Self::find(&disk)
        })
    }

    /// Returns a new disk with the pool.
    pub fn disk(&self) -> Arc<MemoryDisk> {
        Arc::new(MemoryDisk::new(POOL_BYTES, self.image.clone()))
    }

    fn find(disk: &Arc<MemoryDisk>) -> Self {
        let copies = SUPERBLOCK_OFFSETS_BYTES.map(|at| {
            (at, Superblock::decode(&disk.bytes(at, SUPERBLOCK_BYTES)).expect("both are whole"))
        });
        let newest = copies.into_iter().max_by_key(|(_, superblock)| superblock.sequence);
        let (superblock_at, superblock) = newest.expect("there are two");
        let mut pool = Self {
            image: Arc::new(disk.image()),
            superblock,
            superblock_at,
            pieces: Vec::new(),
            records: Vec::new(),
        };
        let Superblock { chunks, nodes, volumes, leaves, segment_table, .. } =
            pool.superblock.clone();
        let Superblock { segments, config, pending, .. } = pool.superblock.clone();
        let roots = [chunks, nodes, volumes, leaves, segment_table];
        let rows = [Rows::Others, Rows::Nodes, Rows::Others, Rows::Leaves, Rows::Others];
        for ((root, at), rows) in roots.into_iter().zip(ROOTS_AT).zip(rows) {
            pool.find_table(disk, root, superblock_at + at, rows);
        }
        for (stream, at) in [segments, config, pending].into_iter().zip(STREAMS_AT) {
            pool.find_stream(disk, stream, superblock_at + at);
        }
        pool.find_records(disk);
        assert!(pool.pieces.len() > 8 && pool.records.len() > 6, "the pool has what it should");
        pool
    }

    /// Returns the offset of an address on the disk.
    pub fn offset(&self, place: Place) -> u64 {
        self.superblock.geometry.offset_bytes(place)
    }

    fn find_table(&mut self, disk: &MemoryDisk, root: TableRoot, at: u64, rows: Rows) {
        self.find_page(disk, root.page, root.height, at, rows);
    }

    fn find_page(&mut self, disk: &MemoryDisk, page: PageRef, level: u8, at: u64, rows: Rows) {
        if page.is_none() {
            return;
        }
        let start = self.offset(page.place);
        let bytes = disk.bytes(start, PAGE_BYTES);
        if level > 0 {
            for index in 0..REFS_PER_DIRECTORY as usize {
                let child_at = start + (index * REF_BYTES) as u64;
                let child = PageRef::in_directory(&bytes, index);
                self.find_page(disk, child, level - 1, child_at, rows);
            }
        } else if rows == Rows::Leaves {
            for (index, raw) in bytes.chunks_exact(ROW_BYTES).enumerate() {
                if let Some(row) = LeafRow::decode(raw) {
                    self.find_stream(disk, row.first, start + (index * ROW_BYTES) as u64);
                }
            }
        } else if rows == Rows::Nodes {
            for (index, raw) in bytes.chunks_exact(ROW_BYTES).enumerate() {
                let Some(row) = NodeRow::decode(raw).filter(|row| !row.place.is_none()) else {
                    continue;
                };
                let sum_at = start + (index * ROW_BYTES) as u64 + SUM_IN_NODE_ROW;
                let at = self.offset(row.place);
                self.pieces.push(Piece { at, len: NODE_BYTES, sum_at });
            }
        }
        self.pieces.push(Piece { at: start, len: PAGE_BYTES, sum_at: at + SUM_IN_REFERENCE });
    }

    fn find_stream(&mut self, disk: &MemoryDisk, stream: StreamRef, at: u64) {
        if stream.length_bytes == 0 {
            return;
        }
        let (start, len) = (self.offset(stream.page.place), stream.length_bytes as usize);
        let bytes = disk.bytes(start, len);
        let (next, _) = decode_stream_piece(&bytes).expect("the pool is sound");
        self.find_stream(disk, next, start);
        self.pieces.push(Piece { at: start, len, sum_at: at + SUM_IN_REFERENCE });
    }

    fn find_records(&mut self, disk: &MemoryDisk) {
        let mut position = self.superblock.log;
        while let Some((at, header)) = self.record(disk, &position) {
            let block = position.block + header.total_blocks() as u32;
            let (lsn, previous) = (header.lsn + 1, header.seal);
            position = LogPosition { block, lsn, previous, ..position };
            self.records.push((at, header));
        }
    }

    fn record(&self, disk: &MemoryDisk, at: &LogPosition) -> Option<(u64, RecordHeader)> {
        let offset_units = at.block * format::geometry::UNITS_PER_BLOCK;
        let start = self.offset(Place { segment: at.segment, offset_units });
        let header = RecordHeader::decode(&disk.bytes(start, RECORD_HEADER_BYTES)).ok()?;
        (header.lsn == at.lsn && header.previous == at.previous).then_some((start, header))
    }
}

/// Corrects all checksums, like an attacker with the pool's key.
pub fn reseal(disk: &MemoryDisk, pool: &Pool, records: &[u64]) {
    let mut root_key = [0; 32];
    root_key.copy_from_slice(&disk.bytes(pool.superblock_at + ROOT_KEY_AT, 32));
    let keys = Keys::derive(&root_key);
    for piece in &pool.pieces {
        let sum = keys.page_sum(&disk.bytes(piece.at, piece.len));
        disk.set_bytes(piece.sum_at, &sum.to_le_bytes());
    }
    let mut previous = disk.bytes(pool.superblock_at + LOG_PREVIOUS_AT, 16);
    for &at in records {
        disk.set_bytes(at + 32, &previous);
        let header = disk.bytes(at, RECORD_HEADER_BYTES);
        let length = u32::from_le_bytes([header[52], header[53], header[54], header[55]]);
        let length = (length as usize).min(1 << 20).min((POOL_BYTES - at) as usize - 96);
        let entries = disk.bytes(at + RECORD_HEADER_BYTES as u64, length);
        previous = keys.seal(&header[..64], &entries).0.to_vec();
        disk.set_bytes(at + 64, &previous);
    }
    for at in SUPERBLOCK_OFFSETS_BYTES {
        let mut bytes = disk.bytes(at, SUPERBLOCK_BYTES);
        seal_superblock(&mut bytes);
        disk.set_bytes(at, &bytes);
    }
}
