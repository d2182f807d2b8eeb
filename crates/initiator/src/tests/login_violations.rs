//! Each violation of the login.

use super::liar::*;
use super::*;
use crate::pdu::{Bhs, opcode};

#[test]
fn invalid_login_headers_are_violations() {
    let wrong = |change: fn(&mut Bhs), text: &str| {
        let mut liar = Liar::asked(options());
        let mut bhs = liar.login_response();
        change(&mut bhs);
        let message = message(liar.say(bhs, TERMS));
        assert!(message.contains(text), "{message}");
    };
    wrong(|bhs| bhs.0[0] = opcode::TEXT_RESPONSE, "not for this phase");
    wrong(|bhs| bhs.put_u32(16, 2), "never sent");
    wrong(|bhs| bhs.0[8] = 0, "another ISID");
    wrong(|bhs| bhs.0[36] = 4, "unknown status class");
    wrong(|bhs| bhs.0[3] = 1, "a version");
    wrong(|bhs| bhs.0[1] = 0x83, "CSG");
    wrong(|bhs| bhs.0[1] = 0xc7, "T and C");
    wrong(|bhs| bhs.0[1] = 0x86, "not requested");
    wrong(|bhs| bhs.0[15] = 0, "TSIH");
    wrong(|bhs| bhs.0[1] = 0x04, "TSIH");
}

#[test]
fn invalid_login_keys_are_violations() {
    let whole = String::from_utf8(TERMS.to_vec()).unwrap();
    for (from, to) in [
        ("TargetPortalGroupTag=1\0", ""),
        ("InitialR2T=Yes\0", ""),
        ("InitialR2T=Yes", "InitialR2T=Maybe"),
        ("ErrorRecoveryLevel=0", "ErrorRecoveryLevel=1"),
        ("MaxConnections=1", "MaxConnections=2"),
        ("MaxBurstLength=4096", "MaxBurstLength=16000000"),
        ("MaxBurstLength=4096", "MaxBurstLength=Reject"),
        ("MaxBurstLength=4096", "MaxBurstLength=512"),
        ("FirstBurstLength=1024", "FirstBurstLength=1"),
        ("FirstBurstLength=1024", "FirstBurstLength=Irrelevant"),
        ("HeaderDigest=None", "HeaderDigest=CRC32C"),
        ("DataPDUInOrder=Yes", "DataPDUInOrder=No"),
        ("MaxOutstandingR2T=2", "MaxOutstandingR2T=0"),
        ("MaxOutstandingR2T=2", "MaxOutstandingR2T=2\0MaxOutstandingR2T=2"),
        ("MaxOutstandingR2T=2", "MaxOutstandingR2T=2\0IFMarker=No"),
        ("MaxOutstandingR2T=2", "MaxOutstandingR2T=2\0MaxRecvDataSegmentLength=511"),
    ] {
        let mut liar = Liar::asked(options());
        let terms = whole.replacen(from, to, 1);
        let result = liar.say(liar.login_response(), terms.as_bytes());
        assert!(matches!(result, Err(Violation::Key { .. })), "{to}: {result:?}");
    }
    let mut liar = Liar::asked(Options { immediate_data: false, initial_r2t: true, ..options() });
    let result = liar.say(liar.login_response(), TERMS);
    assert!(matches!(result, Err(Violation::Key { .. })), "ImmediateData=Yes against No");
}

#[test]
fn an_endless_login_is_a_violation() {
    let mut liar = Liar::asked(options());
    let result = (0..17).try_for_each(|at| {
        let mut bhs = liar.login_response();
        bhs.0[1] = 0x04;
        bhs.put(14, &[0, 0]);
        liar.say(bhs, if at == 0 { TERMS } else { b"" })
    });
    assert_eq!(result, Err(Violation::EndlessLogin));
}

/// Text of a login in pieces (C), in as many exchanges.
#[test]
fn a_login_text_in_pieces_is_assembled() {
    let mut liar = Liar::asked(options());
    let (one, two) = TERMS.split_at(100);
    let mut bhs = liar.login_response();
    bhs.0[1] = 0x44;
    bhs.put(14, &[0, 0]);
    assert_eq!(liar.say(bhs, one), Ok(()));
    let mut bhs = liar.login_response();
    bhs.0[1] = 0x04;
    bhs.put(14, &[0, 0]);
    assert_eq!(liar.say(bhs, two), Ok(()));
    assert_eq!(liar.say(liar.login_response(), b""), Ok(()));
    assert_eq!(liar.host.next_event(), Some(Event::LoggedIn { tsih: 5 }));
}
