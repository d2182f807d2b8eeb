//! Tests each practice, with and without evidence.

use std::collections::BTreeMap;

use super::*;
use crate::SessionTerms;

fn verdicts(evidence: &Evidence) -> BTreeMap<String, Verdict> {
    let check = evidence.check("h".into());
    assert_eq!(check.good + check.improve + check.unseen, check.rows.len());
    for row in &check.rows {
        for text in [&row.seen, &row.best, &row.esxi, &row.linux] {
            assert!(!text.is_empty() && !text.contains('\n') && !text.contains("  "), "{text}");
        }
        assert!(!row.windows.contains('\n') && !row.windows.contains("  "), "{}", row.windows);
        // Unreported practices are listed for every host.
        assert_eq!(row.unreported, TIMERS.contains(&row.check.as_str()), "{}", row.check);
        assert!(!row.unreported || row.verdict == Verdict::Unseen && !row.windows.is_empty());
    }
    check.rows.into_iter().map(|row| (row.check, row.verdict)).collect()
}

const TIMERS: [&str; 3] = ["nop_timeout", "path_timeout", "no_path_timeout"];

fn session(portal: u16, peer: &str, commands: u64) -> HostSession {
    let terms = SessionTerms {
        immediate_data: true,
        burst_bytes: 262_144,
        commands: 128,
        ..SessionTerms::default()
    };
    HostSession {
        portal,
        peer: peer.into(),
        commands,
        queue_most: 32,
        terms,
        ..HostSession::default()
    }
}

fn path(class: &str, ok: u64, failed: u64, bytes: u64, largest_bytes: u64) -> PathCounters {
    let counters = CommandCounters { ok, failed, bytes, largest_bytes, ..Default::default() };
    PathCounters { commands: [(class.to_owned(), counters)].into(), ..PathCounters::default() }
}

#[test]
fn a_host_that_never_logged_in_has_no_verdicts() {
    let verdicts = verdicts(&Evidence { portals: 4, ..Evidence::default() });
    assert_eq!(verdicts.len(), 15);
    assert!(verdicts.values().all(|verdict| *verdict == Verdict::Unseen), "{verdicts:?}");
}

#[test]
fn a_host_without_problems_is_reported_as_good() {
    let good = Evidence {
        portals: 2,
        sessions: vec![session(1, "10.0.0.1:5", 900), session(2, "10.0.1.1:5", 1100)],
        paths: vec![
            path("copy", 10, 0, 160 << 20, 16 << 20),
            path("zero", 5, 1, 5 << 20, 1 << 20),
            path("compare_and_write", 9, 3, 9 * 512, 512),
            path("delete", 1, 0, 1 << 20, 1 << 20),
            path("write", 1, 0, 1 << 40, 1 << 20),
        ],
        volumes: 1,
        ..Evidence::default()
    };
    for (check, verdict) in verdicts(&good) {
        let is_unreported = TIMERS.contains(&check.as_str());
        let expected = if is_unreported { Verdict::Unseen } else { Verdict::Good };
        assert_eq!(verdict, expected, "{check}");
    }
}

#[test]
fn possible_improvements_are_reported() {
    let mut two = Evidence {
        portals: 4,
        sessions: vec![session(1, "10.0.0.1:5", 100), session(2, "10.0.0.1:6", 9900)],
        volumes: 1,
        ..Evidence::default()
    };
    two.off.insert("unmap");
    two.sessions[0].terms.data_digest = true;
    two.sessions[1].terms.burst_bytes = 8192;
    two.sessions[1].queue_most = 128;
    two.paths = vec![
        path("copy", 10, 0, 40 << 20, 4 << 20),
        PathCounters { zeros_written_bytes: 65 << 20, ..path("zero", 2, 7, 1 << 20, 1 << 19) },
        path("write", 1 << 20, 0, 4 << 30, 4096),
        PathCounters { reserves: 3, ..path("compare_and_write", 5, 0, 2560, 512) },
    ];
    let verdicts = verdicts(&two);
    for check in [
        "multipath",
        "host_ports",
        "round_robin",
        "offloads_on",
        "copy_size",
        "block_zero",
        "ats",
        "reclaim",
        "login_parameters",
        "digests",
        "queue_depth",
    ] {
        assert_eq!(verdicts[check], Verdict::Improve, "{check}");
    }
    assert_eq!(verdicts["full_copy"], Verdict::Good);
}

#[test]
fn one_path_is_not_multipath_and_a_share_of_paths_is_not_reported() {
    let one = |portals| Evidence {
        portals,
        sessions: vec![session(1, "10.0.0.1:5", 5000)],
        ..Evidence::default()
    };
    for portals in [1, 2] {
        let verdicts = verdicts(&one(portals));
        assert_eq!(verdicts["multipath"], Verdict::Improve);
        assert_eq!(verdicts["round_robin"], Verdict::Unseen);
    }
}

#[test]
fn a_host_that_has_left_is_judged_by_its_last_sessions() {
    let seen = |live: Vec<HostSession>, ended: Vec<(u64, HostSession)>, now_ms| {
        let (sessions, has_left) = known_sessions(live, ended, now_ms);
        let evidence = Evidence { portals: 2, sessions, has_left, ..Evidence::default() };
        let check = evidence.check("h".into());
        let row = check.rows.into_iter().find(|row| row.check == "multipath").unwrap();
        (row.verdict, row.seen)
    };
    let on = |portal| session(portal, "10.0.0.1:5", 900);
    let ended = || vec![(1_000_000, on(1)), (1_001_000, on(2)), (5_000, on(3))];
    let both = |text: &str| (Verdict::Good, text.to_owned());
    // Between two logins, and an hour after the last logout.
    assert_eq!(seen(vec![], ended(), 1_004_000), both("Sessions on 2 of 2 portals."));
    let left = both("It has left; it had sessions on 2 of 2 portals.");
    assert_eq!(seen(vec![], ended(), 4_600_000), left);
    // A current session counts together with one that has just ended, but not with old ones.
    assert_eq!(seen(vec![on(1)], ended(), 1_004_000), both("Sessions on 2 of 2 portals."));
    let one = (Verdict::Improve, "Sessions on 1 of 2 portals.".to_owned());
    assert_eq!(seen(vec![on(1)], ended(), 4_600_000), one);
    assert_eq!(seen(vec![], vec![], 1), (Verdict::Unseen, "No session.".to_owned()));
}

#[test]
fn a_host_should_reach_both_controllers() {
    let seen = |portals: &[u16]| {
        let evidence = Evidence {
            portals: 4,
            controllers: [("CT0", [1, 2].into()), ("CT1", [3, 4].into())].into(),
            sessions: portals.iter().map(|portal| session(*portal, "10.0.0.1:5", 9)).collect(),
            ..Evidence::default()
        };
        let rows = evidence.check("h".into()).rows;
        let row = rows.into_iter().find(|row| row.check == "both_controllers").unwrap();
        (row.verdict, row.seen)
    };
    let one = |text: &str| (Verdict::Improve, text.to_owned());
    assert_eq!(seen(&[1, 2]), one("Sessions at CT0 only, none at CT1."));
    assert_eq!(seen(&[4]), one("Sessions at CT1 only, none at CT0."));
    assert_eq!(seen(&[1, 3]), (Verdict::Good, "Sessions at both.".to_owned()));
    assert_eq!(seen(&[]), (Verdict::Unseen, "No session.".to_owned()));
}
