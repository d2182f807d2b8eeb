use super::*;
use crate::measure::{Grown, Pass};

const MIB: u64 = 1 << 20;

fn found(set: &str, name: &str, data: u64, ceiling: u64) -> Found {
    let stored = [(CEILING, ceiling), ("lz4 packed", ceiling)];
    Found {
        set: set.to_owned(),
        name: name.to_owned(),
        bytes: data * 2,
        data_bytes: data,
        distinct_bytes: data,
        new_bytes: data,
        stored_bytes: stored.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
    }
}

fn grown(set: &str, name: &str, bytes: u64) -> Grown {
    let stored_bytes = bytes as i64;
    Grown { set: set.to_owned(), name: name.to_owned(), stored_bytes, write_seconds: 1.0 }
}

/// Results of two images of 100 MiB and a part of noise. The images are stored in `images` MiB at
/// first, and in `passed` MiB after the pass.
fn results(images: u64, passed: Option<u64>) -> Results {
    let noise = Pass { set: String::from("random"), stored_bytes: 10 << 20, seconds: 1.0 };
    let pass = |mib| Pass { set: String::from("images"), stored_bytes: mib << 20, seconds: 1.0 };
    Results {
        ceiling: vec![
            found("images", "a", 100 * MIB, 30 * MIB),
            found("images", "b", 100 * MIB, 0),
            found("random", "random", 10 * MIB, 10 * MIB),
        ],
        measured: vec![Measured {
            write_bytes: 4096,
            parts: vec![
                grown("images", "a", images * MIB),
                grown("images", "b", 0),
                grown("random", "random", 10 * MIB),
            ],
            passes: passed.map_or(Vec::new(), |mib| vec![pass(mib as i64), noise]),
            pool_before: serde_json::json!({}),
            pool_after: serde_json::json!({}),
            read_back: Ok(()),
        }],
        references: parse_references("borg\timages\t41943040\nborg\tall\t52428800\n").unwrap(),
    }
}

#[test]
fn ratios_are_nonzero_data_to_stored_data() {
    let text = results(40, Some(32)).markdown();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows[0],
        "| part | MiB | data, MiB | 4 KiB | 4 KiB, pass | distinct | lz4 packed \
         | zstd-9 packed | borg |"
    );
    assert_eq!(rows[2], "| a | 200 | 100 | 2.50 | – | 1.00 | 3.33 | 3.33 | – |");
    assert_eq!(rows[3], "| b | 200 | 100 | ∞ | – | 1.00 | ∞ | ∞ | – |");
    assert_eq!(rows[4], "| **images** | 400 | 200 | 5.00 | 6.25 | 1.00 | 6.67 | 6.67 | 5.00 |");
    assert_eq!(rows[6], "| **all** | 420 | 210 | 4.20 | 5.00 | 1.00 | 5.25 | 5.25 | 4.20 |");
}

#[test]
fn aims_are_met_at_the_limit_and_missed_beyond_it() {
    let (text, good) = aims::judge(&results(40, Some(33)), true);
    assert!(good && text.ends_with("4 passed, 0 failed, 0 skipped"), "{text}");
    for (images, passed) in [(41, Some(33)), (40, Some(34)), (40, None)] {
        let (text, good) = aims::judge(&results(images, passed), true);
        assert!(!good && text.contains("FAILED"), "{text}");
    }
}

#[test]
fn a_failed_verification_fails_with_and_without_aims() {
    let mut wrong = results(40, Some(33));
    wrong.measured[0].read_back = Err(String::from("a differs"));
    assert!(!aims::judge(&wrong, false).1);
    assert!(!aims::judge(&wrong, true).1);
    wrong.measured.clear();
    assert!(!aims::judge(&wrong, false).1, "nothing was measured");
}

#[test]
fn invalid_references_are_refused() {
    assert!(parse_references("borg\timages\n").is_err());
    assert!(parse_references("borg\timages\tmuch\n").is_err());
}
