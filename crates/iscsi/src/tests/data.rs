//! Data in both directions, digests, residuals, and faults in data.

use super::*;

fn yes_no(yes: bool) -> &'static str {
    if yes { "Yes" } else { "No" }
}

fn write_once(terms: Terms, digests: bool, chunk: usize, bytes: usize) {
    let target = target();
    let (first, burst) = (terms.first_burst.to_string(), terms.burst.to_string());
    let digest = if digests { "CRC32C" } else { "None" };
    let mut peer = Peer::new(&target, 0);
    peer.chunk = chunk;
    peer.log_in(
        "Normal",
        &[
            ("InitialR2T", yes_no(terms.initial_r2t)),
            ("ImmediateData", yes_no(terms.immediate)),
            ("FirstBurstLength", &first),
            ("MaxBurstLength", &burst),
            ("MaxOutstandingR2T", "3"),
            ("HeaderDigest", digest),
            ("DataDigest", digest),
        ],
    );
    let data = pattern(bytes);
    let command = peer.write(1, &data, terms);
    assert_eq!(command.data_out.to_vec(), data, "{terms:?} {digests} {chunk}");
    assert_eq!((command.expected_out_bytes, command.lun), (bytes as u32, LUN));
    peer.connection.respond(command.task, TaskResponse::default());
    let (bhs, _) = peer.expect(opcode::RESPONSE);
    assert_eq!((bhs.flags(), bhs.0[3], bhs.u32(44)), (0x80, 0, 0));
    assert_eq!((bhs.u32(28), bhs.u32(32)), (11, 18), "the window is whole again");
    peer.expect_silence();
}

#[test]
fn writes_by_every_combination_of_terms() {
    for initial_r2t in [false, true] {
        for immediate in [false, true] {
            for (first_burst, burst, segment) in
                [(512, 512, 512), (4096, 16_384, 4096), (65_536, 262_144, 8192), (8192, 8192, 700)]
            {
                let terms = Terms { initial_r2t, immediate, first_burst, burst, segment };
                for bytes in [1, 511, 4096, 10_000, 70_001] {
                    write_once(terms, bytes % 2 == 1, usize::MAX, bytes);
                }
                write_once(terms, true, 1, 9_001);
                write_once(terms, true, 4099, 300_000);
            }
        }
    }
}

#[test]
fn long_data_goes_straight_into_frames_at_the_right_phase() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("MaxBurstLength", "262144")]);
    let data = pattern(200_000);
    let mut bhs = peer.command(0xa1, 1, 200_000, 0x2a);
    bhs.0[32 + 9] = 3;
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    let bytes = peer.bytes(peer.data_out(1, r2t.u32(20), 0, 0, true), &data);
    let mut slices = Vec::new();
    peer.connection.receive_slices(&mut slices);
    let head: usize = slices.iter().map(|slice| slice.len()).sum();
    assert!(head < 4096, "little is received before its destination is known");
    peer.push(&bytes[..48]);
    let mut slices = Vec::new();
    peer.connection.receive_slices(&mut slices);
    assert_eq!(slices[0].len(), 4096 - 1536);
    assert_eq!(slices[1].len(), 4096);
    let direct: usize = slices[..slices.len() - 1].iter().map(|slice| slice.len()).sum();
    assert_eq!(direct, data.len());
    peer.push(&bytes[48..]);
    let command = peer.next_command();
    assert_eq!(command.data_out.phase(), 1536);
    assert_eq!(command.data_out.to_vec(), data);
}

#[test]
fn reads_come_in_segments_and_bursts_with_the_status_in_the_last() {
    for chunk in [usize::MAX, 1000] {
        let target = target();
        let keys = [("MaxRecvDataSegmentLength", "4096"), ("MaxBurstLength", "10000")];
        let mut peer = Peer::logged_in(&target, &keys);
        peer.chunk = chunk;
        let bhs = peer.command(0xc1, 1, 25_001, 0x28);
        peer.send(bhs, b"");
        let command = peer.next_command();
        assert_eq!((command.expected_in_bytes, command.expected_out_bytes), (25_001, 0));
        let data = pattern(25_001);
        peer.connection.respond(command.task, good(&data));
        let mut all = Vec::new();
        let mut sn = 0;
        loop {
            let (bhs, piece) = peer.expect(opcode::DATA_IN);
            assert_eq!((bhs.u32(36), bhs.u32(40)), (sn, all.len() as u32));
            all.extend(piece);
            sn += 1;
            let burst_ends = all.len() % 10_000 == 0 || all.len() == data.len();
            assert_eq!(bhs.is_final(), burst_ends);
            if bhs.flags() & 1 != 0 {
                assert_eq!((bhs.flags(), bhs.0[3]), (0x81, 0));
                break;
            }
        }
        assert_eq!(all, data);
        peer.expect_silence();
    }
}

/// Returns flags and residual of the response to a command with this direction and expected length.
fn residual(flags: u8, expected: u32, data: &[u8], wanted: Option<u64>) -> (u8, u32, usize) {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(flags, 1, expected, 0x28);
    let sent = if flags & 0x20 != 0 { expected as usize } else { 0 };
    peer.send(bhs, &pattern(sent));
    let command = peer.next_command();
    assert_eq!(command.data_out.len(), sent);
    let response = TaskResponse { transfer_bytes_wanted: wanted, ..good(data) };
    peer.connection.respond(command.task, response);
    let (bhs, data) = peer.receive().unwrap();
    peer.expect_silence();
    (bhs.flags(), bhs.u32(44), data.len())
}

#[test]
fn residuals_are_the_difference_of_what_was_expected_and_wanted() {
    let block = [0; 512];
    assert_eq!(residual(0xc1, 512, &block, None), (0x81, 0, 512));
    assert_eq!(residual(0xc1, 10_000, &block, None), (0x83, 9_488, 512));
    assert_eq!(residual(0xc1, 200, &block, None), (0x85, 312, 200));
    assert_eq!(residual(0xc1, 0, &block, None), (0x84, 512, 0));
    assert_eq!(residual(0x81, 0, &[], Some(512)), (0x84, 512, 0));
    assert_eq!(residual(0xc1, 512, &[], None), (0x82, 512, 0));
    assert_eq!(residual(0xa1, 512, &[], None), (0x80, 0, 0));
    assert_eq!(residual(0xa1, 1024, &[], Some(512)), (0x82, 512, 0));
    assert_eq!(residual(0xa1, 512, &[], Some(1024)), (0x84, 512, 0));
    assert_eq!(residual(0xa1, 0, &[], Some(512)), (0x84, 512, 0));
}

#[test]
fn check_condition_carries_sense_data_after_its_length() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xc1, 1, 512, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    let sense = vec![0x70, 0, 5];
    peer.connection.respond(task, TaskResponse { status: 2, sense, ..Default::default() });
    let (bhs, data) = peer.expect(opcode::RESPONSE);
    assert_eq!((bhs.0[3], bhs.flags(), data), (2, 0x82, vec![0, 3, 0x70, 0, 5]));
    peer.connection.respond(task, TaskResponse::default());
    peer.expect_silence();
}

/// Sends two Data-Outs of 512 bytes with these DataSNs and offsets for an R2T of 1024 bytes.
fn sequence(first: (u32, u32), second: (u32, u32)) -> Option<Vec<u8>> {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xa1, 1, 1024, 0x2a);
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    for ((sn, offset), last) in [(first, false), (second, true)] {
        peer.send(peer.data_out(1, r2t.u32(20), sn, offset, last), &pattern(512));
    }
    match peer.receive() {
        Some((bhs, sense)) => {
            assert_eq!((bhs.opcode(), bhs.0[3]), (opcode::RESPONSE, 2));
            assert!(peer.no_command());
            Some(sense[2..].to_vec())
        }
        None => {
            assert_eq!(peer.next_command().data_out.len(), 1024);
            None
        }
    }
}

#[test]
fn data_out_of_sequence_ends_in_check_condition() {
    assert_eq!(sequence((0, 0), (1, 512)), None);
    for wrong in [
        sequence((0, 0), (0, 512)),
        sequence((27, 0), (28, 512)),
        sequence((u32::MAX, 0), (0, 512)),
        sequence((1, 0), (0, 512)),
        sequence((0, 512), (1, 0)),
    ] {
        let sense = wrong.unwrap();
        assert_eq!((sense[2], sense[12], sense[13]), (0x0b, 0x47, 0x05));
    }
}

#[test]
fn too_little_and_too_much_data_end_in_check_condition() {
    for bytes in [512, 1536] {
        let target = target();
        let mut peer = Peer::logged_in(&target, &[]);
        let bhs = peer.command(0xa1, 1, 1024, 0x2a);
        peer.send(bhs, b"");
        let (r2t, _) = peer.expect(opcode::R2T);
        peer.send(peer.data_out(1, r2t.u32(20), 0, 0, true), &pattern(bytes));
        let (bhs, sense) = peer.expect(opcode::RESPONSE);
        assert_eq!((bhs.0[3], sense[2 + 12], sense[2 + 13]), (2, 0x0c, 0x0d));
        assert!(peer.no_command());
    }
}

#[test]
fn unsolicited_data_is_refused() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xa1, 1, 1024, 0x2a);
    peer.send(bhs, b"");
    peer.expect(opcode::R2T);
    peer.send(peer.data_out(1, NO_TAG, 0, 0, true), &pattern(1024));
    assert!(peer.no_command());
    peer.send(peer.data_out(9, 4, 0, 0, true), &pattern(1024));
    assert!(!peer.connection.is_closed());
    for (flags, bytes) in [(0x21, 0), (0xa1, 1025), (0xc1, 4)] {
        let mut peer = Peer::logged_in(&target, &[]);
        let bhs = peer.command(flags, 2, 1024, 0x2a);
        peer.send(bhs, &pattern(bytes));
        assert_eq!(peer.expect(opcode::REJECT).0.0[2], 4);
        assert!(peer.connection.is_closed());
    }
}

#[test]
fn a_wrong_data_digest_costs_the_command_and_no_more() {
    let target = target();
    let keys = [("DataDigest", "CRC32C"), ("InitialR2T", "Yes")];
    let mut peer = Peer::logged_in(&target, &keys);
    let bhs = peer.command(0xa1, 1, 1000, 0x2a);
    let mut bytes = peer.bytes(bhs, &pattern(1000));
    bytes[100] ^= 1;
    peer.push(&bytes);
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 2);
    let (bhs, sense) = peer.expect(opcode::RESPONSE);
    assert_eq!((bhs.0[3], sense[2 + 12], sense[2 + 13]), (2, 0x47, 0x05));
    assert!(peer.no_command());
    let bhs = peer.command(0xa1, 2, 1000, 0x2a);
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    let mut bytes = peer.bytes(peer.data_out(2, r2t.u32(20), 0, 0, true), &pattern(1000));
    let last = bytes.len() - 1;
    bytes[last] ^= 0x80;
    peer.push(&bytes);
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 2);
    assert_eq!(peer.expect(opcode::RESPONSE).0.0[3], 2);
    let bhs = peer.command(0xa1, 3, 5, 0x2a);
    peer.send(bhs, b"whole");
    assert_eq!(peer.next_command().data_out.to_vec(), b"whole");
}

#[test]
fn a_wrong_header_digest_closes() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("HeaderDigest", "CRC32C")]);
    let bhs = peer.command(0xc1, 1, 512, 0x28);
    let mut bytes = peer.bytes(bhs, b"");
    bytes[20] ^= 1;
    peer.push(&bytes);
    assert!(peer.connection.is_closed() && peer.no_command());
}

#[test]
fn memory_for_data_is_granted_within_its_bound() {
    let limits = Limits { data_out_bytes_per_connection: 100_000, ..limits() };
    let target = target_with(limits);
    let mut peer = Peer::logged_in(&target, &[("FirstBurstLength", "512")]);
    let data = pattern(80_000);
    for tag in 1..=3 {
        let bhs = peer.command(0xa1, tag, 80_000, 0x2a);
        peer.send(bhs, &data[..512]);
    }
    for tag in 1..=3 {
        let (r2t, _) = peer.expect(opcode::R2T);
        assert_eq!((r2t.task_tag(), r2t.u32(40), r2t.u32(44)), (tag, 512, 79_488));
        peer.expect_silence();
        peer.send(peer.data_out(tag, r2t.u32(20), 0, 512, true), &data[512..]);
        let command = peer.next_command();
        assert_eq!(command.data_out.to_vec(), data);
        peer.connection.respond(command.task, TaskResponse::default());
        assert_eq!(peer.expect(opcode::RESPONSE).0.task_tag(), tag);
    }
}

#[test]
fn data_beyond_the_limit_of_a_command_is_not_solicited() {
    let limits = Limits { data_out_bytes_per_command: 300_000, ..limits() };
    let mut peer = Peer::logged_in(&target_with(limits), &[("MaxBurstLength", "1048576")]);
    let bhs = peer.command(0xa1, 1, u32::MAX, 0x2a);
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    assert_eq!(r2t.u32(44), 300_000);
    for (sn, at) in [(0, 0), (1, 150_000)] {
        peer.send(peer.data_out(1, r2t.u32(20), sn, at, at > 0), &pattern(150_000));
    }
    let command = peer.next_command();
    assert_eq!((command.data_out.len(), command.expected_out_bytes), (300_000, u32::MAX));
}

#[test]
fn data_that_the_command_does_not_take_is_not_solicited() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("InitialR2T", "No"), ("FirstBurstLength", "1024")]);
    peer.connection.set_luns(Arc::default());
    // VERIFY of two blocks, announced with 64 KiB: unsolicited data is accepted, and no more is
    // solicited.
    for (tag, flags, unasked, asked) in [(1, 0xa1, 0, 1024), (2, 0xa1, 512, 512), (3, 0x21, 0, 0)] {
        let mut bhs = peer.command(flags, tag, 65_536, 0x2f);
        bhs.0[32 + 8] = 2;
        peer.send(bhs, &pattern(unasked));
        if flags & 0x80 == 0 {
            peer.send(peer.data_out(tag, NO_TAG, 0, 0, true), &pattern(1024));
        }
        if asked > 0 {
            let (r2t, _) = peer.expect(opcode::R2T);
            assert_eq!((r2t.u32(40), r2t.u32(44)), (unasked as u32, asked));
            let bhs = peer.data_out(tag, r2t.u32(20), 0, unasked as u32, true);
            peer.send(bhs, &pattern(asked as usize));
        }
        let command = peer.next_command();
        assert_eq!((command.data_out.len(), command.expected_out_bytes), (1024, 65_536));
        peer.connection.respond(command.task, TaskResponse::default());
        let (bhs, _) = peer.expect(opcode::RESPONSE);
        assert_eq!((bhs.flags(), bhs.u32(44)), (0x82, 65_536 - 1024), "an underflow");
    }
    // Nothing is solicited for a command that takes no data.
    let bhs = peer.command(0xa1, 4, 1 << 20, 0x2f);
    peer.send(bhs, b"");
    let command = peer.next_command();
    peer.connection.respond(command.task, TaskResponse::default());
    assert_eq!(peer.expect(opcode::RESPONSE).0.u32(44), 1 << 20);
    // A command that takes more than was announced has an overflow.
    let mut bhs = peer.command(0xa1, 5, 512, 0x2f);
    bhs.0[32 + 8] = 3;
    peer.send(bhs, &pattern(512));
    let command = peer.next_command();
    peer.connection.respond(command.task, TaskResponse::default());
    let (bhs, _) = peer.expect(opcode::RESPONSE);
    assert_eq!((bhs.flags(), bhs.u32(44)), (0x84, 1024));
}

/// A command that follows the login directly is parsed before its host's LUN map is known: all data
/// that it announces must then be solicited.
#[test]
fn all_data_is_solicited_until_the_lun_map_is_known() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for (tag, asked) in [(1, 65_536), (2, 1024)] {
        let mut bhs = peer.command(0xa1, tag, 65_536, 0x2f);
        bhs.0[32 + 8] = 2;
        peer.send(bhs, b"");
        assert_eq!(peer.expect(opcode::R2T).0.u32(44), asked);
        peer.connection.set_luns(Arc::default());
    }
}

#[test]
fn an_extended_cdb_is_assembled() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut bhs = peer.command(0x81, 1, 0, 0x7f);
    bhs.0[4] = 6;
    let mut bytes = bhs.0.to_vec();
    bytes.extend_from_slice(&[0, 17, 1, 0]);
    bytes.extend_from_slice(&[7; 16]);
    bytes.extend_from_slice(&[0; 4]);
    peer.push(&bytes);
    let command = peer.next_command();
    assert_eq!(command.cdb.bytes().len(), 32);
    assert_eq!((command.cdb.bytes()[0], command.cdb.bytes()[31]), (0x7f, 7));
}
