//! PERSISTENT RESERVE IN and OUT, and which nexuses get conflicts.

use std::sync::Arc;

use super::world::{World, cdb_10, initiator, triple};
use crate::nexus::Nexus;
use crate::step::{AnswerAfter, Response, Status};

pub(super) const KEY_A: u64 = 0xaaaa;
pub(super) const KEY_B: u64 = 0xbbbb;

pub(super) fn out(action: u8, kind: u8) -> Vec<u8> {
    vec![0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0]
}

pub(super) fn keys(key: u64, action_key: u64) -> Vec<u8> {
    let mut list = key.to_be_bytes().to_vec();
    list.extend(action_key.to_be_bytes());
    list.extend([0; 8]);
    list
}

pub(super) fn report(action: u8) -> Vec<u8> {
    vec![0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0]
}

/// Nexus a and b, and c that never registers.
pub(super) struct Hosts {
    pub world: World,
    pub a: Arc<Nexus>,
    pub b: Arc<Nexus>,
    pub c: Arc<Nexus>,
}

impl Hosts {
    pub(super) fn new() -> Self {
        let mut world = World::new();
        let a = world.nexus.clone();
        let b = world.log_in(initiator("b"), 2);
        let c = world.log_in(initiator("c"), 1);
        for nexus in [&a, &b, &c] {
            world.run_as(nexus, 0, &[0; 6], &[]);
        }
        Self { world, a, b, c }
    }

    pub(super) fn registered() -> Self {
        let mut hosts = Self::new();
        for (nexus, key) in [(hosts.a.clone(), KEY_A), (hosts.b.clone(), KEY_B)] {
            assert_eq!(hosts.out(&nexus, 0, 0, 0, key).status, Status::Good);
        }
        hosts
    }

    pub(super) fn run(&mut self, nexus: &Arc<Nexus>, cdb: &[u8], data: &[u8]) -> Response {
        self.world.run_as(nexus, 0, cdb, data)
    }

    pub(super) fn out(
        &mut self,
        nexus: &Arc<Nexus>,
        action: u8,
        kind: u8,
        key: u64,
        own: u64,
    ) -> Response {
        self.run(nexus, &out(action, kind), &keys(key, own))
    }

    pub(super) fn status(&mut self, nexus: &Arc<Nexus>, cdb: &[u8]) -> Status {
        self.run(nexus, cdb, &[0; 512]).status
    }
}

#[test]
fn each_type_conflicts_as_the_table_says() {
    // Type; whether reads and writes of a registered and of an unregistered nexus conflict.
    let table = [
        (1, [false, true], [false, true]),
        (3, [true, true], [true, true]),
        (5, [false, false], [false, true]),
        (6, [false, false], [true, true]),
        (7, [false, false], [false, true]),
        (8, [false, false], [true, true]),
    ];
    for (kind, registered, unregistered) in table {
        let mut hosts = Hosts::registered();
        let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
        assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good);
        assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good, "again");
        let other = if kind == 1 { 3 } else { 1 };
        let taken = hosts.out(&b, 1, other, KEY_B, 0).status;
        assert_eq!(taken, Status::ReservationConflict);
        let barred = |yes| if yes { Status::ReservationConflict } else { Status::Good };
        for (nexus, bars) in [(&b, registered), (&c, unregistered), (&a, [false; 2])] {
            assert_eq!(hosts.status(nexus, &cdb_10(0x28, 0, 0, 1)), barred(bars[0]), "{kind}");
            assert_eq!(hosts.status(nexus, &cdb_10(0x2a, 0, 0, 1)), barred(bars[1]), "{kind}");
            assert_eq!(hosts.status(nexus, &cdb_10(0x41, 0, 0, 1)), barred(bars[1]), "{kind}");
            assert_eq!(hosts.status(nexus, &[0; 6]), Status::Good);
            assert_eq!(hosts.status(nexus, &report(0)), Status::Good);
        }
        let held = hosts.run(&c, &report(1), &[]).data_in.to_vec();
        let key = if kind >= 7 { 0 } else { KEY_A };
        assert_eq!(held[..8], [0, 0, 0, 2, 0, 0, 0, 16]);
        assert_eq!((held[8..16].to_vec(), held[21]), (key.to_be_bytes().to_vec(), kind));
    }
}

#[test]
fn keys_are_registered_changed_and_removed() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    assert_eq!(hosts.out(&a, 0, 0, 1, KEY_A).status, Status::ReservationConflict);
    assert_eq!(hosts.out(&a, 0, 0, 0, KEY_A).status, Status::Good);
    assert_eq!(hosts.out(&a, 0, 0, 0, 7).status, Status::ReservationConflict);
    assert_eq!(hosts.out(&a, 6, 0, 0, 7).status, Status::Good);
    assert_eq!(hosts.out(&b, 6, 0, 99, KEY_B).status, Status::Good);
    let list = hosts.run(&b, &report(0), &[]).data_in.to_vec();
    let want =
        [vec![0, 0, 0, 3, 0, 0, 0, 16], 7_u64.to_be_bytes().to_vec(), KEY_B.to_be_bytes().to_vec()]
            .concat();
    assert_eq!(list, want);
    let cut = hosts.run(&b, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 10, 0], &[]).data_in.to_vec();
    assert_eq!(cut, want[..10]);
    assert_eq!(hosts.out(&a, 0, 0, 7, 0).status, Status::Good);
    assert_eq!(hosts.out(&a, 0, 0, 0, 0).status, Status::Good, "not registered: nothing");
    assert_eq!(hosts.run(&b, &report(0), &[]).data_in.len(), 16);
    assert_eq!(hosts.out(&a, 1, 1, 7, 0).status, Status::ReservationConflict);
}

#[test]
fn full_status_identifies_the_ports() {
    let mut hosts = Hosts::registered();
    let a = hosts.a.clone();
    hosts.out(&a, 1, 5, KEY_A, 0);
    let data = hosts.run(&a, &report(3), &[]).data_in.to_vec();
    assert_eq!(data[8..16], KEY_A.to_be_bytes());
    assert_eq!((data[20], data[21], data[26..28].to_vec()), (1, 5, vec![0, 1]));
    assert_eq!(data[32..36], [0x45, 0, 0, 40]);
    assert!(data[36..].starts_with(b"iqn.2026-01.example:a,i,0x00023d000001\0"));
    let second = 32 + 44;
    assert_eq!(data[second..second + 8], KEY_B.to_be_bytes());
    assert_eq!(data[second + 12], 0);
}

#[test]
fn releases_and_clears_are_reported_to_others() {
    let mut hosts = Hosts::registered();
    let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
    hosts.out(&a, 1, 6, KEY_A, 0);
    assert_eq!(hosts.out(&b, 2, 6, KEY_B, 0).status, Status::Good, "not the holder: nothing");
    assert_eq!(triple(&hosts.out(&a, 2, 5, KEY_A, 0)), (5, 0x26, 0x04));
    assert_eq!(hosts.status(&c, &cdb_10(0x28, 0, 0, 1)), Status::ReservationConflict);
    assert_eq!(hosts.out(&a, 2, 6, KEY_A, 0).status, Status::Good);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x04));
    assert_eq!(hosts.status(&c, &[0; 6]), Status::Good);
    hosts.out(&b, 1, 3, KEY_B, 0);
    assert_eq!(hosts.out(&a, 3, 0, KEY_A, 0).status, Status::Good);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x03));
    assert_eq!(hosts.run(&b, &report(0), &[]).data_in.len(), 8);
    assert_eq!(hosts.run(&b, &report(1), &[]).data_in.len(), 8);
}

#[test]
fn a_holder_that_unregisters_gives_the_reservation_up() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 5, KEY_A, 0);
    hosts.out(&a, 0, 0, KEY_A, 0);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x04));
    assert_eq!(hosts.run(&b, &report(1), &[]).data_in.len(), 8);
    hosts.out(&b, 1, 8, KEY_B, 0);
    hosts.out(&b, 0, 0, KEY_B, 0);
    assert_eq!(hosts.run(&b, &report(1), &[]).data_in.len(), 8, "the last registrant");
}

#[test]
fn preempting_takes_over_or_removes_keys() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 1, KEY_A, 0);
    assert_eq!(hosts.out(&b, 4, 3, KEY_B, 0x99).status, Status::ReservationConflict);
    assert_eq!(triple(&hosts.out(&b, 4, 3, KEY_B, 0)), (5, 0x26, 0));
    let preempted = hosts.out(&b, 5, 3, KEY_B, KEY_A);
    assert_eq!((preempted.status, preempted.after), (Status::Good, AnswerAfter::All));
    assert_eq!(hosts.out(&b, 0, 0, KEY_B, KEY_B).after, AnswerAfter::Nothing);
    assert_eq!(triple(&hosts.run(&a, &[0; 6], &[])), (6, 0x2a, 0x05));
    assert_eq!(hosts.status(&a, &cdb_10(0x28, 0, 0, 1)), Status::ReservationConflict);
    assert_eq!(hosts.status(&b, &cdb_10(0x2a, 0, 0, 1)), Status::Good);
    // All registrants: the key 0 means all others.
    hosts.out(&b, 2, 3, KEY_B, 0);
    hosts.out(&a, 0, 0, 0, KEY_A);
    hosts.out(&a, 1, 7, KEY_A, 0);
    assert_eq!(hosts.out(&b, 4, 8, KEY_B, 0).status, Status::Good);
    assert_eq!(hosts.run(&b, &report(0), &[]).data_in.len(), 16);
    assert_eq!(hosts.run(&b, &report(1), &[]).data_in.to_vec()[21], 8);
}

#[test]
fn wrong_parameters_are_refused() {
    let mut hosts = Hosts::registered();
    let a = hosts.a.clone();
    for action in 1..7 {
        let mut list = keys(KEY_A, KEY_A);
        list[20] = 0x08; // SPEC_I_PT
        assert_eq!(triple(&hosts.run(&a, &out(action, 1), &list)), (5, 0x26, 0), "{action}");
    }
    assert_eq!(triple(&hosts.out(&a, 1, 2, KEY_A, 0)), (5, 0x24, 0));
    assert_eq!(triple(&hosts.out(&a, 1, 0x11, KEY_A, 0)), (5, 0x24, 0));
    assert_eq!(triple(&hosts.out(&a, 8, 0, KEY_A, 0)), (5, 0x24, 0));
    assert_eq!(triple(&hosts.run(&a, &out(0, 0), &[0; 23])), (5, 0x1a, 0));
    let short = [0x5f, 0, 0, 0, 0, 0, 0, 0, 20, 0];
    assert_eq!(triple(&hosts.run(&a, &short, &[0; 24])), (5, 0x1a, 0));
    let capabilities = hosts.run(&a, &report(2), &[]).data_in.to_vec();
    assert_eq!(capabilities, [0, 8, 0x1d, 0xc0, 0xea, 1, 0, 0]);
}

#[test]
fn preempting_a_holder_leaves_the_others_registered() {
    const KEY_C: u64 = 0xcccc;
    for action in [4, 5] {
        let mut hosts = Hosts::registered();
        let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
        assert_eq!(hosts.out(&c, 0, 0, 0, KEY_C).status, Status::Good);
        assert_eq!(hosts.out(&a, 1, 3, KEY_A, 0).status, Status::Good);
        assert_eq!(hosts.out(&b, action, 1, KEY_B, KEY_A).status, Status::Good);
        let registered = hosts.run(&b, &report(0), &[]).data_in.to_vec();
        assert_eq!(registered[8..], [KEY_B.to_be_bytes(), KEY_C.to_be_bytes()].concat());
        let held = hosts.run(&b, &report(1), &[]).data_in.to_vec();
        assert_eq!((&held[8..16], held[21]), (&KEY_B.to_be_bytes()[..], 1));
    }
}

#[test]
fn a_reservation_of_all_registrants_ends_when_the_last_preempts_itself() {
    for kind in [7, 8] {
        let mut hosts = Hosts::new();
        let (a, c) = (hosts.a.clone(), hosts.c.clone());
        assert_eq!(hosts.out(&a, 0, 0, 0, KEY_A).status, Status::Good);
        assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good);
        assert_eq!(hosts.out(&a, 4, kind, KEY_A, KEY_A).status, Status::Good);
        assert_eq!(hosts.run(&c, &report(1), &[]).data_in.to_vec()[4..], [0; 4]);
        assert_eq!(hosts.status(&c, &cdb_10(0x2a, 0, 0, 1)), Status::Good);
    }
}

#[test]
fn removing_registrations_alone_ignores_scope_and_type() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    assert_eq!(hosts.out(&a, 4, 0xff, KEY_A, KEY_B).status, Status::Good);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x05));
    hosts.out(&a, 1, 1, KEY_A, 0);
    let own = hosts.out(&a, 4, 0xf1, KEY_A, KEY_A);
    assert_eq!(triple(&own), (5, 0x24, 0), "here they matter");
    assert_eq!(hosts.out(&a, 4, 3, KEY_A, KEY_A).status, Status::Good, "it preempts itself");
    assert_eq!(hosts.run(&a, &report(1), &[]).data_in.to_vec()[21], 3);
}

#[test]
fn flags_that_an_action_does_not_know_are_ignored() {
    let mut hosts = Hosts::registered();
    let a = hosts.a.clone();
    let mut list = keys(KEY_A, 0);
    list[20] = 0x05; // ALL_TG_PT, APTPL
    for (action, kind) in [(1, 1), (2, 1), (3, 0)] {
        assert_eq!(hosts.run(&a, &out(action, kind), &list).status, Status::Good);
    }
    assert!(hosts.world.kept.values().all(|kept| !kept.aptpl));
}

#[test]
fn the_generation_counts_what_the_standard_says() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let mut generation = 0;
    // Nexus, action, type, keys, and by how much the generation increases.
    let steps = [
        (&a, 0, 0, 0, 0, 1), // nobody registered, and nothing done
        (&a, 0, 0, 0, KEY_A, 1),
        (&b, 6, 0, 0, KEY_B, 1),
        (&a, 0, 0, 9, KEY_A, 0), // a conflict
        (&a, 1, 5, KEY_A, 0, 0),
        (&a, 2, 5, KEY_A, 0, 0),
        (&a, 4, 0, KEY_A, KEY_B, 1),
        (&a, 4, 0, KEY_A, KEY_B, 0), // a conflict
        (&a, 3, 0, KEY_A, 0, 1),
    ];
    for (nexus, action, kind, key, action_key, more) in steps {
        hosts.out(nexus, action, kind, key, action_key);
        generation += more;
        let data = hosts.run(&a, &report(0), &[]).data_in.to_vec();
        assert_eq!(data[..4], u32::to_be_bytes(generation), "action {action}");
    }
}

#[test]
fn a_nexus_gets_reports_of_changes_in_order() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 5, KEY_A, 0);
    hosts.out(&a, 2, 5, KEY_A, 0); // RESERVATIONS RELEASED
    hosts.out(&a, 4, 0, KEY_A, KEY_B); // REGISTRATIONS PREEMPTED
    for ascq in [0x04, 0x05] {
        assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, ascq));
    }
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good);
    hosts.out(&b, 6, 0, 0, KEY_B);
    hosts.out(&a, 3, 0, KEY_A, 0); // RESERVATIONS PREEMPTED
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x2a, 0x03));
    assert_eq!(hosts.status(&b, &[0; 6]), Status::Good);
}

#[test]
fn a_destroyed_volume_leaves_nothing() {
    let mut hosts = Hosts::registered();
    let (a, c) = (hosts.a.clone(), hosts.c.clone());
    hosts.out(&a, 1, 3, KEY_A, 0);
    assert_eq!(hosts.status(&c, &cdb_10(0x28, 0, 0, 1)), Status::ReservationConflict);
    hosts.world.server.volume_destroyed(block::VolumeId(1));
    assert_eq!(hosts.status(&c, &cdb_10(0x28, 0, 0, 1)), Status::Good);
}

#[test]
fn a_copy_respects_reservations_of_both_volumes() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.world.run_as(&b, 300, &out(0, 0), &keys(0, KEY_B));
    hosts.world.run_as(&b, 300, &out(1, 1), &keys(KEY_B, 0));
    let mut list = vec![0, 0x18, 0, 32, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    list.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
    list.extend(super::world::naa(2));
    list.extend([0; 8]);
    list.extend([2, 0, 0, 0x18, 0xff, 0xff, 0, 0, 0, 0, 0, 8]);
    list.extend([0; 16]);
    let cdb = [0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, list.len() as u8, 0, 0];
    assert_eq!(triple(&hosts.run(&a, &cdb, &list)), (0xa, 0x0d, 0x01));
    (list[52], list[53], list[54], list[55]) = (0, 0, 0xff, 0xff);
    assert_eq!(hosts.run(&a, &cdb, &list).status, Status::Good, "it bars writes alone");
    hosts.world.run_as(&b, 300, &out(2, 1), &keys(KEY_B, 0));
    hosts.world.run_as(&b, 300, &out(1, 3), &keys(KEY_B, 0));
    assert_eq!(triple(&hosts.run(&a, &cdb, &list)), (0xa, 0x0d, 0x01), "exclusive access");
}
