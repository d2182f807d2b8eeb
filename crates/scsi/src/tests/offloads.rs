//! Disabled offloads: their commands are refused as unknown, and everything that reports them
//! agrees; hosts get one unit attention.

use std::sync::Arc;

use block::{Offload, Offloads, VolumeAttributes};

use super::copy::{cscd, list, segment};
use super::world::{World, cdb_10, cdb_16, initiator, naa, triple};
use crate::step::{Command, Status, Step};
use crate::table::COMMANDS;

/// Sets the offloads of the volume at a LUN, as a change of the array does.
fn switch(world: &mut World, lun: u16, offloads: Offloads) {
    let mut luns = (*world.luns).clone();
    let volume = (*luns.luns[&lun]).clone();
    luns.luns.insert(lun, Arc::new(VolumeAttributes { offloads, ..volume }));
    luns.generation += 1;
    world.luns = luns.into();
}

/// Returns a world that has seen its volumes, with some offloads of LUN 0 off, after reporting
/// that.
fn without(off: &[Offload]) -> World {
    let mut world = World::new();
    world.good(&[0; 6], &[]);
    let offloads = off.iter().fold(Offloads::ALL, |all, offload| all.with(*offload, false));
    switch(&mut world, 0, offloads);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x3f, 0x03));
    world.good(&[0; 6], &[]);
    world
}

fn page(world: &mut World, code: u8) -> Vec<u8> {
    world.good(&[0x12, 1, code, 4, 0, 0], &[])
}

/// Returns a command of each supported offload, and its data.
fn samples(offload: Offload) -> Vec<(Vec<u8>, Vec<u8>)> {
    match offload {
        Offload::CompareAndWrite => {
            let mut cdb = cdb_16(0x89, 0, 0, 0);
            cdb[13] = 1;
            vec![(cdb, vec![0; 1024])]
        }
        Offload::ExtendedCopy => {
            let list = list(0, 3, &[cscd(naa(1))], &[segment((0, 0), (0, 100), 8)]);
            let mut cdb = vec![0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            cdb.extend((list.len() as u32).to_be_bytes());
            cdb.extend([0, 0]);
            let parameters = vec![0x84, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
            vec![(cdb, list), (parameters, Vec::new())]
        }
        Offload::WriteSame => vec![
            (cdb_10(0x41, 0, 8, 8), vec![0; 512]),
            (cdb_16(0x93, 0, 8, 8), vec![0; 512]),
            (cdb_16(0x93, 8, 8, 8), vec![0; 512]),
        ],
        Offload::Unmap => {
            let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
            list.extend(8_u64.to_be_bytes());
            list.extend(8_u32.to_be_bytes());
            list.extend([0; 4]);
            vec![(cdb_10(0x42, 0, 0, 24), list)]
        }
        Offload::TokenCopy => {
            let nothing = vec![0x83, 0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0];
            vec![(nothing, Vec::new())]
        }
    }
}

#[test]
fn a_command_is_unknown_while_its_offload_is_off() {
    for offload in Offload::ALL {
        let mut world = without(&[offload]);
        let mut off = 0;
        for other in Offload::ALL {
            for (cdb, data) in samples(other) {
                let response = world.run(&cdb, &data);
                if other == offload {
                    assert_eq!(triple(&response), (5, 0x20, 0), "{offload:?}: {cdb:02x?}");
                    off += 1;
                } else {
                    assert_eq!(response.status, Status::Good, "{offload:?}: {cdb:02x?}");
                }
            }
        }
        assert!(off > 0);
        switch(&mut world, 0, Offloads::ALL);
        assert_eq!(world.sense(&[0; 6], &[]), (6, 0x3f, 0x03));
        for (cdb, data) in samples(offload) {
            world.good(&cdb, &data);
        }
    }
}

#[test]
fn offloads_of_other_volumes_stay_and_each_nexus_gets_one_report() {
    let mut world = World::new();
    let other = world.log_in(initiator("b"), 2);
    for lun in [0, 300] {
        world.run_on(lun, &[0; 6], &[]);
        world.run_as(&other, lun, &[0; 6], &[]);
    }
    switch(&mut world, 0, Offloads::ALL.with(Offload::WriteSame, false));
    let (cdb, data) = samples(Offload::WriteSame).remove(0);
    assert_eq!(triple(&world.run(&cdb, &data)), (6, 0x3f, 0x03));
    assert_eq!(triple(&world.run(&cdb, &data)), (5, 0x20, 0));
    assert_eq!(world.run_on(300, &cdb, &data).status, Status::Good);
    assert_eq!(triple(&world.run_as(&other, 0, &[0; 6], &[])), (6, 0x3f, 0x03));
    assert_eq!(world.run_as(&other, 0, &[0; 6], &[]).status, Status::Good);
    assert_eq!(world.run_as(&other, 300, &[0; 6], &[]).status, Status::Good);
}

#[test]
fn off_and_on_again_between_two_commands_is_not_reported() {
    let mut world = World::new();
    world.good(&[0; 6], &[]);
    switch(&mut world, 0, Offloads::ALL.with(Offload::Unmap, false));
    switch(&mut world, 0, Offloads::ALL);
    world.good(&[0; 6], &[]);
}

#[test]
fn supported_operation_codes_omit_disabled_offloads() {
    for offload in Offload::ALL {
        let mut world = without(&[offload]);
        let all = world.good(&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], &[]);
        let on = COMMANDS.iter().filter(|entry| entry.offload != Some(offload));
        assert_eq!(all.len(), 4 + 8 * on.count());
        for entry in COMMANDS.iter().filter(|entry| entry.offload == Some(offload)) {
            let action = entry.action.unwrap_or(0);
            let ask = |options| {
                vec![0xa3, 0x0c, options, entry.opcode, 0, action, 0, 0, 0xff, 0xff, 0, 0]
            };
            assert_eq!(world.good(&ask(3), &[]), [0, 1, 0, 0], "{}", entry.name);
            let option = if entry.action.is_some() { 2 } else { 1 };
            assert_eq!(world.good(&ask(option), &[]), [0, 1, 0, 0], "{}", entry.name);
        }
    }
}

#[test]
fn pages_and_capacity_agree_with_disabled_offloads() {
    let mut world = without(&[Offload::CompareAndWrite]);
    assert_eq!(page(&mut world, 0xb0)[5], 0, "MAXIMUM COMPARE AND WRITE LENGTH");
    let mut world = without(&[Offload::Unmap]);
    let limits = page(&mut world, 0xb0);
    assert_eq!((&limits[20..28], &limits[28..36]), (&[0; 8][..], &[0, 0, 0, 8, 0x80, 0, 0, 0][..]));
    assert_eq!(page(&mut world, 0xb2)[5..7], [0x64, 2], "LBPWS, LBPWS10, LBPRZ");
    let mut world = without(&[Offload::WriteSame]);
    assert_eq!(page(&mut world, 0xb0)[36..44], [0; 8], "MAXIMUM WRITE SAME LENGTH");
    assert_eq!(page(&mut world, 0xb2)[5..7], [0x84, 2], "LBPU, LBPRZ");
    assert_eq!(world.good(&cdb_16(0x9e, 0x10, 0, 32), &[])[14], 0xc0);
    let mut world = without(&[Offload::WriteSame, Offload::Unmap]);
    assert_eq!(page(&mut world, 0xb0)[20..44], [0; 24]);
    assert_eq!(page(&mut world, 0xb2)[5..7], [0, 0]);
    assert_eq!(world.good(&cdb_16(0x9e, 0x10, 0, 32), &[])[14], 0, "LBPME");
}

#[test]
fn third_party_copy_is_reported_only_if_supported() {
    let mut world = without(&[Offload::ExtendedCopy, Offload::TokenCopy]);
    assert_eq!(world.good(&[0x12, 0, 0, 0, 96, 0], &[])[5] & 0x08, 0, "3PC");
    assert!(!page(&mut world, 0)[4..].contains(&0x8f));
    assert_eq!(world.sense(&[0x12, 1, 0x8f, 1, 0, 0], &[]), (5, 0x24, 0));
    let mut world = without(&[Offload::Unmap]);
    assert_eq!(world.good(&[0x12, 0, 0, 0, 96, 0], &[])[5] & 0x08, 0x08);
    assert!(page(&mut world, 0)[4..].contains(&0x8f));
    let codes = |page: Vec<u8>| {
        let (mut at, mut codes) = (4, Vec::new());
        while at < page.len() {
            codes.push(u16::from_be_bytes([page[at], page[at + 1]]));
            at += 4 + usize::from(u16::from_be_bytes([page[at + 2], page[at + 3]]));
        }
        codes
    };
    let mut world = without(&[Offload::TokenCopy]);
    assert_eq!(codes(page(&mut world, 0x8f)), [1, 4, 8, 0xc, 0x8001]);
    let mut world = without(&[Offload::ExtendedCopy]);
    assert_eq!(codes(page(&mut world, 0x8f)), [0, 1, 0x106, 0x108, 0x8001]);
}

#[test]
fn a_copy_is_refused_if_either_volume_has_it_off() {
    let copy = |world: &mut World, source: u16, destination: u16| {
        let names = [cscd(naa(1)), cscd(naa(2))];
        let list = list(0, 3, &names, &[segment((source, 0), (destination, 0), 8)]);
        let mut cdb = vec![0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cdb.extend((list.len() as u32).to_be_bytes());
        cdb.extend([0, 0]);
        world.run(&cdb, &list)
    };
    let mut world = World::new();
    switch(&mut world, 300, Offloads::ALL.with(Offload::ExtendedCopy, false));
    assert_eq!(triple(&copy(&mut world, 0, 1)), (0xa, 0x0d, 0x02));
    assert_eq!(triple(&copy(&mut world, 1, 0)), (0xa, 0x0d, 0x02));
    assert!(world.requests.is_empty());
    switch(&mut world, 300, Offloads::ALL);
    assert_eq!(copy(&mut world, 0, 1).status, Status::Good);
}

#[test]
fn a_command_that_was_accepted_before_the_switch_completes() {
    let mut world = World::new();
    let (cdb, data) = samples(Offload::WriteSame).remove(1);
    let command = Command {
        lun: [0; 8],
        cdb: crate::Cdb::new(&cdb),
        data_out: block::DataOut::from_bytes(&data, 0),
        expected_in_bytes: 0,
    };
    let step = world.server.execute(&world.nexus, &world.luns, command);
    assert!(matches!(step, Step::Request { .. }));
    switch(&mut world, 0, Offloads::ALL.with(Offload::WriteSame, false));
    let nexus = world.nexus.clone();
    assert_eq!(world.finish(&nexus, step).status, Status::Good);
}
