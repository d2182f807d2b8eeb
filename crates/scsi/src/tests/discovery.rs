//! What hosts read before they use a volume.

use super::world::{World, cdb_16, initiator, naa, triple};
use crate::step::{Command, Status, Step};
use crate::table::COMMANDS;
use crate::{Cdb, commands};
use block::{DataOut, LogicalBlockSize};

fn inquiry(page: Option<u8>, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    vec![0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0]
}

#[test]
fn standard_inquiry_identifies_the_array() {
    let mut world = World::new();
    let data = world.good(&inquiry(None, 255), &[]);
    assert_eq!(data.len(), 96);
    assert_eq!(data[..8], [0x00, 0x00, 0x06, 0x12, 91, 0x38, 0x10, 0x02]);
    assert_eq!(&data[8..36], b"HOLDFASTArray           0001");
    assert_eq!(data[58..66], [0x00, 0xa0, 0x09, 0x60, 0x04, 0x60, 0x04, 0xc0]);
    assert_eq!(world.good(&inquiry(None, 5), &[]), data[..5]);
    assert!(world.good(&inquiry(None, 0), &[]).is_empty());
    assert_eq!(world.sense(&[0x12, 0, 0x83, 0, 255, 0], &[]), (5, 0x24, 0));
    assert_eq!(world.sense(&inquiry(Some(0xb5), 255), &[]), (5, 0x24, 0));
}

#[test]
fn every_listed_page_exists_and_has_its_length() {
    let mut world = World::new();
    let list = world.good(&inquiry(Some(0), 255), &[]);
    assert_eq!(list[4..], crate::unit::vpd::PAGES);
    for &page in &list[4..] {
        let data = world.good(&inquiry(Some(page), 4096), &[]);
        assert_eq!(data[..2], [0, page]);
        assert_eq!(usize::from(u16::from_be_bytes([data[2], data[3]])), data.len() - 4);
    }
    let limits = world.good(&inquiry(Some(0xb0), 64), &[]);
    assert_eq!((limits[3], limits[5]), (0x3c, 255));
    assert_eq!(limits[8..12], 65_536_u32.to_be_bytes());
    assert_eq!(limits[28..36], [0, 0, 0, 8, 0x80, 0, 0, 0]);
    let provisioning = world.good(&inquiry(Some(0xb2), 64), &[]);
    assert_eq!(provisioning[4..], [11, 0xe4, 2, 0]);
}

#[test]
fn device_identification_has_volume_port_and_device() {
    let mut world = World::new();
    let page = world.good(&inquiry(Some(0x83), 4096), &[]);
    let mut found = Vec::new();
    let mut at = 4;
    while at < page.len() {
        let length = usize::from(page[at + 3]);
        found.push((page[at] & 0xf, page[at + 1], page[at + 4..at + 4 + length].to_vec()));
        at += 4 + length;
    }
    assert_eq!(at, page.len());
    assert_eq!(found[0], (1, 0x03, naa(1).to_vec()));
    assert_eq!((found[1].0, found[1].1, found[1].2.len()), (1, 0x02, 16));
    assert_eq!(found[2], (2, 0x01, b"HOLDFASTHF00000001".to_vec()));
    assert!(found[3].2.starts_with(b"naa.60123456700000010102030405060701\0"));
    assert_eq!(found[4], (1, 0x94, vec![0, 0, 0, 1]));
    assert_eq!(found[5], (1, 0x95, vec![0, 0, 0, 1]));
    assert!(found[6].1 == 0x98 && found[6].2.starts_with(b"iqn.2026-01.example:array,t,0x0001\0"));
    assert!(found[7].1 == 0xa8 && found[7].2.starts_with(b"iqn.2026-01.example:array\0"));
}

#[test]
fn luns_are_reported_and_others_are_not_supported() {
    let mut world = World::new();
    let report = |select| vec![0xa0, 0, select, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    let luns = world.good(&report(0), &[]);
    assert_eq!(luns[..4], 24_u32.to_be_bytes());
    assert_eq!(
        luns[8..],
        [[0, 0, 0, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0, 0], [0x41, 0x2c, 0, 0, 0, 0, 0, 0]]
            .concat()
    );
    assert_eq!(world.good(&report(1), &[])[8..], [0xc1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.good(&report(2), &[]).len(), 40);
    assert_eq!(world.sense(&report(7), &[]), (5, 0x24, 0));
    assert_eq!(world.run_on(9, &inquiry(None, 96), &[]).data_in.to_vec()[0], 0x7f);
    assert_eq!(triple(&world.run_on(9, &[0; 6], &[])), (5, 0x25, 0));
    assert_eq!(triple(&world.run_on(9, &[0xee; 6], &[])), (5, 0x25, 0));
    let sense = world.run_on(9, &[3, 0, 0, 0, 255, 0], &[]);
    assert_eq!(sense.data_in.to_vec()[12], 0x25);
    let mut luns = (*world.luns).clone();
    luns.luns.remove(&0);
    luns.generation += 1;
    world.luns = luns.into();
    assert_eq!(world.run_on(0, &inquiry(None, 96), &[]).data_in.to_vec()[0], 0x3f);
    assert_eq!(triple(&world.run_on(0, &cdb_16(0x88, 0, 0, 1), &[])), (5, 0x25, 0));
}

#[test]
fn the_well_known_unit_and_hostile_luns_answer() {
    let mut world = World::new();
    let mut ask = |lun: [u8; 8], cdb: &[u8]| {
        let command = Command {
            lun,
            cdb: Cdb::new(cdb),
            data_out: DataOut::default(),
            expected_in_bytes: 96,
        };
        let (nexus, luns) = (world.nexus.clone(), world.luns.clone());
        let step = world.server.execute(&nexus, &luns, command);
        world.finish(&nexus, step)
    };
    let well_known = [0xc1, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(ask(well_known, &inquiry(None, 96)).data_in.to_vec()[0], 0x1e);
    assert_eq!(ask(well_known, &[0; 6]).status, Status::Good);
    assert_eq!(triple(&ask(well_known, &cdb_16(0x88, 0, 0, 1))), (5, 0x20, 0));
    for lun in [[0, 0, 1, 0, 0, 0, 0, 0], [0x80, 0, 0, 0, 0, 0, 0, 0], [0xff; 8], [1; 8]] {
        assert_eq!(triple(&ask(lun, &[0; 6])), (5, 0x25, 0), "{lun:?}");
    }
    assert_eq!(ask([0x40, 0, 0, 0, 0, 0, 0, 0], &[0; 6]).status, Status::Good);
}

#[test]
fn capacity_is_reported_for_both_block_sizes() {
    let mut world = World::new();
    assert_eq!(world.good(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]), [0, 0, 7, 0xff, 0, 0, 2, 0]);
    let long = world.good(&cdb_16(0x9e, 0x10, 0, 32), &[]);
    assert_eq!(long[..16], [0, 0, 0, 0, 0, 0, 7, 0xff, 0, 0, 2, 0, 0, 3, 0xc0, 0]);
    assert_eq!(long.len(), 32);
    assert_eq!(world.good(&cdb_16(0x9e, 0x10, 0, 12), &[]), long[..12]);
    let native = world.run_on(2, &cdb_16(0x9e, 0x10, 0, 32), &[]).data_in.to_vec();
    assert_eq!(native[..16], [0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0x10, 0, 0, 0, 0xc0, 0]);
    assert_eq!(world.luns.luns[&2].logical_block, LogicalBlockSize::B4096);
    assert_eq!(world.sense(&[0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0], &[]), (5, 0x24, 0));
}

#[test]
fn a_changed_map_and_size_are_reported_once_to_each_nexus() {
    let mut world = World::new();
    let other = world.log_in(initiator("b"), 2);
    for nexus in [&world.nexus.clone(), &other] {
        assert_eq!(world.run_as(nexus, 0, &[0; 6], &[]).status, Status::Good);
    }
    let mut luns = (*world.luns).clone();
    let mut grown = (*luns.luns[&0]).clone();
    grown.size.0 += 8;
    luns.luns.insert(0, grown.into());
    luns.luns.insert(5, super::world::volume(4, LogicalBlockSize::B512));
    luns.generation += 1;
    world.luns = luns.into();
    assert_eq!(world.good(&inquiry(None, 96), &[])[0], 0, "INQUIRY leaves it");
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x09));
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x3f, 0x0e));
    world.good(&[0; 6], &[]);
    assert_eq!(triple(&world.run_on(300, &[0; 6], &[])), (6, 0x3f, 0x0e));
    // REQUEST SENSE takes one; REPORT LUNS takes the rest of that kind.
    let sense = world.run_as(&other, 0, &[3, 1, 0, 0, 255, 0], &[]).data_in.to_vec();
    assert_eq!(sense[..4], [0x72, 6, 0x2a, 0x09]);
    world.run_as(&other, 0, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[]);
    assert_eq!(world.run_as(&other, 0, &[0; 6], &[]).status, Status::Good);
    assert_eq!(world.run_as(&other, 300, &[0; 6], &[]).status, Status::Good);
}

#[test]
fn a_reset_is_reported_to_all_nexuses() {
    let mut world = World::new();
    let other = world.log_in(initiator("b"), 2);
    world.run_as(&other, 0, &[0; 6], &[]);
    world.good(&[0; 6], &[]);
    world.lun_reset(0);
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x29, 0x03));
    world.good(&[0; 6], &[]);
    assert_eq!(triple(&world.run_as(&other, 0, &[0; 6], &[])), (6, 0x29, 0x03));
    assert_eq!(world.run_as(&other, 300, &[0; 6], &[]).status, Status::Good);
    world.target_reset(&world.luns.clone());
    assert_eq!(triple(&world.run_as(&other, 300, &[0; 6], &[])), (6, 0x29, 0x02));
}

#[test]
fn supported_commands_are_those_of_the_table() {
    let mut world = World::new();
    let ask = |options, opcode, action: u8| {
        vec![0xa3, 0x0c, options, opcode, 0, action, 0, 0, 0xff, 0xff, 0, 0]
    };
    let all = world.good(&ask(0, 0, 0), &[]);
    assert_eq!(all.len(), 4 + 8 * COMMANDS.len());
    assert_eq!(world.good(&ask(0x80, 0, 0), &[]).len(), 4 + 20 * COMMANDS.len());
    for (descriptor, entry) in all[4..].chunks(8).zip(COMMANDS) {
        let (opcode, action) = (descriptor[0], descriptor[3]);
        assert_eq!((opcode, descriptor[5] & 1 == 1), (entry.opcode, entry.action.is_some()));
        let (works, fails) = if entry.action.is_some() { (2, 1) } else { (1, 2) };
        let one = world.good(&ask(works, opcode, action), &[]);
        assert_eq!((one[1], usize::from(one[3])), (3, entry.usage.len()));
        assert_eq!(one[4..], *entry.usage);
        assert_eq!(world.good(&ask(3, opcode, action), &[]), one);
        assert_eq!(world.good(&ask(works | 0x80, opcode, action), &[]).len(), one.len() + 12);
        assert_eq!(world.sense(&ask(fails, opcode, action), &[]), (5, 0x24, 0));
    }
    assert_eq!(world.good(&ask(3, 0xee, 0), &[]), [0, 1, 0, 0]);
    assert_eq!(world.good(&ask(2, 0x9e, 0x1f), &[]), [0, 1, 0, 0]);
    assert_eq!(commands().count(), COMMANDS.len());
}

#[test]
fn the_table_is_sorted_and_its_usage_maps_fit_their_group() {
    for pair in COMMANDS.windows(2) {
        assert!(
            (pair[0].opcode, pair[0].action) < (pair[1].opcode, pair[1].action) || {
                pair[0].opcode == 0xa3 && pair[1].opcode == 0xa3
            }
        );
    }
    for entry in COMMANDS {
        let length = match entry.opcode >> 5 {
            0 => 6,
            1 | 2 => 10,
            4 => 16,
            _ => 12,
        };
        assert_eq!(entry.usage.len(), length, "{}", entry.name);
        if let Some(action) = entry.action {
            assert_eq!(entry.usage[1] & 0x1f, action, "{}", entry.name);
        }
    }
}

#[test]
fn an_unknown_command_or_action_is_refused() {
    let mut world = World::new();
    for opcode in [0x01, 0x04, 0x50, 0x7f, 0xa5, 0xff] {
        assert_eq!(world.sense(&[opcode; 16], &[]), (5, 0x20, 0), "{opcode:02x}");
    }
    for cdb in [[0x9e, 0x1f], [0x83, 0x02], [0x84, 0x09], [0x5e, 0x1e], [0xa3, 0x05], [0xa4, 0x05]]
    {
        assert_eq!(world.sense(&cdb, &[]), (5, 0x24, 0), "{cdb:02x?}");
    }
}

#[test]
fn commands_that_continue_make_requests_and_others_end_at_once() {
    let world = World::new();
    let command = Command {
        lun: [0; 8],
        cdb: Cdb::new(&cdb_16(0x88, 0, 8, 8)),
        data_out: DataOut::default(),
        expected_in_bytes: 4096,
    };
    let step = world.server.execute(&world.nexus, &world.luns, command);
    assert!(matches!(step, Step::Request { .. }));
}
