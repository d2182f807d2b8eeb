//! Every class of durable byte, with one bit flipped, in a pool that is opened afterwards.

use super::*;

/// Classes without which a pool does not open.
const NEEDED: [&str; 4] =
    ["rows of leaves", "directory of segments", "segment rows", "key-value leaf"];

/// A pool that was just opened: what is not in memory is lost, and reported block by block. The
/// same holds if the log after the checkpoint has to change what is lost. Without one of the
/// streams, a leaf of the key-value space or a page of the segment table the pool reports damage,
/// and does not open.
#[test]
fn a_flipped_bit_of_each_class_never_reads_as_data_after_a_restart() {
    let (mut refused, lossy) = behind_a_restart(make);
    refused.dedup();
    assert_eq!(refused, NEEDED);
    for class in ["chunk", "leaf", "directory", "chunk rows", "node rows", "volume rows"] {
        assert!(lossy.contains(&class), "{lossy:?}");
    }
}

/// A pool that was stopped cleanly has no log: it opens even if any page is lost.
#[test]
fn a_pool_without_a_log_opens_with_any_page_lost() {
    let (mut refused, lossy) = behind_a_restart(|| {
        let pool = make();
        open(&pool).checkpoint().unwrap();
        pool
    });
    refused.dedup();
    assert_eq!(refused, NEEDED);
    for class in ["chunk", "leaf", "directory", "chunk rows", "node rows", "volume rows"] {
        assert!(lossy.contains(&class), "{lossy:?}");
    }
}

/// Flips a bit of each class of byte; returns the classes that keep a pool from opening, and those
/// that lose something.
fn behind_a_restart(make: fn() -> Pool) -> (Vec<&'static str>, Vec<&'static str>) {
    let probe = make();
    let count = classes(&open(&probe)).len();
    let (mut refused, mut lossy) = (Vec::new(), Vec::new());
    for index in 0..count {
        let pool = make();
        let (class, what, at, bits) =
            classes(&Store::load(pool.disk.clone(), COLD).unwrap())[index];
        flip(&pool.disk, at, (index as u64).wrapping_mul(0x85eb_ca6b) % bits);
        let store = match Store::open(pool.disk.clone(), COLD) {
            Ok(store) => store,
            Err(StoreError::Damaged(_)) => {
                refused.push(class);
                continue;
            }
            Err(other) => panic!("{class} {what:?}: {other}"),
        };
        let told = inspected(&pool);
        let findings = scrub(&store);
        let lost = lost(&pool, &store);
        if class == "volume rows" {
            // The content of these volumes is unknown: each request to them gets MEDIUM ERROR.
            assert!(pool.volumes.iter().all(|id| store.is_lost(*id)));
            assert_eq!(lost.len(), 2 * (8 << 20) / 4096);
            found(&findings, what, at);
            lossy.push(class);
            continue;
        }
        assert!(named(&findings) == lost, "{class} {what:?}: {findings:?}");
        assert!(told == lost, "{class} {what:?}: inspect names other blocks than reads lose");
        if ["superblock", "label"].contains(&class) {
            // Opening writes its epoch over the older copy, and repairs a label.
            assert!(findings.is_empty() || findings[0].repair == Repair::Done, "{findings:?}");
            continue;
        }
        let finding = found(&findings, what, at);
        if finding.repair == Repair::Impossible {
            lossy.push(class);
            let report = store.check(CheckOptions { data: true }).unwrap();
            assert!(!report.findings.is_empty(), "{class} {what:?}");
        }
    }
    (refused, lossy)
}
