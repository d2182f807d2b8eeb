//! A session with one or two connections, and PDUs in any order: commands, solicited and
//! unsolicited data, task management, text, logout. Answers come at once, later or never.
//!
//! An input consists of the negotiated keys, then actions.

use std::sync::Arc;
use std::time::Duration;

use block::DataIn;
use iscsi::{
    Event, ManagementFunction, ManagementHandle, ManagementOutcome, Target, TaskHandle,
    TaskResponse,
};

use crate::input::{Input, Script};
use crate::peer::{BHS_BYTES, Peer, target};

/// The maximum number of actions of an input.
const ACTIONS_MAX: usize = 64;
/// The maximum size of the data in a response; the limit of the output depends on it.
const ANSWER_BYTES_MAX: usize = 512 << 10;

/// Opcodes that initiators send, and some that they do not (RFC 7143, 11.2.1.2).
const OPCODES: [u8; 16] = [1, 1, 1, 1, 5, 5, 5, 0, 2, 2, 4, 6, 0x10, 3, 0x25, 0x1f];
const TAGS: [u32; 8] = [0, 1, 2, 3, 4, 5, 0x100, u32::MAX];

struct World {
    target: Arc<Target>,
    peers: Vec<Peer>,
    keys: Vec<(&'static str, &'static str)>,
    cmd_sn: u32,
    /// Commands that were delivered and not answered, with their connections.
    commands: Vec<(usize, TaskHandle)>,
    managements: Vec<(usize, ManagementHandle)>,
    /// Transfers that the target solicited: connection, tags, offset, length.
    asked: Vec<(usize, (u32, u32, u32, u32))>,
}

impl World {
    fn new(input: &mut Input<'_>) -> Option<Self> {
        let flags = input.u8();
        let yes = |bit: u8| if flags & bit == 0 { "Yes" } else { "No" };
        let digest = |bit: u8| if flags & bit == 0 { "None" } else { "CRC32C" };
        let keys = vec![
            ("HeaderDigest", digest(1)),
            ("DataDigest", digest(2)),
            ("InitialR2T", yes(4)),
            ("ImmediateData", yes(8)),
            ("FirstBurstLength", if flags & 16 == 0 { "1024" } else { "8192" }),
            ("MaxBurstLength", if flags & 16 == 0 { "2048" } else { "16384" }),
            ("MaxOutstandingR2T", if flags & 32 == 0 { "1" } else { "4" }),
            ("MaxConnections", "2"),
        ];
        let mut world = Self {
            target: target(),
            peers: Vec::new(),
            keys,
            cmd_sn: 10,
            commands: Vec::new(),
            managements: Vec::new(),
            asked: Vec::new(),
        };
        world.open();
        if flags & 64 != 0 {
            world.open();
        }
        let chunk = input.pick(&[usize::MAX, usize::MAX, 1000, 49, 1]);
        world.peers.iter_mut().for_each(|peer| peer.chunk = chunk);
        (!world.peers.is_empty()).then_some(world)
    }

    /// Adds a connection, up to two.
    fn open(&mut self) {
        let mut peer = Peer::new(&self.target, self.peers.len() as u16);
        peer.tsih = self.peers.first().map_or(0, |first| first.tsih);
        // Only the leading connection negotiates keys of the session (RFC 7143, 13).
        let count = if peer.tsih == 0 { self.keys.len() } else { 2 };
        if self.peers.len() < 2 && peer.log_in(&self.keys[..count], self.cmd_sn) {
            self.peers.push(peer);
            self.serve();
        }
    }

    /// Takes all events of all connections.
    fn serve(&mut self) {
        for at in 0..self.peers.len() {
            let mut bound = 0;
            while let Some(event) = self.peers[at].connection.next_event() {
                bound += 1;
                assert!(bound < 10_000, "endless events");
                self.take(at, event);
            }
        }
        for (at, peer) in self.peers.iter_mut().enumerate() {
            self.asked.extend(peer.read().into_iter().map(|asked| (at, asked)));
        }
        let keep = self.asked.len().saturating_sub(32);
        self.asked.drain(..keep);
    }

    fn take(&mut self, at: usize, event: Event) {
        match event {
            Event::Command(command) => {
                let bytes = command.data_out.len();
                assert!(bytes <= command.expected_out_bytes as usize, "more data than expected");
                assert!(!command.cdb.bytes().is_empty());
                self.commands.push((at, command.task));
            }
            Event::TaskManagement(request) => {
                let connection = &mut self.peers[at].connection;
                let ends = |task: TaskHandle, lun: [u8; 8]| match request.function {
                    ManagementFunction::AbortTask { task: one } => task == one,
                    ManagementFunction::TargetWarmReset => true,
                    _ => lun == request.lun,
                };
                let ended = connection.abort_before(request.handle, ends);
                self.commands.retain(|(_, task)| !ended.contains(task));
                for task in ended {
                    self.peers[at].connection.forget(task);
                }
                self.managements.push((at, request.handle));
            }
            Event::SessionStarted { .. }
            | Event::ConnectionAdded { .. }
            | Event::LoginRefused { .. }
            | Event::Acknowledged { .. }
            | Event::Wake { .. } => {}
        }
    }

    /// Runs one action of the input.
    fn act(&mut self, input: &mut Input<'_>) {
        let what = input.u8();
        let at = usize::from(what & 1) % self.peers.len();
        match what >> 1 & 0x0f {
            0..=5 => self.send(at, input),
            6 | 7 => self.send_asked(input),
            8 | 9 => self.respond(input),
            10 => self.respond_management(input),
            11 => {
                let peer = &mut self.peers[at];
                peer.now += Duration::from_secs(input.u8().into());
                let now = peer.now;
                peer.connection.tick(now);
            }
            12 => self.peers[at].pull(input.u16().into()),
            13 => self.peers[at].push(input.bytes(300)),
            14 => self.abort(at, input),
            _ => self.end(at, input),
        }
        if what & 0xe0 != 0xe0 {
            self.peers.iter_mut().for_each(|peer| peer.pull(usize::MAX));
        }
    }

    /// Sends a PDU that an initiator might send.
    fn send(&mut self, at: usize, input: &mut Input<'_>) {
        let kind = input.u8();
        let mut bhs = [0; BHS_BYTES];
        bhs[0] = OPCODES[usize::from(kind & 0x0f)] | if kind & 0x40 == 0 { 0 } else { 0x40 };
        bhs[1] = input.u8();
        bhs[9] = input.u8() & 3;
        bhs[16..20].copy_from_slice(&input.pick(&TAGS).to_be_bytes());
        let third = match bhs[0] & 0x3f {
            1 => input.number() as u32,
            _ => input.pick(&TAGS),
        };
        bhs[20..24].copy_from_slice(&third.to_be_bytes());
        let skew = if kind & 0x80 == 0 { 0 } else { i32::from(input.u8() as i8) };
        bhs[24..28].copy_from_slice(&self.cmd_sn.wrapping_add_signed(skew).to_be_bytes());
        // Non-immediate commands take a CmdSN; a skewed one leaves a gap.
        if kind & 0xc0 == 0 && !matches!(bhs[0], 5 | 0x10 | 0x25) {
            self.cmd_sn = self.cmd_sn.wrapping_add(1);
        }
        let rest = input.array::<16>();
        bhs[32..48].copy_from_slice(&rest);
        if bhs[0] & 0x3f == 5 {
            bhs[36..44].fill(0);
            bhs[39] = rest[7] & 3;
            bhs[42..44].copy_from_slice(&[rest[10] & 0x1f, 0]);
        }
        let mut data = input.content();
        data.truncate(16_384);
        if kind & 0x20 == 0 {
            return self.peers[at].send(bhs, &data);
        }
        // An additional header segment, or a wrong digest.
        let mut bytes = self.peers[at].frame(bhs, &data);
        let (place, byte) = (usize::from(input.u16()) % bytes.len(), input.u8());
        bytes[place] ^= byte;
        self.peers[at].push(&bytes);
    }

    /// Sends solicited data, mostly as requested.
    fn send_asked(&mut self, input: &mut Input<'_>) {
        if self.asked.is_empty() {
            return;
        }
        let (at, (tag, transfer, offset, length)) =
            self.asked.swap_remove(input.below(self.asked.len()));
        let (mut sent, mut data_sn) = (0, 0u32);
        let piece = input.pick(&[8192, 4096, 512, 512]);
        let stop = input.pick(&[u32::MAX, u32::MAX, u32::MAX, 0, 1, 2]);
        while sent < length && data_sn < stop.min(64) {
            let bytes = piece.min(length - sent);
            let mut bhs = [0; BHS_BYTES];
            bhs[0] = 5;
            bhs[1] = if sent + bytes == length { 0x80 } else { 0 };
            bhs[16..20].copy_from_slice(&tag.to_be_bytes());
            bhs[20..24].copy_from_slice(&transfer.to_be_bytes());
            bhs[36..40].copy_from_slice(&data_sn.to_be_bytes());
            bhs[40..44].copy_from_slice(&(offset + sent).to_be_bytes());
            self.peers[at].send(bhs, &vec![data_sn as u8; bytes as usize]);
            sent += bytes;
            data_sn += 1;
        }
    }

    fn respond(&mut self, input: &mut Input<'_>) {
        if self.commands.is_empty() {
            return;
        }
        let place = input.below(self.commands.len());
        if self.peers[self.commands[place].0].connection.is_output_full() {
            return; // nothing long is to be prepared then
        }
        let (at, task) = self.commands.swap_remove(place);
        let kind = input.u8();
        let connection = &mut self.peers[at].connection;
        if kind == 0xff {
            return connection.forget(task);
        }
        let bytes = (usize::from(input.u16()) * 16).min(ANSWER_BYTES_MAX);
        connection.respond(
            task,
            TaskResponse {
                status: if kind & 1 == 0 { 0 } else { 2 },
                sense: if kind & 1 == 0 { Vec::new() } else { vec![0x70; 18] },
                data: DataIn::from_bytes(&vec![kind; bytes]),
                transfer_bytes_wanted: (kind & 2 == 2).then(|| input.number()),
                acknowledge: (kind & 4 == 4).then_some(1),
            },
        );
    }

    fn respond_management(&mut self, input: &mut Input<'_>) {
        use ManagementOutcome as O;
        if self.managements.is_empty() {
            return;
        }
        let (at, handle) = self.managements.swap_remove(input.below(self.managements.len()));
        let outcome = input.pick(&[O::Complete, O::TaskDoesNotExist, O::LunDoesNotExist]);
        self.peers[at].connection.respond_management(handle, outcome);
    }

    fn abort(&mut self, at: usize, input: &mut Input<'_>) {
        let lun = [0, input.u8() & 3, 0, 0, 0, 0, 0, 0];
        let all = input.pick(&[true, false]);
        let aborted = self.peers[at].connection.abort(|_, of| all || of == lun);
        self.commands.retain(|(_, task)| !aborted.contains(task));
        for task in aborted {
            self.peers[at].connection.forget(task);
        }
    }

    /// Loses the socket, or closes it for the target. The initiator may connect again.
    fn end(&mut self, at: usize, input: &mut Input<'_>) {
        match input.u8() {
            0..=99 => self.peers[at].connection.request_logout(5),
            100..=149 => self.peers[at].connection.close(),
            _ if self.peers.len() == 2 => {
                let peer = self.peers.remove(at);
                peer.connection.end();
                let renamed = |held: usize| if held > at { held - 1 } else { held };
                self.commands.retain(|(held, _)| *held != at);
                self.managements.retain(|(held, _)| *held != at);
                self.asked.retain(|(held, _)| *held != at);
                self.commands.iter_mut().for_each(|(held, _)| *held = renamed(*held));
                self.managements.iter_mut().for_each(|(held, _)| *held = renamed(*held));
                self.asked.iter_mut().for_each(|(held, _)| *held = renamed(*held));
            }
            _ => self.open(),
        }
    }
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Some(mut world) = World::new(&mut input) else { panic!("the login was refused") };
    for _ in 0..ACTIONS_MAX {
        if input.is_empty() {
            break;
        }
        world.act(&mut input);
        world.serve();
    }
    let World { target, peers, .. } = world;
    for peer in peers {
        peer.connection.end();
    }
    assert!(target.sessions().is_empty(), "a session without connections");
}

/// Appends a PDU with its header's fields in the order of reading.
fn pdu(script: Script, kind: u8, flags: u8, tag: u8, third: Script, data: &[u8]) -> Script {
    let script = script.u8(0).u8(kind).u8(flags).u8(0).u8(tag).raw(&third.done());
    let mut cdb = [0; 16];
    cdb[0] = 0x2a;
    script.raw(&cdb).content(data)
}

/// Returns writes with immediate and with solicited data, a read, each task management function, a
/// NOP-Out, a text request and a logout, all for several kinds of sessions.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for flags in [0u8, 3, 4, 8, 12, 16 + 4, 32, 64 + 3] {
        let start = Script::new().u8(flags).u8(0);
        let length = |bytes| Script::new().number(bytes);
        let answer = |script: Script| script.u8(16).u8(0).u8(0).u16(100);
        let write = pdu(start.clone(), 0, 0xa1, 0, length(512), &[7; 512]);
        seeds.push(answer(write.clone()).done());
        let asking = pdu(start.clone(), 0, 0xa1, 1, length(8192), &[]);
        let given = (0..4).fold(asking, |script, _| script.u8(12).u8(0).u8(0).u8(0));
        seeds.push(answer(given).done());
        seeds.push(answer(pdu(start.clone(), 0, 0xc1, 2, length(1600), &[])).done());
        for function in 1..8u8 {
            let script = pdu(write.clone(), 8, 0x80 | function, 3, Script::new().u8(0), &[]);
            seeds.push(script.u8(20).u8(0).u8(0).done());
        }
        let tag = || Script::new().u8(7);
        seeds.push(pdu(start.clone(), 7, 0x80, 1, tag(), b"ping").done());
        seeds.push(pdu(start.clone(), 10, 0x80, 1, tag(), b"SendTargets=All\0").done());
        seeds.push(pdu(start, 11, 0x80, 1, Script::new().u8(0), &[]).done());
    }
    seeds
}
