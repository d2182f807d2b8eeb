//! Layouts against bytes written by hand from the standards, and a live target if `tgtd` is
//! installed (`live.rs` of the lab's tests covers the rest).

use crate::cdb::{Cdb, CopySegment, copy_parameters, unmap_parameters};
use crate::commands::{find_naa, flat_lun};
use crate::poller::Poller;
use crate::session::Session;
use crate::types::{Config, Data, Login};

#[test]
fn cdbs_are_laid_out_as_the_standards_say() {
    let read = Cdb::read_16(0x0102_0304_0506_0708, 0x0A0B_0C0D);
    assert_eq!(read.bytes(), [0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x0A, 0x0B, 0x0C, 0x0D, 0, 0]);
    let write = Cdb::write_10(0x0102_0304, 0x0506);
    assert_eq!(write.bytes(), [0x2A, 0, 1, 2, 3, 4, 0, 5, 6, 0]);
    let same = Cdb::write_same_16(7, 8, true);
    assert_eq!(same.bytes(), [0x93, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0]);
    let ats = Cdb::compare_and_write(5, 1);
    assert_eq!(ats.bytes(), [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0]);
    assert_eq!(Cdb::read_capacity_16(32).bytes()[..2], [0x9E, 0x10]);
    assert_eq!(Cdb::inquiry(Some(0x83), 0x0102).bytes(), [0x12, 1, 0x83, 1, 2, 0]);
}

#[test]
fn unmap_list_carries_its_lengths() {
    let list = unmap_parameters(&[(1, 2), (3, 4)]);
    assert_eq!(list.len(), 8 + 32);
    assert_eq!(list[..4], [0, 38, 0, 32]);
    assert_eq!(list[8..20], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(list[24..36], [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4]);
}

#[test]
fn copy_list_names_devices_and_segments() {
    let segment = CopySegment {
        source: 0,
        destination: 1,
        blocks: 0x1234,
        source_lba: 5,
        destination_lba: 6,
    };
    let list = copy_parameters(&[[0x61; 16], [0x62; 16]], &[segment], 512);
    assert_eq!(list.len(), 16 + 2 * 32 + 28);
    assert_eq!(list[..16], [0, 0x18, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0]);
    assert_eq!(list[16..24], [0xE4, 0, 0, 0, 1, 3, 0, 16]);
    assert_eq!(list[16 + 29..16 + 32], [0, 2, 0]);
    assert_eq!(list[80..92], [2, 0, 0, 0x18, 0, 0, 0, 1, 0, 0, 0x12, 0x34]);
    assert_eq!(list[92..108], [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6]);
}

#[test]
fn naa_is_found_after_other_designators() {
    let mut list = vec![2, 1, 0, 4, b'A', b'B', b'C', b'D', 1, 3, 0, 16];
    list.extend_from_slice(&[0x60; 16]);
    assert_eq!(find_naa(&list), Some([0x60; 16]));
    assert_eq!(find_naa(&list[..20]), None);
    assert_eq!(find_naa(&[]), None);
}

#[test]
fn luns_of_one_level_are_read() {
    assert_eq!(flat_lun(&[0, 7, 0, 0, 0, 0, 0, 0]), Some(7));
    assert_eq!(flat_lun(&[0x41, 2, 0, 0, 0, 0, 0, 0]), Some(0x102));
    assert_eq!(flat_lun(&[0xC1, 1, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(flat_lun(&[1]), None);
}

#[test]
fn a_portal_without_a_listener_is_an_error() {
    let config = Config {
        portal: String::from("127.0.0.1:1"),
        target: String::from("iqn.2025-01.example:none"),
        initiator: String::from("iqn.2025-01.example:test"),
        isid: None,
        timeout_s: 2,
        ..Config::default()
    };
    assert!(Session::connect(&config).is_err());
    let nul = Config { initiator: String::from("a\0b"), ..config };
    assert!(Session::connect(&nul).is_err());
}

/// Polls until the login has ended, for a second at most.
fn login_of(session: &mut Session) -> Login {
    for _ in 0..100 {
        Poller::new().poll(&mut [&mut *session], 10);
        if session.login() != Login::Pending {
            break;
        }
    }
    session.login()
}

#[test]
fn a_login_does_not_wait_for_its_end() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config {
        portal: silent.local_addr().unwrap().to_string(),
        target: String::from("iqn.2025-01.example:none"),
        initiator: String::from("iqn.2025-01.example:test"),
        isid: Some(7),
        ..Config::default()
    };
    let mut session = Session::begin(&config).unwrap();
    assert_eq!(login_of(&mut session), Login::Pending);
    assert!(session.submit(Cdb::test_unit_ready(), Data::None, 1).is_err());
    // A session with a given ISID uses the same random bits each time.
    let (mut peer, _) = silent.accept().unwrap();
    let mut head = [0; 48];
    std::io::Read::read_exact(&mut peer, &mut head).unwrap();
    assert_eq!(head[8..14], [0x80, 0, 0, 7, 0, 0]);
    drop(peer);
    assert_eq!(login_of(&mut session), Login::Failed);

    drop(silent);
    let mut refused = Session::begin(&config).unwrap();
    assert_eq!(login_of(&mut refused), Login::Failed);
    assert!(!refused.login_error().to_string().is_empty());
}
