//! A write that the device acknowledges, and has not done: never wrong bytes, and never silence.

use simulator::misplaced::{Seen, misplace};

#[test]
fn a_lost_misdirected_or_torn_write_is_reported_and_never_read_as_data() {
    let mut sum = Seen::default();
    for seed in 0..30 {
        match misplace(seed) {
            Ok(seen) => sum += seen,
            Err(reason) => panic!("{reason}"),
        }
    }
    assert!(sum.struck > 20 && sum.superblocks > 2 && sum.records > 10, "{sum:?}");
    // Few pools are refused, if any: most of what one write held also has another copy.
    assert!(sum.medium_errors > 0 && sum.found_by_scrub > 0, "{sum:?}");
    assert!(sum.found_by_check > 0 && sum.right > 5_000, "{sum:?}");
}
