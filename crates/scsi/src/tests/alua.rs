//! Target port groups: each state, each command, and which nexuses get unit attentions.

use target::{AccessState, TargetPort};

use super::world::{World, cdb_16, initiator, triple};
use crate::step::Status;

/// Ports 1 and 2 in group 1, port 3 in group 7.
fn world() -> World {
    let mut world = World::new();
    let port = |relative_id: u16, group| TargetPort {
        relative_id,
        group,
        name: format!("iqn.2026-01.example:array,t,0x{relative_id:04x}"),
    };
    let ports = vec![port(1, 1), port(2, 1), port(3, 7)];
    world.start(ports, [5; 32]);
    world.nexus = world.log_in(initiator("a"), 1);
    world.good(&[0; 6], &[]);
    world
}

fn report(format: u8) -> Vec<u8> {
    vec![0xa3, format << 5 | 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
}

fn list(states: &[(u8, u16)]) -> Vec<u8> {
    let mut list = vec![0; 4];
    for (state, group) in states {
        list.extend([*state, 0]);
        list.extend(group.to_be_bytes());
    }
    list
}

fn set(length: usize) -> Vec<u8> {
    let mut cdb = vec![0xa4, 0x0a, 0, 0, 0, 0];
    cdb.extend((length as u32).to_be_bytes());
    cdb.extend([0, 0]);
    cdb
}

/// Sets states through the first nexus.
fn change(world: &mut World, states: &[(u8, u16)]) {
    let list = list(states);
    world.good(&set(list.len()), &list);
}

/// Returns the states of group 1 and 7, with their status codes.
fn states(world: &mut World, lun: u16) -> [(u8, u8); 2] {
    let data = world.run_on(lun, &report(0), &[]).data_in.to_vec();
    [(data[4], data[9]), (data[20], data[25])]
}

#[test]
fn groups_list_their_ports_in_both_formats() {
    let mut world = world();
    let body = [
        [0, 0x0f, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2].as_slice(),
        &[0, 0x0f, 0, 7, 0, 0, 0, 1, 0, 0, 0, 3],
    ]
    .concat();
    let short = world.good(&report(0), &[]);
    assert_eq!((&short[..4], &short[4..]), (&[0, 0, 0, 28][..], &body[..]));
    let long = world.good(&report(1), &[]);
    assert_eq!((&long[..8], &long[8..]), (&[0, 0, 0, 32, 0x10, 0, 0, 0][..], &body[..]));
    assert_eq!(world.sense(&report(2), &[]), (5, 0x24, 0));
    assert_eq!(world.good(&[0x12, 0, 0, 0, 96, 0], &[])[5] & 0x30, 0x30, "TPGS");
    let nexus = world.log_in(initiator("b"), 3);
    let page = world.run_as(&nexus, 0, &[0x12, 1, 0x83, 4, 0, 0], &[]).data_in.to_vec();
    let group = page.windows(8).find(|w| w[..4] == [0x51, 0x95, 0, 4]).unwrap();
    assert_eq!(group[4..], [0, 0, 0, 7], "the group of port 3");
}

#[test]
fn states_apply_to_one_unit_and_unnamed_groups_keep_theirs() {
    let mut world = world();
    change(&mut world, &[(1, 7)]);
    assert_eq!(states(&mut world, 0), [(0, 0), (1, 1)]);
    assert_eq!(states(&mut world, 300), [(0, 0), (0, 0)]);
    change(&mut world, &[(2, 1), (0, 7)]);
    assert_eq!(states(&mut world, 0), [(2, 1), (0, 1)]);
    change(&mut world, &[(3, 1), (1, 1)]);
    assert_eq!(states(&mut world, 0), [(1, 1), (0, 1)], "the last word counts");
    world.server.volume_destroyed(block::VolumeId(1));
    assert_eq!(states(&mut world, 0), [(0, 0), (0, 0)]);
}

#[test]
fn a_group_has_an_implicit_state_until_a_host_sets_one() {
    let mut world = world();
    let told = (6, 0x2a, 6);
    world.server.set_implicit_access(7, AccessState::ActiveNonOptimized);
    assert_eq!(world.sense(&[0; 6], &[]), told);
    assert_eq!(triple(&world.run_on(300, &[0; 6], &[])), told, "of each unit");
    assert_eq!(states(&mut world, 0), [(0, 0), (1, 0)]);
    assert_eq!(states(&mut world, 300), [(0, 0), (1, 0)]);
    // Setting the current state changes nothing for others, and setting another one does.
    let other = world.log_in(initiator("b"), 3);
    world.run_as(&other, 0, &[0; 6], &[]);
    change(&mut world, &[(1, 7)]);
    assert_eq!(world.run_as(&other, 0, &[0; 6], &[]).status, Status::Good);
    change(&mut world, &[(0, 7)]);
    assert_eq!(triple(&world.run_as(&other, 0, &[0; 6], &[])), told);
    assert_eq!(states(&mut world, 0), [(0, 0), (0, 1)]);
    // Its controller ends, and comes back.
    world.server.set_implicit_access(7, AccessState::Unavailable);
    assert_eq!(world.sense(&[0; 6], &[]), told);
    assert_eq!(states(&mut world, 0), [(0, 0), (3, 0)]);
    world.server.set_implicit_access(7, AccessState::Unavailable);
    world.good(&[0; 6], &[]);
    world.server.set_implicit_access(7, AccessState::ActiveNonOptimized);
    assert_eq!(world.sense(&[0; 6], &[]), told);
    assert_eq!(states(&mut world, 0), [(0, 0), (0, 1)]);
    world.run_on(300, &[0; 6], &[]);
    assert_eq!(states(&mut world, 300), [(0, 0), (1, 0)]);
}

#[test]
fn a_path_serves_in_each_state_what_the_standard_lists() {
    let mut world = world();
    let other = world.log_in(initiator("a"), 3);
    world.run_as(&other, 0, &[0; 6], &[]);
    // Command, whether served in standby, in unavailable.
    let cases: [(Vec<u8>, bool, bool); 16] = [
        (vec![0; 6], false, false),
        (vec![3, 0, 0, 0, 252, 0], true, true),
        (vec![0x12, 0, 0, 0, 96, 0], true, true),
        (vec![0x12, 1, 0x83, 0, 96, 0], true, true),
        (vec![0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], true, true),
        (report(0), true, true),
        (set(0), true, true),
        (vec![0x1a, 0, 0x3f, 0, 255, 0], true, false),
        (vec![0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 255, 0], true, false),
        (vec![0x4d, 0, 0x40, 0, 0, 0, 0, 0, 255, 0], true, false),
        (vec![0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0], true, false),
        (cdb_16(0x88, 0, 0, 8), false, false),
        (cdb_16(0x93, 1, 0, 8), false, false),
        (cdb_16(0x9e, 0x10, 0, 32), false, false),
        (vec![0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0], false, false),
        (vec![0x16, 0, 0, 0, 0, 0], false, false),
    ];
    for (state, qualifier) in [(0, None), (1, None), (2, Some(0x0b)), (3, Some(0x0c))] {
        change(&mut world, &[(state, 7)]);
        world.run_as(&other, 0, &[3, 0, 0, 0, 252, 0], &[]); // takes the unit attention
        for (cdb, standby, unavailable) in &cases {
            let response = world.run_as(&other, 0, cdb, &[]);
            let served = [true, true, *standby, *unavailable][usize::from(state)];
            match qualifier {
                Some(qualifier) if !served => {
                    assert_eq!(triple(&response), (2, 4, qualifier), "{cdb:02x?}");
                }
                _ => assert_eq!(response.status, Status::Good, "state {state}: {cdb:02x?}"),
            }
            world.run_as(&other, 0, &[0x17, 0, 0, 0, 0, 0], &[]);
        }
        // The other path, and other units over this one, are served throughout.
        world.good(&cdb_16(0x88, 0, 0, 8), &[]);
        assert_eq!(world.run_as(&other, 300, &cdb_16(0x88, 0, 0, 8), &[]).status, Status::Good);
        let sense = world.run_as(&other, 0, &[3, 0, 0, 0, 252, 0], &[]).data_in.to_vec();
        let told = qualifier.map_or((0, 0, 0), |qualifier| (2, 4, qualifier));
        assert_eq!((sense[2], sense[12], sense[13]), told, "REQUEST SENSE");
    }
}

#[test]
fn every_other_nexus_gets_one_report_of_a_change_only() {
    let mut world = world();
    let others =
        [(1, "b"), (2, "a"), (3, "a")].map(|(port, name)| world.log_in(initiator(name), port));
    for nexus in &others {
        world.run_as(nexus, 0, &[0; 6], &[]);
    }
    change(&mut world, &[(1, 7)]);
    change(&mut world, &[(1, 7), (0, 1)]);
    for nexus in &others {
        assert_eq!(triple(&world.run_as(nexus, 0, &[0; 6], &[])), (6, 0x2a, 0x06));
        assert_eq!(world.run_as(nexus, 0, &[0; 6], &[]).status, Status::Good);
        assert_eq!(world.run_as(nexus, 300, &[0; 6], &[]).status, Status::Good);
    }
    world.good(&[0; 6], &[]);
    change(&mut world, &[(1, 7)]);
    assert_eq!(world.run_as(&others[0], 0, &[0; 6], &[]).status, Status::Good);
}

#[test]
fn a_unit_without_an_active_path_can_be_restored_through_any() {
    let mut world = world();
    change(&mut world, &[(3, 1), (2, 7)]);
    assert_eq!(world.sense(&cdb_16(0x88, 0, 0, 8), &[]), (2, 4, 0x0c));
    let other = world.log_in(initiator("b"), 3);
    assert_eq!(triple(&world.run_as(&other, 0, &[0; 6], &[])), (2, 4, 0x0b));
    let list = list(&[(0, 1)]);
    assert_eq!(world.run_as(&other, 0, &set(list.len()), &list).status, Status::Good);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x06));
    world.good(&cdb_16(0x88, 0, 0, 8), &[]);
}

#[test]
fn an_invalid_list_changes_nothing() {
    let mut world = world();
    let with = |states: &[(u8, u16)]| list(states);
    let cases = [
        (with(&[(1, 1), (4, 7)]), (5, 0x26, 0), Some(8)),
        (with(&[(1, 1), (0x0e, 7)]), (5, 0x26, 0), Some(8)),
        (with(&[(1, 1), (0x0f, 7)]), (5, 0x26, 0), Some(8)),
        (with(&[(1, 1), (1, 2)]), (5, 0x26, 0), Some(10)),
        (with(&[(1, 0)]), (5, 0x26, 0), Some(6)),
        (with(&[]), (5, 0x1a, 0), None),
        (vec![0; 3], (5, 0x1a, 0), None),
        ([with(&[(1, 1)]), vec![0; 2]].concat(), (5, 0x1a, 0), None),
    ];
    for (list, want, byte) in cases {
        let response = world.run(&set(list.len()), &list);
        assert_eq!(triple(&response), want, "{list:02x?}");
        assert_eq!(response.sense.unwrap().field.map(|field| field.byte), byte, "{list:02x?}");
    }
    let list = list(&[(1, 1)]);
    assert_eq!(world.sense(&set(list.len() + 4), &list), (5, 0x1a, 0), "less came");
    assert_eq!(world.sense(&set(1 << 30), &list), (5, 0x1a, 0));
    // More descriptors than ports are invalid, and are not even counted.
    let most = self::list(&[(1, 1); 3]);
    assert_eq!(
        world.sense(&set(most.len() + 4), &[most.clone(), vec![0; 4]].concat()),
        (5, 0x1a, 0)
    );
    world.good(&set(most.len()), &most);
    change(&mut world, &[(0, 1)]);
    world.good(&set(0), &[]);
    assert_eq!(states(&mut world, 0), [(0, 1), (0, 0)]);
    assert_eq!(world.sense(&[0xa4, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]), (5, 0x24, 0));
}

#[test]
fn a_write_exclusive_reservation_of_another_nexus_prevents_setting_states() {
    let mut world = world();
    let other = world.log_in(initiator("b"), 3);
    world.run_as(&other, 0, &[0; 6], &[]);
    world.good(&[0x16, 0, 0, 0, 0, 0], &[]);
    let list = list(&[(1, 1)]);
    let response = world.run_as(&other, 0, &set(list.len()), &list);
    assert_eq!(response.status, Status::ReservationConflict);
}
