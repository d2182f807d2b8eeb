//! RESERVE and RELEASE of SPC-2 together with persistent reservations, and which commands conflict.

use super::reservations::{Hosts, KEY_A, KEY_B, keys, out, report};
use super::world::{cdb_10, triple};
use crate::step::Status;

#[test]
fn reserve_excludes_all_but_the_holder_and_ends_with_the_nexus() {
    let mut hosts = Hosts::new();
    let (a, b) = (hosts.a.clone(), hosts.b.clone());
    let (reserve, release) = ([0x16, 0, 0, 0, 0, 0], [0x17, 0, 0, 0, 0, 0]);
    assert_eq!(hosts.status(&a, &reserve), Status::Good);
    assert_eq!(hosts.status(&a, &reserve), Status::Good);
    // While any nexus holds a RESERVE, PERSISTENT RESERVE IN and OUT conflict for all (SPC-2,
    // 5.5.1).
    for cdb in [report(0), report(2), out(0, 0), out(6, 0), out(3, 0)] {
        assert_eq!(hosts.run(&a, &cdb, &keys(0, 1)).status, Status::ReservationConflict);
        assert_eq!(hosts.run(&b, &cdb, &keys(0, 1)).status, Status::ReservationConflict);
    }
    for cdb in [&reserve[..], &[0; 6], &cdb_10(0x28, 0, 0, 1), &[0x1a, 0, 8, 0, 9, 0]] {
        assert_eq!(hosts.status(&b, cdb), Status::ReservationConflict, "{cdb:02x?}");
        assert_ne!(hosts.status(&a, cdb), Status::ReservationConflict, "{cdb:02x?}");
    }
    assert_eq!(hosts.status(&b, &[0x12, 0, 0, 0, 96, 0]), Status::Good);
    assert_eq!(hosts.status(&b, &release), Status::Good, "and does nothing");
    assert_eq!(hosts.status(&b, &reserve), Status::ReservationConflict);
    hosts.world.nexus_loss(&a);
    assert_eq!(hosts.status(&b, &reserve), Status::Good);
    hosts.world.lun_reset(0);
    assert_eq!(triple(&hosts.run(&b, &[0; 6], &[])), (6, 0x29, 0x03));
    assert_eq!(hosts.status(&b, &[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Status::Good);
    assert_eq!(hosts.status(&b, &[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Status::Good);
    assert_eq!(hosts.status(&b, &release), Status::Good);
    assert_eq!(triple(&hosts.run(&b, &[0x16, 0x10, 0, 0, 0, 0], &[])).0, 5);
    hosts.out(&b, 0, 0, 0, KEY_B);
    assert_eq!(hosts.status(&b, &reserve), Status::ReservationConflict);
}

#[test]
fn starting_and_allowing_are_free_and_stopping_and_preventing_are_not() {
    for kind in [1, 3, 5, 6, 7, 8] {
        let mut hosts = Hosts::registered();
        let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
        assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good);
        let free: [&[u8]; 4] = [
            &[0x1b, 0, 0, 0, 1, 0],                // START STOP UNIT: START
            &[0x1e, 0, 0, 0, 0, 0],                // PREVENT ALLOW MEDIUM REMOVAL: allow
            &[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 8, 0], // LOG SENSE
            &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],    // READ CAPACITY (10)
        ];
        let writes: [&[u8]; 4] = [
            &[0x1b, 0, 0, 0, 0, 0],                // stop
            &[0x1b, 0, 0, 0, 0x11, 0],             // a power condition
            &[0x1e, 0, 0, 0, 1, 0],                // prevent
            &[0x55, 0x10, 0, 0, 0, 0, 0, 0, 0, 0], // MODE SELECT (10)
        ];
        let reads: [&[u8]; 3] = [
            &[0x1a, 0, 0x3f, 0, 255, 0],                  // MODE SENSE (6)
            &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], // REPORT SUPPORTED OPERATION CODES
            &[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], // and TASK MANAGEMENT FUNCTIONS
        ];
        let bars_reads = matches!(kind, 3 | 6 | 8);
        let conflict = Status::ReservationConflict;
        for cdb in free {
            assert_eq!(hosts.status(&c, cdb), Status::Good, "{kind}: {cdb:02x?}");
        }
        for cdb in writes {
            assert_eq!(hosts.status(&c, cdb), conflict, "{kind}: {cdb:02x?}");
            assert_eq!(hosts.status(&b, cdb) == conflict, kind < 5, "{kind}: {cdb:02x?}");
            assert_ne!(hosts.status(&a, cdb), conflict, "{kind}: {cdb:02x?}");
        }
        for cdb in reads {
            assert_eq!(hosts.status(&c, cdb) == conflict, bars_reads, "{kind}: {cdb:02x?}");
            assert_eq!(hosts.status(&b, cdb) == conflict, kind == 3, "{kind}: {cdb:02x?}");
        }
    }
}

#[test]
fn reserve_by_a_nexus_that_a_persistent_reservation_admits_does_nothing() {
    let mut hosts = Hosts::registered();
    let (a, b, c) = (hosts.a.clone(), hosts.b.clone(), hosts.c.clone());
    let (reserve, release) = ([0x16, 0, 0, 0, 0, 0], [0x17, 0, 0, 0, 0, 0]);
    let conflict = Status::ReservationConflict;
    // Registrations without a reservation: as in SPC-2, for any sender.
    for nexus in [&a, &b, &c] {
        assert_eq!(hosts.status(nexus, &reserve), conflict);
        assert_eq!(hosts.status(nexus, &release), conflict);
    }
    // Type, and whether a (the holder), b (registered) and c (neither) are admitted.
    for (kind, admitted) in [(1, [true, false, false]), (5, [true, true, false])] {
        assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good);
        for (nexus, admitted) in [&a, &b, &c].into_iter().zip(admitted) {
            let want = if admitted { Status::Good } else { conflict };
            assert_eq!(hosts.status(nexus, &reserve), want, "{kind}");
            assert_eq!(hosts.status(nexus, &release), want, "{kind}");
        }
        // Nothing was established, as PERSISTENT RESERVE IN, which does not conflict, shows.
        let held = hosts.run(&c, &report(1), &[]).data_in.to_vec();
        assert_eq!(held[21], kind);
        hosts.out(&a, 2, kind, KEY_A, 0);
    }
}

/// Returns the supported commands that conflict with a persistent reservation of another nexus.
fn barred_by(kind: u8) -> Vec<(u8, Option<u8>)> {
    let mut hosts = Hosts::registered();
    let (a, c) = (hosts.a.clone(), hosts.c.clone());
    assert_eq!(hosts.out(&a, 1, kind, KEY_A, 0).status, Status::Good);
    let all: Vec<_> = crate::commands().map(|(_, opcode, action)| (opcode, action)).collect();
    let is_barred = |(opcode, action): &(u8, Option<u8>)| {
        let mut cdb = vec![0; 16];
        (cdb[0], cdb[1]) = (*opcode, action.unwrap_or(0));
        hosts.world.run_as(&c, 0, &cdb, &[]).status == Status::ReservationConflict
    };
    // RESERVE and RELEASE have their own rules, and PERSISTENT RESERVE OUT returns the same status
    // to nexuses that are not registered.
    let own_rules = [0x16, 0x17, 0x56, 0x57, 0x5e, 0x5f];
    let rest = all.into_iter().filter(|(opcode, _)| !own_rules.contains(opcode));
    rest.collect::<Vec<_>>().into_iter().filter(is_barred).collect()
}

/// SPC-4, table 67, and SBC-3, table 13.
#[test]
fn each_command_conflicts_as_the_standard_lists_it() {
    let plain = |opcodes: &[u8]| opcodes.iter().map(|opcode| (*opcode, None)).collect::<Vec<_>>();
    let writes = [
        0x0a, 0x15, 0x1b, 0x1d, 0x2a, 0x2e, 0x35, 0x41, 0x42, 0x55, 0x89, 0x8a, 0x8b, 0x8e, 0x91,
        0x93, 0x9c, 0xaa, 0xae,
    ];
    let mut by_writers = plain(&writes);
    for (opcode, action) in
        [(0x48, 2), (0x48, 0x1f), (0x83, 0), (0x83, 1), (0x83, 0x11), (0xa4, 10)]
    {
        by_writers.push((opcode, Some(action)));
    }
    let mut by_all = by_writers.clone();
    let reads = [0x08, 0x1a, 0x28, 0x2f, 0x34, 0x37, 0x5a, 0x88, 0x8f, 0x90, 0xa8, 0xaf, 0xb7];
    by_all.extend(plain(&reads));
    for (opcode, action) in [(0x83, 0x10), (0x9e, 0x12), (0xa3, 0x0c), (0xa3, 0x0d)] {
        by_all.push((opcode, Some(action)));
    }
    for (kind, mut expected) in [(1, by_writers.clone()), (5, by_writers), (3, by_all)] {
        let mut found = barred_by(kind);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "type {kind}");
    }
}
