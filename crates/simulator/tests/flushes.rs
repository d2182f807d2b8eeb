//! A flush that fails, on a device that then loses unflushed data, and does not report it at the
//! next flush.

use std::sync::Arc;

use block::{DataOut, SectorCount, SectorRange, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use simulator::disk::{SimDisk, Survival};
use simulator::rng::Rng;
use store::{Change, CheckOptions, Durability, OpenOptions, Store, VolumeChange};

const BLOCKS: u64 = 200;

fn options(durability: Durability) -> OpenOptions {
    OpenOptions { durability, memory_bytes: 4 << 20, ..OpenOptions::default() }
}

fn bytes(block: u64) -> Vec<u8> {
    let mut rng = Rng::new(block + 1);
    (0..512).flat_map(|_| rng.draw().to_le_bytes()).collect()
}

/// A pool with a volume whose blocks were written and, if requested, flushed.
fn filled(durability: Durability) -> (Arc<SimDisk>, Store, VolumeId) {
    let disk = Arc::new(SimDisk::new(256 << 20, 1));
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk.clone(), options(durability)).unwrap();
    let id = store.allocate_volume_id();
    let volumes = vec![VolumeChange::Create { id, size: SectorCount(BLOCKS * 8) }];
    store.change(Change { volumes, ..Change::default() }).unwrap();
    for block in 0..BLOCKS {
        write(&store, id, block).unwrap();
    }
    (disk, store, id)
}

fn write(store: &Store, volume: VolumeId, block: u64) -> Result<VolumeReply, VolumeError> {
    let range = SectorRange::new(block * 8, 8);
    let data = DataOut::from_bytes(&bytes(block), 0);
    store.execute(VolumeRequest::Write { volume, range, data, fua: false })
}

/// The power fails, only durable data survives, and all of the volume is present.
fn assert_all_is_there(disk: &Arc<SimDisk>, store: Store, volume: VolumeId, context: &str) {
    drop(store);
    disk.crash(Survival::Nothing, &mut Rng::new(3));
    let store = Store::open(disk.clone(), options(Durability::Commit)).unwrap();
    for block in 0..BLOCKS {
        let range = SectorRange::new(block * 8, 8);
        match store.execute(VolumeRequest::Read { volume, range }) {
            Ok(VolumeReply::Data(data)) => {
                assert!(data.to_vec() == bytes(block), "{context}: block {block} is wrong");
            }
            other => panic!("{context}: block {block}: {other:?}"),
        }
    }
    let report = store.check(CheckOptions { data: true }).unwrap();
    assert_eq!(report.findings, Vec::<String>::new(), "{context}");
}

/// Returns the I/Os of a checkpoint, `true` for each flush.
fn ios_of_a_checkpoint(durability: Durability) -> Vec<bool> {
    let (disk, store, _) = filled(durability);
    disk.keep_log();
    store.checkpoint().unwrap();
    let log = disk.take_log();
    let ios = log.iter().filter(|line| line.contains(": flush") || line.contains(": write"));
    ios.map(|line| line.contains(": flush")).collect()
}

/// Each of the `flushes` flushes of a checkpoint fails once: the data it should have made durable
/// is written again, and the store continues.
fn each_flush_of_a_checkpoint_may_fail(durability: Durability, flushes: usize) {
    let ios = ios_of_a_checkpoint(durability);
    assert_eq!(ios.iter().filter(|is_flush| **is_flush).count(), flushes);
    for (io, _) in (1..).zip(&ios).filter(|(_, is_flush)| **is_flush) {
        let (disk, store, id) = filled(durability);
        disk.set_error_at(Some(disk.io_count() + io));
        store.checkpoint().unwrap();
        assert_eq!(disk.error_count(), 1);
        write(&store, id, 5).unwrap();
        assert_all_is_there(&disk, store, id, &format!("I/O {io}"));
    }
}

#[test]
fn a_checkpoint_is_rewritten_when_its_flush_fails() {
    each_flush_of_a_checkpoint_may_fail(Durability::Commit, 3);
}

/// With early answers the log is flushed first.
#[test]
fn a_checkpoint_with_flush_durability_is_rewritten_when_its_flush_fails() {
    each_flush_of_a_checkpoint_may_fail(Durability::Flush, 4);
}

/// A flush of the log fails: the data it should have made durable is rewritten and flushed before
/// it is acknowledged, and writing continues.
#[test]
fn log_records_lost_by_a_failed_flush_are_rewritten() {
    let (disk, store, id) = filled(Durability::Flush);
    disk.set_error_at(Some(disk.io_count() + 1));
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    assert_eq!((disk.error_count(), disk.failed_flushes()), (1, 1));
    assert_all_is_there(&disk, store, id, "a requested flush");

    let (disk, store, id) = filled(Durability::Flush);
    disk.set_error_at(Some(disk.io_count() + 1));
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    write(&store, id, 5).unwrap();
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    store.checkpoint().unwrap();
    assert_all_is_there(&disk, store, id, "later writes");
}

/// Writing ends only if all flushes fail, and nothing that was promised is lost.
#[test]
fn a_device_whose_flushes_all_fail_stops_writes() {
    for by_checkpoint in [false, true] {
        let (disk, store, id) = filled(Durability::Flush);
        store.execute(VolumeRequest::Flush { volume: id }).unwrap();
        write(&store, id, 5).unwrap();
        disk.set_no_flush_from(disk.io_count() + 1);
        if by_checkpoint {
            assert!(store.checkpoint().is_err());
        }
        assert!(store.execute(VolumeRequest::Flush { volume: id }).is_err());
        assert!(store.has_failed() && write(&store, id, 5).is_err());
        assert_all_is_there(&disk, store, id, "writes flushed before");
    }
}
