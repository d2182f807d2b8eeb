//! Records with a torn header, of which only the copy in the next record is left.

use format::LogPosition;

use super::*;
use crate::Durability;
use crate::tests::integrity::COLD;
use crate::tests::mirrors::open_as;

/// Two records after a checkpoint, in one row each. The header of the first is torn, and so is its
/// parity: only the copy in the second is left.
fn known_by_the_next() -> (Pool, VolumeId, Vec<u8>, Vec<LogPosition>) {
    let pool = make(6);
    let id = volume(&pool.store, MIB);
    pool.store.checkpoint().unwrap();
    let flush = OpenOptions { durability: Durability::Flush, ..COLD };
    let pool = open_as(pool.crashed(), flush);
    let data = distinct(2 * 8, 3);
    (0..2).for_each(|at| {
        write(&pool.store, id, at * 8, &data[at as usize * 4096..][..4096]).unwrap();
    });
    let records = records(&pool.store);
    let first = records[0];
    let row = pool.at(Place::of_block(first.segment, first.block)) / 4096;
    let disks = pool.crashed();
    for column in [0, 4, 5] {
        disks[pool.disk_of(first.segment, column)].overwrite(row, Frame::zeros());
    }
    (Pool { disks, ..pool }, id, data, records)
}

#[test]
fn a_record_whose_header_is_only_in_the_next_one_is_rewritten() {
    let (crashed, id, data, _) = known_by_the_next();
    let pool = open(crashed.disks);
    holds(&pool, pairs(6), id, &data);
}

/// The device with both headers lacks that of the second record too. It can be reconstructed from
/// the others, so the log has the same end with that device and without it.
#[test]
fn the_log_has_the_same_end_with_fewer_devices() {
    let (crashed, id, data, records) = known_by_the_next();
    let next = records[1];
    let row = crashed.at(Place::of_block(next.segment, next.block)) / 4096;
    let own = crashed.disk_of(next.segment, 0);
    crashed.disks[own].overwrite(row, Frame::zeros());
    // Parity is torn too, so the first record's payload is on its own device only.
    let payload = crashed.disk_of(records[0].segment, 1);
    for lost in pairs(6).filter(|lost| lost.contains(&own) && !lost.contains(&payload)) {
        reads(&crashed.without(lost), id, &data);
    }
    let pool = open(crashed.disks);
    reads(&pool, id, &data);
    holds(&pool, pairs(6), id, &data);
}
