//! Login: stages, status codes, CHAP, and discovery.

use super::*;
use crate::chap::Algorithm;

const CHAP_NAME: &str = "iqn.2026-01.example:chap";

fn status(keys: &[(&str, &str)], flags: u8) -> (u8, u8) {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let (bhs, _) = peer.login_step(flags, keys);
    assert_eq!(peer.connection.is_closed(), bhs.0[36] != 0);
    (bhs.0[36], bhs.0[37])
}

#[test]
fn every_refusal_has_its_status() {
    let i = ("InitiatorName", NAME);
    let t = ("TargetName", TARGET);
    assert_eq!(status(&[i, t], 0x87), (0, 0));
    assert_eq!(status(&[t], 0x87), (2, 7));
    assert_eq!(status(&[i], 0x87), (2, 7));
    assert_eq!(status(&[i, ("TargetName", "iqn.2026-01.example:other")], 0x87), (2, 3));
    assert_eq!(status(&[("InitiatorName", "iqn.1999-01.unknown:x"), t], 0x87), (2, 2));
    assert_eq!(status(&[i, t, ("SessionType", "Strange")], 0x87), (2, 9));
    assert_eq!(status(&[("InitiatorName", CHAP_NAME), t], 0x87), (2, 1));
    assert_eq!(status(&[("InitiatorName", CHAP_NAME), t, ("AuthMethod", "None")], 0x81), (2, 1));
    assert_eq!(status(&[i, t, ("AuthMethod", "CHAP")], 0x81), (2, 1));
    assert_eq!(status(&[i, t], 0x84), (2, 0), "a transit backwards");
    assert_eq!(status(&[i, t], 0xc7), (2, 0), "T and C");
    assert_eq!(status(&[i, t, ("InitialR2T", "No"), ("InitialR2T", "No")], 0x87), (2, 0));
    // Also of unknown keys, and of those of identification.
    assert_eq!(status(&[i, t, ("X-com.example.a", "1"), ("X-com.example.a", "2")], 0x87), (2, 0));
    assert_eq!(status(&[i, i, t], 0x87), (2, 0));
    assert_eq!(status(&[i, t, ("CHAP_A", "5"), ("CHAP_A", "7")], 0x81), (2, 0));
}

#[test]
fn a_refused_identity_is_reported_and_a_protocol_fault_is_not() {
    let target = target();
    let told = |keys: &[(&str, &str)], flags| {
        let mut peer = Peer::new(&target, 0);
        peer.login_step(flags, keys);
        match peer.event() {
            Some(Event::LoginRefused { initiator_name, status }) => Some((initiator_name, status)),
            other => panic!("{other:?}"),
        }
    };
    let t = ("TargetName", TARGET);
    let stranger = ("InitiatorName", "iqn.1999-01.Unknown:x");
    assert_eq!(told(&[stranger, t], 0x87), Some(("iqn.1999-01.unknown:x".into(), (2, 2))));
    let chap = [("InitiatorName", CHAP_NAME), t, ("AuthMethod", "None")];
    assert_eq!(told(&chap, 0x81), Some((CHAP_NAME.into(), (2, 1))));
    let mut peer = Peer::new(&target, 0);
    peer.login_step(0x84, &[("InitiatorName", NAME), t]);
    assert!(peer.event().is_none());
    let keys = [("InitiatorName", NAME), t, ("HeaderDigest", "CRC32C"), ("MaxBurstLength", "8192")];
    let mut peer = Peer::new(&target, 0);
    peer.login_step(0x87, &keys);
    let Some(Event::SessionStarted { nexus, .. }) = peer.event() else { panic!() };
    assert!(nexus.terms.header_digest && !nexus.terms.data_digest);
    assert_eq!(nexus.terms.burst_bytes, 8192);
    assert_eq!(nexus.terms.commands, target.config().limits.commands_per_session);
}

#[test]
fn a_newer_version_and_an_unknown_session_are_refused() {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let mut bhs = peer.login_header(0x87);
    bhs.0[3] = 1;
    peer.send(bhs, b"");
    assert_eq!(peer.receive().unwrap().0.array::<2>(36), [2, 5]);
    let mut peer = Peer::new(&target, 0);
    peer.tsih = 77;
    let (bhs, _) = peer.login_step(0x87, &[("InitiatorName", NAME), ("TargetName", TARGET)]);
    assert_eq!(bhs.array::<2>(36), [2, 10]);
}

#[test]
fn any_pdu_before_login_closes_the_connection_silently() {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let bhs = peer.command(0xc1, 1, 512, 0x28);
    peer.send(bhs, b"");
    assert!(peer.connection.is_closed());
    peer.expect_silence();
}

#[test]
fn login_works_in_both_stages_and_with_text_in_pieces() {
    let target = target();
    let mut peer = Peer::new(&target, 2);
    peer.chunk = 1;
    let (bhs, pairs) = peer.login_step(
        0x81,
        &[("InitiatorName", NAME), ("TargetName", TARGET), ("AuthMethod", "CHAP,None")],
    );
    assert_eq!(bhs.flags(), 0x81);
    assert_eq!(value(&pairs, "AuthMethod"), Some("None"));
    assert_eq!(value(&pairs, "TargetPortalGroupTag"), Some("2"));
    peer.send(peer.login_header(0x44), b"MaxBurst");
    let (bhs, data) = peer.receive().unwrap();
    assert_eq!((bhs.flags(), data.len()), (0x04, 0));
    peer.send(peer.login_header(0x87), b"Length=8192\0HeaderDigest=CRC32C,None\0");
    let (bhs, data) = peer.receive().unwrap();
    assert_eq!(bhs.flags(), 0x87);
    let pairs = crate::text::parse(&data).unwrap();
    assert_eq!(value(&pairs, "MaxBurstLength"), Some("8192"));
    assert_eq!(value(&pairs, "HeaderDigest"), Some("CRC32C"));
    assert_eq!(value(&pairs, "MaxRecvDataSegmentLength"), Some("262144"));
    let Some(Event::SessionStarted { nexus, replaces: None }) = peer.event() else { panic!() };
    assert_eq!((nexus.portal_tag, nexus.discovery), (2, false));
    assert_eq!((nexus.initiator_name.as_str(), nexus.tsih), (NAME, bhs.u16(14)));
    peer.header_digest = true;
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    let command = peer.next_command();
    peer.connection.respond(command.task, good(b"data"));
    assert_eq!(peer.expect(opcode::DATA_IN).1, b"data");
}

/// Runs CHAP as the initiator does. Returns the last response and its keys.
fn chap(algorithms: &str, secret: &[u8], mutual: impl Fn(&str) -> Option<String>) -> (Bhs, Pairs) {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let names = [("InitiatorName", CHAP_NAME), ("TargetName", TARGET), ("AuthMethod", "CHAP")];
    let (bhs, pairs) = peer.login_step(0x00, &names);
    assert_eq!((bhs.flags(), value(&pairs, "AuthMethod")), (0, Some("CHAP")));
    let (bhs, pairs) = peer.login_step(0x00, &[("CHAP_A", algorithms)]);
    if bhs.0[36] != 0 {
        return (bhs, pairs);
    }
    let algorithm = match value(&pairs, "CHAP_A") {
        Some("5") => Algorithm::Md5,
        Some("6") => Algorithm::Sha1,
        Some("7") => Algorithm::Sha256,
        other => panic!("{other:?}"),
    };
    let id: u8 = value(&pairs, "CHAP_I").unwrap().parse().unwrap();
    let theirs = value(&pairs, "CHAP_C").unwrap().to_owned();
    let challenge = crate::text::binary(&theirs).unwrap();
    let response = crate::text::to_hexadecimal(&algorithm.response(id, secret, &challenge));
    let mut keys = vec![("CHAP_N", "anna"), ("CHAP_R", response.as_str())];
    let ours = mutual(&theirs);
    if let Some(ours) = &ours {
        keys.extend([("CHAP_I", "9"), ("CHAP_C", ours.as_str())]);
    }
    let (bhs, pairs) = peer.login_step(0x81, &keys);
    if let (0, Some(ours)) = (bhs.0[36], ours) {
        let challenge = crate::text::binary(&ours).unwrap();
        let proof = algorithm.response(9, b"another good secret", &challenge);
        assert_eq!(value(&pairs, "CHAP_N"), Some("array"));
        assert_eq!(value(&pairs, "CHAP_R"), Some(&*crate::text::to_hexadecimal(&proof)));
    }
    (bhs, pairs)
}

#[test]
fn chap_one_way_and_mutual_with_every_algorithm() {
    for algorithms in ["5", "6", "7", "8,7,5"] {
        let (bhs, _) = chap(algorithms, b"twelve bytes or more", |_| None);
        assert_eq!((bhs.flags(), bhs.0[36]), (0x81, 0));
        let (bhs, _) = chap(algorithms, b"twelve bytes or more", |_| Some("0bAAECAwQF".into()));
        assert_eq!((bhs.flags(), bhs.0[36]), (0x81, 0));
    }
}

#[test]
fn chap_refuses_wrong_secrets_reflection_and_unknown_algorithms() {
    let failed = [2, 1];
    assert_eq!(chap("5", b"wrong", |_| None).0.array::<2>(36), failed);
    let reflected = chap("5", b"twelve bytes or more", |theirs| Some(theirs.to_owned()));
    assert_eq!(reflected.0.array::<2>(36), failed);
    assert_eq!(chap("8", b"twelve bytes or more", |_| None).0.array::<2>(36), failed);
}

#[test]
fn the_rfc_1994_response_is_md5_over_id_secret_challenge() {
    // MD5("a") and SHA-256("abc"), split into the inputs.
    let md5 = Algorithm::Md5.response(b'a', b"", b"");
    assert_eq!(crate::text::to_hexadecimal(&md5), "0x0cc175b9c0f1b6a831c399e269772661");
    let sha = Algorithm::Sha256.response(b'a', b"b", b"c");
    assert!(crate::text::to_hexadecimal(&sha).starts_with("0xba7816bf8f01cfea"));
}

#[test]
fn secrets_are_not_shown() {
    let access = Known.initiator(CHAP_NAME).unwrap();
    let shown = format!("{access:?}");
    assert!(shown.contains("anna") && !shown.contains("secret") && !shown.contains("twelve"));
}

fn discover(peer: &mut Peer, value: &str) -> Vec<(String, String)> {
    let mut bhs = Bhs::answer(opcode::TEXT, 0x80);
    bhs.put_u32(16, 5);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(24, peer.cmd_sn);
    peer.cmd_sn += 1;
    let mut text = Vec::new();
    crate::text::push(&mut text, "SendTargets", value);
    peer.send(bhs, &text);
    let (bhs, data) = peer.expect(opcode::TEXT_RESPONSE);
    assert_eq!((bhs.flags(), bhs.u32(20)), (0x80, NO_TAG));
    crate::text::parse(&data).unwrap()
}

#[test]
fn send_targets_returns_portals_with_their_tags() {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    let keys = [("InitiatorName", NAME), ("SessionType", "Discovery"), ("InitialR2T", "Yes")];
    let (bhs, pairs) = peer.login_step(0x87, &keys);
    assert_eq!(bhs.flags(), 0x87);
    assert_eq!(value(&pairs, "InitialR2T"), Some("Irrelevant"));
    assert_eq!(value(&pairs, "TargetPortalGroupTag"), None);
    for asked in ["All", TARGET] {
        let pairs = discover(&mut peer, asked);
        let values: Vec<&str> = pairs.iter().map(|(_, value)| value.as_str()).collect();
        let addresses = ["192.0.2.1:3260,1", "10.0.0.2:3260,1", "[fe80::1]:3261,2"];
        assert_eq!(values[0], TARGET);
        assert_eq!(values[1..], addresses);
    }
    assert_eq!(discover(&mut peer, "iqn.2026-01.example:other"), []);
    assert_eq!(value(&discover(&mut peer, ""), "SendTargets"), Some("Reject"));
    let bhs = peer.command(0xc1, 1, 512, 0x28);
    peer.send(bhs, b"");
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 4, "no commands in discovery");
    assert!(peer.connection.is_closed());
}

#[test]
fn unknown_initiators_discover_no_target() {
    let stranger = ("InitiatorName", "iqn.1999-01.unknown:x");
    let discovery = ("SessionType", "Discovery");
    assert_eq!(status(&[stranger, discovery], 0x87), (2, 2));
    assert_eq!(status(&[stranger, discovery, ("TargetName", TARGET)], 0x87), (2, 2));
    assert_eq!(status(&[("InitiatorName", NAME), discovery], 0x87), (0, 0));
    let guarded = ("InitiatorName", CHAP_NAME);
    assert_eq!(status(&[guarded, discovery], 0x87), (2, 1), "not before authentication");
}

#[test]
fn a_normal_session_discovers_only_its_own_target() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("MaxRecvDataSegmentLength", "512")]);
    assert_eq!(value(&discover(&mut peer, ""), "TargetName"), Some(TARGET));
    assert_eq!(value(&discover(&mut peer, "All"), "SendTargets"), Some("Reject"));
}

#[test]
fn a_long_text_response_is_sent_in_pieces() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("MaxRecvDataSegmentLength", "512")]);
    let keys = |value: &str| (0..100).map(|n| format!("X-{n}={value}\0")).collect::<String>();
    let text = keys("1");
    let mut bhs = Bhs::answer(opcode::TEXT | 0x40, 0x80);
    bhs.put_u32(16, 5);
    bhs.put_u32(20, NO_TAG);
    peer.send(bhs, text.as_bytes());
    let mut all = Vec::new();
    loop {
        let (answer, data) = peer.expect(opcode::TEXT_RESPONSE);
        assert!(data.len() <= 512);
        all.extend(data);
        if answer.flags() == 0x80 {
            break;
        }
        assert_eq!(answer.flags(), 0x40);
        bhs.put_u32(20, answer.u32(20));
        peer.send(bhs, b"");
    }
    assert_eq!(all, keys("NotUnderstood").into_bytes());
}

/// RFC 7143, 6.4: a repeated key in one exchange is a protocol error, and ends it.
#[test]
fn a_key_twice_in_a_text_request_is_rejected() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for keys in [
        "SendTargets=\0SendTargets=\0",
        "X-a=1\0X-a=1\0",
        "MaxRecvDataSegmentLength=512\0MaxRecvDataSegmentLength=1024\0",
    ] {
        let mut bhs = Bhs::answer(opcode::TEXT | 0x40, 0x80);
        bhs.put_u32(16, 5);
        bhs.put_u32(20, NO_TAG);
        peer.send(bhs, keys.as_bytes());
        assert_eq!(peer.expect(opcode::REJECT).0.0[2], 4, "{keys}");
        peer.expect_silence();
        assert!(!peer.connection.is_closed());
        peer.send(bhs, b"SendTargets=\0");
        assert!(!peer.expect(opcode::TEXT_RESPONSE).1.is_empty(), "another exchange continues");
    }
}

#[test]
fn a_login_that_takes_too_long_is_dropped() {
    let target = target();
    let mut peer = Peer::new(&target, 0);
    assert_eq!(peer.connection.deadline(), Some(Duration::from_secs(115)));
    peer.connection.tick(Duration::from_secs(114));
    assert!(!peer.connection.is_closed());
    peer.connection.tick(Duration::from_secs(115));
    assert!(peer.connection.is_closed());
}
