//! The end of a connection in any state leaks no memory for data and no place in the window of its
//! session.

use super::*;

const KEYS: [(&str, &str); 3] =
    [("InitialR2T", "No"), ("FirstBurstLength", "1024"), ("MaxConnections", "2")];

/// Sends at most this many bytes; then its connection is cut.
struct Cut {
    peer: Peer,
    left: usize,
}

impl Cut {
    fn send(&mut self, bhs: Bhs, data: &[u8]) -> Option<()> {
        let bytes = self.peer.bytes(bhs, data);
        let n = bytes.len().min(self.left);
        self.left -= n;
        self.peer.push(&bytes[..n]);
        (n == bytes.len()).then_some(())
    }

    fn command(&mut self, flags: u8, tag: u32, bytes: u32, data: &[u8]) -> Option<()> {
        let bhs = self.peer.command(flags, tag, bytes, 0x2a);
        self.send(bhs, data)
    }

    /// Sends commands in every state, one after the other; returns `None` if it was cut.
    fn talk(&mut self) -> Option<()> {
        let data = pattern(4096);
        // Immediate data, and unsolicited data after it.
        self.command(0x21, 1, 1024, &data[..512])?;
        let bhs = self.peer.data_out(1, NO_TAG, 0, 512, true);
        self.send(bhs, &data[512..1024])?;
        let delivered = self.peer.next_command().task;
        // Solicited data.
        self.command(0xa1, 2, 4096, &data[..512])?;
        let (r2t, _) = self.peer.expect(opcode::R2T);
        let bhs = self.peer.data_out(2, r2t.u32(20), 0, 512, false);
        self.send(bhs, &data[512..1024])?;
        // A read, with memory for its response.
        let bhs = self.peer.command(0xc1, 3, 4096, 0x28);
        self.send(bhs, b"")?;
        let read = self.peer.next_command().task;
        assert!(self.peer.connection.reserve(read, 4096));
        self.peer.connection.respond(delivered, TaskResponse::default());
        // An immediate command, and one whose predecessor has not arrived.
        let mut bhs = self.peer.command(0xa1, 4, 512, 0x2a);
        bhs.0[0] |= 0x40;
        self.peer.cmd_sn -= 1;
        self.send(bhs, &data[..512])?;
        self.peer.cmd_sn += 1;
        self.command(0xa1, 5, 1024, &data[..1024])?;
        // Requests other than commands.
        let mut bhs = Bhs::answer(opcode::NOP_OUT, 0x80);
        bhs.put_u32(16, 6);
        bhs.put_u32(20, NO_TAG);
        bhs.put_u32(24, self.peer.cmd_sn);
        self.send(bhs, &data[..512])
    }
}

/// Cuts a connection of a session after this many bytes. Returns whether there was more to send.
fn cut(bytes: usize, dropped: bool) -> bool {
    let target = target();
    let mut stays = memory::session(&target, "", 0, &KEYS);
    let mut peer = Peer::new(&target, 0);
    let (mut header, mut text) = (stays.login_header(0x87), Vec::new());
    header.put(14, &stays.connection.nexus().unwrap().tsih.to_be_bytes());
    header.put(20, &[0, 1]);
    let keys = [("InitiatorName", NAME), ("TargetName", TARGET)];
    keys.iter().for_each(|(key, value)| crate::text::push(&mut text, key, value));
    peer.send(header, &text);
    peer.expect(opcode::LOGIN_RESPONSE);
    let mut cut = Cut { peer, left: bytes };
    let more = cut.talk().is_none();
    // The other connection logs it out, so that the session continues.
    let mut logout = Bhs::answer(opcode::LOGOUT | 0x40, 0x81);
    logout.put(20, &[0, 1]);
    stays.send(logout, b"");
    stays.end_logout();
    assert_eq!(stays.expect(opcode::LOGOUT_RESPONSE).0.0[2], 0);
    match dropped {
        true => drop(cut.peer.connection),
        false => drop(cut.peer.connection.end()),
    }
    assert_eq!(target.data_bytes(), 0, "cut after {bytes} bytes");
    let mut ping = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    ping.put_u32(20, NO_TAG);
    stays.send(ping, b"");
    let (bhs, _) = stays.expect(opcode::NOP_IN);
    // Places of numbers that have not arrived yet open the window further.
    assert!(bhs.u32(32) - bhs.u32(28) >= 7, "cut after {bytes} bytes: {bhs:?}");
    more
}

/// Returns how many bytes the next receive puts elsewhere than into the receive buffer.
fn frame_bytes(peer: &mut Peer) -> usize {
    let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
    peer.connection.receive_slices(&mut slices);
    slices.iter().rev().skip(1).map(|slice| slice.len()).sum()
}

/// By a reset from another session, in every state in which data may be in transit.
#[test]
fn partly_received_data_is_discarded_with_its_task() {
    for is_held in [false, true] {
        let target = target();
        let keys = [("InitialR2T", "No"), ("FirstBurstLength", "65536")];
        let mut peer = memory::session(&target, "", 0, &keys);
        peer.cmd_sn += u32::from(is_held);
        let bhs = peer.command(0x21, 1, 65_536, 0x2a);
        peer.send(bhs, b"");
        let bytes = peer.bytes(peer.data_out(1, NO_TAG, 0, 0, true), &pattern(65_536));
        peer.push(&bytes[..1048]);
        assert_eq!((frame_bytes(&mut peer), target.data_bytes()), (64_536, 65_536));
        assert_eq!(peer.connection.abort(|_, _| true), []);
        assert_eq!((frame_bytes(&mut peer), target.data_bytes()), (0, 0), "held: {is_held}");
        peer.push(&bytes[1048..]);
        assert!(peer.no_command() && !peer.connection.is_closed());
        // The stream continues after it.
        peer.cmd_sn = 10 + u32::from(!is_held);
        let bhs = peer.command(0xc1, 2, 4, 0x28);
        peer.send(bhs, b"");
        assert_eq!(peer.next_command().task.tag, 2);
    }
}

#[test]
fn a_connection_cut_at_any_byte_leaks_nothing() {
    let mut bytes = 0;
    while cut(bytes, bytes % 2 == 1) {
        bytes += 13;
    }
    assert!(bytes > 4096, "{bytes}");
}

/// A write that waits for memory gets it when another one has ended, and its data is no longer
/// solicited.
#[test]
fn after_a_logout_response_nothing_is_sent() {
    let limits = Limits { data_out_bytes_per_connection: 4096, ..limits() };
    let mut peer = Peer::logged_in(&target_with(limits), &[("ImmediateData", "No")]);
    let data = pattern(4096);
    let bhs = peer.command(0xa1, 1, 4096, 0x2a);
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    let bhs = peer.data_out(1, r2t.u32(20), 0, 0, true);
    peer.send(bhs, &data);
    let delivered = peer.next_command().task;
    let bhs = peer.command(0xa1, 2, 4096, 0x2a);
    peer.send(bhs, b"");
    peer.expect_silence();
    let mut logout = Bhs::answer(opcode::LOGOUT | 0x40, 0x80);
    logout.put_u32(16, 3);
    logout.put_u32(24, peer.cmd_sn);
    peer.send(logout, b"");
    peer.end_logout();
    peer.expect(opcode::LOGOUT_RESPONSE);
    peer.connection.respond(delivered, TaskResponse::default());
    peer.expect_silence();
    assert!(peer.connection.is_closed() && !peer.connection.has_output());
}
