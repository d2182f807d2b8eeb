//! Alerts: how they are opened, closed, kept and dropped.

use std::sync::mpsc;
use std::time::Duration;

use crate::alerts::{ALERT_TEXT_BYTES_MAX, ALERTS_CLOSED_MAX, ALERTS_OPEN_MAX, CLOSING_MS};

use super::*;

fn condition(code: AlertCode, component: &str, severity: Severity) -> Condition {
    let (actual, expected) = ("1".to_owned(), "2".to_owned());
    Condition { code, component: component.into(), severity, actual, expected }
}

fn holds(code: AlertCode, component: &str) -> Seen {
    Seen::Holds(condition(code, component, Severity::Warning))
}

fn all(array: &Array) -> Vec<Alert> {
    array.alerts(0, usize::MAX)
}

fn states(array: &Array) -> Vec<AlertState> {
    all(array).into_iter().map(|alert| alert.state).collect()
}

fn watch(array: &Array, seen: &[Seen], now_ms: u64) {
    array.watch_alerts(seen, now_ms);
    array.store_alerts().unwrap();
}

#[test]
fn an_intermittent_condition_is_one_alert() {
    let (store, array) = new_array();
    let seen = [holds(AlertCode::HostOnePath, "esx1")];
    watch(&array, &seen, 1000);
    let opened = array.alert(1).unwrap();
    assert_eq!((opened.state, opened.created_ms, opened.flagged), (AlertState::Open, 1000, true));
    assert_eq!(opened.summary(), "Host esx1 has only one path.");
    let commits = store.changes.lock().len();
    watch(&array, &seen, 2000);
    assert_eq!(store.changes.lock().len(), commits, "nothing has changed");
    watch(&array, &[], 3000);
    assert_eq!(states(&array), [AlertState::Closing]);
    watch(&array, &[], 3000 + CLOSING_MS - 1);
    assert_eq!(states(&array), [AlertState::Closing]);
    watch(&array, &seen, 3000 + CLOSING_MS);
    assert_eq!(states(&array), [AlertState::Open], "it has come back in time");
    watch(&array, &[], 400_000);
    watch(&array, &[], 400_000 + CLOSING_MS);
    let closed = array.alert(1).unwrap();
    assert_eq!((closed.state, closed.closed_ms), (AlertState::Closed, Some(700_000)));
    watch(&array, &seen, 800_000);
    assert_eq!(states(&array), [AlertState::Closed, AlertState::Open], "that is another one");
    let kept = all(&array);
    assert_eq!(all(&Array::open(store, false).unwrap()), kept, "all of it is stored");
}

#[test]
fn an_unknown_condition_neither_opens_nor_closes_an_alert() {
    let (_, array) = new_array();
    watch(&array, &[holds(AlertCode::NoReclaim, "esx1")], 0);
    let unsure = [Seen::Unsure(AlertCode::NoReclaim, "esx1".into())];
    watch(&array, &unsure, CLOSING_MS);
    watch(&array, &unsure, 3 * CLOSING_MS);
    assert_eq!(states(&array), [AlertState::Open]);
    watch(&array, &[Seen::Unsure(AlertCode::NoReclaim, "esx2".into())], 0);
    assert_eq!(all(&array).len(), 1, "nothing is opened by that");
}

#[test]
fn a_rise_in_severity_is_reported_at_once_and_other_changes_once_a_minute() {
    let (_, array) = new_array();
    let seen = |severity, actual: &str| {
        let mut condition = condition(AlertCode::PoolSpace, "pool", severity);
        condition.actual = actual.into();
        [Seen::Holds(condition)]
    };
    watch(&array, &seen(Severity::Warning, "80%"), 1000);
    assert_eq!(all(&array)[0].news(), Some(Told::Opened(Severity::Warning)));
    array.alerts_told(&[(1, Told::Opened(Severity::Warning))], 1500);
    let told = array.alert(1).unwrap();
    assert_eq!((told.news(), told.told_ms), (None, Some(1500)));
    watch(&array, &seen(Severity::Warning, "81%"), 2000);
    assert_eq!(array.alert(1).unwrap().condition.actual, "80%");
    watch(&array, &seen(Severity::Warning, "82%"), 61_000);
    assert_eq!(array.alert(1).unwrap().condition.actual, "82%");
    watch(&array, &seen(Severity::Critical, "96%"), 61_001);
    let graver = array.alert(1).unwrap();
    assert_eq!(graver.condition.actual, "96%");
    assert_eq!(graver.news(), Some(Told::Opened(Severity::Critical)));
    watch(&array, &seen(Severity::Warning, "94%"), 61_002);
    array.alerts_told(&[(1, Told::Opened(Severity::Critical))], 61_003);
    assert_eq!(array.alert(1).unwrap().news(), None, "that it is less grave is no news");
    watch(&array, &[], 70_000);
    watch(&array, &[], 70_000 + CLOSING_MS);
    assert_eq!(array.alert(1).unwrap().news(), Some(Told::Closed));
    assert_eq!(array.open_alerts(), [0, 0, 0]);
}

#[test]
fn an_alert_closed_by_hand_stays_closed_while_the_condition_lasts() {
    let (_, array) = new_array();
    let seen = [holds(AlertCode::OffloadOff, "esx1"), holds(AlertCode::HostGone, "esx2")];
    watch(&array, &seen, 0);
    assert_eq!(array.open_alerts(), [0, 2, 0]);
    let closed = array.close_alerts(&[1, 2], 10).unwrap();
    assert!(closed.iter().all(|alert| alert.state == AlertState::Closed && alert.dismissed));
    watch(&array, &seen, CLOSING_MS * 2);
    assert_eq!(all(&array).len(), 2);
    // One of them ends and returns, the other becomes more serious: both require notifications.
    let graver = condition(AlertCode::HostGone, "esx2", Severity::Critical);
    watch(&array, &[Seen::Holds(graver.clone())], CLOSING_MS * 3);
    watch(&array, &[seen[0].clone(), Seen::Holds(graver)], CLOSING_MS * 4);
    let open: Vec<_> = all(&array).into_iter().filter(|a| a.state == AlertState::Open).collect();
    let keys: Vec<_> = open.iter().map(|a| (a.number, a.condition.component.as_str())).collect();
    assert_eq!(keys, [(3, "esx2"), (4, "esx1")]);
    assert_eq!(array.close_alerts(&[1], 20).unwrap()[0].closed_ms, Some(10), "it was closed then");
}

#[test]
fn flags_are_set_for_all_named_alerts_or_none() {
    let (_, array) = new_array();
    watch(&array, &[holds(AlertCode::Damage, "pool")], 0);
    assert_eq!(array.flag_alerts(&[1, 7], false).unwrap_err().code(), "no_such_alert");
    assert_eq!(array.flag_alerts(&[1, 1], false).unwrap_err().code(), "named_twice");
    assert!(array.alert(1).unwrap().flagged);
    assert!(!array.flag_alerts(&[1], false).unwrap()[0].flagged);
    assert_eq!(array.alert(9).unwrap_err().code(), "no_such_alert");
}

#[test]
fn a_failed_store_is_reported_and_written_when_it_works_again() {
    let (store, array) = new_array();
    store.refuses.store(true, Ordering::Relaxed);
    let seen = [holds(AlertCode::StoreFailed, "pool")];
    array.watch_alerts(&seen, 0);
    assert!(array.store_alerts().is_err());
    assert_eq!(states(&array), [AlertState::Open], "it is shown nevertheless");
    array.alerts_told(&[(1, Told::Opened(Severity::Warning))], 1);
    assert!(array.store_alerts().is_err());
    assert_eq!(array.alert(1).unwrap().news(), None);
    store.refuses.store(false, Ordering::Relaxed);
    watch(&array, &seen, 2);
    let kept = all(&array);
    assert_eq!(all(&Array::open(store, false).unwrap()), kept);
}

#[test]
fn an_alert_is_opened_at_once_while_changes_wait_for_the_device() {
    let (store, array) = new_array();
    watch(&array, &[holds(AlertCode::HostGone, "esx1")], 0);
    let number = all(&array)[0].number;
    let (seen, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let device = store.device.lock();
        let created = scope.spawn(|| array.create_volume(new_volume("v", 1 << 20)));
        while !array.is_changing() {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            let retries = holds(AlertCode::DeviceRetries, "pool.data");
            array.watch_alerts(&[retries, holds(AlertCode::HostGone, "esx1")], 1);
            let list = all(&array);
            array.alerts_told(&[(2, Told::Opened(Severity::Warning))], 2);
            seen.send((list, array.alert(2).unwrap().told_ms)).unwrap();
        });
        let (list, told_ms) = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(list.last().unwrap().condition.code, AlertCode::DeviceRetries);
        assert_eq!((list.last().unwrap().news().is_some(), told_ms), (true, Some(2)));
        // A change by hand and a simultaneous observation are both kept.
        let flagged = scope.spawn(|| array.flag_alerts(&[number], false));
        array.watch_alerts(&[], 3);
        drop(device);
        created.join().unwrap().unwrap();
        assert!(!flagged.join().unwrap().unwrap()[0].flagged);
    });
    array.store_alerts().unwrap();
    let kept = all(&array);
    assert_eq!((kept[0].state, kept[0].flagged), (AlertState::Closing, false));
    assert_eq!(all(&Array::open(store, false).unwrap()), kept, "and it is stored by and by");
}

#[test]
fn kept_alerts_are_bounded() {
    let (store, array) = new_array();
    let many: Vec<Seen> =
        (0..ALERTS_OPEN_MAX + 7).map(|n| holds(AlertCode::HostGone, &format!("h{n}"))).collect();
    let mut now_ms = 0;
    for _ in 0..3 {
        // A commit holds only some of them: the others follow.
        for _ in 0..5 {
            watch(&array, &many, now_ms);
            now_ms += 1;
        }
        assert_eq!(array.open_alerts(), [0, ALERTS_OPEN_MAX, 0]);
        for _ in 0..10 {
            watch(&array, &[], now_ms);
            now_ms += CLOSING_MS / 2;
        }
        assert_eq!(array.open_alerts(), [0, 0, 0]);
    }
    assert_eq!(all(&array).len(), ALERTS_CLOSED_MAX);
    let text = "\"\\\u{7}é".repeat(500);
    let long = Condition {
        component: text.clone(),
        actual: text.clone(),
        expected: text,
        ..condition(AlertCode::LoginRefused, "", Severity::Info)
    };
    let keys = || store.kept.lock().0.keys().filter(|key| key[0] == b'A').count();
    watch(&array, &[Seen::Holds(long.clone())], now_ms);
    watch(&array, &[Seen::Holds(long)], now_ms);
    assert_eq!(keys(), ALERTS_CLOSED_MAX + 1);
    let last = all(&array).pop().unwrap();
    assert!(last.condition.actual.len() <= ALERT_TEXT_BYTES_MAX);
    let kept = all(&array);
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(all(&array), kept);
    assert!(store.kept.lock().0.values().all(|value| value.len() < 2048));
}

#[test]
fn records_that_make_no_sense_are_refused() {
    let (store, array) = new_array();
    watch(&array, &[holds(AlertCode::Damage, "pool")], 0);
    let (key, value) = {
        let kept = store.kept.lock();
        let (key, value) = kept.0.iter().find(|(key, _)| key[0] == b'A').unwrap();
        (key.clone(), String::from_utf8(value.clone()).unwrap())
    };
    for (from, to) in [
        ("\"code\":201", "\"code\":999"),
        ("\"warning\"", "\"awful\""),
        ("\"open\"", "\"ajar\""),
        ("\"number\":1", "\"number\":2"),
    ] {
        assert!(value.contains(from), "{value}");
        store.kept.lock().0.insert(key.clone(), value.replace(from, to).into_bytes());
        let error = Array::open(store.clone(), false).unwrap_err();
        assert_eq!(error.code(), "damaged", "{to}");
    }
}

#[test]
fn every_code_has_a_unique_number_and_name() {
    let numbers: BTreeSet<u32> = AlertCode::ALL.iter().map(|code| code.number()).collect();
    let names: BTreeSet<&str> = AlertCode::ALL.iter().map(|code| code.name()).collect();
    assert_eq!((numbers.len(), names.len()), (AlertCode::ALL.len(), AlertCode::ALL.len()));
    for code in AlertCode::ALL {
        assert_eq!(AlertCode::of_number(code.number()), Some(code));
        let told = code.summary("zz");
        assert!(told.ends_with('.') && !told.contains('\n') && !code.advice().is_empty());
        let is_one =
            matches!(code.component_type(), "pool" | "certificate" | "clock" | "directory");
        assert_eq!(told.contains("zz"), !is_one);
    }
    let page = include_str!("../../../../docs/alerts.md");
    for code in AlertCode::ALL {
        let heading = format!("\n### {}\n", code.name());
        assert!(page.contains(&heading), "docs/alerts.md does not describe {}", code.name());
        assert!(page.contains(&format!("Code {}, ", code.number())), "nor of its number");
    }
}
