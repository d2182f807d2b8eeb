//! The unit attentions about the time before a session (29h), none of which is lost.

use std::sync::Arc;

use target::Attention;

use super::registering::{listing, long_out, port_id};
use super::reservations::{Hosts, KEY_A, KEY_B, keys, out};
use super::world::{World, cdb_10, initiator, skip_first_attentions, triple};
use crate::nexus::Nexus;
use crate::step::Status;

const POWER_ON: (u8, u8, u8) = (6, 0x29, 0x00);
const TARGET_RESET: (u8, u8, u8) = (6, 0x29, 0x02);
const UNIT_RESET: (u8, u8, u8) = (6, 0x29, 0x03);
const NEXUS_LOSS: (u8, u8, u8) = (6, 0x29, 0x07);
const REGISTRATIONS_PREEMPTED: (u8, u8, u8) = (6, 0x2a, 0x05);

/// Returns the responses to TEST UNIT READY until it is good.
fn told(world: &mut World, nexus: &Nexus, lun: u16) -> Vec<(u8, u8, u8)> {
    let mut all = Vec::new();
    loop {
        let response = world.run_as(nexus, lun, &[0; 6], &[]);
        if response.status == Status::Good {
            return all;
        }
        all.push(triple(&response));
        assert!(all.len() < 20, "{all:02x?}");
    }
}

fn again(world: &mut World, nexus: &Arc<Nexus>) -> Arc<Nexus> {
    world.nexus_loss(nexus);
    world.server.new_nexus(nexus.initiator().clone(), nexus.target_port(), &world.luns)
}

#[test]
fn each_unit_reports_power_on_once_to_a_new_nexus() {
    let mut world = World::new();
    let nexus = world.server.new_nexus(initiator("b"), 2, &world.luns);
    // INQUIRY, REPORT LUNS and REQUEST SENSE succeed; REQUEST SENSE takes the unit attention.
    for cdb in [&[0x12, 0, 0, 0, 96, 0][..], &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]] {
        assert_eq!(world.run_as(&nexus, 0, cdb, &[]).status, Status::Good);
    }
    assert_eq!(triple(&world.run_as(&nexus, 0, &cdb_10(0x2a, 0, 0, 1), &[1; 512])), POWER_ON);
    assert!(world.requests.is_empty(), "and nothing was written");
    assert_eq!(told(&mut world, &nexus, 0), []);
    assert_eq!(told(&mut world, &nexus, 300), [POWER_ON]);
    let sense = world.run_as(&nexus, 2, &[3, 1, 0, 0, 255, 0], &[]).data_in.to_vec();
    assert_eq!(sense[..4], [0x72, 6, 0x29, 0x00]);
    assert_eq!(told(&mut world, &nexus, 2), []);
}

#[test]
fn a_host_that_logs_in_again_gets_its_losses_as_unit_attentions() {
    let mut world = World::new();
    let a = world.nexus.clone();
    assert_eq!(world.run_as(&a, 0, &[0x16, 0, 0, 0, 0, 0], &[]).status, Status::Good);
    let a = again(&mut world, &a);
    // It must not consider the unit still reserved.
    assert_eq!(triple(&world.run_as(&a, 0, &[0x16, 0, 0, 0, 0, 0], &[])), NEXUS_LOSS);
    assert_eq!(told(&mut world, &a, 0), []);
    assert_eq!(told(&mut world, &a, 300), [NEXUS_LOSS]);
    // LUN 2 has not reported the loss before last: once is enough.
    let a = again(&mut world, &a);
    assert_eq!(told(&mut world, &a, 2), [NEXUS_LOSS]);
}

#[test]
fn a_restart_is_reported_despite_attempts_before_it_listens() {
    let mut world = World::new();
    let nexus = world.server.new_nexus(initiator("b"), 2, &world.luns);
    assert_eq!(told(&mut world, &nexus, 0), [POWER_ON]);
    // LUN 300 has not reported yet.
    let nexus = again(&mut world, &nexus);
    assert_eq!(told(&mut world, &nexus, 300), [POWER_ON]);
    assert_eq!(told(&mut world, &nexus, 0), [NEXUS_LOSS], "it has reported the start before");
    // A unit that has not reported the start reports that instead of the reset, and once.
    world.lun_reset(2);
    world.lun_reset(0);
    let nexus = again(&mut world, &nexus);
    world.target_reset(&world.luns.clone());
    assert_eq!(told(&mut world, &nexus, 2), [POWER_ON]);
    assert_eq!(told(&mut world, &nexus, 0), [TARGET_RESET, UNIT_RESET]);
    assert_eq!(told(&mut world, &nexus, 300), [TARGET_RESET]);
    let nexus = again(&mut world, &nexus);
    for lun in [0, 2, 300] {
        assert_eq!(told(&mut world, &nexus, lun), [NEXUS_LOSS]);
    }
}

#[test]
fn with_many_unreported_starts_all_units_report_it_again() {
    let mut world = World::new();
    let mut luns = (*world.luns).clone();
    for lun in 1_000..1_100 {
        let mut one = (*super::world::volume(1, block::LogicalBlockSize::B512)).clone();
        one.id = block::VolumeId(u64::from(lun));
        luns.luns.insert(lun, Arc::new(one));
    }
    luns.generation += 1;
    world.luns = luns.into();
    let nexus = world.server.new_nexus(initiator("b"), 2, &world.luns);
    assert_eq!(told(&mut world, &nexus, 0), [POWER_ON]);
    let nexus = again(&mut world, &nexus);
    assert_eq!(told(&mut world, &nexus, 0), [POWER_ON]);
    // A number that can be remembered.
    for lun in 1_000..1_060 {
        told(&mut world, &nexus, lun);
    }
    let nexus = again(&mut world, &nexus);
    assert_eq!(told(&mut world, &nexus, 0), [NEXUS_LOSS]);
    assert_eq!(told(&mut world, &nexus, 1_059), [NEXUS_LOSS]);
    assert_eq!(told(&mut world, &nexus, 1_060), [POWER_ON]);
}

#[test]
fn resets_come_first_and_are_reported_to_hosts_without_a_session_too() {
    let mut world = World::new();
    let (a, luns) = (world.nexus.clone(), world.luns.clone());
    let gone = world.log_in(initiator("gone"), 1);
    world.nexus_loss(&gone);
    a.attend(block::VolumeId(1), Attention::ReservationsReleased);
    world.lun_reset(0);
    world.target_reset(&luns);
    assert_eq!(told(&mut world, &a, 0), [TARGET_RESET, UNIT_RESET, (6, 0x2a, 4)]);
    for lun in [2, 300] {
        assert_eq!(told(&mut world, &a, lun), [TARGET_RESET]);
    }
    let gone = world.server.new_nexus(initiator("gone"), 1, &luns);
    assert_eq!(told(&mut world, &gone, 0), [POWER_ON], "power on, reset, or bus device reset");
    // A start implies a reset before the first command, too; the loss of a nexus is less.
    let fresh = world.server.new_nexus(initiator("fresh"), 1, &luns);
    let a = again(&mut world, &a);
    world.lun_reset(0);
    assert_eq!(told(&mut world, &fresh, 0), [POWER_ON]);
    assert_eq!(told(&mut world, &a, 0), [UNIT_RESET]);
}

#[test]
fn attentions_queue_from_login_on() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let b = again(&mut hosts.world, &b);
    // b has sent no command in its new session.
    assert_eq!(hosts.out(&a, 5, 0, KEY_A, KEY_B).status, Status::Good);
    assert_eq!(told(&mut hosts.world, &b, 0), [NEXUS_LOSS, REGISTRATIONS_PREEMPTED]);
}

#[test]
fn a_host_preempted_without_a_session_gets_an_attention_at_the_next_login() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.world.nexus_loss(&b);
    assert_eq!(hosts.out(&a, 5, 0, KEY_A, KEY_B).status, Status::Good);
    let b = hosts.world.server.new_nexus(initiator("b"), 2, &hosts.world.luns);
    assert_eq!(told(&mut hosts.world, &b, 0), [NEXUS_LOSS, REGISTRATIONS_PREEMPTED]);
    assert_eq!(told(&mut hosts.world, &b, 300), [NEXUS_LOSS]);
    // One that never had a session: another nexus has registered it.
    let c = hosts.c.clone();
    let list = listing(0, KEY_B, 0, &[port_id("d")]);
    assert_eq!(hosts.run(&c, &long_out(0, &list), &list).status, Status::Good);
    assert_eq!(hosts.out(&a, 3, 0, KEY_A, 0).status, Status::Good, "CLEAR");
    let d = hosts.world.server.new_nexus(initiator("d"), 1, &hosts.world.luns);
    assert_eq!(told(&mut hosts.world, &d, 0), [POWER_ON, (6, 0x2a, 0x03)]);
    // It was reported before the session was lost, or it is reported afterwards.
    told(&mut hosts.world, &d, 2);
    told(&mut hosts.world, &d, 300);
    let d = again(&mut hosts.world, &d);
    assert_eq!(told(&mut hosts.world, &d, 0), [NEXUS_LOSS]);
}

#[test]
fn unreported_reservation_changes_are_reported_in_the_next_session() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.run(&a, &out(1, 5), &keys(KEY_A, 0));
    hosts.run(&a, &out(2, 5), &keys(KEY_A, 0));
    hosts.out(&a, 4, 0, KEY_A, KEY_B);
    let b = again(&mut hosts.world, &b);
    let all = [NEXUS_LOSS, (6, 0x2a, 0x04), REGISTRATIONS_PREEMPTED];
    assert_eq!(told(&mut hosts.world, &b, 0), all);
}

#[test]
fn state_of_nexuses_without_a_session_is_bounded_and_forgetting_is_reported() {
    let mut world = World::new();
    for n in 0..5000 {
        let nexus = world.log_in(initiator(&format!("n{n:04}")), 1);
        world.nexus_loss(&nexus);
    }
    assert_eq!(world.server.target.parked_count(), 4096);
    let (first, last) = (initiator("n0000"), initiator("n4999"));
    let forgotten = world.server.new_nexus(first, 1, &world.luns);
    assert_eq!(told(&mut world, &forgotten, 0), [POWER_ON]);
    let known = world.server.new_nexus(last, 1, &world.luns);
    assert_eq!(told(&mut world, &known, 0), [NEXUS_LOSS]);
}

/// By the volumes' ids, regardless of which of them a nexus sees, and after a change of what it
/// sees.
#[test]
fn a_hard_reset_is_reported_by_exactly_the_reset_units() {
    let mut world = World::new();
    let all = world.luns.clone();
    let some = |keep: &[u16]| {
        let mut luns = (*all).clone();
        luns.luns.retain(|lun, _| keep.contains(lun));
        luns.generation += 1;
        Arc::new(luns)
    };
    let (few, other) = (some(&[0, 300]), some(&[2, 300]));
    let nexus = world.server.new_nexus(initiator("b"), 1, &few);
    skip_first_attentions(&nexus, &few);
    world.target_reset(&other);
    world.luns = few;
    assert_eq!(told(&mut world, &nexus, 0), []);
    // It sees more, and earlier marks stay.
    let mut more = (*all).clone();
    more.generation += 2;
    world.luns = more.into();
    assert_eq!(told(&mut world, &nexus, 300), [TARGET_RESET, (6, 0x3f, 0x0e)]);
    world.target_reset(&other);
    assert_eq!(told(&mut world, &nexus, 2), [TARGET_RESET, (6, 0x3f, 0x0e)]);
    assert_eq!(told(&mut world, &nexus, 300), [TARGET_RESET]);
    assert_eq!(told(&mut world, &nexus, 0), [(6, 0x3f, 0x0e)]);
}

/// Each kind is pending once, however often it happens, and keeps its position.
#[test]
fn a_repeated_event_is_reported_once() {
    let mut world = World::new();
    let other = world.log_in(initiator("b"), 2);
    told(&mut world, &other, 0);
    let mode = |page: [u8; 12]| [vec![0; 4], page.to_vec()].concat();
    for format in [0x26, 0x22, 0x26] {
        let page = [0x0a, 0x0a, format, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
        world.good(&[0x15, 0x10, 0, 0, 16, 0], &mode(page));
    }
    (0..3).for_each(|_| world.lun_reset(0));
    let nexus = world.nexus.clone();
    assert_eq!(told(&mut world, &nexus, 0), [UNIT_RESET]);
    assert_eq!(told(&mut world, &other, 0), [UNIT_RESET, (6, 0x2a, 0x01)]);
}

/// After a takeover an unknown nexus gets a lost session, until any nexus has been forgotten.
#[test]
fn a_nexus_forgotten_after_a_takeover_gets_power_on() {
    let mut world = World::new();
    world.take_over();
    let nexus = world.server.new_nexus(initiator("early"), 1, &world.luns);
    assert_eq!(told(&mut world, &nexus, 0), [NEXUS_LOSS]);
    for n in 0..4097 {
        let nexus = world.log_in(initiator(&format!("n{n:04}")), 1);
        world.nexus_loss(&nexus);
    }
    let forgotten = world.server.new_nexus(initiator("n0000"), 1, &world.luns);
    assert_eq!(told(&mut world, &forgotten, 0), [POWER_ON]);
}

/// A takeover is no loss of power: sessions were lost, and it is unknown what was reported before.
#[test]
fn after_a_takeover_each_nexus_gets_its_loss_and_all_changes_it_may_have_missed() {
    let mut hosts = Hosts::registered();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    hosts.out(&a, 1, 5, KEY_A, 0);
    hosts.out(&a, 2, 5, KEY_A, 0); // RESERVATIONS RELEASED
    hosts.out(&a, 4, 0, KEY_A, KEY_B); // REGISTRATIONS PREEMPTED
    let missed = [NEXUS_LOSS, (6, 0x2a, 0x04), REGISTRATIONS_PREEMPTED];
    assert_eq!(told(&mut hosts.world, &b, 0), missed[1..]);
    hosts.world.take_over();
    let world = &mut hosts.world;
    let b = world.server.new_nexus(initiator("b"), 2, &world.luns);
    assert_eq!(told(world, &b, 0), missed, "including those already reported");
    assert_eq!(told(world, &b, 300), [NEXUS_LOSS], "nothing has happened on that unit");
    let b = again(world, &b);
    assert_eq!(told(world, &b, 0), [NEXUS_LOSS], "and no more than once");
    // An event for a nexus that has not returned yet: it must not miss anything because of that.
    let gone = world.server.new_nexus(initiator("a"), 1, &world.luns);
    told(world, &gone, 0);
    world.run_as(&gone, 0, &out(4, 0), &keys(KEY_A, KEY_A)); // it preempts itself, silently
    world.lun_reset(0);
    let late = world.server.new_nexus(initiator("late"), 1, &world.luns);
    assert_eq!(told(world, &late, 0), [POWER_ON, missed[1], missed[2]], "a reset covers the loss");
}
