//! The state of a volume that persists through a loss of power and a takeover, and when changes are
//! acknowledged.

use std::sync::Arc;

use block::VolumeId;
use target::{AccessState, Subject};

use super::reservations::{Hosts, KEY_A, KEY_B, keys, out, report};
use super::world::{cdb_10, initiator, triple};
use crate::SaveError;
use crate::nexus::Nexus;
use crate::step::{AnswerAfter, Pending, Status, Step};

const VOLUME: VolumeId = VolumeId(1);

fn kept_keys(key: u64, action_key: u64) -> Vec<u8> {
    let mut list = keys(key, action_key);
    list[20] = 0x01; // APTPL
    list
}

/// Hosts a and b registered, with APTPL.
fn kept() -> Hosts {
    let mut hosts = Hosts::new();
    for (nexus, key) in [(hosts.a.clone(), KEY_A), (hosts.b.clone(), KEY_B)] {
        let response = hosts.run(&nexus, &out(0, 0), &kept_keys(0, key));
        assert_eq!(response.status, Status::Good);
        assert_eq!(response.transfer_bytes_wanted, Some(24));
    }
    hosts
}

/// The power fails; the hosts log in again.
fn restart(hosts: &mut Hosts) {
    hosts.world.restart();
    log_in(hosts);
}

/// Another controller takes over, and the hosts log in again.
fn take_over(hosts: &mut Hosts) {
    hosts.world.take_over();
    log_in(hosts);
}

fn log_in(hosts: &mut Hosts) {
    hosts.a = hosts.world.log_in(initiator("a"), 1);
    hosts.b = hosts.world.log_in(initiator("b"), 2);
    hosts.c = hosts.world.log_in(initiator("c"), 1);
}

fn is_kept(hosts: &mut Hosts) -> bool {
    let c = hosts.c.clone();
    hosts.run(&c, &report(2), &[]).data_in.to_vec()[3] & 1 == 1
}

/// Starts an action that must wait.
fn start(hosts: &mut Hosts, nexus: &Nexus, action: u8, kind: u8, list: &[u8]) -> Pending {
    match hosts.world.start_as(nexus, 0, &out(action, kind), list) {
        Step::Persist { subject: Subject::Volume(VOLUME), pending } => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn registrations_with_aptpl_survive_a_loss_of_power() {
    for kind in [1, 3, 5, 6, 7, 8] {
        let mut hosts = kept();
        assert!(is_kept(&mut hosts));
        let b = hosts.b.clone();
        assert_eq!(hosts.out(&b, 1, kind, KEY_B, 0).status, Status::Good);
        let before = hosts.run(&b, &report(3), &[]).data_in.to_vec();
        restart(&mut hosts);
        let (b, c) = (hosts.b.clone(), hosts.c.clone());
        let after = hosts.run(&b, &report(3), &[]).data_in.to_vec();
        assert_eq!(before[4..], after[4..], "type {kind}");
        assert_eq!((&before[..4], &after[..4]), (&[0, 0, 0, 2][..], &[0; 4][..]), "generation");
        assert_eq!(hosts.status(&c, &cdb_10(0x2a, 0, 0, 1)), Status::ReservationConflict);
        assert_eq!(hosts.out(&b, 2, kind, KEY_B, 0).status, Status::Good, "b holds it");
        assert_eq!(hosts.status(&c, &cdb_10(0x2a, 0, 0, 1)), Status::Good);
        assert!(is_kept(&mut hosts));
    }
}

#[test]
fn the_last_aptpl_of_any_nexus_decides() {
    let mut hosts = kept();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 1, KEY_A, 0);
    assert_eq!(hosts.out(&b, 0, 0, KEY_B, KEY_B).status, Status::Good, "without APTPL");
    assert!(!is_kept(&mut hosts) && !hosts.world.kept[&VOLUME].aptpl);
    assert_eq!(hosts.run(&a, &out(6, 0), &kept_keys(0, KEY_A)).status, Status::Good);
    assert_eq!(hosts.world.kept[&VOLUME].registrants.len(), 2);
    hosts.out(&b, 6, 0, 0, KEY_B);
    restart(&mut hosts);
    let c = hosts.c.clone();
    assert_eq!(hosts.run(&c, &report(0), &[]).data_in.len(), 8);
    assert_eq!(hosts.run(&c, &report(1), &[]).data_in.len(), 8);
}

#[test]
fn every_action_on_persistent_state_waits_until_it_is_durable() {
    let mut hosts = kept();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let move_list = {
        let mut list = keys(KEY_A, 5);
        (list[17], list[19], list[23]) = (0x01, 2, 24);
        list.extend([0x45, 0, 0, 20]);
        list.extend(b"iqn.d,i,0x1\0\0\0\0\0\0\0\0\0");
        list
    };
    let steps = [
        (1, 5, keys(KEY_A, 0), 2),
        (2, 5, keys(KEY_A, 0), 2),
        (1, 5, keys(KEY_A, 0), 2),
        (4, 5, keys(KEY_A, KEY_B), 1),
        (7, 0, move_list, 2),
        (3, 0, keys(KEY_A, 0), 0),
    ];
    for (action, kind, list, count) in steps {
        let mut cdb = out(action, kind);
        cdb[8] = list.len() as u8;
        let Step::Persist { pending, .. } = hosts.world.start_as(&a, 0, &cdb, &list) else {
            panic!("action {action} does not wait");
        };
        hosts.world.save(VOLUME);
        let Step::Done(response) = hosts.world.server.resume_saved(pending) else { panic!() };
        assert_eq!(response.status, Status::Good, "{action}");
        let kept = &hosts.world.kept[&VOLUME];
        assert_eq!(kept.registrants.len(), count, "action {action}");
        assert_eq!(kept.reservation.is_some(), matches!(action, 1 | 4 | 7));
        hosts.run(&b, &[0; 6], &[]);
    }
    // Without APTPL it waits too: it must survive a takeover. An action that changes nothing does
    // not wait.
    let mut hosts = Hosts::registered();
    let a = hosts.a.clone();
    for (action, kind, waits) in
        [(1, 1, true), (1, 1, false), (2, 1, true), (2, 1, false), (3, 0, true)]
    {
        let step = hosts.world.start_as(&a, 0, &out(action, kind), &keys(KEY_A, 0));
        assert_eq!(matches!(step, Step::Persist { .. }), waits, "{action}");
        hosts.world.finish(&a, step);
    }
}

#[test]
fn others_are_notified_in_order_when_a_change_is_durable() {
    let mut hosts = kept();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 5, KEY_A, 0);
    let release = start(&mut hosts, &a, 2, 5, &keys(KEY_A, 0));
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "not yet");
    // This one changes nothing, but reports that there is no reservation: so it waits, too.
    let again = start(&mut hosts, &a, 2, 5, &keys(KEY_A, 0));
    let unsaved = hosts.world.server.unsaved(VOLUME).unwrap();
    let preempt = start(&mut hosts, &a, 5, 0, &keys(KEY_A, KEY_B));
    hosts.world.server.saved(unsaved, Ok(()));
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x04));
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "the other is not durable yet");
    assert_eq!(b.preemptions(VOLUME), 0);
    hosts.world.save(VOLUME);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x05));
    assert_eq!(b.preemptions(VOLUME), 1);
    let nothing = AnswerAfter::Nothing;
    for (pending, after) in [(release, nothing), (again, nothing), (preempt, AnswerAfter::All)] {
        let Step::Done(response) = hosts.world.server.resume_saved(pending) else { panic!() };
        assert_eq!((response.status, response.after), (Status::Good, after));
    }
    assert!(hosts.world.server.unsaved(VOLUME).is_none());
}

#[test]
fn a_change_that_can_not_be_made_durable_is_rolled_back() {
    let table = [
        (SaveError::NoRoom, 6, (5, 0x55, 0x04)),
        (SaveError::NoRoom, 1, (5, 0x55, 0x03)),
        (SaveError::Failed, 6, (4, 0x44, 0x00)),
        (SaveError::Failed, 3, (4, 0x44, 0x00)),
    ];
    for (error, action, sense) in table {
        let mut hosts = kept();
        let (a, b) = (hosts.a.clone(), hosts.b.clone());
        let before = hosts.run(&a, &report(3), &[]).data_in.to_vec();
        hosts.world.save_failure = Some(error);
        let refused = hosts.run(&a, &out(action, 1), &kept_keys(KEY_A, 7));
        assert_eq!(triple(&refused), sense);
        let after = hosts.run(&a, &report(3), &[]).data_in.to_vec();
        assert_eq!(before[4..], after[4..]);
        assert_ne!(
            before[..4],
            after[..4],
            "a host that has read in between sees another generation"
        );
        assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "no nexus is notified");
        assert_eq!(hosts.world.kept[&VOLUME].registrants[0].key, KEY_A);
        assert_eq!(hosts.out(&a, 1, 1, KEY_A, 0).status, Status::Good, "and writes continue");
    }
}

#[test]
fn a_failure_rolls_back_later_changes_and_keeps_durable_ones() {
    let mut hosts = kept();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let first = start(&mut hosts, &a, 1, 5, &keys(KEY_A, 0));
    let unsaved = hosts.world.server.unsaved(VOLUME).unwrap();
    let second = start(&mut hosts, &a, 6, 0, &kept_keys(0, 7));
    hosts.world.server.saved(unsaved, Ok(()));
    let unsaved = hosts.world.server.unsaved(VOLUME).unwrap();
    let third = start(&mut hosts, &b, 6, 0, &keys(0, 8)); // without APTPL
    assert!(is_kept(&mut hosts), "the durable state is reported, not the pending one");
    hosts.world.server.saved(unsaved, Err(SaveError::Failed));
    assert!(hosts.world.server.unsaved(VOLUME).is_none(), "nothing is left to do");
    let wants = [Status::Good, Status::CheckCondition, Status::CheckCondition];
    for (pending, want) in [first, second, third].into_iter().zip(wants) {
        let Step::Done(response) = hosts.world.server.resume_saved(pending) else { panic!() };
        assert_eq!(response.status, want);
    }
    let data = hosts.run(&a, &report(0), &[]).data_in.to_vec();
    assert_eq!(data[8..], [KEY_A.to_be_bytes(), KEY_B.to_be_bytes()].concat());
    assert_eq!(hosts.run(&a, &report(1), &[]).data_in.to_vec()[21], 5);
    assert!(is_kept(&mut hosts));
}

#[test]
fn a_volume_that_is_destroyed_meanwhile_stays_forgotten() {
    let mut hosts = kept();
    let a = hosts.a.clone();
    let pending = start(&mut hosts, &a, 1, 5, &keys(KEY_A, 0));
    let unsaved = hosts.world.server.unsaved(VOLUME).unwrap();
    hosts.world.server.volume_destroyed(VOLUME);
    hosts.world.server.saved(unsaved, Ok(()));
    assert!(matches!(hosts.world.server.resume_saved(pending), Step::Done(_)));
    assert!(hosts.world.server.unsaved(VOLUME).is_none());
    assert_eq!(hosts.run(&a, &report(0), &[]).data_in.len(), 8);
}

/// RESERVE and RELEASE of `nexus`, whose session stays.
fn reserve(hosts: &mut Hosts, nexus: &Arc<Nexus>, opcode: u8) -> Status {
    hosts.run(nexus, &[opcode, 0, 0, 0, 0, 0], &[]).status
}

#[test]
fn reserve_waits_until_it_is_durable_and_survives_only_a_takeover() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let step = hosts.world.start_as(&a, 0, &[0x16, 0, 0, 0, 0, 0], &[]);
    assert!(matches!(step, Step::Persist { subject: Subject::Volume(VOLUME), .. }));
    assert_eq!(hosts.status(&b, &[0; 6]), Status::ReservationConflict, "in force at once");
    assert_eq!(hosts.world.finish(&a, step).status, Status::Good);
    let again = hosts.world.start_as(&a, 0, &[0x16, 0, 0, 0, 0, 0], &[]);
    assert!(matches!(again, Step::Done(_)), "it already holds the volume");
    take_over(&mut hosts);
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    assert_eq!(hosts.status(&b, &[0; 6]), Status::ReservationConflict, "a still has it");
    assert_eq!(hosts.status(&a, &cdb_10(0x2a, 0, 0, 1)), Status::Good);
    restart(&mut hosts);
    let b = hosts.b.clone();
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "a power on ends it");
    assert_eq!(reserve(&mut hosts, &b, 0x16), Status::Good);
    assert_eq!(reserve(&mut hosts, &b, 0x17), Status::Good);
    assert!(hosts.world.kept.is_empty(), "nothing is stored any longer");
}

#[test]
fn a_reserve_ended_by_session_loss_or_reset_is_no_longer_stored() {
    for by_reset in [false, true] {
        let mut hosts = Hosts::new();
        let a = hosts.a.clone();
        assert_eq!(reserve(&mut hosts, &a, 0x16), Status::Good);
        assert!(hosts.world.kept[&VOLUME].exclusive.is_some());
        match by_reset {
            true => hosts.world.lun_reset(0),
            false => hosts.world.nexus_loss(&a),
        }
        assert!(hosts.world.kept.is_empty(), "by reset: {by_reset}");
    }
}

#[test]
fn a_reserve_of_a_lost_session_never_returns_when_saving_fails() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    assert_eq!(reserve(&mut hosts, &a, 0x16), Status::Good);
    hosts.world.save_failure = Some(SaveError::Failed);
    hosts.world.nexus_loss(&a);
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "the release is in force nevertheless");
    assert!(hosts.world.kept[&VOLUME].exclusive.is_some(), "and not durable yet");
    hosts.world.save(VOLUME);
    assert!(hosts.world.kept.is_empty());
    // While another change is being saved.
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let step = hosts.world.start_as(&a, 0, &[0x16, 0, 0, 0, 0, 0], &[]);
    let unsaved = hosts.world.server.unsaved(VOLUME).unwrap();
    assert_eq!(hosts.world.server.nexus_loss(&a), [VOLUME]);
    hosts.world.server.saved(unsaved, Ok(()));
    hosts.world.save_failure = Some(SaveError::NoRoom);
    hosts.world.save(VOLUME);
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good);
    drop(step);
}

#[test]
fn a_takeover_keeps_state_without_aptpl_and_a_power_on_does_not() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    assert_eq!(hosts.out(&b, 1, 5, KEY_B, 0).status, Status::Good);
    let before = hosts.run(&a, &report(3), &[]).data_in.to_vec();
    take_over(&mut hosts);
    let a = hosts.a.clone();
    let after = hosts.run(&a, &report(3), &[]).data_in.to_vec();
    assert_eq!(before, after, "PRGENERATION included");
    assert!(!is_kept(&mut hosts));
    restart(&mut hosts);
    let a = hosts.a.clone();
    assert_eq!(hosts.run(&a, &report(3), &[]).data_in.len(), 8, "no nexus is registered");
    assert_eq!(hosts.run(&a, &report(3), &[]).data_in.to_vec()[..4], [0; 4]);
}

#[test]
fn access_states_wait_until_they_are_durable_and_survive_only_a_takeover() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let list = [0, 0, 0, 0, 2, 0, 0, 2]; // group 2, that of b, in standby
    let set = [0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];
    let step = hosts.world.start_as(&a, 0, &set, &list);
    assert!(matches!(step, Step::Persist { subject: Subject::Volume(VOLUME), .. }));
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (2, 0x04, 0x0b), "in force at once");
    assert_eq!(hosts.world.finish(&a, step).status, Status::Good);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x06), "now it is reported");
    assert_eq!(hosts.world.kept[&VOLUME].access, [(2, AccessState::Standby)].into());
    take_over(&mut hosts);
    let b = hosts.b.clone();
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x06), "it may have missed it");
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (2, 0x04, 0x0b));
    restart(&mut hosts);
    let b = hosts.b.clone();
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good);
}
