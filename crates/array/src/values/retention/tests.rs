use proptest::prelude::*;

use super::*;

const HOUR_MS: u64 = 3_600_000;

fn kept(retention: Retention, made_ms: &[u64], now_ms: u64) -> Vec<u64> {
    let gone = retention.let_go(made_ms, now_ms).places;
    let places = (0..made_ms.len()).filter(|place| !gone.contains(place));
    places.map(|place| made_ms[place]).collect()
}

#[test]
fn all_are_kept_then_some_of_each_day_then_none() {
    let retention = Retention { all_for_s: 86_400, per_day: 4, days: 7 };
    let hourly: Vec<u64> = (0..24).map(|hour| hour * HOUR_MS).collect();
    assert_eq!(kept(retention, &hourly, 2 * DAY_MS - 1), hourly);
    let four = [0, 6, 12, 18].map(|hour| hour * HOUR_MS);
    let thinned = retention.let_go(&hourly, 2 * DAY_MS);
    assert_eq!((thinned.places.len(), thinned.next_ms), (20, Some(8 * DAY_MS)));
    assert_eq!(kept(retention, &hourly, 2 * DAY_MS), four);
    assert_eq!(kept(retention, &four, 8 * DAY_MS - 1), four);
    assert_eq!(kept(retention, &four, 8 * DAY_MS), four[1..]);
    assert_eq!(retention.let_go(&four, 8 * DAY_MS).next_ms, Some(8 * DAY_MS + 6 * HOUR_MS));
    assert!(kept(retention, &four, 9 * DAY_MS).is_empty());
    assert_eq!(retention.let_go(&[], 0), LetGo::default());
}

#[test]
fn without_daily_snapshots_only_the_time_counts() {
    for (per_day, days) in [(0, 7), (4, 0)] {
        let retention = Retention { all_for_s: 3_600, per_day, days };
        let made = [0, 1, 2];
        assert_eq!(kept(retention, &made, HOUR_MS - 1), made);
        assert_eq!(kept(retention, &made, HOUR_MS), [1, 2]);
        assert_eq!(retention.let_go(&made, HOUR_MS).next_ms, Some(HOUR_MS + 1));
    }
}

#[test]
fn retentions_are_checked() {
    assert!(Retention::default().check().is_ok());
    let right = Retention { all_for_s: ALL_FOR_S_MAX, per_day: PER_DAY_MAX, days: DAYS_MAX };
    assert!(right.check().is_ok());
    for wrong in [
        Retention { all_for_s: 0, ..right },
        Retention { all_for_s: ALL_FOR_S_MAX + 1, ..right },
        Retention { per_day: PER_DAY_MAX + 1, ..right },
        Retention { days: DAYS_MAX + 1, ..right },
    ] {
        assert_eq!(wrong.check().unwrap_err().code(), "invalid_retention");
    }
}

proptest! {
    /// Properties of every policy, for any snapshots.
    #[test]
    fn retention_keeps_exactly_what_it_promises(
        (all_for_h, per_day, days) in (1..72u64, 0..6u32, 0..10u32),
        mut made in prop::collection::vec(0..20 * 24u64, 0..60),
        now_h in 0..40 * 24u64,
    ) {
        made.sort_unstable();
        made.dedup();
        let made: Vec<u64> = made.into_iter().map(|hour| hour * HOUR_MS).collect();
        let (retention, now) =
            (Retention { all_for_s: all_for_h * 3_600, per_day, days }, now_h * HOUR_MS);
        let left = kept(retention, &made, now);
        let all_for = all_for_h * HOUR_MS;
        for snapshot in &made {
            let age = now.saturating_sub(*snapshot);
            let is_left = left.contains(snapshot);
            prop_assert!(is_left || age >= all_for, "one was let go too early");
            let end = all_for + u64::from(if per_day == 0 { 0 } else { days }) * DAY_MS;
            prop_assert!(!is_left || age < end, "one was kept for too long");
            let is_of_day = |other: &&u64| *other / DAY_MS == snapshot / DAY_MS;
            let of_day = |list: &[u64]| list.iter().filter(is_of_day).count();
            let is_over = (snapshot / DAY_MS + 1) * DAY_MS + all_for <= now;
            let count = of_day(&left);
            prop_assert!(!is_over || count <= per_day as usize, "too many of a day");
            prop_assert!(age >= end || count >= of_day(&made).min(per_day as usize).min(1));
        }
        // Destroying them changes nothing for the rest: a second call at the same time finds
        // nothing more, nor does any call before the returned time.
        let again = retention.let_go(&left, now);
        prop_assert!(again.places.is_empty(), "{:?}", again);
        if let Some(next) = again.next_ms {
            prop_assert!(next > now);
            prop_assert!(retention.let_go(&left, next - 1).places.is_empty());
            let then = retention.let_go(&left, next);
            prop_assert!(!then.places.is_empty());
        } else {
            prop_assert!(left.is_empty());
        }
    }
}
