//! Incomplete PDUs: their timeouts, and the memory that they take.

use super::memory::{MIB, later, session, small};
use super::*;

const KEYS: [(&str, &str); 2] = [("InitialR2T", "No"), ("FirstBurstLength", "65536")];
const REST: &str = "it does not send the rest of a PDU";

/// Returns a request other than a command, with data.
fn request(peer: &mut Peer, opcode: u8, tag: u32, data: &[u8]) -> Vec<u8> {
    let mut bhs = Bhs::answer(opcode, 0x80);
    bhs.put_u32(16, tag);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(24, peer.cmd_sn);
    peer.cmd_sn += 1;
    peer.bytes(bhs, data)
}

/// Returns a PDU of each kind, after sending what must precede it.
fn pdu(peer: &mut Peer, kind: usize) -> Vec<u8> {
    let data = pattern(65_536);
    match kind {
        0 => {
            let bhs = peer.command(0xa1, 1, 65_536, 0x2a);
            peer.bytes(bhs, &data)
        }
        1 => {
            let bhs = peer.command(0x21, 1, 65_536, 0x2a);
            peer.send(bhs, b"");
            peer.bytes(peer.data_out(1, NO_TAG, 0, 0, true), &data)
        }
        // Data of a task that does not exist, which is discarded.
        2 => peer.bytes(peer.data_out(9, NO_TAG, 0, 0, true), &data),
        3 => request(peer, opcode::NOP_OUT, 2, &data),
        4 => request(peer, opcode::TEXT, 2, &data),
        _ => request(peer, opcode::LOGOUT, 2, &data),
    }
}

#[test]
fn a_pdu_sent_byte_by_byte_closes_the_connection() {
    for (kind, first) in (0..6).flat_map(|kind| [(kind, 20), (kind, 1000)]) {
        let target = target();
        let mut peer = session(&target, "", 0, &KEYS);
        let bytes = pdu(&mut peer, kind);
        peer.push(&bytes[..first]);
        let told: Vec<_> = (0..8)
            .filter_map(|n| {
                peer.push(&bytes[first + n..=first + n]);
                later(&mut peer, 5)
            })
            .collect();
        assert_eq!(told.len(), 1, "kind {kind} after {first}");
        assert!(kind == 1 || told == [REST], "kind {kind} after {first}: {told:?}");
        assert!(peer.connection.is_closed());
        peer.connection.end();
        assert_eq!(target.data_bytes(), 0);
    }
}

#[test]
fn a_slow_line_may_take_minutes_for_a_long_pdu_and_no_more() {
    let limits = Limits { receive_segment_bytes: 4 << 20, ..limits() };
    for (bytes, each, in_time) in [(262_144, 8192, true), (2 << 20, 8192, false)] {
        let target = target_with(limits.clone());
        let mut peer = session(&target, "", 0, &[("MaxBurstLength", "4194304")]);
        let bhs = peer.command(0xa1, 1, bytes, 0x2a);
        peer.send(bhs, b"");
        let (r2t, _) = peer.expect(opcode::R2T);
        let header = peer.data_out(1, r2t.u32(20), 0, 0, true);
        let all = peer.bytes(header, &pattern(bytes as usize));
        let mut seconds = 0;
        for part in all.chunks(each) {
            peer.push(part);
            seconds += 3;
            if later(&mut peer, 3).is_some() {
                break;
            }
            peer.pull();
        }
        assert_eq!(peer.connection.is_closed(), !in_time, "{bytes}");
        assert!(in_time || (300..=330).contains(&seconds), "{seconds}");
        assert!(!in_time || peer.next_command().data_out.len() == bytes as usize);
    }
}

#[test]
fn input_not_received_because_of_full_output_is_not_late() {
    let target = target_with(Limits { output_bytes: 1000, ..limits() });
    let mut peer = session(&target, "", 0, &[]);
    let bhs = peer.command(0xc1, 1, 4096, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    let ping = request(&mut peer, opcode::NOP_OUT, 2, &pattern(512));
    peer.push(&ping[..100]);
    peer.connection.respond(task, good(&pattern(4096)));
    assert_eq!(peer.push(&ping[100..]), 0);
    for _ in 0..9 {
        assert_eq!(later(&mut peer, 5), None);
    }
    peer.expect(opcode::DATA_IN);
    assert_eq!(later(&mut peer, 0), None, "it is waited for from now on");
    peer.push(&ping[100..]);
    while peer.receive().expect("an answer").0.task_tag() != 2 {}
    assert_eq!(later(&mut peer, 20), None);
}

/// Pings and texts with announced data take memory from the share, as commands do.
#[test]
fn requests_without_memory_for_their_data_are_rejected() {
    for kind in [opcode::NOP_OUT, opcode::TEXT] {
        let target = target_with(small());
        let mut hogs: Vec<Peer> = (0..64).map(|n| session(&target, "hog", n, &[])).collect();
        let data = pattern(200_000);
        let mut kept = 0;
        for hog in &mut hogs {
            let before = target.data_bytes();
            let bytes = request(hog, kind, 1, &data);
            hog.push(&bytes[..1000]);
            kept += usize::from(target.data_bytes() > before);
            assert!(target.data_bytes() <= 9 * MIB, "{}", target.data_bytes());
            if target.data_bytes() == before {
                hog.push(&bytes[1000..]);
                assert_eq!(hog.expect(opcode::REJECT).0.0[2], 0x0a, "out of resources");
                // It has used up its place in the order, and short requests always find memory.
                let ping = request(hog, opcode::NOP_OUT, 2, &data[..4096]);
                hog.push(&ping);
                assert_eq!(hog.expect(opcode::NOP_IN).1.len(), 4096);
            }
        }
        assert!((30..50).contains(&kept), "{kept}");
        let mut other = session(&target, "other", 0, &[]);
        let ping = request(&mut other, opcode::NOP_OUT, 1, &data);
        other.push(&ping);
        assert_eq!(other.expect(opcode::NOP_IN).0.task_tag(), 1);
        hogs.drain(..).for_each(|hog| drop(hog.connection.end()));
        other.connection.end();
        assert_eq!(target.data_bytes(), 0);
    }
}

/// Each request continues the previous exchange, and none is the last.
#[test]
fn a_text_exchange_is_bounded_over_any_number_of_requests() {
    // One short key in each, or 9 KiB of long ones.
    for (keys, length, most) in [(1, 1, 257), (31, 255, 7)] {
        let target = target();
        let mut peer = session(&target, "", 0, &[]);
        let mut transfer_tag = NO_TAG;
        for n in 0..most {
            let mut bhs = Bhs::answer(opcode::TEXT, 0);
            bhs.put_u32(16, 1);
            bhs.put_u32(20, transfer_tag);
            bhs.put_u32(24, peer.cmd_sn);
            peer.cmd_sn += 1;
            let pair = |key| format!("X-{n:02}.{key:050}={}\0", "v".repeat(length));
            peer.send(bhs, (0..keys).map(pair).collect::<String>().as_bytes());
            let (answer, _) = peer.receive().unwrap();
            let is_last = n + 1 == most;
            assert_eq!(answer.opcode() == opcode::REJECT, is_last, "{n}: {answer:?}");
            transfer_tag = answer.u32(20);
        }
        assert!(target.data_bytes() < 100, "{}", target.data_bytes());
    }
}
