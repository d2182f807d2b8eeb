//! Locations of the device that refuse writes permanently: the data is written elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};

use format::geometry::UNITS_PER_BLOCK;
use format::{LogPosition, Place, SegmentState};

use super::failing::Answers;
use super::*;
use crate::log::log_reader::entry_blocks;
use crate::{Commit, Durability, Outcome, Started, Token};

/// Returns the device block of a block of a segment.
fn block_of(store: &Store, segment: u32, block: u32) -> u64 {
    let place = Place { segment, offset_units: block * UNITS_PER_BLOCK };
    store.world.medium.geometry().offset_bytes(place) / 4096
}

fn tail(store: &Store) -> LogPosition {
    store.writer.lock().log.end()
}

struct Bench {
    disk: Arc<MemoryDisk>,
    store: Store,
    answers: Arc<Answers>,
    token: Token,
    volume: VolumeId,
}

impl Bench {
    fn new() -> Self {
        let (disk, store) = pool(1 << 30);
        let answers = Arc::<Answers>::default();
        let token = Token { sink: store.register_sink(answers.clone()), id: 0 };
        let volume = volume(&store, MIB);
        Self { disk, store, answers, token, volume }
    }

    /// Starts a write of one block, and takes its commit.
    fn begin(&self, block: u64, bytes: &[u8]) -> Commit {
        let range = SectorRange::new(block * 8, 8);
        let data = DataOut::from_bytes(bytes, 0);
        let request = VolumeRequest::Write { volume: self.volume, range, data, fua: false };
        let token = Token { id: block, ..self.token };
        assert!(matches!(self.store.start(request, token), Started::Queued));
        self.store.take_commit().unwrap()
    }

    fn finish(&self, commit: Commit) {
        let result = self.store.write_out(&commit);
        self.store.finish_commit(commit, result);
    }

    /// Writes the same data `times` times; a reopened pool has all of it.
    fn is_found_behind(&self, data: &[u8], times: u64) {
        for time in 0..times {
            let other = distinct(data.len() as u64 / 512, 1000 + time);
            write(&self.store, self.volume, 0, &other).unwrap();
            write(&self.store, self.volume, 0, data).unwrap();
        }
        let reopened = Store::open(self.disk.copy(), OpenOptions::default()).unwrap();
        assert!(read(&reopened, self.volume, 0, data.len() as u64 / 512) == data);
        assert_sound(&reopened);
    }

    /// Returns which writes were acknowledged, and checks that they succeeded.
    fn answered(&self) -> Vec<u64> {
        let well = |(id, outcome)| match outcome {
            Outcome::Reply(Ok(_)) => id,
            other => panic!("write {id}: {other:?}"),
        };
        self.answers.0.lock().drain(..).map(well).collect()
    }
}

/// The first record is refused, but may have been written nevertheless; the later ones are on the
/// device. All of them move to the next segment, and none is acknowledged before. A crash at any
/// time keeps every acknowledged write.
#[test]
fn a_refused_record_goes_to_the_next_segment_with_all_later_ones() {
    for landed in [false, true] {
        let bench = Bench::new();
        let old = tail(&bench.store);
        let blocks: Vec<Vec<u8>> = (0..3).map(|at| distinct(8, at + 1)).collect();
        let mut commits: Vec<Commit> =
            (0..).zip(&blocks).map(|(at, b)| bench.begin(at, b)).collect();
        for commit in &commits[usize::from(!landed)..] {
            bench.store.write_out(commit).unwrap();
        }
        let first = commits.remove(0);
        bench.store.finish_commit(commits.remove(0), Ok(()));
        bench.store.finish_commit(first, Err(io::Error::other("a bad place")));
        assert!(bench.store.take_commit().is_none(), "one commit is still in flight");
        bench.store.finish_commit(commits.remove(0), Ok(()));
        assert_eq!(bench.answered(), [0; 0]);
        for answered in 1..=3 {
            let commit = bench.store.take_commit().unwrap();
            let end = block_of(&bench.store, old.next_segment, 4096);
            assert!(
                (block_of(&bench.store, old.next_segment, 0)..end)
                    .contains(&(bench.store.segments().locate(commit.place) / 4096))
            );
            bench.finish(commit);
            assert_eq!(bench.answered(), [answered - 1]);
            let crashed = Store::open(bench.disk.copy(), OpenOptions::default()).unwrap();
            for at in 0..answered {
                assert!(read(&crashed, bench.volume, at * 8, 8) == blocks[at as usize]);
            }
            assert_sound(&crashed);
        }
        assert!(bench.store.take_commit().is_none());
        assert!(tail(&bench.store).segment == old.next_segment && !bench.store.has_failed());
        assert_eq!(bench.store.moved_writes(), 1);
        // The next record is found after its new location, not after its first one.
        bench.is_found_behind(&blocks[2], 1);
        // The same holds after a checkpoint, which must not free the segment where the log
        // continues.
        bench.store.checkpoint().unwrap();
        bench.is_found_behind(&blocks[0], 1);
        bench.is_found_behind(&distinct(2048, 9), 40);
    }
}

/// If the first block of the next segment is bad as well, a link at the next location leads to the
/// following segment, and so on.
#[test]
fn a_segment_with_bad_first_blocks_is_skipped() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    let at = tail(&store);
    let here = block_of(&store, at.segment, at.block);
    let entries: Vec<u64> =
        entry_blocks(4096).map(|block| block_of(&store, at.next_segment, block)).collect();
    for bad in 0..entries.len() {
        let disk = disk.copy();
        let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        let places = entries[..bad].iter().chain([&here]).copied();
        disk.refuse_writes_to(places);
        for mib in 0..4 {
            write(&store, id, mib * MIB, &distinct(2048, mib + 1)).unwrap();
        }
        let reached = tail(&store).segment;
        assert_eq!(reached == at.next_segment, bad == 0, "{bad} bad places");
        let reopened = Store::open(disk.copy(), OpenOptions::default()).unwrap();
        for mib in 0..4 {
            assert!(read(&reopened, id, mib * MIB, 2048) == distinct(2048, mib + 1));
        }
        assert_sound(&reopened);
    }
    // All four are bad: the log can't continue.
    disk.refuse_writes_to(entries.iter().chain([&here]).copied());
    assert!(write(&store, id, 0, &distinct(8, 1)).is_err());
    assert!(store.has_failed());
}

/// With early acknowledgement the chunks of a record that moves already have their locations.
#[test]
fn data_acknowledged_early_moves_with_its_record() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { durability: Durability::Flush, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options).unwrap();
    let id = volume(&store, 8 * MIB);
    let at = tail(&store);
    let place = block_of(&store, at.segment, at.block);
    disk.refuse_writes_to([place]);
    for mib in 0..4 {
        write(&store, id, mib * MIB, &distinct(2048, mib + 1)).unwrap();
    }
    assert_eq!(store.moved_writes(), 1);
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    assert_sound(&store);
    let reopened = Store::open(disk.copy(), OpenOptions::default()).unwrap();
    for store in [&store, &reopened] {
        for mib in 0..4 {
            assert!(read(store, id, mib * MIB, 2048) == distinct(2048, mib + 1));
        }
    }
    assert_sound(&reopened);
}

/// While no segment is free, a record that is refused temporarily does not end writing: it is
/// retried at its location. A record that is refused permanently does. Found by the simulator.
#[test]
fn a_record_without_another_location_is_retried_at_its_own() {
    for lasts in [false, true] {
        let bench = Bench::new();
        let first = bench.begin(0, &distinct(8, 1));
        let behind = bench.begin(1, &distinct(8, 2));
        {
            let mut writer = bench.store.writer.lock();
            let lsn = writer.log.end().lsn;
            while writer.state.segments.open(SegmentState::Log, lsn).is_some() {}
        }
        bench.finish(behind);
        let (at, mut times) = (first.place, 0);
        let mut commit = Some(first);
        while let Some(first) = commit.take_if(|_| lasts || times < 50) {
            assert_eq!(first.place, at);
            assert!(times < 1000 && bench.answered().is_empty());
            bench.store.finish_commit(first, Err(std::io::Error::other("refused")));
            times += 1;
            commit = bench.store.take_commit();
        }
        assert_eq!(bench.store.has_failed(), lasts, "refused {times} times");
        if let Some(first) = commit {
            bench.finish(first);
            assert_eq!(bench.answered(), [0, 1]);
            assert!(read(&bench.store, bench.volume, 0, 8) == distinct(8, 1));
        }
    }
}

/// A checkpoint of which a part is refused is written elsewhere as a whole, and the store
/// continues; so does the next one, and a pool opened from either.
#[test]
fn a_refused_checkpoint_is_captured_elsewhere() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 600 * MIB);
    let fill = |round: u64| {
        for mib in (0..600).step_by(7) {
            write(&store, id, mib * MIB, &distinct(8, 1000 * round + mib)).unwrap();
        }
    };
    for round in 0..4 {
        fill(round);
        let (segment, block) = {
            let checkpointer = store.checkpointing.lock();
            let superblock = checkpointer.superblock();
            (superblock.metadata_segment, superblock.metadata_block)
        };
        // Where the checkpoint continues; initially, the free segments that it could open.
        let bad: Vec<u64> = match segment {
            0 => {
                let rows = store.writer.lock();
                let rows = rows.state.segments.rows();
                let free = rows.filter(|(at, row)| *at > 0 && row.state == SegmentState::Free);
                free.take(2).map(|(at, _)| block_of(&store, at, 3)).collect()
            }
            segment => vec![block_of(&store, segment, block + 3)],
        };
        disk.refuse_writes_to(bad);
        let moved = store.moved_writes();
        store.checkpoint().unwrap();
        assert!(store.moved_writes() > moved, "no write of the checkpoint was refused");
        assert_sound(&store);
        let reopened = Store::open(disk.copy(), OpenOptions::default()).unwrap();
        for mib in (0..600).step_by(7) {
            assert!(read(&reopened, id, mib * MIB, 8) == distinct(8, 1000 * round + mib));
        }
        assert_sound(&reopened);
    }
    disk.refuse_writes_to([]);
    fill(9);
    store.checkpoint().unwrap();
    assert_sound(&store);
}

/// One superblock can't be written: the store continues with the other one, scrubbing reports it,
/// and once the device accepts writes again both are equal.
#[test]
fn a_superblock_that_cant_be_written_does_not_end_writing() {
    for (bad, place) in format::superblock::SUPERBLOCK_OFFSETS_BYTES.into_iter().enumerate() {
        let (disk, store) = pool(1 << 30);
        let id = volume(&store, MIB);
        disk.refuse_writes_to([place / 4096]);
        for round in 0..4 {
            write(&store, id, round * 8, &distinct(8, round + 1)).unwrap();
            store.checkpoint().unwrap();
            let store = Store::open(disk.copy(), OpenOptions::default()).unwrap();
            assert!(read(&store, id, round * 8, 8) == distinct(8, round + 1));
            assert_sound(&store);
        }
        store.scrub_start(1);
        while store.scrub_step(1_000, 6).unwrap() != crate::ScrubStep::Complete {}
        let found = store.damage().findings;
        let expected = crate::What::Superblock(bad as u8);
        assert!(found.iter().any(|finding| finding.what == expected), "{found:?}");
        disk.refuse_writes_to([]);
        store.checkpoint().unwrap();
        let copies = segments::Shared::from(disk.clone()).root_copies();
        let mut sequences: Vec<u64> =
            copies.into_iter().map(|copy| copy.unwrap().sequence).collect();
        sequences.sort_unstable();
        assert_eq!(sequences.len(), 2, "no stand-in is left");
        assert_eq!(sequences[1], sequences[0] + 1);
        // Neither can be written: writing ends.
        let both = format::superblock::SUPERBLOCK_OFFSETS_BYTES.map(|at| at / 4096);
        disk.refuse_writes_to(both);
        assert!(store.checkpoint().is_err() && store.has_failed());
    }
}

/// A device that accepts nothing from its next superblock on, and tears the writes it refuses.
struct TearingDisk {
    below: Arc<MemoryDisk>,
    /// Good; good until the next superblock; failed.
    state: AtomicU64,
}

impl sys::Disk for TearingDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.below.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let is_superblock = format::superblock::SUPERBLOCK_OFFSETS_BYTES.contains(&offset_bytes);
        if is_superblock {
            let _ = self.state.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed);
        }
        if self.state.load(Ordering::Relaxed) < 2 {
            return self.below.write(offset_bytes, frames);
        }
        for (block, frame) in (offset_bytes / 4096..).zip(frames) {
            let mut torn = self.below.block(block).into_mut();
            torn[512..1024].copy_from_slice(&frame[512..1024]);
            torn[4064..].copy_from_slice(&frame[4064..]);
            self.below.overwrite(block, torn.freeze());
        }
        Err(io::Error::other("the device has failed"))
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}

/// A device that fails as a whole, unlike one bad block, must not tear the second superblock after
/// the first. Found by the simulator.
#[test]
fn a_failed_device_does_not_tear_both_superblocks() {
    let below = MemoryDisk::new(256 << 20);
    Store::create(&*below, &[7; 64]).unwrap();
    let disk = Arc::new(TearingDisk { below: below.clone(), state: AtomicU64::new(0) });
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    disk.state.store(1, Ordering::Relaxed);
    assert!(store.checkpoint().is_err() && store.has_failed());
    drop(store);
    let store = Store::open(below, OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 8) == distinct(8, 1));
    assert_sound(&store);
}

/// With early acknowledgement, too, a bad block affects only the record to be written there and the
/// flush that it requests: earlier records are not written again.
#[test]
fn a_record_that_flushes_is_moved_alone() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { durability: Durability::Flush, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let id = volume(&store, MIB);
    for block in 0..4 {
        write(&store, id, block * 8, &distinct(8, 1 + block)).unwrap();
        store.commit_here();
    }
    let at = tail(&store);
    disk.refuse_writes_to([block_of(&store, at.segment, at.block)]);
    write(&store, id, 32, &distinct(8, 5)).unwrap();
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    assert_eq!((store.moved_writes(), store.unflushed_bytes()), (1, 0));
    assert_ne!(tail(&store).segment, at.segment);
    let store = Store::open(disk.copy(), options).unwrap();
    for block in 0..5 {
        assert!(read(&store, id, block * 8, 8) == distinct(8, 1 + block));
    }
    assert_sound(&store);
}
