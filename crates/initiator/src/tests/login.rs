//! Logins that succeed, and logins that fail.

use super::wire::*;
use super::*;

#[test]
fn a_login_works_with_and_without_the_security_stage() {
    for security_stage in [false, true] {
        let mut wire = Wire::logged_in(Options { security_stage, ..options() }, 1);
        assert!(wire.host.is_logged_in() && wire.host.room() == 16);
        assert_ne!(wire.host.options().tsih, 0);
        wire.simple(0);
        assert_eq!(only_answer(wire.pump()).status, 0);
    }
}

#[test]
fn a_refused_login_is_an_event() {
    for (name, target_name, expected) in
        [("iqn.2026-01.example:stranger", TARGET, (2, 2)), (NAME, "iqn.2026-01.example:no", (2, 3))]
    {
        let options = Options {
            initiator_name: name.to_owned(),
            target_name: target_name.to_owned(),
            ..options()
        };
        let mut wire = Wire::new(&target(), Initiator::new(options), 1);
        wire.host.login();
        let (class, detail) = expected;
        assert_eq!(wire.pump(), [Event::LoginFailed { class, detail }]);
        assert!(wire.host.is_over());
        let refused = wire.host.command(LUN, &[0; 6], Attribute::Simple, None, 0);
        assert_eq!(refused, Err(Busy::NotLoggedIn));
    }
}

#[test]
fn a_discovery_session_lists_the_target_in_one_piece_and_in_many() {
    for segment in [512, 65_536] {
        let options = Options {
            discovery: true,
            max_recv_data_segment_bytes: segment,
            target_name: String::new(),
            ..options()
        };
        let limits = iscsi::Limits::default();
        let mut wire = Wire::new(&target_with(limits), Initiator::new(options), 2);
        wire.log_in();
        let itt = wire.host.send_targets("All").unwrap();
        let pairs = vec![
            ("TargetName".to_owned(), TARGET.to_owned()),
            ("TargetAddress".to_owned(), "192.0.2.1:3260,1".to_owned()),
        ];
        assert_eq!(wire.pump(), [Event::Text { itt, pairs }]);
    }
}

#[test]
fn two_connections_of_a_session_share_the_window() {
    let target = target();
    let first = Initiator::new(Options { max_connections: 2, ..options() });
    let mut first = Wire::new(&target, first, 3);
    first.log_in();
    assert_eq!(first.host.terms().connections, 2);
    let joining = Options { cid: 1, tsih: first.host.options().tsih, ..options() };
    let mut second = Wire::new(&target, Initiator::joining(joining, &first.host), 4);
    second.log_in();
    for _ in 0..8 {
        first.simple(NEVER_ANSWERED);
        second.simple(NEVER_ANSWERED);
    }
    assert_eq!((first.host.room(), second.host.room()), (0, 0));
    let refused = second.host.command(LUN, &[0; 6], Attribute::Simple, None, 0);
    assert_eq!(refused, Err(Busy::WindowClosed));
    for _ in 0..2 {
        assert_eq!((first.pump(), second.pump()), (vec![], vec![]));
    }
    assert_eq!((first.stuck.len(), second.stuck.len()), (8, 8));
}

#[test]
fn reinstatement_closes_the_old_session() {
    let target = target();
    let mut old = Wire::new(&target, Initiator::new(options()), 5);
    old.log_in();
    old.simple(NEVER_ANSWERED);
    assert_eq!(old.pump(), []);
    let mut new = Wire::new(&target, Initiator::new(options()), 6);
    new.log_in();
    old.pump();
    assert!(old.connection.is_closed());
    assert_eq!(old.host.outstanding().count(), 1);
}
