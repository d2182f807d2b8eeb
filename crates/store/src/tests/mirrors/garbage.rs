//! A device whose content is all wrong.

use super::*;

/// Every byte of its labels, roots, metadata and data changes while it is in use.
#[test]
fn a_device_with_only_wrong_bytes_costs_nothing() {
    for wrong in 0..2 {
        let pool = make(2);
        let id = volume(&pool.store, 64 * MIB);
        let mut written = Vec::new();
        for at in 0..600 {
            // Some of it is in the log only.
            if at == 400 {
                pool.store.checkpoint().unwrap();
            }
            let (sector, data) = (at * 200 / 8 * 8, prose(8, at));
            write(&pool.store, id, sector, &data).unwrap();
            written.push((sector, data));
        }
        let pool = pool.reopened();
        pool.disks[wrong].scramble();
        let all_is_right = || {
            for (sector, data) in &written {
                assert!(read(&pool.store, id, *sector, 8) == *data, "sector {sector}");
            }
        };
        all_is_right();
        pool.store.checkpoint().unwrap();
        all_is_right();
    }
}
