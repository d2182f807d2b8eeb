//! The segment table: what a checkpoint writes of it, and how far a pool may grow.

use std::time::Instant;

use super::*;

/// A pool of so many segments.
fn pool_of_segments(count: u64) -> (Arc<MemoryDisk>, Store) {
    pool(count * format::geometry::SEGMENT_BYTES_MIN)
}

/// Not a test of behaviour: prints bytes and time of a checkpoint behind one write of 4 KiB, in
/// pools of so many segments. `--ignored --nocapture` runs it.
#[test]
#[ignore = "a measurement"]
fn measure_checkpoint_of_segments() {
    for segments in [1000, 65_536] {
        let (_disk, store) = pool_of_segments(segments);
        let id = volume(&store, 64 * MIB);
        let mut times = Vec::new();
        let mut before = 0;
        for round in 0..=20 {
            #[allow(clippy::disallowed_methods)]
            let now = Instant::now;
            write(&store, id, round * 8, &distinct(8, round + 1)).unwrap();
            let began = now();
            store.checkpoint().unwrap();
            times.push(began.elapsed());
            // The first one has more to write.
            if round == 0 {
                before = store.pool_status().written.checkpoint_bytes;
                times.clear();
            }
        }
        let bytes = (store.pool_status().written.checkpoint_bytes - before) / 20;
        times.sort_unstable();
        println!("{segments} segments: {bytes} bytes, {:?} (median of 20)", times[10]);
    }
}
