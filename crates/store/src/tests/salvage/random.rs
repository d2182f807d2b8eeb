//! 1,000 random blocks, damaged one at a time: nothing wrong is ever read, nothing answered is
//! missed in silence, and what can't open is salvaged but for what hangs on the damage.

use std::collections::HashMap;

use super::classes::records;
use super::*;
use crate::{StoreError, tests::salvage::rich::Rich};

const ROUNDS: u64 = 1_000;
const COLD: OpenOptions = OpenOptions {
    durability: crate::Durability::Commit,
    memory_bytes: 1 << 20,
    checkpoint_log_bytes: 1 << 40,
    tuning: crate::Tuning::DEFAULT,
};

/// Blocks of the device that a block of a volume is read from, by device block.
type Dependents = HashMap<u64, BTreeSet<(VolumeId, u64)>>;

/// Reads each block of the sound pool with nothing in memory, and notes what the device is asked.
fn dependents(pool: &Rich) -> Dependents {
    let mut dependents = Dependents::new();
    let disk = Recorder::over(pool.disk.clone());
    let mut salvage = Salvage::open(disk.clone(), WHOLE).unwrap();
    for (id, content) in &pool.content {
        for block in 0..content.len() as u64 / 4096 {
            salvage.forget();
            disk.asked.lock().clear();
            let range = block::BlockRange::new(block, 1);
            salvage.read_range(*id, range, &mut |_| Ok(())).unwrap();
            for at in disk.asked.lock().iter() {
                dependents.entry(*at).or_default().insert((*id, block));
            }
        }
    }
    dependents
}

/// A disk that notes which blocks are read.
struct Recorder {
    disk: Arc<MemoryDisk>,
    asked: Mutex<BTreeSet<u64>>,
}

impl Recorder {
    fn over(disk: Arc<MemoryDisk>) -> Arc<Self> {
        Arc::new(Self { disk, asked: Mutex::default() })
    }
}

impl sys::Disk for Recorder {
    fn len_bytes(&self) -> u64 {
        self.disk.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let first = offset_bytes / 4096;
        self.asked.lock().extend(first..first + frames.len() as u64);
        self.disk.read(offset_bytes, frames)
    }

    fn write(&self, _: u64, _: &[Frame]) -> io::Result<()> {
        Err(io::Error::other("nothing is written"))
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}

/// What one damage has led to.
#[derive(Debug, Default)]
struct Seen {
    opened: u64,
    refused: u64,
    lossy: u64,
    cut: u64,
    salvaged_all: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.lossy += other.lossy;
        self.cut += other.cut;
        self.salvaged_all += other.salvaged_all;
    }
}

/// Opens a damaged pool, and reads all of it: each block is right, or MEDIUM ERROR. `None`: it says
/// that it is damaged.
fn read_all(pool: &Rich, disk: &Arc<MemoryDisk>, damage: &str, last: bool) -> Option<Lost> {
    let store = match Store::open(disk.clone(), COLD) {
        Ok(store) => store,
        Err(StoreError::Damaged(_) | StoreError::NotAPool(_)) => return None,
        Err(other) => panic!("{damage}: {other}"),
    };
    let mut lost = Lost::new();
    for (id, content) in &pool.content {
        for block in 0..content.len() as u64 / 4096 {
            let range = SectorRange::new(block * 8, 8);
            match store.execute(VolumeRequest::Read { volume: *id, range }) {
                Ok(VolumeReply::Data(data)) => {
                    let want = &content[block as usize * 4096..][..4096];
                    assert!(data.to_vec() == want, "{damage}: block {block} of {id} is wrong");
                }
                Err(VolumeError::Medium { .. }) => {
                    lost.insert((*id, block), LossReason::Data);
                }

                other => panic!("{damage}: block {block} of {id}: {other:?}"),
            }
        }
    }
    // The last record has no witness: it changes one key.
    assert!(last || store.config().iter().any(|(key, _)| key == b"last"), "{damage}: rolled back");
    let found = store.check(CheckOptions { data: true });
    let told = !found.is_ok_and(|report| report.findings.is_empty());
    assert!(told || lost.is_empty(), "{damage}: the check finds nothing");
    Some(lost)
}

/// One round: a block of those that were ever written is damaged in one of several ways.
fn round(pool: &Rich, dependents: &Dependents, headers: &Headers, seed: u64, seen: &mut Seen) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5a5a;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let disk = pool.disk.copy();
    let blocks = disk.written_blocks();
    let at = blocks[random(blocks.len() as u64) as usize];
    let how = random(4);
    match how {
        0 => disk.flip(at * 4096, random(4096 * 8)),
        1 => disk.overwrite(at, Frame::zeros()),
        2 => disk.overwrite(at, FrameMut::from_bytes(&distinct(8, seed + 1000)).freeze()),
        _ => {
            let other = blocks[random(blocks.len() as u64) as usize];
            disk.overwrite(at, pool.disk.block(other));
        }
    }
    let damage = format!("seed {seed}: block {at}, way {how}");
    let last = headers.last.contains(&at);
    match read_all(pool, &disk.copy(), &damage, last) {
        Some(lost) => {
            seen.opened += 1;
            seen.lossy += u64::from(!lost.is_empty());
        }
        None => seen.refused += 1,
    }
    let (lost, cut) = salvage(pool, &disk);
    if cut.is_some() {
        seen.cut += 1;
        assert!(headers.all.contains(&at), "{damage}: the log is whole, and was cut");
        assert!(lost.is_empty(), "{damage}: {lost:?}");
        return;
    }
    seen.salvaged_all += u64::from(lost.is_empty());
    if headers.volumes.contains(&at) {
        return;
    }
    let none = BTreeSet::new();
    let hanging = dependents.get(&at).unwrap_or(&none);
    let more: Vec<_> = lost.keys().filter(|block| !hanging.contains(block)).collect();
    assert!(more.is_empty(), "{damage}: {more:?} do not hang on it");
}

/// Blocks of the device whose damage costs more than the blocks of volumes that are read there.
struct Headers {
    /// With headers and entries of records.
    all: BTreeSet<u64>,
    /// Of the last record.
    last: BTreeSet<u64>,
    /// With rows of volumes.
    volumes: BTreeSet<u64>,
}

fn headers(pool: &Rich) -> Headers {
    let blocks = |(at, header): &(u64, format::RecordHeader)| {
        at / 4096..at / 4096 + u64::from(header.header_blocks)
    };
    let records = records(&pool.disk);
    let all = records.iter().flat_map(blocks).collect();
    let last = records.iter().rev().take(1).flat_map(blocks).collect();
    let superblock = super::classes::superblock(&pool.disk);
    let page = superblock.geometry.offset_bytes(superblock.volumes.page.place) / 4096;
    Headers { all, last, volumes: BTreeSet::from([page]) }
}

#[test]
fn a_thousand_random_blocks_are_damaged_and_nothing_else_is_lost() {
    let pool = rich();
    let dependents = dependents(&pool);
    let headers = headers(&pool);
    let half = |first: u64| {
        let mut seen = Seen::default();
        for seed in (first..ROUNDS).step_by(2) {
            round(&pool, &dependents, &headers, seed, &mut seen);
        }
        seen
    };
    let (mut seen, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        (half(0), other.join().unwrap())
    });
    seen.add(&other);
    // Each way was met.
    let Seen { opened, refused, lossy, cut, salvaged_all } = seen;
    assert_eq!(opened + refused, ROUNDS);
    assert!(lossy > 0 && cut > 0 && salvaged_all > 0 && salvaged_all < ROUNDS, "{seen:?}");
}
