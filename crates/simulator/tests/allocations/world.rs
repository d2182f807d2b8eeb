//! A host, a front end, and the store below it, on an in-memory disk: without sockets, threads or
//! time, so that the same commands cost the same each time.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::sync::Arc;
use std::time::Duration;

use block::{FrameMut, VolumeLimits};
use front::Wires;
use initiator::{Attribute, Event, Initiator, Options};
use iscsi::Limits;
use simulator::array::controller::{Controller, Setup, SimClock, TARGET_NAME, make, opening};
use simulator::array::network::Link;
use simulator::disk::SimDisk;
use simulator::rng::Rng;
use store::OpenOptions;
use sys::allocations::{Allocations, allocations_of};

const HOST: &str = "iqn.2026-01.example:host";
const LUN: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];
const MIB: u64 = 1 << 20;
const POOL_BYTES: u64 = 1024 * MIB;
const VOLUME_BYTES: u64 = 256 * MIB;
/// Enough memory for a quarter of [`super::commands::FILLED_BLOCKS`] as data.
const MEMORY_BYTES: u64 = 32 * MIB;
/// More than any of the commands takes.
const POOLED_FRAMES: usize = 256;
/// GOOD (SAM-5, 5.3).
const GOOD: u8 = 0;

/// A command, and its data.
pub struct Command {
    pub cdb: Vec<u8>,
    pub data_out: Option<Vec<u8>>,
    pub data_in_bytes: u32,
}

/// The cost of one or more commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Those of the front end and all below it, except the disk.
    pub allocations: Allocations,
    /// Calls that receive, send, or submit requests to the kernel.
    pub system_calls: u64,
    /// Reads of the device.
    pub reads: u64,
    /// Writes and flushes of the device.
    pub writes: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.allocations += more.allocations;
        self.system_calls += more.system_calls;
        self.reads += more.reads;
        self.writes += more.writes;
    }
}

/// The two directions of a connection, which accepts any amount at once.
#[derive(Default)]
struct Pipes {
    to_array: VecDeque<u8>,
    to_host: Vec<u8>,
    calls: u64,
}

impl Wires for Pipes {
    fn receive(&mut self, _: usize, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.calls += 1;
        if self.to_array.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut total = 0;
        for slice in into {
            let bytes = slice.len().min(self.to_array.len());
            self.to_array.read_exact(&mut slice[..bytes])?;
            total += bytes;
        }
        Ok(total)
    }

    fn send(&mut self, _: usize, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls += 1;
        from.iter().for_each(|slice| self.to_host.extend_from_slice(slice));
        Ok(from.iter().map(|slice| slice.len()).sum())
    }

    fn close(&mut self, _: usize) {}
}

/// One host with one connection.
pub struct World {
    disk: Arc<SimDisk>,
    clock: Arc<SimClock>,
    array: Controller,
    pipes: Pipes,
    host: Initiator,
    /// For the data of commands, and their locations.
    pub rng: Rng,
}

impl World {
    /// Makes a pool with an empty volume, and a host that is logged in and has received the unit
    /// attention of the array's start.
    pub fn new() -> Self {
        let (disk, mut rng) = (Arc::new(SimDisk::new(POOL_BYTES, 1)), Rng::new(1));
        let clock = Arc::new(SimClock::default());
        make(&disk, &setup(), format::geometry::SEGMENT_BYTES_MIN, &mut rng).unwrap();
        let mut array = Controller::open(&disk, &setup(), &clock).unwrap();
        array.front(0).open(0, opening(Link(0), 1, Duration::ZERO, &mut rng));
        let mut host = Initiator::new(Options {
            initiator_name: HOST.into(),
            target_name: TARGET_NAME.into(),
            ..Options::default()
        });
        host.login();
        // All data in flight has room, so that the network allocates nothing.
        let (to_array, to_host) = (VecDeque::with_capacity(1 << 20), Vec::with_capacity(1 << 20));
        let pipes = Pipes { to_array, to_host, calls: 0 };
        let mut world = Self { disk, clock, array, pipes, host, rng };
        assert!(matches!(world.next_event(&mut Spent::default()), Event::LoggedIn { .. }));
        let ready = || Command { cdb: vec![0; 6], data_out: None, data_in_bytes: 0 };
        while world.ask(ready()).0 != GOOD {}
        world
    }

    /// Sends a command, which has to succeed, and returns its cost and its data.
    pub fn command(&mut self, command: Command) -> (Spent, Vec<u8>) {
        self.do_chores();
        let name = command.cdb[0];
        let (status, spent, data_in) = self.ask(command);
        assert_eq!(status, GOOD, "the status of a command {name:02x}h");
        (spent, data_in)
    }

    fn ask(&mut self, command: Command) -> (u8, Spent, Vec<u8>) {
        let Command { cdb, data_out, data_in_bytes } = command;
        give_back_frames();
        let asked = self.host.command(LUN, &cdb, Attribute::Simple, data_out, data_in_bytes);
        let mut spent = Spent::default();
        let (reads, writes) = (self.disk.read_count(), self.disk.io_count());
        let answer = match self.next_event(&mut spent) {
            Event::Answered(answer) if Ok(answer.itt) == asked => answer,
            other => panic!("{other:?}"),
        };
        // Work left after an answer counts for its command as well.
        spent += self.turn();
        while self.array.is_busy(0) {
            self.array.disk_step(0, &mut self.rng);
            spent += self.turn();
        }
        spent.reads = self.disk.read_count() - reads;
        spent.writes = self.disk.io_count() - writes;
        (answer.status, spent, answer.data_in)
    }

    /// Runs until the host has an event.
    fn next_event(&mut self, spent: &mut Spent) -> Event {
        for _ in 0..1000 {
            if let Some(event) = self.host.next_event() {
                return event;
            }
            *spent += self.turn();
            while self.array.is_busy(0) {
                self.array.disk_step(0, &mut self.rng);
            }
        }
        panic!("nothing happens");
    }

    /// Delivers what the host sends, and runs a turn of the front end to its end.
    fn turn(&mut self) -> Spent {
        self.clock.advance_to(self.clock.time() + Duration::from_micros(10));
        let sent = self.host.output().len();
        if sent > 0 {
            self.pipes.to_array.extend(self.host.output());
            self.host.taken(sent);
            self.array.front(0).readable(0, false);
        }
        let (calls, submits) = (self.pipes.calls, self.array.submits(0));
        let Self { array, pipes, .. } = self;
        let ((), allocations) = allocations_of(|| array.turn_over(0, pipes));
        self.host.receive(&self.pipes.to_host).unwrap();
        self.pipes.to_host.clear();
        let system_calls = self.pipes.calls - calls + self.array.submits(0) - submits;
        Spent { allocations, system_calls, ..Spent::default() }
    }

    /// Does the work of other threads, between two commands.
    fn do_chores(&mut self) {
        while let Some(chore) = self.array.wanted() {
            self.array.chores().run(chore, 0).unwrap();
        }
    }
}

/// The in-memory disk keeps the frames that are written to it. Other disks return them, so that a
/// thread's pool has some.
fn give_back_frames() {
    drop((0..POOLED_FRAMES).map(|_| FrameMut::stale()).collect::<Vec<_>>());
}

fn setup() -> Setup {
    Setup {
        options: OpenOptions { memory_bytes: MEMORY_BYTES, ..OpenOptions::default() },
        threads: 1,
        ports: 1,
        limits: Limits::default(),
        hosts: vec![HOST.into()],
        volume_bytes: vec![VOLUME_BYTES],
        volume_limits: VolumeLimits::NONE,
    }
}
