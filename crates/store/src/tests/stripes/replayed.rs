//! What recovery finds after the checkpoint, in stripes.

use crate::tests::mirrors::make;
use crate::tests::*;
use crate::{Finding, Repair};

/// Segments that the log reached after the last checkpoint, in an earlier epoch.
#[test]
fn parity_of_replayed_records_is_scrubbed() {
    let pool = make(5);
    let id = volume(&pool.store, 512 * MIB);
    pool.store.checkpoint().unwrap();
    let mut written = 0;
    // One is opened in advance, as the next.
    let last = loop {
        let root = pool.store.segments().read_root().unwrap().log;
        let end = pool.store.writer.lock().log.end().segment;
        if ![root.segment, root.next_segment].contains(&end) {
            break end;
        }
        write(&pool.store, id, written, &distinct(2048, written + 1)).unwrap();
        written += 2048;
    };
    write(&pool.store, id, written, &distinct(64, 5)).unwrap();
    let pool = pool.reopened().reopened();
    let chunks = pool.chunks();
    let place = chunks.iter().map(|(_, row)| row.place).max().unwrap();
    assert_eq!(place.segment, last);
    pool.disks[pool.disk_of(place.segment, 3)].flip_one(pool.at(place) + 9, 1);
    let findings = pool.scrub();
    assert!(matches!(findings[..], [Finding { repair: Repair::Done, .. }]), "{findings:?}");
    assert_eq!(pool.scrub(), []);
}
