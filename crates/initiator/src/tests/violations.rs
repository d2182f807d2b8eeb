//! Each violation of full-feature phase.

use super::liar::*;
use super::*;
use crate::pdu::{FINAL, NO_TAG, opcode};

#[test]
fn stat_sn_advances_by_one() {
    for wrong in [76, 77, 79] {
        let mut liar = Liar::new();
        let itt = liar.read(0);
        assert_eq!(liar.stat_sn, 78);
        liar.stat_sn = wrong;
        let got = liar.say(response(itt, 0, 0), b"");
        assert_eq!(got, Err(Violation::StatSn { got: wrong, expected: 78 }));
    }
    let mut liar = Liar::new();
    let itt = liar.write(2048);
    assert_eq!(liar.say_with(r2t(itt, 0, 1024, 512), b"", true), Ok(()));
    assert_says!(liar.say_with(r2t(itt, 1, 1536, 512), b"", false), "StatSN 79");
}

#[test]
fn the_window_never_goes_back() {
    let mut liar = Liar::new();
    liar.max = 15;
    let itt = liar.read(0);
    let back = Violation::Backwards { name: "MaxCmdSN", from: 16, to: 15 };
    assert_eq!(liar.say(response(itt, 0, 0), b""), Err(back));
    let mut liar = Liar::new();
    let (one, two) = (liar.read(0), liar.read(0));
    assert_eq!(liar.say(response(two, 0, 0), b""), Ok(()));
    liar.exp = 2;
    let back = Violation::Backwards { name: "ExpCmdSN", from: 3, to: 2 };
    assert_eq!(liar.say(response(one, 0, 0), b""), Err(back));
}

#[test]
fn the_window_fits_what_was_sent() {
    let mut liar = Liar::new();
    let itt = liar.read(0);
    liar.exp = 3;
    assert_says!(liar.say(response(itt, 0, 0), b""), "beyond what was sent");
    let mut liar = Liar::new();
    let itt = liar.read(0);
    liar.exp = 1;
    assert_says!(liar.say(response(itt, 0, 0), b""), "does not cover");
    let mut liar = Liar::asked(options());
    liar.max = u32::MAX;
    assert_says!(liar.say(liar.login_response(), TERMS), "less than ExpCmdSN - 1");
}

#[test]
fn responses_are_sent_once_and_only_to_requests() {
    let mut liar = Liar::new();
    let itt = liar.read(0);
    assert_eq!(liar.say(response(itt, 0, 0), b""), Ok(()));
    let again = Violation::AnsweredTwice { opcode: opcode::RESPONSE, itt: itt.0 };
    assert_eq!(liar.say(response(itt, 0, 0), b""), Err(again.clone()));
    assert_eq!(liar.host.receive(b""), Err(again), "the error persists");
    for tag in [0, 99, NO_TAG] {
        let mut liar = Liar::new();
        assert_says!(liar.say(response(Itt(tag), 0, 0), b""), "never sent");
    }
    let mut liar = Liar::new();
    let ping = liar.host.nop_out(b"").unwrap();
    assert_says!(liar.say(response(ping, 0, 0), b""), "never sent");
    for wrong in [opcode::MANAGEMENT_RESPONSE, opcode::LOGOUT_RESPONSE, opcode::TEXT_RESPONSE] {
        let mut liar = Liar::new();
        let itt = liar.read(0);
        assert_says!(liar.say(plain(wrong, itt.0), b""), "never sent");
    }
}

#[test]
fn no_pdu_is_allowed_after_the_response_to_an_abort() {
    for late in [opcode::RESPONSE, opcode::DATA_IN, opcode::R2T] {
        let mut liar = Liar::new();
        let itt = liar.read(512);
        let abort = liar.host.abort(itt).unwrap();
        assert_eq!(liar.say(plain(opcode::MANAGEMENT_RESPONSE, abort.0), b""), Ok(()));
        let (bhs, advances) = match late {
            opcode::RESPONSE => (response(itt, 0, 0), true),
            opcode::DATA_IN => (data_in(itt, FINAL, 0, 0), false),
            _ => (r2t(itt, 0, 0, 1), false),
        };
        let after = Violation::AfterAbort { opcode: late, itt: itt.0 };
        assert_eq!(liar.say_with(bhs, b"", advances), Err(after));
    }
}

/// An abort without a response changes nothing yet: R2Ts get their data too.
#[test]
fn pdus_before_the_response_to_an_abort_are_valid() {
    let mut liar = Liar::new();
    let itt = liar.write(2048);
    let abort = liar.host.abort(itt).unwrap();
    liar.take();
    assert_eq!(liar.say_with(r2t(itt, 0, 1024, 1024), b"", false), Ok(()));
    assert!(!liar.host.output().is_empty());
    assert_eq!(liar.say(response(itt, 0, 1), b""), Ok(()));
    let mut answer = plain(opcode::MANAGEMENT_RESPONSE, abort.0);
    answer.0[2] = 1;
    assert_eq!(liar.say(answer, b""), Ok(()));
    let mut liar = Liar::new();
    let abort = liar.host.task_management(Function::LogicalUnitReset, LUN).unwrap();
    let mut answer = plain(opcode::MANAGEMENT_RESPONSE, abort.0);
    answer.0[2] = 7;
    assert_says!(liar.say(answer, b""), "unknown response code");
}

#[test]
fn data_in_has_no_gap_and_no_overlap() {
    for (sn, offset, text) in [(1, 512, "DataSN 1, but 0"), (0, 512, "offset 512, but 0")] {
        let mut liar = Liar::new();
        let itt = liar.read(2048);
        let bhs = data_in(itt, 0, sn, offset);
        assert_says!(liar.say_with(bhs, &[0; 512], false), text);
    }
    for (sn, offset, text) in
        [(0, 512, "DataSN 0, but 1"), (1, 0, "offset 0, but 512"), (1, 513, "offset 513, but 512")]
    {
        let mut liar = Liar::new();
        let itt = liar.read(2048);
        assert_eq!(liar.say_with(data_in(itt, 0, 0, 0), &[0; 512], false), Ok(()));
        let bhs = data_in(itt, 0, sn, offset);
        assert_says!(liar.say_with(bhs, &[0; 512], false), text);
    }
}

#[test]
fn data_in_is_limited_by_announced_and_negotiated_lengths() {
    let mut liar = Liar::new();
    let itt = liar.read(512);
    assert_says!(liar.say_with(data_in(itt, 0, 0, 0), &[0; 513], false), "announced data");
    let mut liar = Liar::new();
    let itt = liar.write(512);
    assert_says!(liar.say_with(data_in(itt, 0, 0, 0), &[0; 1], false), "announced data");
    let mut liar = Liar::new();
    let itt = liar.read(8192);
    assert_eq!(liar.say_with(data_in(itt, 0, 0, 0), &[0; 4096], false), Ok(()));
    assert_says!(liar.say_with(data_in(itt, 0, 1, 4096), &[0; 4], false), "a sequence");
    let mut liar = Liar::new();
    let itt = liar.read(8192);
    let long = Violation::SegmentTooLong { bytes: 4097, declared: 4096 };
    assert_eq!(liar.say_with(data_in(itt, FINAL, 0, 0), &[0; 4097], false), Err(long));
}

#[test]
fn flags_of_data_in() {
    for (flags, status, text) in [
        (0x01, 0, "S without F"),
        (0x82, 0, "O or U without S"),
        (0x81, 2, "that requires sense"),
        (0xc0, 0, "acknowledgement"),
    ] {
        let mut liar = Liar::new();
        let itt = liar.read(512);
        let mut bhs = data_in(itt, flags, 0, 0);
        bhs.0[3] = status;
        assert_says!(liar.say_with(bhs, &[0; 512], flags & 1 != 0), text);
    }
}

#[test]
fn residuals_match_the_transferred_bytes() {
    // Read 512 bytes of 1024.
    for (flag, count, status, right) in [
        (0x02, 512, 0, true),
        (0x02, 511, 0, false),
        (0x02, 512, 2, true),
        (0x02, 1024, 2, false),
        (0, 0, 0, false),
        (0, 0, 8, true),
        (0x04, 4, 0, false),
        (0x06, 4, 0, false),
        (0, 4, 0, false),
        (0x02, 0, 0, false),
        (0x08, 0, 0, false),
    ] {
        let mut liar = Liar::new();
        let itt = liar.read(1024);
        assert_eq!(liar.say_with(data_in(itt, FINAL, 0, 0), &[0; 512], false), Ok(()));
        let bhs = with_residual(response(itt, status, 1), flag, count);
        let sense: &[u8] = if status == 2 { &[0, 2, 0x70, 0] } else { b"" };
        let result = liar.say(bhs, sense);
        assert_eq!(result.is_ok(), right, "{flag} {count} {status}: {result:?}");
    }
    // Write 2048 bytes, of which 1024 were sent.
    for (flag, count, status, right) in [
        (0x02, 1024, 0, true),
        (0x02, 2048, 0, true),
        (0x02, 1000, 0, false),
        (0x02, 2049, 0, false),
        (0, 0, 0, false),
        (0, 0, 8, true),
        (0x04, 512, 0, false),
    ] {
        let mut liar = Liar::new();
        let itt = liar.write(2048);
        let result = liar.say(with_residual(response(itt, status, 0), flag, count), b"");
        assert_eq!(result.is_ok(), right, "{flag} {count} {status}: {result:?}");
    }
}

#[test]
fn r2t_solicits_announced_data_once_and_in_order() {
    for (bhs, text) in [
        (r2t(Itt(2), 1, 1024, 512), "R2TSN 1, but 0"),
        (r2t(Itt(2), 0, 512, 512), "R2T offset 512, but 1024"),
        (r2t(Itt(2), 0, 1536, 512), "R2T offset 1536, but 1024"),
        (r2t(Itt(2), 0, 1024, 7169), "announced data, solicited by R2T"),
        (r2t(Itt(2), 0, u32::MAX, u32::MAX), "announced data, solicited by R2T"),
        (r2t(Itt(2), 0, 1024, 4097), "a sequence, solicited by R2T"),
        (r2t(Itt(2), 0, 1024, 0), "solicits no data"),
    ] {
        let mut liar = Liar::new();
        assert_eq!(liar.write(8192), Itt(2));
        assert_says!(liar.say_with(bhs, b"", false), text);
    }
    let mut liar = Liar::new();
    let itt = liar.write(8192);
    let mut bhs = r2t(itt, 0, 1024, 512);
    bhs.put(8, &[0; 8]);
    assert_says!(liar.say_with(bhs, b"", false), "another LUN");
    let mut liar = Liar::new();
    let itt = liar.write(8192);
    let mut bhs = r2t(itt, 0, 1024, 512);
    bhs.put_u32(20, NO_TAG);
    assert_says!(liar.say_with(bhs, b"", false), "no Target Transfer Tag");
    let mut liar = Liar::new();
    let itt = liar.read(512);
    assert_says!(
        liar.say_with(r2t(itt, 0, 0, 512), b"", false),
        "announced data, solicited by R2T"
    );
}

#[test]
fn outstanding_r2ts_are_limited_as_negotiated() {
    let mut liar = Liar::new();
    let itt = liar.write(8192);
    for sn in 0..2 {
        let bhs = r2t(itt, sn, 1024 + 512 * sn, 512);
        assert_eq!(liar.say_with(bhs, b"", false), Ok(()));
    }
    // No data was sent yet, so the target can't have received it.
    let mut host = liar;
    assert_says!(host.say_with(r2t(itt, 2, 2048, 512), b"", false), "outstanding R2Ts");
    let mut liar = Liar::new();
    let itt = liar.write(8192);
    for sn in 0..4 {
        assert_eq!(liar.say_with(r2t(itt, sn, 1024 + 512 * sn, 512), b"", false), Ok(()));
        liar.take();
    }
}

#[test]
fn exp_data_sn_counts_data_in_and_r2t() {
    let mut liar = Liar::new();
    let itt = liar.read(512);
    assert_eq!(liar.say_with(data_in(itt, FINAL, 0, 0), &[0; 512], false), Ok(()));
    let wrong = Violation::ExpDataSn { itt: itt.0, got: 0, sent: 1 };
    assert_eq!(liar.say(response(itt, 0, 0), b""), Err(wrong));
}

#[test]
fn digests() {
    let options = Options {
        header_digest: true,
        data_digest: true,
        max_recv_data_segment_bytes: 4096,
        ..options()
    };
    let terms = String::from_utf8(TERMS.to_vec()).unwrap();
    let terms = terms.replace("Digest=None", "Digest=CRC32C").into_bytes();
    for (header, data, expected) in [
        (true, true, Ok(())),
        (false, true, Err(Violation::HeaderDigest)),
        (true, false, Err(Violation::DataDigest)),
    ] {
        let mut liar = Liar::with(options.clone(), &terms);
        liar.header_digest = header;
        liar.data_digest = true;
        let itt = liar.read(512);
        // Without a digest of its own, the data is at the position of the header's digest.
        let bhs = data_in(itt, FINAL, 0, 0);
        let result = if data {
            liar.say_with(bhs, &[3; 512], false)
        } else {
            liar.data_digest = false;
            liar.say_with(bhs, &[3; 512], false).and_then(|()| liar.host.receive(&[0; 4]))
        };
        assert_eq!(result, expected);
    }
}

#[test]
fn sense_data_is_present_and_complete() {
    for (data, text) in [
        (&b""[..], "without sense"),
        (&[0][..], "half a SenseLength"),
        (&[0, 9, 0x70], "beyond the data"),
        (&[0, 0], "without sense"),
    ] {
        let mut liar = Liar::new();
        let itt = liar.read(0);
        assert_says!(liar.say(response(itt, 2, 0), data), text);
    }
}

#[test]
fn pdus_that_targets_must_not_send_are_violations() {
    for opcode in [0x00, 0x01, 0x05, 0x23, 0x30, 0x3e] {
        let mut liar = Liar::new();
        assert_eq!(liar.say(plain(opcode, 1), b""), Err(Violation::Opcode { opcode }));
    }
    let mut liar = Liar::new();
    let itt = liar.read(0);
    let mut bhs = response(itt, 0, 0);
    bhs.0[1] = 0;
    assert_says!(liar.say(bhs, b""), "F is not set");
    let mut liar = Liar::new();
    let itt = liar.write(2048);
    assert_says!(liar.say_with(r2t(itt, 0, 1024, 512), b"data", false), "has a data segment");
    let mut liar = Liar::new();
    let itt = liar.read(0);
    let mut bhs = response(itt, 0, 0);
    bhs.0[4] = 1;
    assert_says!(liar.say(bhs, b""), "additional header segments");
    let mut liar = Liar::new();
    assert_says!(liar.say(plain(opcode::REJECT, NO_TAG), b"short"), "does not contain the header");
    let mut liar = Liar::new();
    assert_says!(liar.say(plain(opcode::REJECT, 3), &[0; 48]), "it has a tag");
    let mut liar = Liar::new();
    assert_says!(liar.say(plain(opcode::ASYNC, 3), b""), "it has a tag");
}

#[test]
fn ping_data_is_returned_unchanged() {
    let mut liar = Liar::new();
    let itt = liar.host.nop_out(b"abc").unwrap();
    let mut bhs = plain(opcode::NOP_IN, itt.0);
    bhs.put_u32(20, NO_TAG);
    assert_eq!(liar.say(bhs, b"abd"), Err(Violation::Echo));
    let mut liar = Liar::new();
    let itt = liar.host.nop_out(b"abc").unwrap();
    assert_says!(
        liar.say(plain(opcode::NOP_IN, itt.0), b"abc"),
        "a response that requests a response"
    );
    let mut liar = Liar::new();
    let bhs = plain(opcode::NOP_IN, NO_TAG);
    assert_says!(liar.say_with(bhs, b"data", false), "has a data segment");
}

#[test]
fn text_ends_with_f() {
    for (flags, ttt, text) in [
        (0xc0, NO_TAG, "F and C"),
        (0x80, 4, "does not match F"),
        (0x40, NO_TAG, "does not match F"),
    ] {
        let mut liar = Liar::new();
        let itt = liar.host.send_targets("").unwrap();
        let mut bhs = plain(opcode::TEXT_RESPONSE, itt.0);
        bhs.0[1] = flags;
        bhs.put_u32(20, ttt);
        assert_says!(liar.say(bhs, b"a=b\0"), text);
    }
    let mut liar = Liar::new();
    let itt = liar.host.send_targets("").unwrap();
    let mut bhs = plain(opcode::TEXT_RESPONSE, itt.0);
    bhs.put_u32(20, NO_TAG);
    assert_eq!(liar.say(bhs, b"no pair\0"), Err(Violation::Text));
}

#[test]
fn no_pdu_is_allowed_after_the_logout_response() {
    let mut liar = Liar::new();
    let itt = liar.host.logout(LogoutReason::CloseSession).unwrap();
    assert_eq!(liar.say(plain(opcode::LOGOUT_RESPONSE, itt.0), b""), Ok(()));
    let opcode = opcode::NOP_IN;
    assert_eq!(liar.say(plain(opcode, NO_TAG), b""), Err(Violation::Opcode { opcode }));
    let mut liar = Liar::new();
    let itt = liar.host.logout(LogoutReason::CloseSession).unwrap();
    let mut bhs = plain(opcode::LOGOUT_RESPONSE, itt.0);
    bhs.0[2] = 4;
    assert_says!(liar.say(bhs, b""), "unknown response code");
}
