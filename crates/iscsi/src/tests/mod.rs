//! A scripted peer: a tiny initiator that exchanges bytes with the state machine.

mod acknowledged;
mod data;
mod ends;
mod fuzz;
mod handing;
mod login;
mod logouts;
mod management;
mod memory;
mod order;
mod sessions;
mod several;
mod slow;

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use block::DataIn;

use crate::pdu::{BHS_BYTES, Bhs, FINAL, NO_TAG, opcode, padding};
use crate::*;

pub(super) const NAME: &str = "iqn.2026-01.example:initiator";
pub(super) const TARGET: &str = "iqn.2026-01.example:target";
pub(super) const LUN: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];

/// Accepts names with the tests' prefix; those with `chap` must authenticate.
pub(super) struct Known;

impl Access for Known {
    fn initiator(&self, name: &str) -> Option<InitiatorAccess> {
        let chap = name.contains("chap").then(|| ChapCredentials {
            user: "anna".into(),
            secret: b"twelve bytes or more".to_vec(),
            mutual: Some(("array".into(), b"another good secret".to_vec())),
        });
        name.starts_with("iqn.2026-01.example").then_some(InitiatorAccess { chap })
    }
}

pub(super) fn limits() -> Limits {
    Limits { commands_per_session: 8, immediate_commands_per_connection: 4, ..Limits::default() }
}

pub(super) fn target_with(limits: Limits) -> Arc<Target> {
    let portal = |address: &str, tag| Portal { address: address.parse().unwrap(), tag };
    Target::new(TargetConfig {
        target_name: TARGET.into(),
        target_alias: "test".into(),
        portals: vec![
            portal("0.0.0.0:3260", 1),
            portal("10.0.0.2:3260", 1),
            portal("[fe80::1]:3261", 2),
        ],
        limits,
        access: Arc::new(Known),
        data_out_phase: |cdb| usize::from(cdb[9]) * 512 % 4096,
        // A test command that contains its data length in blocks.
        data_out_bytes: |_, _, cdb| (cdb[0] == 0x2f).then(|| u64::from(cdb[8]) * 512),
    })
}

pub(super) fn target() -> Arc<Target> {
    target_with(limits())
}

/// The initiator's end of a connection.
pub(super) struct Peer {
    pub(super) connection: Connection,
    pub(super) now: Duration,
    /// The size of pieces in which bytes are moved to the machine, and from it.
    pub(super) chunk: usize,
    pub(super) cmd_sn: u32,
    pub(super) header_digest: bool,
    pub(super) data_digest: bool,
    pub(super) inbox: Vec<u8>,
    pub(super) isid: [u8; 6],
    pub(super) tsih: u16,
    pub(super) cid: u16,
}

impl Peer {
    pub(super) fn new(target: &Arc<Target>, portal_index: usize) -> Self {
        Self::new_at(target, portal_index, "192.0.2.9:40000")
    }

    /// Creates a peer at this address.
    pub(super) fn new_at(target: &Arc<Target>, portal_index: usize, peer: &str) -> Self {
        let opening = Opening {
            portal_index,
            local: "192.0.2.1:3260".parse().unwrap(),
            peer: peer.parse().unwrap(),
            entropy: [7; 32],
            now: Duration::from_secs(100),
        };
        Self {
            connection: Connection::new(target.clone(), opening),
            now: Duration::from_secs(100),
            chunk: usize::MAX,
            cmd_sn: 10,
            header_digest: false,
            data_digest: false,
            inbox: Vec::new(),
            isid: [0x80, 0, 0, 0, 0, 1],
            tsih: 0,
            cid: 0,
        }
    }

    /// Creates a peer that is logged in, with these operational keys.
    pub(super) fn logged_in(target: &Arc<Target>, keys: &[(&str, &str)]) -> Self {
        let mut peer = Self::new(target, 0);
        peer.log_in("Normal", keys);
        peer
    }

    pub(super) fn log_in(&mut self, kind: &str, keys: &[(&str, &str)]) -> Bhs {
        let mut all = vec![("InitiatorName", NAME), ("TargetName", TARGET), ("SessionType", kind)];
        all.extend_from_slice(keys);
        let (answer, _) = self.login_step(0x87, &all);
        assert_eq!((answer.0[36], answer.0[37]), (0, 0));
        assert_eq!(answer.flags(), 0x87);
        self.tsih = answer.u16(14);
        assert_ne!(self.tsih, 0);
        let asked = |name| keys.iter().any(|(key, value)| *key == name && value.contains("CRC"));
        self.header_digest = asked("HeaderDigest");
        self.data_digest = asked("DataDigest");
        answer
    }

    pub(super) fn login_step(&mut self, flags: u8, keys: &[(&str, &str)]) -> (Bhs, Pairs) {
        let mut text = Vec::new();
        for (key, value) in keys {
            crate::text::push(&mut text, key, value);
        }
        self.send(self.login_header(flags), &text);
        let (bhs, data) = self.receive().expect("a login response");
        assert_eq!(bhs.opcode(), opcode::LOGIN_RESPONSE);
        (bhs, crate::text::parse(&data).unwrap())
    }

    pub(super) fn login_header(&self, flags: u8) -> Bhs {
        let mut bhs = Bhs::answer(opcode::LOGIN | 0x40, flags);
        bhs.put(8, &self.isid);
        bhs.put(14, &self.tsih.to_be_bytes());
        bhs.put_u32(16, 0x55);
        bhs.put(20, &self.cid.to_be_bytes());
        bhs.put_u32(24, self.cmd_sn);
        bhs
    }

    /// Returns the bytes of a PDU.
    pub(super) fn bytes(&self, mut bhs: Bhs, data: &[u8]) -> Vec<u8> {
        bhs.put_data_bytes(data.len());
        let mut bytes = bhs.0.to_vec();
        if self.header_digest {
            bytes.extend_from_slice(&crate::digest::of(&bhs.0));
        }
        let mut padded = data.to_vec();
        padded.resize(data.len() + padding(data.len()), 0);
        bytes.extend_from_slice(&padded);
        if self.data_digest && !data.is_empty() {
            bytes.extend_from_slice(&crate::digest::of(&padded));
        }
        bytes
    }

    pub(super) fn send(&mut self, bhs: Bhs, data: &[u8]) {
        let bytes = self.bytes(bhs, data);
        self.push(&bytes);
    }

    /// Passes bytes to the machine. Returns how many it accepted.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
            self.connection.receive_slices(&mut slices);
            let most = (bytes.len() - done).min(self.chunk);
            let mut put = 0;
            for slice in &mut slices {
                let n = slice.len().min(most - put);
                slice[..n].copy_from_slice(&bytes[done + put..done + put + n]);
                put += n;
            }
            if put == 0 {
                break;
            }
            self.connection.received(put, self.now);
            done += put;
        }
        done
    }

    pub(super) fn pull(&mut self) {
        while self.connection.has_output() {
            let mut slices: Vec<IoSlice<'_>> = Vec::new();
            self.connection.transmit_slices(&mut slices, self.chunk.min(100_000));
            let mut bytes = 0;
            for slice in &slices {
                self.inbox.extend_from_slice(slice);
                bytes += slice.len();
            }
            assert!(bytes > 0 && bytes <= 100_000);
            self.connection.transmitted(bytes);
        }
    }

    pub(super) fn receive(&mut self) -> Option<(Bhs, Vec<u8>)> {
        self.pull();
        let bhs = Bhs(*self.inbox.first_chunk::<BHS_BYTES>()?);
        let mut at = BHS_BYTES;
        if self.header_digest {
            assert_eq!(crate::digest::of(&bhs.0), self.inbox[at..at + 4]);
            at += 4;
        }
        let data = self.inbox[at..at + bhs.data_bytes()].to_vec();
        let padded = data.len() + padding(data.len());
        if self.data_digest && !data.is_empty() {
            let sum = crate::digest::of(&self.inbox[at..at + padded]);
            assert_eq!(sum, self.inbox[at + padded..at + padded + 4]);
            at += 4;
        }
        self.inbox.drain(..at + padded);
        Some((bhs, data))
    }

    /// Reports that all tasks of a logout have ended, if one was requested. Other events are lost.
    pub(super) fn end_logout(&mut self) {
        while let Some(event) = self.event() {
            if let Event::TaskManagement(request) = event {
                self.connection.respond_management(request.handle, ManagementOutcome::Complete);
            }
        }
    }

    pub(super) fn expect(&mut self, opcode: u8) -> (Bhs, Vec<u8>) {
        let (bhs, data) = self.receive().expect("an answer");
        assert_eq!(bhs.opcode(), opcode, "{bhs:?}");
        (bhs, data)
    }

    pub(super) fn expect_silence(&mut self) {
        assert_eq!(self.receive().map(|(bhs, _)| bhs.opcode()), None);
    }

    /// Returns a command header; it uses up a CmdSN unless it is immediate.
    pub(super) fn command(&mut self, flags: u8, tag: u32, expected: u32, cdb: u8) -> Bhs {
        let mut bhs = Bhs::answer(opcode::COMMAND, flags);
        bhs.put(8, &LUN);
        bhs.put_u32(16, tag);
        bhs.put_u32(20, expected);
        bhs.put_u32(24, self.cmd_sn);
        bhs.0[32] = cdb;
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        bhs
    }

    pub(super) fn data_out(&self, tag: u32, ttt: u32, sn: u32, offset: u32, last: bool) -> Bhs {
        let mut bhs = Bhs::answer(opcode::DATA_OUT, if last { FINAL } else { 0 });
        bhs.put(8, &LUN);
        bhs.put_u32(16, tag);
        bhs.put_u32(20, ttt);
        bhs.put_u32(36, sn);
        bhs.put_u32(40, offset);
        bhs
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        self.connection.next_event()
    }

    pub(super) fn next_command(&mut self) -> Command {
        loop {
            match self.event().expect("an event") {
                Event::Command(command) => return command,
                Event::SessionStarted { .. } | Event::ConnectionAdded { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn no_command(&mut self) -> bool {
        !std::iter::from_fn(|| self.connection.next_event())
            .any(|event| matches!(event, Event::Command(_)))
    }

    /// Writes `data` by the negotiated rules, and returns the resulting command.
    pub(super) fn write(&mut self, tag: u32, data: &[u8], terms: Terms) -> Command {
        let all = data.len();
        let first = terms.first_burst.min(all);
        let immediate = if terms.immediate { first.min(terms.segment) } else { 0 };
        let more = !terms.initial_r2t && first > immediate;
        let flags = if more { 0x21 } else { 0xa1 };
        let bhs = self.command(flags, tag, all as u32, 0x2a);
        self.send(bhs, &data[..immediate]);
        if more {
            self.send_sequence(tag, NO_TAG, data, immediate..first, terms.segment);
        }
        while let Some((r2t, _)) = self.receive() {
            assert_eq!(r2t.opcode(), opcode::R2T, "{r2t:?}");
            assert_eq!(r2t.task_tag(), tag);
            let (at, n) = (r2t.u32(40) as usize, r2t.u32(44) as usize);
            assert!(n <= terms.burst);
            self.send_sequence(tag, r2t.u32(20), data, at..at + n, terms.segment);
        }
        self.next_command()
    }

    fn send_sequence(
        &mut self,
        tag: u32,
        ttt: u32,
        data: &[u8],
        range: std::ops::Range<usize>,
        segment: usize,
    ) {
        let mut at = range.start;
        let mut sn = 0;
        while at < range.end {
            let n = segment.min(range.end - at);
            let bhs = self.data_out(tag, ttt, sn, at as u32, at + n == range.end);
            self.send(bhs, &data[at..at + n]);
            at += n;
            sn += 1;
        }
    }
}

type Pairs = Vec<(String, String)>;

/// How data is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) initial_r2t: bool,
    pub(super) immediate: bool,
    pub(super) first_burst: usize,
    pub(super) burst: usize,
    pub(super) segment: usize,
}

pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ at >> 8).wrapping_mul(31) as u8).collect()
}

pub(super) fn good(data: &[u8]) -> TaskResponse {
    TaskResponse { data: DataIn::from_bytes(data), ..TaskResponse::default() }
}

pub(super) fn value<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
