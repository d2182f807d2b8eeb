//! Soft thresholds: which nexuses get a unit attention, when it is repeated, and the consistency of
//! the pages.

use std::sync::Arc;

use block::{Offload, Offloads, VolumeAttributes};

use super::world::{World, initiator, triple};
use crate::step::Status;

const MIB: u64 = 1 << 20;
/// A percent is 10 MiB, and so is the hysteresis.
const CAPACITY: u64 = 1000 * MIB;

fn space(world: &World, thresholds: &[u8], used_mib: u64) {
    world.server.space(thresholds, used_mib * MIB, CAPACITY);
}

/// Returns a world whose nexus has seen its volumes, with one threshold at 80% and half of it in
/// use.
fn world() -> World {
    let mut world = World::new();
    space(&world, &[80], 500);
    world.good(&[0; 6], &[]);
    world
}

#[test]
fn each_nexus_gets_one_report_per_unit_when_a_threshold_is_crossed() {
    let mut world = world();
    let other = world.log_in(initiator("b"), 2);
    world.run_as(&other, 0, &[0; 6], &[]);
    space(&world, &[80], 799);
    world.good(&[0; 6], &[]);
    space(&world, &[80], 800);
    space(&world, &[80], 900);
    for lun in [0, 2, 300] {
        assert_eq!(triple(&world.run_on(lun, &[0; 6], &[])), (6, 0x38, 0x07), "LUN {lun}");
        assert_eq!(world.run_on(lun, &[0; 6], &[]).status, Status::Good);
    }
    assert_eq!(triple(&world.run_as(&other, 0, &[0; 6], &[])), (6, 0x38, 0x07));
    assert_eq!(world.run_as(&other, 0, &[0; 6], &[]).status, Status::Good);
    // A nexus that logs in later did not exist at the crossing.
    let late = world.log_in(initiator("c"), 1);
    space(&world, &[80], 901);
    assert_eq!(world.run_as(&late, 0, &[0; 6], &[]).status, Status::Good);
}

#[test]
fn a_threshold_is_armed_again_below_the_hysteresis() {
    let mut world = world();
    let told = (6, 0x38, 0x07);
    space(&world, &[80], 800);
    assert_eq!(world.sense(&[0; 6], &[]), told);
    for used in [799, 790, 800, 795, 810] {
        space(&world, &[80], used);
        world.good(&[0; 6], &[]);
    }
    space(&world, &[80], 789);
    space(&world, &[80], 800);
    assert_eq!(world.sense(&[0; 6], &[]), told);
    world.good(&[0; 6], &[]);
}

#[test]
fn the_hysteresis_of_a_large_pool_is_a_gib() {
    let mut world = World::new();
    let (capacity, gib) = (100 << 40, 1 << 30);
    world.server.space(&[50], 0, capacity);
    world.good(&[0; 6], &[]);
    world.server.space(&[50], capacity / 2, capacity);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x38, 0x07));
    world.server.space(&[50], capacity / 2 - gib, capacity);
    world.server.space(&[50], capacity / 2, capacity);
    world.good(&[0; 6], &[]);
    world.server.space(&[50], capacity / 2 - gib - 1, capacity);
    world.server.space(&[50], capacity / 2, capacity);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x38, 0x07));
}

#[test]
fn each_of_several_thresholds_is_reported() {
    let mut world = World::new();
    space(&world, &[50, 80, 90], 0);
    world.good(&[0; 6], &[]);
    for used in [500, 800, 900] {
        space(&world, &[50, 80, 90], used);
        assert_eq!(world.sense(&[0; 6], &[]), (6, 0x38, 0x07), "{used}");
        world.good(&[0; 6], &[]);
    }
}

#[test]
fn a_change_of_thresholds_or_pool_is_reported_but_is_no_crossing() {
    let mut world = world();
    space(&world, &[40, 80], 500);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x01));
    world.good(&[0; 6], &[]);
    world.server.space(&[40, 80], 500 * MIB, 2 * CAPACITY);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x01));
    world.good(&[0; 6], &[]);
    world.server.space(&[40, 80], 800 * MIB, 2 * CAPACITY);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x38, 0x07), "40% of the pool that has grown");
}

#[test]
fn mode_pages_report_the_thresholds() {
    let mut world = World::new();
    space(&world, &[80, 90], 0);
    let sense = |page: u8, subpage: u8| vec![0x5a, 0x08, page, subpage, 0, 0, 0, 4, 0, 0];
    let page = world.good(&sense(0x1c, 2), &[]);
    assert_eq!(page[8..24], [0x5c, 2, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(page[24..32], [0x81, 2, 0, 0, 0, 0, 3, 0x20]);
    assert_eq!(page[32..], [0x81, 2, 0, 0, 0, 0, 3, 0x84]);
    let changeable = world.good(&sense(0x40 | 0x1c, 2), &[]);
    assert_eq!((&changeable[8..12], changeable.len()), (&[0x5c, 2, 0, 28][..], page.len()));
    assert!(changeable[12..].iter().all(|&byte| byte == 0));
    let both = world.good(&sense(0x1c, 0xff), &[]);
    assert_eq!((both[8], both[20..].to_vec()), (0x1c, page[8..].to_vec()));
    assert_eq!(world.good(&sense(0x1c, 0), &[]).len(), 20);
    assert_eq!(world.good(&sense(0x01, 0), &[])[8 + 7], 0x80, "LBPERE");
    assert!(world.good(&sense(0x3f, 0xff), &[]).ends_with(&page[8..]));
    assert_eq!(world.sense(&sense(0x1c, 1), &[]), (5, 0x24, 0));
    assert_eq!(world.sense(&sense(0x0a, 2), &[]), (5, 0x24, 0));
    // MODE SELECT accepts the current page, and refuses any other.
    let select = |list: &[u8]| vec![0x55, 0x10, 0, 0, 0, 0, 0, 0, list.len() as u8, 0];
    let mut list = page.clone();
    list[..8].fill(0);
    world.good(&select(&list), &list);
    list[24] = 0x01;
    assert_eq!(world.sense(&select(&list), &list), (5, 0x26, 0));
    list[24] = 0x81;
    list[9] = 3;
    assert_eq!(world.sense(&select(&list), &list), (5, 0x26, 0));
    list.truncate(11);
    list[9] = 2;
    assert_eq!(world.sense(&select(&list), &list), (5, 0x1a, 0));
    space(&world, &[], 0);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x01));
    assert_eq!(world.good(&sense(0x01, 0), &[])[8 + 7], 0, "LBPERE");
    assert_eq!(world.good(&sense(0x1c, 2), &[]).len(), 24);
}

#[test]
fn a_unit_without_provisioning_management_has_no_thresholds() {
    let mut world = World::new();
    let offloads = Offloads::ALL.with(Offload::Unmap, false).with(Offload::WriteSame, false);
    let mut luns = (*world.luns).clone();
    let volume = (*luns.luns[&0]).clone();
    luns.luns.insert(0, Arc::new(VolumeAttributes { offloads, ..volume }));
    world.luns = luns.into();
    world.nexus = world.log_in(initiator("b"), 1);
    space(&world, &[80], 500);
    world.good(&[0; 6], &[]);
    space(&world, &[80], 900);
    world.good(&[0; 6], &[]);
    assert_eq!(triple(&world.run_on(300, &[0; 6], &[])), (6, 0x38, 0x07));
    assert_eq!(world.sense(&[0x5a, 0x08, 0x1c, 2, 0, 0, 0, 4, 0, 0], &[]), (5, 0x24, 0));
    assert_eq!(world.good(&[0x5a, 0x08, 0x01, 0, 0, 0, 0, 4, 0, 0], &[])[8 + 7], 0);
}
