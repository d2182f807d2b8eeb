//! REGISTER with ALL_TG_PT and SPEC_I_PT, and REGISTER AND MOVE.

use super::reservations::{Hosts, KEY_A, KEY_B, keys, out, report};
use super::world::{initiator, triple};
use crate::nexus::InitiatorPort;
use crate::reservations::persistent::LIST_BYTES_MAX;
use crate::step::Status;

const ALL_TG_PT: u8 = 0x04;
const SPEC_I_PT: u8 = 0x08;

/// PERSISTENT RESERVE OUT with a list of this length.
pub(super) fn long_out(action: u8, list: &[u8]) -> Vec<u8> {
    let mut cdb = out(action, 0);
    cdb[5..9].copy_from_slice(&(list.len() as u32).to_be_bytes());
    cdb
}

/// Returns a TransportID in this format, with this text.
fn id(format: u8, text: &str) -> Vec<u8> {
    let mut name = text.as_bytes().to_vec();
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(20), 0);
    let mut out = vec![format << 6 | 5, 0];
    out.extend((name.len() as u16).to_be_bytes());
    out.extend(name);
    out
}

pub(super) fn port_id(name: &str) -> Vec<u8> {
    id(1, &format!("iqn.2026-01.example:{name},i,0x00023d000001"))
}

fn flagged(key: u64, action_key: u64, flags: u8) -> Vec<u8> {
    let mut list = keys(key, action_key);
    list[20] = flags;
    list
}

/// Returns a list with SPEC_I_PT.
pub(super) fn listing(key: u64, action_key: u64, flags: u8, ids: &[Vec<u8>]) -> Vec<u8> {
    let ids = ids.concat();
    let mut list = flagged(key, action_key, flags | SPEC_I_PT);
    list.extend((ids.len() as u32).to_be_bytes());
    list.extend(ids);
    list
}

/// Returns the list of REGISTER AND MOVE.
fn moving(key: u64, action_key: u64, flags: u8, port: u16, id: &[u8]) -> Vec<u8> {
    let mut list = keys(key, action_key);
    list[17] = flags;
    list[18..20].copy_from_slice(&port.to_be_bytes());
    list[20..24].copy_from_slice(&(id.len() as u32).to_be_bytes());
    list.extend(id);
    list
}

/// Returns READ FULL STATUS: of each registrant the name's last letter, target port, key and
/// whether it holds the reservation.
fn status(hosts: &mut Hosts) -> Vec<(char, u16, u64, bool)> {
    let c = hosts.c.clone();
    let data = hosts.run(&c, &[0x5e, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 0], &[]).data_in.to_vec();
    let mut left = &data[8..];
    let mut out = Vec::new();
    while !left.is_empty() {
        let key = u64::from_be_bytes(left[..8].try_into().unwrap());
        assert_eq!(left[12] & 0x02, 0, "one nexus a descriptor");
        let port = u16::from_be_bytes(left[18..20].try_into().unwrap());
        let length = u32::from_be_bytes(left[20..24].try_into().unwrap()) as usize;
        assert_eq!(left[24], 0x45);
        let name = left[28..].split(|byte| *byte == b',').next().unwrap();
        out.push((*name.last().unwrap() as char, port, key, left[12] & 1 == 1));
        left = &left[24 + length..];
    }
    out
}

#[test]
fn all_target_ports_are_registered_and_unregistered_together() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    for action in [0, 6] {
        let list = flagged(0, KEY_A, ALL_TG_PT);
        assert_eq!(hosts.run(&a, &out(action, 0), &list).status, Status::Good);
        assert_eq!(status(&mut hosts), [('a', 1, KEY_A, false), ('a', 2, KEY_A, false)]);
        let other = hosts.world.log_in(initiator("a"), 2);
        hosts.out(&a, 1, 1, KEY_A, 0);
        assert_eq!(hosts.out(&other, 1, 1, KEY_A, 0).status, Status::ReservationConflict);
        assert_eq!(status(&mut hosts)[0], ('a', 1, KEY_A, true));
        let list = flagged(KEY_A, 7, ALL_TG_PT);
        assert_eq!(hosts.run(&other, &out(action, 0), &list).status, Status::Good);
        assert_eq!(status(&mut hosts), [('a', 1, 7, true), ('a', 2, 7, false)]);
        let list = flagged(7, 0, ALL_TG_PT);
        assert_eq!(hosts.run(&a, &out(action, 0), &list).status, Status::Good);
        assert_eq!(status(&mut hosts), []);
        assert_eq!(hosts.run(&b, &report(1), &[]).data_in.len(), 8, "it went with its holder");
    }
}

#[test]
fn another_key_at_another_port_is_a_conflict_and_nothing_is_done() {
    let mut hosts = Hosts::new();
    let a = hosts.a.clone();
    let other = hosts.world.log_in(initiator("a"), 2);
    hosts.out(&other, 0, 0, 0, KEY_B);
    let list = flagged(0, KEY_A, ALL_TG_PT);
    assert_eq!(hosts.run(&a, &out(0, 0), &list).status, Status::ReservationConflict);
    assert_eq!(status(&mut hosts), [('a', 2, KEY_B, false)]);
    // REGISTER AND IGNORE EXISTING KEY does not evaluate it.
    assert_eq!(hosts.run(&a, &out(6, 0), &list).status, Status::Good);
    assert_eq!(status(&mut hosts), [('a', 2, KEY_A, false), ('a', 1, KEY_A, false)]);
}

#[test]
fn listed_initiator_ports_are_registered_too() {
    let mut hosts = Hosts::new();
    let a = hosts.a.clone();
    // Duplicates, and the own port, do no harm; upper case and a short ISID are equivalent.
    let short = id(1, "IQN.2026-01.EXAMPLE:Y,i,0x23d000001");
    let list = listing(0, KEY_A, 0, &[port_id("x"), short, port_id("x"), port_id("a")]);
    let response = hosts.run(&a, &long_out(0, &list), &list);
    assert_eq!(response.status, Status::Good, "{:?}", response.sense);
    assert_eq!(response.transfer_bytes_wanted, Some(list.len() as u64));
    let all = [('a', 1, KEY_A, false), ('x', 1, KEY_A, false), ('y', 1, KEY_A, false)];
    assert_eq!(status(&mut hosts), all);
    let y = hosts.world.log_in(initiator("y"), 1);
    assert_eq!(hosts.out(&y, 1, 3, KEY_A, 0).status, Status::Good, "it is registered");
    hosts.out(&y, 3, 0, KEY_A, 0);
    hosts.run(&a, &[0; 6], &[]); // takes the unit attention about that
    let list = listing(0, KEY_A, ALL_TG_PT, &[port_id("x")]);
    assert_eq!(hosts.run(&a, &long_out(0, &list), &list).status, Status::Good);
    assert_eq!(status(&mut hosts).len(), 4, "two initiator ports, two target ports");
}

#[test]
fn a_listed_device_stands_for_its_known_ports() {
    let mut hosts = Hosts::new();
    let a = hosts.a.clone();
    let list = listing(0, KEY_A, 0, &[id(0, "iqn.2026-01.example:b")]);
    assert_eq!(hosts.run(&a, &long_out(0, &list), &list).status, Status::Good);
    assert_eq!(status(&mut hosts), [('a', 1, KEY_A, false), ('b', 1, KEY_A, false)]);
    hosts.out(&a, 3, 0, KEY_A, 0);
    let list = listing(0, KEY_A, 0, &[id(0, "iqn.2026-01.example:nobody")]);
    let refused = hosts.run(&a, &long_out(0, &list), &list);
    assert_eq!(triple(&refused), (5, 0x26, 0));
    assert_eq!(refused.sense.unwrap().field.unwrap().byte, 28);
    assert_eq!(status(&mut hosts), []);
}

#[test]
fn a_list_registers_all_or_none() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let good = port_id("x");
    let mut fibre = good.clone();
    fibre[0] = 0;
    let mut reserved = good.clone();
    reserved[0] = 0x85;
    let mut odd = good.clone();
    odd[3] -= 1;
    let mut tail = good.clone();
    tail.truncate(tail.len() - 4);
    let long_name = id(0, &"n".repeat(224));
    let endless = [&[0x45, 0, 0, 20][..], &[b'n'; 20]].concat();
    let bad = [
        fibre,
        reserved,
        odd,
        tail,
        long_name,
        endless,
        vec![0x45, 0, 0, 0],
        vec![0x45],
        id(1, "iqn.2026-01.example:x"),
        id(1, "iqn.2026-01.example:x,i,0x"),
        id(1, "iqn.2026-01.example:x,i,0xz"),
        id(1, "iqn.2026-01.example:x,i,0x1234567890123"),
        id(1, ",i,0x00023d000001"),
        id(1, "iqn.2026-01.example:\"x,i,0x00023d000001"),
    ];
    for id in bad {
        let list = listing(0, KEY_A, 0, &[good.clone(), id]);
        let refused = hosts.run(&a, &long_out(0, &list), &list);
        assert_eq!(triple(&refused), (5, 0x26, 0), "{list:02x?}");
        let byte = refused.sense.unwrap().field.unwrap().byte;
        assert_eq!(usize::from(byte), 28 + good.len(), "{list:02x?}");
        assert_eq!(status(&mut hosts), []);
    }
    // The CDB's length is shorter than the list says.
    let mut list = listing(0, KEY_A, 0, std::slice::from_ref(&good));
    list[27] += 4;
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x1a, 0));
    let list = flagged(0, KEY_A, SPEC_I_PT);
    assert_eq!(triple(&hosts.run(&a, &out(0, 0), &list)), (5, 0x1a, 0));
    let list = [keys(0, KEY_A), vec![0; 4]].concat();
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x1a, 0));
    // One of them is already registered; or the sender is.
    hosts.world.run_as(&b, 0, &out(0, 0), &flagged(0, KEY_B, ALL_TG_PT));
    let list = listing(0, KEY_A, 0, &[good.clone(), port_id("b")]);
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x26, 0));
    let list = listing(KEY_B, KEY_A, 0, std::slice::from_ref(&good));
    assert_eq!(triple(&hosts.run(&b, &long_out(0, &list), &list)), (5, 0x26, 0));
    let list = listing(9, KEY_A, 0, &[good]);
    assert_eq!(hosts.run(&b, &long_out(0, &list), &list).status, Status::ReservationConflict);
    assert_eq!(status(&mut hosts), [('b', 1, KEY_B, false), ('b', 2, KEY_B, false)]);
}

#[test]
fn registrations_are_bounded_and_a_list_that_does_not_fit_does_nothing() {
    let mut hosts = Hosts::new();
    let a = hosts.a.clone();
    let ids = |count: usize| -> Vec<Vec<u8>> {
        (0..count).map(|n| id(1, &format!("iqn.2026-01.example:x{n},i,0x1"))).collect()
    };
    let list = listing(0, KEY_A, 0, &ids(512));
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x55, 0x04));
    assert_eq!(status(&mut hosts), []);
    let list = listing(0, KEY_A, 0, &ids(511));
    assert_eq!(hosts.run(&a, &long_out(0, &list), &list).status, Status::Good);
    let b = hosts.b.clone();
    assert_eq!(triple(&hosts.out(&b, 0, 0, 0, KEY_B)), (5, 0x55, 0x04));
}

/// A list that represents too much is detected before it is expanded: a list of 8 MB that
/// repeatedly names an initiator with 20 sessions would be 160 registrations for each of its bytes.
#[test]
fn a_list_is_refused_before_it_is_copied_or_expanded() {
    let mut hosts = Hosts::new();
    let a = hosts.a.clone();
    // Longer than any valid list.
    let list = listing(0, KEY_A, 0, &vec![port_id("x"); 4000]);
    assert!(list.len() > LIST_BYTES_MAX);
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x1a, 0));
    let mut cdb = out(0, 0);
    cdb[5..9].fill(0xff);
    assert_eq!(triple(&hosts.run(&a, &cdb, &list)), (5, 0x1a, 0));
    // The longest list with the shortest names of devices, each of which has many ports.
    let many: Vec<_> = (0..600_u16).map(|n| port("many", n)).collect();
    let sessions: Vec<_> = many.iter().map(|port| hosts.world.log_in(port.clone(), 1)).collect();
    let device = id(0, "iqn.2026-01.example:many");
    let count = (LIST_BYTES_MAX - 28) / device.len();
    let list = listing(0, KEY_A, 0, &vec![device.clone(); count]);
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x55, 0x04));
    assert_eq!(status(&mut hosts), []);
    // As many as fit are registered, each once, however often they are named.
    sessions[511..].iter().for_each(|nexus| hosts.world.nexus_loss(nexus));
    assert_eq!(hosts.run(&a, &long_out(0, &list), &list).status, Status::Good);
    assert_eq!(status(&mut hosts).len(), 512);
    // With all target ports it is twice as many.
    let mut hosts = Hosts::new();
    let (a, some) = (hosts.a.clone(), &many[..256]);
    let sessions: Vec<_> = some.iter().map(|port| hosts.world.log_in(port.clone(), 1)).collect();
    let list = listing(0, KEY_A, ALL_TG_PT, std::slice::from_ref(&device));
    assert_eq!(triple(&hosts.run(&a, &long_out(0, &list), &list)), (5, 0x55, 0x04));
    hosts.world.nexus_loss(&sessions[0]);
    assert_eq!(hosts.run(&a, &long_out(0, &list), &list).status, Status::Good);
    assert_eq!(status(&mut hosts).len(), 512);
}

fn port(name: &str, number: u16) -> InitiatorPort {
    let [high, low] = number.to_be_bytes();
    InitiatorPort { isid: [0, 2, 0x3d, 0, high, low], ..initiator(name) }
}

#[test]
fn a_reservation_moves_to_the_named_nexus() {
    for (unreg, own_stays) in [(0, true), (2, false)] {
        let mut hosts = Hosts::registered();
        let (a, b) = (hosts.a.clone(), hosts.b.clone());
        hosts.out(&a, 1, 6, KEY_A, 0);
        let list = moving(KEY_A, 0xdddd, unreg, 2, &port_id("d"));
        let moved = hosts.run(&a, &long_out(7, &list), &list);
        assert_eq!(moved.status, Status::Good, "{:?}", moved.sense);
        let mut want = vec![('a', 1, KEY_A, false), ('b', 2, KEY_B, false), ('d', 2, 0xdddd, true)];
        want.retain(|who| own_stays || who.0 != 'a');
        assert_eq!(status(&mut hosts), want);
        let held = hosts.run(&b, &report(1), &[]).data_in.to_vec();
        assert_eq!((held[8..16].to_vec(), held[21]), (0xdddd_u64.to_be_bytes().to_vec(), 6));
        assert_eq!(hosts.status(&b, &[0; 6]), Status::Good, "it was not released: no attention");
        let d = hosts.world.log_in(initiator("d"), 2);
        assert_eq!(hosts.out(&d, 2, 6, 0xdddd, 0).status, Status::Good, "it is the holder");
        assert_eq!(hosts.run(&d, &report(1), &[]).data_in.len(), 8);
    }
}

#[test]
fn a_move_may_name_a_registered_nexus() {
    let mut hosts = Hosts::registered();
    let a = hosts.a.clone();
    hosts.out(&a, 1, 1, KEY_A, 0);
    let list = moving(KEY_A, 5, 0, 2, &port_id("b"));
    assert_eq!(hosts.run(&a, &long_out(7, &list), &list).status, Status::Good);
    assert_eq!(status(&mut hosts), [('a', 1, KEY_A, false), ('b', 2, 5, true)]);
}

#[test]
fn moves_are_refused_as_the_standard_says() {
    let mut hosts = Hosts::registered();
    let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
    let d = port_id("d");
    let good = moving(KEY_A, 5, 0, 2, &d);
    let conflict = Status::ReservationConflict;
    // Nothing is reserved.
    assert_eq!(triple(&hosts.run(&a, &long_out(7, &good), &good)), (5, 0x24, 0));
    hosts.out(&a, 1, 7, KEY_A, 0);
    assert_eq!(hosts.run(&a, &long_out(7, &good), &good).status, conflict, "all registrants");
    hosts.out(&a, 2, 7, KEY_A, 0);
    hosts.run(&b, &[0; 6], &[]);
    hosts.out(&a, 1, 5, KEY_A, 0);
    for (nexus, key) in [(&c, 0), (&c, KEY_A), (&b, KEY_B), (&a, 9)] {
        let list = moving(key, 5, 0, 2, &d);
        assert_eq!(hosts.run(nexus, &long_out(7, &list), &list).status, conflict);
    }
    let mut short = d.clone();
    short.truncate(20);
    let mut uneven = d.clone();
    uneven.push(0);
    let bad = [
        (8, moving(KEY_A, 0, 0, 2, &d)),
        (18, moving(KEY_A, 5, 0, 3, &d)),
        (18, moving(KEY_A, 5, 0, 0, &d)),
        (20, moving(KEY_A, 5, 0, 2, &short)),
        (20, moving(KEY_A, 5, 0, 2, &uneven)),
        (24, moving(KEY_A, 5, 0, 2, &[0x45; 24])),
        (24, moving(KEY_A, 5, 0, 2, &id(0, "iqn.2026-01.example:b"))),
        (24, moving(KEY_A, 5, 0, 2, &port_id("a"))),
    ];
    for (byte, list) in bad {
        let refused = hosts.run(&a, &long_out(7, &list), &list);
        assert_eq!(triple(&refused), (5, 0x26, 0), "{byte}");
        assert_eq!(refused.sense.unwrap().field.unwrap().byte, byte);
    }
    let mut list = good.clone();
    list[23] += 4;
    assert_eq!(triple(&hosts.run(&a, &long_out(7, &list), &list)), (5, 0x1a, 0));
    assert_eq!(triple(&hosts.run(&a, &long_out(7, &good[..20]), &good[..20])), (5, 0x1a, 0));
    assert_eq!(status(&mut hosts), [('a', 1, KEY_A, true), ('b', 2, KEY_B, false)]);
}
