//! Following a pool that another process uses, and taking it over.

use super::mirrors::{devices, make};
use super::*;
use crate::{Durability, Follower, Following};
use segments::DeviceSet;

fn options() -> OpenOptions {
    OpenOptions::default()
}

/// Follows to the end.
fn follow(follower: &mut Follower) -> Following {
    loop {
        match follower.follow().unwrap() {
            Following::Behind => {}
            found => return found,
        }
    }
}

/// Returns the state that recovery of the same disk produces in memory: all that a checkpoint would
/// write, except the order in which chunk ids are reused.
fn digest(store: &Store, volumes: &[VolumeId]) -> String {
    let content: Vec<Vec<u8>> =
        volumes.iter().map(|volume| read(store, *volume, 0, 4 * MIB)).collect();
    let hash = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let hashes: Vec<u64> = content.iter().map(|bytes| hash(bytes)).collect();
    let writer = store.writer.lock();
    let state = &writer.state;
    let rows: Vec<String> = (0..store.world.medium.geometry().segment_count)
        .map(|segment| format!("{:?}", state.segments.row(segment)))
        .collect();
    let maps: Vec<_> = volumes.iter().map(|volume| store.world.map_of(*volume)).collect();
    let ids = (state.next_chunk, state.next_node, state.next_volume);
    let (pending, staged) = (&state.pending, &state.staged);
    let config: Vec<_> = state.config.iter().collect();
    let position = writer.log.position();
    format!("{hashes:?} {maps:?} {ids:?} {pending:?} {staged:?} {config:?} {position:?} {rows:?}")
}

/// Does work of all kinds; `at` is its progress.
fn work(store: &Store, volumes: &[VolumeId; 2], at: u64) {
    let [one, other] = *volumes;
    write(store, one, at % 7 * 128, &distinct(64, at)).unwrap();
    write(store, other, at % 5 * 256 + 3, &distinct(8, at + 1000)).unwrap();
    match at % 4 {
        0 => {
            let segments = vec![segment(one, 0, other, 2048, 512)];
            store.execute(VolumeRequest::Copy { segments }).unwrap();
        }
        1 => {
            let ranges = vec![SectorRange::new(at % 3 * 64, 200)];
            store.execute(VolumeRequest::Unmap { volume: one, ranges }).unwrap();
        }
        2 => write(store, one, 4096, &[at as u8; 65536]).unwrap(),
        _ => {
            let config = vec![(vec![b'k', at as u8], Some(vec![at as u8; 100]))];
            store.change(Change { config, ..Change::default() }).unwrap();
        }
    }
}

/// A takeover at any moment produces the state that a recovery at that moment produces.
#[test]
fn a_takeover_produces_the_state_of_a_recovery() {
    for durability in [Durability::Commit, Durability::Flush] {
        let disk = MemoryDisk::new(1 << 30);
        Store::create(&*disk, &[7; 64]).unwrap();
        let options = OpenOptions { durability, ..options() };
        let store = Store::open(disk.clone(), options.clone()).unwrap();
        let volumes = [volume(&store, 4 * MIB), volume(&store, 4 * MIB)];
        let mut follower = Follower::open(disk.clone(), options.clone()).unwrap();
        let (mut taken, mut records) = ([0; 2], 0);
        for at in 0..24 {
            work(&store, &volumes, at);
            if at % 3 > 0 && follow(&mut follower) == Following::Overtaken {
                records += follower.records();
                follower = Follower::open(disk.clone(), options.clone()).unwrap();
            }
            if at % 8 == 5 {
                store.checkpoint().unwrap();
            }
            // Another follower at the same position.
            let mut second = Follower::open(disk.clone(), options.clone()).unwrap();
            follow(&mut second);
            if at % 3 == 0 {
                work(&store, &volumes, at + 100);
            }
            let (crashed, other) = (disk.copy(), disk.copy());
            let (over, was_followed) =
                Store::take_over(crashed.clone(), options.clone(), second).unwrap();
            let recovered = Store::open(other.clone(), options.clone()).unwrap();
            assert_eq!(digest(&over, &volumes), digest(&recovered, &volumes), "{at}");
            taken[usize::from(!was_followed)] += 1;
            assert_sound(&over);
            // The next recovery has what the new owner writes.
            work(&over, &volumes, at + 50);
            let is = digest(&over, &volumes);
            drop(over);
            if durability == Durability::Commit {
                let again = Store::load(crashed, options.clone()).unwrap();
                assert_eq!(digest(&again, &volumes), is, "{at}");
            }
        }
        assert_eq!(taken, [24, 0], "{durability:?}");
        assert!(records > 0, "{durability:?}");
    }
}

#[test]
fn following_writes_nothing_and_reads_little() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    store.checkpoint().unwrap();
    let mut follower = Follower::open(disk.clone(), options()).unwrap();
    for at in 0..64 {
        write(&store, id, at * 1024, &distinct(1024, at)).unwrap();
    }
    let (before, reads) = (disk.copy(), disk.reads());
    assert_eq!(follow(&mut follower), Following::Current);
    assert!(disk.same_as(&before));
    // It reads each record's header and entries, not its payload: 64 times 512 KiB are 32 MiB.
    let (reads, records) = (disk.reads() - reads, follower.records());
    assert!(records >= 63 && reads < 8 * records + 40, "{reads} reads of {records} records");
    // Following without new records costs almost nothing.
    let reads = disk.reads();
    assert_eq!(follow(&mut follower), Following::Current);
    assert!(disk.reads() - reads < 12, "{}", disk.reads() - reads);
}

/// The last record may not be durable: the takeover decides where the log ends.
#[test]
fn a_record_that_no_later_one_confirms_is_not_applied() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    let mut follower = Follower::open(disk.clone(), options()).unwrap();
    write(&store, id, 0, &distinct(64, 1)).unwrap();
    follow(&mut follower);
    let before = disk.copy();
    let next = follower.next_lsn();
    write(&store, id, 0, &distinct(64, 2)).unwrap();
    follow(&mut follower);
    let last = store.writer.lock().log.position().lsn - 1;
    assert!(follower.next_lsn() > next && follower.next_lsn() <= last, "{next} {last}");
    // The power fails before the last write is durable.
    let (over, was_followed) = Store::take_over(before, options(), follower).unwrap();
    assert!(was_followed);
    assert_eq!(read(&over, id, 0, 64), distinct(64, 1));
    assert_sound(&over);
}

#[test]
fn a_follower_of_an_older_checkpoint_is_discarded() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    let mut follower = Follower::open(disk.clone(), options()).unwrap();
    write(&store, id, 0, &distinct(64, 1)).unwrap();
    follow(&mut follower);
    store.checkpoint().unwrap();
    write(&store, id, 64, &distinct(64, 2)).unwrap();
    let (over, was_followed) = Store::take_over(disk.copy(), options(), follower).unwrap();
    assert!(!was_followed);
    assert_eq!(read(&over, id, 0, 128), [distinct(64, 1), distinct(64, 2)].concat());
    let mut follower = Follower::open(disk.clone(), options()).unwrap();
    store.checkpoint().unwrap();
    write(&store, id, 0, &distinct(64, 3)).unwrap();
    store.checkpoint().unwrap();
    assert_eq!(follow(&mut follower), Following::Overtaken);
}

/// One of two devices has records that the other lacks, and is missing at the takeover.
#[test]
fn records_missing_on_all_devices_are_not_continued() {
    let pool = make(2);
    let id = volume(&pool.store, 4 * MIB);
    write(&pool.store, id, 0, &distinct(64, 1)).unwrap();
    pool.store.checkpoint().unwrap();
    let open = || Arc::new(DeviceSet::open(devices(&pool.disks), true).unwrap());
    let mut follower = Follower::open(open(), options()).unwrap();
    follow(&mut follower);
    let lacks = pool.disks[1].copy();
    for at in 0..4 {
        write(&pool.store, id, 64 * at, &distinct(64, at + 2)).unwrap();
    }
    follow(&mut follower);
    assert!(follower.records() > 0);
    let left = Arc::new(DeviceSet::open(devices(&[lacks]), true).unwrap());
    let (over, was_followed) = Store::take_over(left, options(), follower).unwrap();
    assert!(!was_followed);
    assert_eq!(read(&over, id, 0, 64), distinct(64, 1));
    assert_sound(&over);
}

/// The process that takes over may be able to read what its follower could not.
#[test]
fn a_follower_with_a_read_error_is_discarded() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    (0..32).for_each(|at| write(&store, id, at * MIB, &distinct(8, at)).unwrap());
    store.checkpoint().unwrap();
    let damaged = disk.copy();
    let mut follower = Follower::open(damaged.clone(), options()).unwrap();
    let known: std::collections::BTreeSet<u64> = damaged.written_blocks().into_iter().collect();
    (0..32).for_each(|at| write(&store, id, at * MIB, &distinct(8, at + 100)).unwrap());
    // From here on it reads only the log.
    for block in disk.written_blocks() {
        match known.contains(&block) && block > 2048 && disk.block(block)[..4] != *b"HFLR" {
            true => damaged.overwrite(block, Frame::zeros()),
            false => damaged.overwrite(block, disk.block(block)),
        }
    }
    let found = std::iter::repeat_with(|| follower.follow()).take(4).last();
    assert!(!matches!(found, Some(Ok(Following::Current | Following::Behind))), "{found:?}");
    let (over, was_followed) = Store::take_over(disk.copy(), options(), follower).unwrap();
    assert!(!was_followed);
    assert_eq!(read(&over, id, 31 * MIB, 8), distinct(8, 131));
    assert_sound(&over);
}
