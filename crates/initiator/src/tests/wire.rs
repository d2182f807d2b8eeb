//! A wire between initiator and target that moves bytes in pieces of random sizes, and a disk that
//! responds in random order.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use block::DataIn;
use iscsi::{
    Access, Command, Connection, InitiatorAccess, Limits, ManagementFunction, ManagementOutcome,
    Opening, Portal, Target, TargetConfig, TaskHandle, TaskResponse,
};

use super::*;

pub(crate) const BLOCK_BYTES: usize = 512;
const BLOCKS: usize = 2048;
const NOW: Duration = Duration::from_secs(100);

/// Commands of the disk besides READ(10) and WRITE(10).
pub(crate) const FAILS: u8 = 0xff;
pub(crate) const NEVER_ANSWERED: u8 = 0xfe;

/// Everybody may log in.
struct Open;

impl Access for Open {
    fn initiator(&self, name: &str) -> Option<InitiatorAccess> {
        (!name.contains("stranger")).then_some(InitiatorAccess { chap: None })
    }
}

pub(crate) fn target() -> Arc<Target> {
    target_with(Limits { commands_per_session: 16, ..Limits::default() })
}

pub(crate) fn target_with(limits: Limits) -> Arc<Target> {
    Target::new(TargetConfig {
        target_name: TARGET.into(),
        target_alias: "test".into(),
        portals: vec![Portal { address: "192.0.2.1:3260".parse().unwrap(), tag: 1 }],
        limits,
        access: Arc::new(Open),
        data_out_phase: |_| 0,
        data_out_bytes: |_, _, _| None,
    })
}

/// Pseudo-random numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

pub(crate) struct Wire {
    pub(crate) host: Initiator,
    pub(crate) connection: Connection,
    pub(crate) random: Random,
    /// The most bytes moved at a time.
    pub(crate) piece_max: usize,
    pub(crate) disk: Vec<u8>,
    /// Commands that are due a response.
    waiting: Vec<Command>,
    /// Commands that never get a response.
    pub(crate) stuck: Vec<TaskHandle>,
}

impl Wire {
    pub(crate) fn new(target: &Arc<Target>, host: Initiator, seed: u64) -> Self {
        let opening = Opening {
            portal_index: 0,
            local: "192.0.2.1:3260".parse().unwrap(),
            peer: "192.0.2.9:40000".parse().unwrap(),
            entropy: [7; 32],
            now: NOW,
        };
        Self {
            host,
            connection: Connection::new(target.clone(), opening),
            random: Random(seed),
            piece_max: 5000,
            disk: vec![0; BLOCKS * BLOCK_BYTES],
            waiting: Vec::new(),
            stuck: Vec::new(),
        }
    }

    /// Returns a wire with a logged-in initiator.
    pub(crate) fn logged_in(options: Options, seed: u64) -> Self {
        let mut wire = Self::new(&target(), Initiator::new(options), seed);
        wire.log_in();
        wire
    }

    pub(crate) fn log_in(&mut self) {
        self.host.login();
        let events = self.pump();
        assert!(matches!(events[..], [Event::LoggedIn { tsih }] if tsih != 0), "{events:?}");
    }

    /// Moves bytes until nothing moves. Returns the initiator's events.
    pub(crate) fn pump(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let sent = self.carry_out();
            self.serve();
            let got = self.carry_back();
            events.extend(std::iter::from_fn(|| self.host.next_event()));
            if !sent && !got && self.waiting.is_empty() {
                return events;
            }
        }
    }

    fn carry_out(&mut self) -> bool {
        let most = 1 + self.random.below(self.piece_max);
        let bytes = self.host.output();
        let bytes = &bytes[..bytes.len().min(most)];
        let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
        self.connection.receive_slices(&mut slices);
        let mut put = 0;
        for slice in &mut slices {
            let n = slice.len().min(bytes.len() - put);
            slice[..n].copy_from_slice(&bytes[put..put + n]);
            put += n;
        }
        if put > 0 {
            self.connection.received(put, NOW);
            self.host.taken(put);
        }
        self.connection.go_on();
        put > 0
    }

    fn carry_back(&mut self) -> bool {
        let most = 1 + self.random.below(self.piece_max);
        let mut slices: Vec<IoSlice<'_>> = Vec::new();
        self.connection.transmit_slices(&mut slices, most);
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.connection.transmitted(bytes.len());
        self.host.receive(&bytes).expect("no violation");
        !bytes.is_empty()
    }

    fn serve(&mut self) {
        while let Some(event) = self.connection.next_event() {
            match event {
                iscsi::Event::Command(command) if command.cdb.bytes()[0] == NEVER_ANSWERED => {
                    self.stuck.push(command.task);
                }
                iscsi::Event::Command(command) => self.waiting.push(command),
                iscsi::Event::TaskManagement(request) => self.manage(request),
                _ => {}
            }
        }
        if !self.waiting.is_empty() {
            let at = self.random.below(self.waiting.len());
            let command = self.waiting.swap_remove(at);
            let response = self.carry(&command);
            self.connection.respond(command.task, response);
        }
    }

    fn manage(&mut self, request: iscsi::TaskManagement) {
        let function = request.function;
        let ended = match function {
            ManagementFunction::AbortTask { task } => vec![task],
            _ => self.connection.abort_before(request.handle, |_, lun| {
                lun == request.lun || function == ManagementFunction::TargetWarmReset
            }),
        };
        for task in ended {
            self.waiting.retain(|command| command.task != task);
            self.connection.forget(task);
        }
        self.connection.respond_management(request.handle, ManagementOutcome::Complete);
    }

    fn carry(&mut self, command: &Command) -> TaskResponse {
        let cdb = command.cdb.bytes();
        let at = usize::from(u16::from_be_bytes([cdb[4], cdb[5]])) * BLOCK_BYTES;
        let bytes = usize::from(u16::from_be_bytes([cdb[7], cdb[8]])) * BLOCK_BYTES;
        match cdb[0] {
            0x28 => TaskResponse {
                data: DataIn::from_bytes(&self.disk[at..at + bytes]),
                ..TaskResponse::default()
            },
            0x2a => {
                let data = command.data_out.to_vec();
                self.disk[at..at + data.len()].copy_from_slice(&data);
                let transfer_bytes_wanted = Some(bytes as u64);
                TaskResponse { transfer_bytes_wanted, ..TaskResponse::default() }
            }
            FAILS => TaskResponse {
                status: 2,
                sense: vec![0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0],
                ..TaskResponse::default()
            },
            _ => TaskResponse::default(),
        }
    }

    pub(crate) fn write(&mut self, lba: u16, data: &[u8]) -> Itt {
        let cdb = cdb(0x2a, lba, data.len() / BLOCK_BYTES);
        self.host.command(LUN, &cdb, Attribute::Simple, Some(data.to_vec()), 0).unwrap()
    }

    pub(crate) fn read(&mut self, lba: u16, bytes: usize) -> Itt {
        let cdb = cdb(0x28, lba, bytes / BLOCK_BYTES);
        self.host.command(LUN, &cdb, Attribute::Simple, None, bytes as u32).unwrap()
    }

    pub(crate) fn simple(&mut self, opcode: u8) -> Itt {
        self.host.command(LUN, &[opcode, 0, 0, 0, 0, 0], Attribute::Simple, None, 0).unwrap()
    }
}

pub(crate) fn cdb(opcode: u8, lba: u16, blocks: usize) -> [u8; 10] {
    let [high, low] = lba.to_be_bytes();
    let [more, less] = (blocks as u16).to_be_bytes();
    [opcode, 0, 0, 0, high, low, 0, more, less, 0]
}

/// Returns the response to a command, which must be the only event.
pub(crate) fn only_answer(events: Vec<Event>) -> Answer {
    match <[Event; 1]>::try_from(events) {
        Ok([Event::Answered(answer)]) => answer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn pattern(bytes: usize, salt: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at ^ at >> 8 ^ salt).wrapping_mul(31) as u8).collect()
}
