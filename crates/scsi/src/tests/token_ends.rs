//! When tokens end with their source, and how many an initiator may have.

use super::tokens::{cdb, filled, information, populate_list, write_list};
use super::world::{ROD_VOLUME, World, initiator, triple};
use crate::SaveError;
use crate::step::{Status, Step};
use block::VolumeId;
use target::Subject;

fn sanitize(world: &mut World) {
    world.good(&[0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
}

#[test]
fn tokens_end_with_their_source() {
    for eradicated in [false, true] {
        let mut world = filled();
        let token = world.populate(&[(0, 8)]);
        let list = populate_list(0, &[(0, 8)]);
        let nexus = world.nexus.clone();
        assert_eq!(world.send(&nexus, 300, 0x10, &list).status, Status::Good);
        let other = world.run_on(300, &information(7), &[]).data_in.to_vec()[38..].to_vec();
        match eradicated {
            true => world.server.volume_destroyed(VolumeId(1)),
            false => sanitize(&mut world),
        }
        let write = write_list(&token, 0, 0, &[(64, 8)]);
        assert_eq!(triple(&world.write(300, &write)), (5, 0x23, 6), "TOKEN REVOKED");
        assert!(world.sweep());
        assert_eq!(triple(&world.write(300, &write)), (5, 0x23, 6));
        // Those of other volumes stay valid.
        let write = write_list(&other, 0, 0, &[(64, 8)]);
        assert_eq!(world.write(2, &write_list(&other, 0, 0, &[(0, 1)])).status, Status::Good);
        assert_eq!(world.write(300, &write).status, Status::Good);
    }
}

#[test]
fn a_token_whose_copy_was_in_progress_during_sanitize_is_invalid() {
    let mut world = filled();
    let list = populate_list(0, &[(0, 8)]);
    let nexus = world.nexus.clone();
    let step = world.start_as(&nexus, 0, &cdb(0x10, 7, list.len()), &list);
    let Step::Request { request, pending } = step else { panic!("it copies") };
    let result = world.serve(request);
    sanitize(&mut world);
    assert!(matches!(world.server.resume(&nexus, pending, result), Step::Done(_)));
    let token = world.good(&information(7), &[])[38..].to_vec();
    assert_eq!(triple(&world.write(300, &write_list(&token, 0, 0, &[(64, 8)]))), (5, 0x23, 6));
    assert!(world.sweep());
    assert!(!world.disks[&ROD_VOLUME].mapped.contains(&true), "its data is freed");
}

#[test]
fn a_token_lives_for_a_day_at_most_however_often_it_is_used() {
    let mut world = filled();
    world.server.set_time(5);
    let token = world.populate(&[(0, 8)]);
    let list = write_list(&token, 0, 0, &[(64, 8)]);
    for minute in (4..24 * 60).step_by(4) {
        world.server.set_time(5 + minute * 60_000);
        assert_eq!(world.write(300, &list).status, Status::Good, "after {minute} minutes");
    }
    world.server.set_time(6 + 24 * 3_600_000);
    assert_eq!(triple(&world.write(300, &list)), (5, 0x23, 7));
}

#[test]
fn no_initiator_takes_all_tokens() {
    let mut world = filled();
    let list = populate_list(0, &[(0, 0)]); // which take no space
    let mut all = 0;
    for (name, at_least) in [("a", 512), ("b", 256), ("c", 128), ("d", 64)] {
        // Over two sessions: the name counts.
        let mut sessions =
            [1, 2].map(|port| world.log_in(initiator(name), port)).into_iter().cycle();
        let mut made = 0;
        let refused = loop {
            let nexus = sessions.next().unwrap();
            let response = world.send(&nexus, 0, 0x10, &list);
            match response.status {
                Status::Good => made += 1,
                _ => break triple(&response),
            }
        };
        assert_eq!(refused, (5, 0x55, 0x0d));
        assert!(made >= at_least, "{name} made {made}");
        all += made;
    }
    assert!(all < 1024);
}

#[test]
fn a_token_is_returned_when_it_is_durable_and_survives_only_a_takeover() {
    for takes_over in [true, false] {
        let mut world = filled();
        let nexus = world.nexus.clone();
        let list = populate_list(0, &[(0, 8)]);
        let step = world.start_as(&nexus, 0, &cdb(0x10, 7, list.len()), &list);
        let Step::Request { request, pending } = step else { panic!("it copies") };
        let result = world.serve(request);
        let step = world.server.resume(&nexus, pending, result);
        let Step::Persist { subject: Subject::Tokens, .. } = &step else { panic!("{step:?}") };
        assert!(world.kept_rods.is_empty());
        let status = world.good(&information(7), &[])[5];
        assert_eq!(status, 0x11, "POPULATE TOKEN is in progress");
        assert_eq!(world.finish(&nexus, step).status, Status::Good);
        let token = world.good(&information(7), &[])[38..].to_vec();
        match takes_over {
            true => world.take_over(),
            false => world.restart(),
        }
        world.nexus = world.log_in(initiator("again"), 1);
        let write = write_list(&token, 0, 0, &[(64, 8)]);
        let written = world.write(300, &write);
        match takes_over {
            true => assert_eq!(written.status, Status::Good),
            false => assert_eq!(triple(&written), (5, 0x23, 5), "TOKEN CORRUPT: the key is new"),
        }
        // Another token is different.
        assert_ne!(world.populate(&[(0, 8)]), token);
    }
}

#[test]
fn a_token_that_can_not_be_made_durable_is_never_valid() {
    let causes = [(SaveError::NoRoom, (5, 0x55, 0x0d)), (SaveError::Failed, (4, 0x44, 0))];
    for (error, sense) in causes {
        let mut world = filled();
        let list = populate_list(0, &[(0, 8)]);
        world.save_failure = Some(error);
        let nexus = world.nexus.clone();
        assert_eq!(triple(&world.send(&nexus, 0, 0x10, &list)), sense);
        let answer = world.good(&information(7), &[]);
        assert_eq!((answer[5], &answer[50..]), (0x02, &[0; 4][..]), "with errors, without a token");
        assert!(world.kept_rods.is_empty() && world.sweep());
        assert!(!world.disks[&ROD_VOLUME].mapped.contains(&true), "its room is free");
    }
}

#[test]
fn the_end_of_tokens_is_durable_before_it_is_reported() {
    let mut world = filled();
    let token = world.populate(&[(0, 8)]);
    let delete = write_list(&token, 0x02, 0, &[(64, 8)]);
    world.save_failure = Some(SaveError::Failed);
    assert_eq!(triple(&world.write(300, &delete)), (4, 0x44, 0));
    assert_eq!(triple(&world.write(300, &delete)), (5, 0x23, 9), "TOKEN DELETED, at once");
    assert_eq!(world.kept_rods.len(), 1);
    // It is saved with the next change, and SANITIZE waits for all.
    let token = world.populate(&[(0, 8)]);
    assert_eq!(world.kept_rods.len(), 1);
    world.save_failure = Some(SaveError::NoRoom);
    let failed = world.run(&[0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!(triple(&failed), (4, 0x44, 0));
    sanitize(&mut world);
    assert!(world.kept_rods.is_empty());
    world.take_over();
    world.nexus = world.log_in(initiator("again"), 1);
    let write = write_list(&token, 0, 0, &[(64, 8)]);
    assert_eq!(triple(&world.write(300, &write)), (5, 0x23, 4), "TOKEN UNKNOWN");
}
