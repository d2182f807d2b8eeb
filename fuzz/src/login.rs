//! The login phase: login requests with any flags, `key=value` texts in one or several PDUs, CHAP,
//! discovery. The first byte of an input selects whether the bytes are sent unchanged or as PDUs.

use iscsi::Event;

use crate::input::{Input, Script};
use crate::peer::{INITIATOR, Peer, TARGET, target, text};

/// The maximum number of requests of an input.
const REQUESTS_MAX: usize = 24;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let kind = input.u8();
    peer.chunk = [usize::MAX, 100, 7, 1][usize::from(kind >> 1 & 3)];
    if kind & 1 == 0 {
        peer.push(input.rest());
        drain(&mut peer);
    }
    let mut cmd_sn = 1;
    for _ in 0..REQUESTS_MAX {
        if input.is_empty() || peer.connection.is_closed() {
            break;
        }
        let (opcode, flags) = (input.pick(&[0x43, 0x43, 0x43, 0x04, 0x44, 0x06, 0x01]), input.u8());
        let mut bhs = peer.login_header(flags, cmd_sn);
        bhs[0] = opcode;
        if opcode & 0x3f != 3 {
            bhs[20..24].fill(0xff);
            cmd_sn += u32::from(opcode & 0x40 == 0);
        }
        let (at, byte) = (input.below(BEND_BYTES), input.u8());
        bhs[at] ^= byte;
        let data = input.content();
        peer.send(bhs, &data[..data.len().min(8192)]);
        drain(&mut peer);
    }
    let started = usize::from(peer.connection.nexus().is_some());
    let sessions = target.sessions().len();
    // A logout ends the session before the connection is closed.
    assert!(sessions == started || sessions < started && peer.connection.is_closed());
    peer.connection.end();
    assert!(target.sessions().is_empty());
}

/// The bytes of a header that an input may change.
const BEND_BYTES: usize = 48;

fn drain(peer: &mut Peer) {
    while let Some(event) = peer.connection.next_event() {
        if let Event::Command(command) = event {
            peer.connection.forget(command.task);
        }
    }
    peer.pull(usize::MAX);
    assert_eq!(peer.connection.output_bytes(), 0);
}

/// Appends an unchanged request.
fn request(script: Script, opcode: u8, flags: u8, text: &[u8]) -> Script {
    script.u8(opcode).u8(flags).u8(0).u8(0).content(text)
}

/// Returns successful logins of each kind, and CHAP up to a wrong response.
pub fn seeds() -> Vec<Vec<u8>> {
    let start = || Script::new().u8(1);
    let names = [("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    let mut all = names.to_vec();
    all.extend([
        ("SessionType", "Normal"),
        ("HeaderDigest", "CRC32C,None"),
        ("DataDigest", "CRC32C"),
        ("MaxConnections", "8"),
        ("InitialR2T", "No"),
        ("ImmediateData", "Yes"),
        ("MaxRecvDataSegmentLength", "262144"),
        ("MaxBurstLength", "16776192"),
        ("FirstBurstLength", "0x10000"),
        ("DefaultTime2Wait", "2"),
        ("DefaultTime2Retain", "0"),
        ("MaxOutstandingR2T", "1"),
        ("DataPDUInOrder", "Yes"),
        ("DataSequenceInOrder", "Yes"),
        ("ErrorRecoveryLevel", "0"),
        ("TaskReporting", "RFC3720"),
        ("iSCSIProtocolLevel", "1"),
        ("X-com.example", "1"),
    ]);
    let discovery =
        text(&[("InitiatorName", INITIATOR), ("SessionType", "Discovery"), ("AuthMethod", "None")]);
    let chap_names = [
        ("InitiatorName", "iqn.2026-01.example:chap"),
        ("TargetName", TARGET),
        ("AuthMethod", "CHAP,None"),
    ];
    let chap_answer = text(&[
        ("CHAP_N", "anna"),
        ("CHAP_R", "0x00112233445566778899aabbccddeeff"),
        ("CHAP_I", "7"),
        ("CHAP_C", "0b3q2+7w=="),
    ]);
    let chap = request(start(), 0, 0x81, &text(&chap_names));
    let chap = request(chap, 0, 0x81, &text(&[("CHAP_A", "7,6,5")]));
    let found = request(start(), 0, 0x87, &discovery);
    let found = request(found, 3, 0x80, &text(&[("SendTargets", "All")]));
    let pieces = request(start(), 0, 0x40, &text(&names)[..20]);
    vec![
        request(start(), 0, 0x87, &text(&all)).done(),
        request(request(start(), 0, 0x81, &text(&names)), 0, 0x87, &text(&all[2..])).done(),
        request(pieces, 0, 0x87, &text(&names)[20..]).done(),
        request(chap.clone(), 0, 0x81, &chap_answer).done(),
        chap.done(),
        request(found, 5, 0x80, b"").done(),
        [&[0][..], &[0x43, 0x87], &[0; 46]].concat(),
    ]
}
