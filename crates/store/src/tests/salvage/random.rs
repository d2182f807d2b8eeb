//! 10,000 random blocks, damaged one at a time: the pool opens, no read returns wrong data, and
//! only what that block alone held is lost.

use std::collections::HashMap;

use super::*;
use crate::tests::salvage::rich::Rich;

const ROUNDS: u64 = 10_000;
const COLD: OpenOptions = OpenOptions {
    durability: crate::Durability::Commit,
    memory_bytes: 1 << 20,
    checkpoint_log_bytes: 1 << 40,
    tuning: crate::Tuning::DEFAULT,
    upgrade: true,
    discard: false,
    takes_over: None,
    log_end: None,
};

/// Blocks of the device, and the blocks of volumes that are read from each.
type Dependents = HashMap<u64, BTreeSet<(VolumeId, u64)>>;

/// Reads each block of the sound pool with nothing in memory, and records the device's reads.
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

/// A disk that records which blocks are read.
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

/// The effects of the damages so far.
#[derive(Debug, Default)]
struct Seen {
    rounds: u64,
    /// Damages that lost blocks of volumes.
    lossy: u64,
}

/// Opens a damaged pool, and reads all of it: each block is right, or MEDIUM ERROR.
fn read_all(pool: &Rich, disk: &Arc<MemoryDisk>, damage: &str) -> Lost {
    let store = Store::open(disk.clone(), COLD);
    let store = store.unwrap_or_else(|error| panic!("{damage}: {error}"));
    let mut lost = Lost::new();
    // Whether the range could be read: if not, block by block.
    let mut read = |id: VolumeId, content: &[u8], first: u64, count: u64| {
        let range = SectorRange::new(first * 8, count * 8);
        match store.execute(VolumeRequest::Read { volume: id, range }) {
            Ok(VolumeReply::Data(data)) => {
                let want = &content[first as usize * 4096..][..count as usize * 4096];
                assert!(data.to_vec() == want, "{damage}: blocks {first} of {id} are wrong");
                true
            }
            Err(VolumeError::Medium { .. }) => {
                if count == 1 {
                    lost.insert((id, first), LossReason::Data);
                }
                false
            }
            other => panic!("{damage}: block {first} of {id}: {other:?}"),
        }
    };
    for (id, content) in &pool.content {
        let blocks = content.len() as u64 / 4096;
        for first in (0..blocks).step_by(64) {
            let count = (blocks - first).min(64);
            if !read(*id, content, first, count) {
                for block in first..first + count {
                    read(*id, content, block, 1);
                }
            }
        }
    }
    assert!(store.config().iter().any(|(key, _)| key == b"last"), "{damage}: rolled back");
    let found = store.check(CheckOptions { data: true });
    let told = !found.is_ok_and(|report| report.findings.is_empty());
    assert!(told || lost.is_empty(), "{damage}: the check finds nothing");
    lost
}

/// One round: damages one block of those ever written, in one of several ways. It loses what that
/// block alone held: blocks of volumes if it has any, or nothing.
fn round(pool: &Rich, dependents: &Dependents, seed: u64, seen: &mut Seen) {
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
        0 => disk.flip_one(at * 4096, random(4096 * 8)),
        1 => disk.overwrite(at, Frame::zeros()),
        2 => disk.overwrite(at, FrameMut::from_bytes(&distinct(8, seed + 1000)).freeze()),
        _ => {
            let other = blocks[random(blocks.len() as u64) as usize];
            disk.overwrite(at, pool.disk.block(other));
        }
    }
    let damage = format!("seed {seed}: block {at}, way {how}");
    let none = BTreeSet::new();
    let hanging = dependents.get(&at).unwrap_or(&none);
    let mut losses = vec![read_all(pool, &disk.copy(), &damage)];
    // This takes longer, and runs the same code as far as copies are concerned.
    if seed.is_multiple_of(10) {
        let (lost, cut) = salvage(pool, &disk);
        assert_eq!(cut, None, "{damage}");
        losses.push(lost);
    }
    for lost in losses {
        let more: Vec<_> = lost.keys().filter(|block| !hanging.contains(block)).take(9).collect();
        assert!(more.is_empty(), "{damage}: {more:?} do not depend on it");
        seen.lossy += u64::from(!lost.is_empty());
    }
    seen.rounds += 1;
}

#[test]
fn ten_thousand_random_blocks_are_damaged_and_nothing_else_is_lost() {
    let pool = rich();
    let dependents = dependents(&pool);
    let half = |first: u64| {
        let mut seen = Seen::default();
        for seed in (first..ROUNDS).step_by(2) {
            round(&pool, &dependents, seed, &mut seen);
        }
        seen
    };
    let (seen, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        (half(0), other.join().unwrap())
    });
    assert_eq!(seen.rounds + other.rounds, ROUNDS);
    // Both occurred: damage that loses something, and damage that loses nothing.
    let lossy = seen.lossy + other.lossy;
    assert!(lossy > 0 && lossy < ROUNDS, "{seen:?}, {other:?}");
}
