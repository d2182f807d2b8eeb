//! Metadata, which is stored twice in its segment, and both times on up to three devices.

use super::*;
use crate::chunks::table_name::TableName;
use crate::{Repair, What};

impl Pool {
    /// Returns where the first page of chunk rows is: disks, and numbers of blocks.
    fn copies_of_page(&self) -> Vec<(usize, u64)> {
        let medium = &self.store.world.medium;
        let page = self.store.world.chunks.stored_at(medium, (0, 0)).unwrap();
        let content = medium.read_page(page).unwrap().content;
        let second = medium.geometry_of(page.place.segment).copy_of(page.place, 4096).unwrap();
        let all = [page.place, second].map(|place| self.at(place) / 4096).into_iter();
        let all = all.flat_map(|block| (0..self.disks.len()).map(move |disk| (disk, block)));
        all.filter(|(disk, block)| self.disks[*disk].block(*block)[..] == content[..]).collect()
    }
}

/// All copies are read; otherwise an error on only one device would be found when the others are
/// gone.
#[test]
fn scrubbing_finds_errors_in_any_copy_of_metadata() {
    for count in [2, 3, 5] {
        let (pool, id, data) = with_page(count);
        let copies = 2 * count.min(3);
        for copy in 0..copies {
            let found = pool.copies_of_page();
            assert_eq!(found.len(), copies, "{count} devices");
            let (disk, block) = found[copy];
            pool.disks[disk].flip_one(block * 4096 + 77, 3);
            let findings = pool.scrub();
            let what = What::Page { table: TableName::Chunks, level: 0, number: 0 };
            assert!(
                matches!(&findings[..], [one] if (one.what, one.repair) == (what, Repair::Done)),
                "copy {copy} on {count} devices: {findings:?}"
            );
            assert_eq!(pool.scrub(), []);
        }
        let pool = pool.reopened();
        assert!(read(&pool.store, id, 0, 2 * MIB) == data);
        assert_sound(&pool.store);
    }
}

/// A missing device is not damage.
#[test]
fn scrubbing_reads_no_metadata_of_a_device_that_is_out() {
    let (pool, ..) = with_page(3);
    pool.mirrors.take_out(1, "a test").unwrap();
    assert_eq!(pool.scrub(), []);
}

/// A pool with data and a checkpoint, and the location of a page of rows.
fn with_page(count: usize) -> (Pool, VolumeId, Vec<u8>) {
    let pool = make(count);
    let id = volume(&pool.store, 64 * MIB);
    let data = distinct(2 * MIB, 1);
    write(&pool.store, id, 0, &data).unwrap();
    pool.store.checkpoint().unwrap();
    (pool, id, data)
}

/// The copy of metadata that a device receives may come from a device with wrong data. This is not
/// detected during the copy, but then the copies differ, and all of them are verified.
#[test]
fn wrong_metadata_copied_to_another_device_is_repaired() {
    for count in [3, 5] {
        for nth in 0..2 * 3 {
            let (mut pool, id, data) = with_page(count);
            let copies = pool.copies_of_page();
            let (liar, block) = copies[nth];
            let lost = copies.iter().map(|(disk, _)| *disk).find(|disk| *disk != liar).unwrap();
            pool.disks[liar].flip_one(block * 4096 + 77, 3);
            pool.mirrors.take_out(lost as u16, "a test").unwrap();
            pool.replace(lost, 9);
            assert!(!pool.store.is_scrub_wanted(), "not before the device is in");
            while pool.store.catch_up_turn() {}
            assert!(pool.store.is_scrub_wanted(), "{count} devices, copy {nth}");
            assert_eq!(pool.scrub().len(), 1);
            assert!(!pool.store.is_scrub_wanted());
            assert_eq!(pool.scrub(), []);
            assert_eq!(pool.copies_of_page().len(), 6, "{count} devices, copy {nth}");
            let pool = pool.reopened();
            assert!(read(&pool.store, id, 0, 2 * MIB) == data);
            assert_sound(&pool.store);
        }
    }
}
