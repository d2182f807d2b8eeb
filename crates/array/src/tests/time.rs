//! The effect of a jumping clock on destroyed objects.

use super::*;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// A time in the past, in milliseconds since 1970.
const THEN_MS: u64 = 20_000 * DAY_MS;

/// Passes the time, and eradicates what is due.
fn turn(array: &Array, wall_ms: u64, uptime_ms: u64) -> i64 {
    let (jump_ms, kept) = array.pass_time(wall_ms, uptime_ms);
    kept.unwrap();
    array.run_due(wall_ms).unwrap();
    array.eradicate_due(wall_ms).unwrap();
    jump_ms
}

fn names(array: &Array) -> Vec<String> {
    array.audit_log(None, 100).into_iter().rev().map(|entry| entry.deed.names.clone()).collect()
}

#[test]
fn a_clock_that_jumps_ahead_eradicates_nothing() {
    let (_, array) = new_array();
    array.create_volume(new_volume("v", 1 << 20)).unwrap();
    assert_eq!(turn(&array, THEN_MS, 7), 0);
    assert_eq!(array.clock_jump_ms(), None);
    let ends_ms = array.destroy_volume("v", THEN_MS).unwrap().eradicate_ms;
    assert_eq!(ends_ms, Some(THEN_MS + DAY_MS));
    // The clock jumps ahead by a year for five seconds, then back, then ahead in steps that are
    // small by themselves.
    assert_eq!(turn(&array, THEN_MS + 365 * DAY_MS, 1007), signed(365 * DAY_MS - 1000));
    assert_eq!(array.volume("v").unwrap().eradicate_ms, Some(THEN_MS + 366 * DAY_MS - 1000));
    assert_eq!(turn(&array, THEN_MS + 6000, 6007), -signed(365 * DAY_MS - 1000));
    assert_eq!(array.volume("v").unwrap().eradicate_ms, ends_ms, "as it was");
    assert_eq!(array.clock_jump_ms(), Some(-signed(365 * DAY_MS - 1000)));
    for step in 1..5000 {
        turn(&array, THEN_MS + 6000 + step * 50_000, 6007 + step * 500);
    }
    array.recover_volume("v").unwrap();
    // A clock that is set back neither keeps the volume for longer, nor eradicates it at once.
    array.destroy_volume("v", THEN_MS).unwrap();
    let uptime_ms = 6007 + 5000 * 500;
    turn(&array, THEN_MS - 300 * DAY_MS, uptime_ms);
    assert!(array.clock_jump_ms().is_some());
    turn(&array, THEN_MS - 299 * DAY_MS - HOUR_MS, uptime_ms + 23 * HOUR_MS);
    array.recover_volume("v").unwrap();
    array.destroy_volume("v", THEN_MS - 299 * DAY_MS - HOUR_MS).unwrap();
    turn(&array, THEN_MS - 298 * DAY_MS, uptime_ms + 48 * HOUR_MS);
    assert_eq!(array.recover_volume("v").unwrap_err().code(), "no_such_volume");
    assert_eq!(names(&array), ["v"], "it leaves its trace");
    assert_eq!(array.clock_jump_ms(), None, "a day ago");
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap()
}

#[test]
fn a_start_with_a_wrong_clock_eradicates_nothing() {
    let (store, array) = new_array();
    array.create_volume(new_volume("v", 1 << 20)).unwrap();
    turn(&array, THEN_MS, 0);
    array.destroy_volume("v", THEN_MS).unwrap();
    turn(&array, THEN_MS + 23 * HOUR_MS, 23 * HOUR_MS);
    let array = Array::open(store.clone(), false).unwrap();
    turn(&array, THEN_MS + 9 * DAY_MS, 0);
    array.pass_time(THEN_MS + 9 * DAY_MS + 1000, 1000).1.unwrap();
    assert!(array.volume("v").unwrap().eradicate_ms.is_some());
    // The clock is corrected, and the time of a restart while it runs counts.
    turn(&array, THEN_MS + 23 * HOUR_MS + 2000, 2000);
    let array = Array::open(store.clone(), false).unwrap();
    turn(&array, THEN_MS + 23 * HOUR_MS + 60_000, 0);
    array.recover_volume("v").unwrap();
    array.destroy_volume("v", THEN_MS + 23 * HOUR_MS + 60_000).unwrap();
    let array = Array::open(store, false).unwrap();
    let off_ms = THEN_MS + 23 * HOUR_MS + 120_000;
    turn(&array, off_ms, 0);
    turn(&array, off_ms + DAY_MS, DAY_MS);
    assert_eq!(array.volume("v").unwrap_err().code(), "no_such_volume");
}

#[test]
fn retention_waits_where_the_clock_has_jumped_ahead() {
    let (_, array) = new_array();
    array.create_volume(new_volume("v", 1 << 20)).unwrap();
    turn(&array, THEN_MS, 0);
    array.create_group(GroupName::new("g").unwrap(), &["v".to_owned()], THEN_MS).unwrap();
    let source = SnapshotSource::Group("g".into());
    let new = NewSnapshots { source, suffix: None, apply_retention: true, created_ms: THEN_MS };
    array.create_snapshots(&new).unwrap();
    turn(&array, THEN_MS + 300 * DAY_MS, 1000);
    assert_eq!(array.counts().snapshots, 1);
    turn(&array, THEN_MS + 10_000, 10_000);
    assert_eq!(array.counts().snapshots, 1);
    let late_ms = 30 * DAY_MS;
    turn(&array, THEN_MS + late_ms, late_ms);
    assert_eq!((array.counts().snapshots, array.counts().destroyed), (0, 1), "in its time");
}
