//! Random and damaged bytes must cause no panic, hang or growth.

use proptest::prelude::*;

use super::*;

/// Generates what a real initiator might send, in any order.
fn pdu() -> impl Strategy<Value = (Bhs, Vec<u8>)> {
    let codes = prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 6, 0x10, 0x1f, 0x25]);
    let small = 0u32..4;
    (
        codes,
        any::<bool>(),
        any::<u8>(),
        (small.clone(), prop::sample::select(vec![0, 1, 2, 3, NO_TAG, 600, 8192])),
        (0u32..24, small),
        prop::sample::select(vec![0u32, 512, 1024, 4096]),
        prop::sample::select(vec![0usize, 0, 1, 512, 1024, 4096, 70_000]),
    )
        .prop_map(|(code, immediate, flags, (tag, word), (cmd_sn, data_sn), offset, bytes)| {
            let mut bhs = Bhs::answer(code | if immediate { 0x40 } else { 0 }, flags);
            bhs.put_u32(16, tag);
            bhs.put_u32(20, word);
            bhs.put_u32(24, cmd_sn);
            bhs.put_u32(36, data_sn);
            bhs.put_u32(40, offset);
            (bhs, pattern(bytes))
        })
}

/// Takes all events as the layer above would, answering some commands and not others.
fn serve(peer: &mut Peer, answer: bool) {
    while let Some(event) = peer.event() {
        match event {
            Event::Command(command) if answer => {
                peer.connection.respond(command.task, good(&pattern(700)));
            }
            Event::TaskManagement(request) => {
                for task in peer.connection.abort_before(request.handle, |_, _| true) {
                    peer.connection.forget(task);
                }
                peer.connection.respond_management(request.handle, ManagementOutcome::Complete);
            }
            _ => {}
        }
    }
    assert!(peer.connection.outstanding() <= 8 + 4);
    peer.pull();
    peer.inbox.clear();
}

/// The same cases in each run.
fn seeded() -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(0x7143);
    ProptestConfig { cases: 512, rng_seed, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn any_order_of_pdus_is_survived(
        pdus in prop::collection::vec((pdu(), any::<bool>()), 1..40),
        chunk in prop::sample::select(vec![7usize, 1000, usize::MAX]),
        initial_r2t in any::<bool>(),
        digest in any::<bool>(),
    ) {
        let target = target();
        let digest = if digest { "CRC32C" } else { "None" };
        let keys = [
            ("InitialR2T", if initial_r2t { "Yes" } else { "No" }),
            ("FirstBurstLength", "1024"),
            ("MaxBurstLength", "2048"),
            ("DataDigest", digest),
        ];
        let mut peer = Peer::logged_in(&target, &keys);
        peer.chunk = chunk;
        for ((bhs, data), answer) in pdus {
            peer.send(bhs, &data);
            serve(&mut peer, answer);
        }
        peer.connection.tick(Duration::from_secs(1000));
        peer.connection.end();
        prop_assert_eq!(target.data_bytes(), 0);
        prop_assert!(target.sessions().is_empty());
    }

    #[test]
    fn any_bytes_at_login_are_survived(
        flags in any::<u8>(),
        text in prop::collection::vec(any::<u8>(), 0..600),
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let target = target();
        let mut peer = Peer::new(&target, 0);
        peer.send(peer.login_header(flags), &text);
        peer.push(&noise);
        serve(&mut peer, true);
    }

    #[test]
    fn damaged_bytes_are_survived(
        at in prop::collection::vec((0usize..6000, any::<u8>()), 0..8),
        chunk in 1usize..5000,
    ) {
        let target = target();
        let mut peer = Peer::new(&target, 0);
        let mut stream = Vec::new();
        let mut text = Vec::new();
        let keys = [("InitiatorName", NAME), ("TargetName", TARGET), ("InitialR2T", "No")];
        for (key, value) in keys {
            crate::text::push(&mut text, key, value);
        }
        stream.extend(peer.bytes(peer.login_header(0x87), &text));
        for tag in 0..4 {
            let bhs = peer.command(0xa1, tag, 512, 0x2a);
            stream.extend(peer.bytes(bhs, &pattern(512)));
            let bhs = peer.command(0xc1, 10 + tag, 512, 0x28);
            stream.extend(peer.bytes(bhs, b""));
        }
        for (at, mask) in at {
            if let Some(byte) = stream.get_mut(at) {
                *byte ^= mask;
            }
        }
        for piece in stream.chunks(chunk) {
            peer.push(piece);
            serve(&mut peer, true);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        value in ".{0,40}",
    ) {
        if let Some(pairs) = crate::text::parse(&bytes) {
            prop_assert!(pairs.len() <= bytes.len());
        }
        let _ = crate::text::binary(&value);
        let _ = crate::text::number(&value);
    }
}
