//! Tests the judgement of constructed looks, without a clock.

use std::collections::BTreeSet;

use array::{AlertCode, Condition, Seen, Severity};

use super::judge::{DAY_MS, HOUR_MS, Judge, MINUTE_MS};
use super::look::{Certificate, HostLook, Look};
use front::counters::{Class, ClassSnapshot};
use front::sessions::Refused;

const GIB: u64 = 1 << 30;

/// Returns a look at an array without problems.
fn well(now_ms: u64) -> Look {
    Look {
        now_ms,
        uptime_ms: now_ms,
        used_bytes: 10 * GIB,
        capacity_bytes: 100 * GIB,
        thresholds: vec![80],
        is_scrubbed: true,
        portals: 2,
        device: "pool.data".into(),
        ..Look::default()
    }
}

fn host(portals: &[u16]) -> HostLook {
    HostLook {
        name: "esx1".into(),
        connections: 1,
        sessions: portals.len(),
        portals: portals.iter().copied().collect(),
        ..HostLook::default()
    }
}

fn count(host: &mut HostLook, class: Class, ok: u64, failed: u64, bytes: u64) {
    let classes = &mut host.done.classes[class as usize];
    *classes = ClassSnapshot {
        ok: classes.ok + ok,
        failed: classes.failed + failed,
        bytes: classes.bytes + bytes,
        ..*classes
    };
}

/// Returns the conditions that hold.
fn holding(seen: &[Seen]) -> Vec<Condition> {
    let held = seen.iter().filter_map(|seen| match seen {
        Seen::Holds(condition) => Some(condition.clone()),
        Seen::Unsure(..) => None,
    });
    held.collect()
}

fn find(seen: &[Seen], code: AlertCode) -> Option<Condition> {
    holding(seen).into_iter().find(|condition| condition.code == code)
}

fn is_unsure(seen: &[Seen], code: AlertCode) -> bool {
    seen.iter().any(|seen| matches!(seen, Seen::Unsure(of, _) if *of == code))
}

#[test]
fn nothing_is_reported_without_problems() {
    let mut judge = Judge::default();
    for minute in 0..3000 {
        let mut look = well(minute * MINUTE_MS);
        let mut host = host(&[1, 2]);
        count(&mut host, Class::Delete, 1, 0, 4096);
        count(&mut host, Class::CompareAndWrite, minute, minute / 2, 512);
        look.hosts = vec![host];
        assert_eq!(holding(&judge.judge(&look)), [], "minute {minute}");
    }
}

#[test]
fn a_filling_pool_is_reported_at_its_thresholds_without_flapping() {
    let mut judge = Judge::default();
    let mut at = |percent: u64, thresholds: &[u8]| {
        let used_bytes = percent * GIB;
        let look = Look { used_bytes, thresholds: thresholds.to_vec(), ..well(0) };
        let seen = judge.judge(&look);
        let space = find(&seen, AlertCode::PoolSpace).map(|condition| condition.severity);
        (space, find(&seen, AlertCode::PoolFull).is_some())
    };
    let (warning, critical) = (Some(Severity::Warning), Some(Severity::Critical));
    for (percent, space) in [
        (79, None),
        (80, warning),
        (79, warning),
        (78, warning),
        (77, None),
        (79, None),
        (95, critical),
        (93, critical),
        (92, warning),
        (100, critical),
    ] {
        assert_eq!(at(percent, &[80]), (space, percent == 100), "{percent}%");
    }
    assert_eq!(at(70, &[60, 70]).0, critical, "the last of several");
    assert_eq!(at(50, &[]).0, None);
    assert_eq!(at(96, &[]).0, critical, "also if hosts are not notified");
}

#[test]
fn a_pool_that_will_be_full_is_reported_by_its_trend() {
    // From 60% on: GiB per hour, and what is reported after a day.
    for (gib_per_hour, severity) in [
        (0.0, None),
        (-1.0, None),
        (0.1, None),
        (0.4, Some(Severity::Warning)),
        (1.0, Some(Severity::Critical)),
    ] {
        let mut judge = Judge::default();
        let mut last = Vec::new();
        for step in 0..144 {
            let now_ms = step * 10 * MINUTE_MS;
            let used = 60.0 + gib_per_hour * step as f64 / 6.0;
            let used_bytes = (used * GIB as f64) as u64;
            last = judge.judge(&Look { used_bytes, ..well(now_ms) });
            assert_eq!(is_unsure(&last, AlertCode::PoolFullSoon), step < 35, "step {step}");
        }
        let reported = find(&last, AlertCode::PoolFullSoon).map(|condition| condition.severity);
        assert_eq!(reported, severity, "{gib_per_hour} GiB an hour");
    }
    // A new pool fills fast, and is far from full.
    let mut judge = Judge::default();
    for step in 0..100 {
        let (now_ms, used_bytes) = (step * 10 * MINUTE_MS, step * GIB / 3);
        let seen = judge.judge(&Look { used_bytes, ..well(now_ms) });
        assert!(find(&seen, AlertCode::PoolFullSoon).is_none());
    }
}

#[test]
fn damage_failures_and_expiry_are_reported() {
    let mut judge = Judge::default();
    let mut look = well(40 * DAY_MS);
    look.damaged = 2;
    look.transfers.reads.failed = 3;
    look.has_failed = true;
    look.troubles.insert("maintenance", "no".into());
    look.snapshots = vec![
        ("a".into(), Some(Err("no room".into()))),
        ("b".into(), Some(Ok(()))),
        ("c".into(), None),
    ];
    look.certificate =
        Some(Certificate { path: "c.pem".into(), ends_ms: look.now_ms + 29 * DAY_MS });
    look.notifications = vec![("ops".into(), Some("refused".into())), ("log".into(), None)];
    let seen = judge.judge(&look);
    let reported: Vec<_> =
        holding(&seen).into_iter().map(|c| (c.code, c.component, c.severity)).collect();
    let (warning, critical) = (Severity::Warning, Severity::Critical);
    assert_eq!(
        reported,
        [
            (AlertCode::Damage, "pool".to_owned(), critical),
            (AlertCode::DeviceErrors, "pool.data".into(), warning),
            (AlertCode::StoreFailed, "pool".into(), critical),
            (AlertCode::BackgroundFailed, "maintenance".into(), warning),
            (AlertCode::SnapshotsMissed, "a".into(), warning),
            (AlertCode::CertificateEnds, "c.pem".into(), warning),
            (AlertCode::NotificationFailed, "ops".into(), warning),
        ]
    );
    assert!(is_unsure(&seen, AlertCode::SnapshotsMissed), "c was not due yet");
    // A failed write is more severe; a failure is reported for a day.
    look.transfers.writes.failed = 1;
    let seen = judge.judge(&look);
    assert_eq!(find(&seen, AlertCode::DeviceErrors).unwrap().severity, critical);
    look.now_ms += DAY_MS;
    assert!(find(&judge.judge(&look), AlertCode::DeviceErrors).is_none());
    look.certificate = Some(Certificate { path: "c.pem".into(), ends_ms: look.now_ms - 1 });
    let ended = find(&judge.judge(&look), AlertCode::CertificateEnds).unwrap();
    assert_eq!((ended.severity, ended.actual.as_str()), (critical, "it has expired"));
    // Before a scrub pass has finished, damage is unknown.
    let look = Look { is_scrubbed: false, ..well(0) };
    assert!(is_unsure(&Judge::default().judge(&look), AlertCode::Damage));
}

#[test]
fn repeated_refusals_are_reported_until_they_stop() {
    let mut judge = Judge::default();
    let mut at = |minute: u64, count: u64| {
        let mut look = well(minute * MINUTE_MS);
        let address = [192, 0, 2, 7].into();
        let refused = Refused { count, status: (2, 1), time_ms: 1, address };
        look.refused.insert("iqn.x".into(), refused);
        find(&judge.judge(&look), AlertCode::LoginRefused)
    };
    assert_eq!((at(0, 1), at(1, 4)), (None, None));
    let reported = at(2, 5).unwrap();
    assert!(reported.component == "iqn.x" && reported.actual.contains("CHAP"), "{reported:?}");
    assert!(at(9, 5).is_some());
    assert_eq!(at(13, 5), None, "none in the last ten minutes");
    // Once a minute is often enough to be reported, once in five minutes is not.
    for minute in 0..20 {
        assert_eq!(at(20 + minute, 6 + minute).is_some(), minute >= 4, "minute {minute}");
    }
    for step in 0..10 {
        assert_eq!(at(60 + 5 * step, 26 + step), None, "step {step}");
    }
}

#[test]
fn a_host_with_one_path_is_reported_if_that_lasts() {
    let mut judge = Judge::default();
    let mut at = |minute: u64, portals: usize, host: HostLook| {
        let mut look = well(minute * MINUTE_MS);
        (look.portals, look.hosts) = (portals, vec![host]);
        find(&judge.judge(&look), AlertCode::HostOnePath).map(|condition| condition.component)
    };
    assert_eq!(at(0, 2, host(&[1])), None);
    assert_eq!(at(1, 2, host(&[1])), None);
    assert_eq!(at(2, 2, host(&[1, 1])), Some("esx1".into()), "two sessions, one portal");
    assert_eq!(at(3, 2, host(&[1, 2])), None);
    assert_eq!(at(4, 2, host(&[2])), None, "it begins anew");
    assert_eq!(at(9, 1, host(&[1])), None, "the array has no more");
    assert_eq!(at(20, 1, host(&[1])), None);
}

#[test]
fn a_host_that_has_disconnected_is_reported() {
    let mut judge = Judge::default();
    let mut at = |minute: u64, host: Option<HostLook>| {
        let mut look = well(minute * MINUTE_MS);
        look.hosts.extend(host);
        let seen = judge.judge(&look);
        (find(&seen, AlertCode::HostGone).is_some(), is_unsure(&seen, AlertCode::HostGone))
    };
    assert_eq!(at(0, Some(host(&[]))), (false, true), "it may still log in");
    assert_eq!(at(100, Some(host(&[]))), (false, true));
    assert_eq!(at(101, Some(host(&[1, 2]))), (false, false));
    assert_eq!(at(102, Some(host(&[]))), (false, true), "it may be restarting");
    assert_eq!(at(104, Some(host(&[]))), (true, false));
    let unconnected = HostLook { connections: 0, ..host(&[]) };
    assert_eq!(at(105, Some(unconnected)), (false, false), "nothing is missing there");
    assert_eq!(at(106, Some(host(&[]))), (false, true));
    assert_eq!(at(107, None), (false, false), "it was deleted");
    assert_eq!(at(200, Some(host(&[]))), (false, true), "that is another one");
}

#[test]
fn a_host_that_logs_in_every_few_seconds_is_not_gone() {
    let mut judge = Judge::default();
    let mut at = |now_ms: u64, left_ms: Option<u64>, portals_left: &[u16]| {
        let mut look = well(now_ms);
        look.hosts = vec![HostLook {
            last_logout_ms: left_ms,
            portals_left: portals_left.iter().copied().collect(),
            ..host(&[])
        }];
        let seen = judge.judge(&look);
        let gone =
            (find(&seen, AlertCode::HostGone).is_some(), is_unsure(&seen, AlertCode::HostGone));
        (gone, find(&seen, AlertCode::HostOnePath).is_some())
    };
    // At each look it has just logged out: through both portals.
    for step in 0..100 {
        let now_ms = HOUR_MS + step * 15_000;
        assert_eq!(at(now_ms, Some(now_ms - 4_000), &[1, 2]), ((false, false), false), "{step}");
    }
    // It logged out for good: that is reported two minutes later, and ends when it is seen again.
    let left_ms = 2 * HOUR_MS;
    assert_eq!(at(left_ms + MINUTE_MS, Some(left_ms), &[]), ((false, false), false));
    assert_eq!(at(left_ms + 2 * MINUTE_MS, Some(left_ms), &[]), ((true, false), false));
    let again_ms = left_ms + 3 * MINUTE_MS;
    assert_eq!(at(again_ms + 1, Some(again_ms), &[1]), ((false, false), false));
    // Through one portal only: that is reported, too.
    for step in 1..=8 {
        let now_ms = again_ms + step * 15_000;
        at(now_ms, Some(now_ms - 4_000), &[1]);
    }
    let now_ms = again_ms + 9 * 15_000;
    assert_eq!(at(now_ms, Some(now_ms - 4_000), &[1]), ((false, false), true));
}

#[test]
fn refused_offloads_are_reported_until_one_succeeds() {
    let mut judge = Judge::default();
    let mut it = host(&[1, 2]);
    let mut at = |minute: u64, host: &HostLook| {
        let mut look = well(minute * MINUTE_MS);
        look.hosts = vec![host.clone()];
        find(&judge.judge(&look), AlertCode::OffloadRefused).map(|condition| condition.actual)
    };
    assert_eq!(at(0, &it), None);
    count(&mut it, Class::Copy, 0, 4, 0);
    assert_eq!(at(1, &it), None);
    count(&mut it, Class::Copy, 0, 1, 0);
    assert_eq!(at(2, &it).as_deref(), Some("EXTENDED COPY (5 failed since the start)"));
    assert!(at(100, &it).is_some(), "none has succeeded since");
    count(&mut it, Class::Copy, 1, 30, 4096);
    assert_eq!(at(101, &it), None);
    // Miscompares of ATS are normal.
    count(&mut it, Class::CompareAndWrite, 1, 100, 512);
    assert_eq!(at(102, &it), None);
    count(&mut it, Class::CompareAndWrite, 0, 100, 0);
    assert!(at(113, &it).is_some(), "but not without a single success in ten minutes");
}

#[test]
fn disabled_offloads_and_space_never_reclaimed_are_reported() {
    let mut judge = Judge::default();
    let mut at = |uptime_ms: u64, host: &HostLook| {
        let mut look = Look { uptime_ms, ..well(uptime_ms) };
        look.hosts = vec![host.clone()];
        let reported: BTreeSet<AlertCode> =
            holding(&judge.judge(&look)).iter().map(|condition| condition.code).collect();
        reported
    };
    let mut it = host(&[1, 2]);
    count(&mut it, Class::Write, 100, 0, 15 * GIB);
    assert!(at(DAY_MS, &it).is_empty());
    count(&mut it, Class::Write, 100, 0, GIB);
    assert!(at(HOUR_MS, &it).is_empty(), "it may run once a day");
    assert_eq!(at(DAY_MS, &it), [AlertCode::NoReclaim].into());
    it.off.insert("unmap");
    assert_eq!(at(DAY_MS, &it), [AlertCode::OffloadOff].into(), "that is why");
    it.off.clear();
    count(&mut it, Class::Delete, 1, 0, 4096);
    assert!(at(DAY_MS, &it).is_empty());
    it.done.reserves = 10;
    assert_eq!(at(DAY_MS, &it), [AlertCode::NoAts].into());
    count(&mut it, Class::CompareAndWrite, 1, 0, 512);
    assert!(at(DAY_MS, &it).is_empty());
}

#[test]
fn a_host_that_copies_by_itself_is_reported_with_the_reason() {
    // Bytes read and written in ten minutes, their length, and whether that is a copy.
    for (read, write, piece, copies, is_told) in [
        (8 * GIB, 8 * GIB, 1 << 20, 0, true),
        (8 * GIB, 8 * GIB, 1 << 20, 1, false),
        (8 * GIB, 6 * GIB, 1 << 20, 0, false),
        (8 * GIB, 8 * GIB, 8 << 10, 0, false),
        (GIB, GIB, 1 << 20, 0, false),
    ] {
        let mut judge = Judge::default();
        let mut it = host(&[1, 2]);
        count(&mut it, Class::Delete, 1, 0, 4096);
        let mut look = well(0);
        look.hosts = vec![it.clone()];
        judge.judge(&look);
        count(&mut it, Class::Read, read / piece, 0, read);
        count(&mut it, Class::Write, write / piece, 0, write);
        count(&mut it, Class::Copy, copies, 0, 4096);
        let mut later = well(9 * MINUTE_MS);
        later.hosts = vec![it.clone()];
        let reported = find(&judge.judge(&later), AlertCode::CopiesByHost);
        assert_eq!(reported.is_some(), is_told, "{read} {write} {piece} {copies}");
        let Some(reported) = reported else { continue };
        assert!(reported.actual.ends_with("no EXTENDED COPY arrived"), "{}", reported.actual);
        // It stays open for a day, in which the host may do so again.
        later.now_ms = 10 * HOUR_MS;
        assert!(is_unsure(&judge.judge(&later), AlertCode::CopiesByHost));
        later.now_ms = 9 * MINUTE_MS + DAY_MS;
        let seen = judge.judge(&later);
        assert!(!is_unsure(&seen, AlertCode::CopiesByHost));
        assert!(find(&seen, AlertCode::CopiesByHost).is_none());
    }
}

#[test]
fn a_host_that_sends_zeros_as_data_is_reported_with_the_reason() {
    // Zeros sent in nine minutes, WRITE SAME among the commands, and whether that is reported.
    for (mib, offloads, off, reported) in [
        (1024, 0, false, Some("1024 MiB of zeros were sent in 10 minutes; no WRITE SAME arrived")),
        (2048, 0, true, Some("switched off on the array")),
        (1023, 0, false, None),
        (4096, 1, false, None),
    ] {
        let mut judge = Judge::default();
        let mut it = host(&[1, 2]);
        count(&mut it, Class::Delete, 1, 0, 4096);
        it.off.extend(off.then_some(block::Offload::WriteSame.name()));
        // Zeros sent before the window do not matter.
        it.done.zeros_bytes = 7 * GIB;
        let mut look = well(0);
        look.hosts = vec![it.clone()];
        judge.judge(&look);
        it.done.zeros_bytes += mib << 20;
        count(&mut it, Class::Zero, offloads, 0, 4096);
        look = well(9 * MINUTE_MS);
        look.hosts = vec![it.clone()];
        let found = find(&judge.judge(&look), AlertCode::ZerosByHost).map(|one| one.actual);
        assert_eq!(found.is_some(), reported.is_some(), "{mib} {offloads}");
        let (Some(found), Some(reported)) = (found, reported) else { continue };
        assert!(found.ends_with(reported), "{found}");
        look.now_ms += HOUR_MS;
        assert!(is_unsure(&judge.judge(&look), AlertCode::ZerosByHost));
        look.now_ms += DAY_MS;
        assert!(!is_unsure(&judge.judge(&look), AlertCode::ZerosByHost), "long ago");
    }
}
