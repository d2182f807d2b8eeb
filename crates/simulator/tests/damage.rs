//! A damaged device: an error or a refusal, never wrong bytes.

use simulator::damage::{Damage, Seen, inflict};

fn all(damage: Damage) -> Seen {
    let mut sum = Seen::default();
    for seed in 0..40 {
        match inflict(seed, damage) {
            Ok(seen) => {
                sum.refused += seen.refused;
                sum.medium_errors += seen.medium_errors;
                sum.right += seen.right;
                sum.found_by_check += seen.found_by_check;
                sum.found_by_scrub += seen.found_by_scrub;
                sum.blocks_named += seen.blocks_named;
            }
            Err(reason) => panic!("{damage:?}: {reason}"),
        }
    }
    sum
}

#[test]
fn data_with_bit_errors_is_never_returned() {
    let seen = all(Damage::Rot(20));
    assert!(seen.medium_errors > 0 && seen.right > 0 && seen.found_by_check > 0, "{seen:?}");
    // Block by block: see `inflict`.
    assert!(seen.found_by_scrub > 0 && seen.blocks_named == seen.medium_errors, "{seen:?}");
}

#[test]
fn failed_reads_are_medium_errors() {
    // One read in 66 fails in all four tries.
    let seen = all(Damage::FailedReads(350));
    assert!(seen.medium_errors > 0 && seen.right > 0, "{seen:?}");
}

#[test]
fn misplaced_data_is_never_returned() {
    let seen = all(Damage::MisdirectedReads(50));
    assert!(seen.medium_errors > 0 && seen.right > 0, "{seen:?}");
}
