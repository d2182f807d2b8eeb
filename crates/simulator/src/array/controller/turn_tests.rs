//! What a turn of a front end does at most, while time passes in it.

use block::DataOut;
use initiator::{Answer, Attribute, Event, Function, Initiator, Itt, Options};

use super::super::network::{Rules, Side};
use super::*;

/// How far each reading of the clock advances it.
const TICK_NS: u64 = 10_000;
/// Commands that one host sends at once.
const MANY: usize = 48;
/// Slices of 60 us, and the answers at their ends.
const ANSWERS_OF_A_TURN_MAX: usize = 6;

fn host_name(number: usize) -> String {
    format!("iqn.2026-01.example:host-{number}")
}

fn setup() -> Setup {
    let of_one_host = super::tests::setup();
    Setup {
        options: OpenOptions { memory_bytes: 1 << 20, ..of_one_host.options.clone() },
        threads: 1,
        ports: 1,
        hosts: (0..2).map(host_name).collect(),
        ..of_one_host
    }
}

/// Two hosts with a connection each, both on one front end.
struct World {
    network: Network,
    array: Controller,
    clock: Arc<SimClock>,
    rng: Rng,
    hosts: Vec<(Initiator, Link)>,
    /// Those of both sessions.
    tsih: [u16; 2],
}

impl World {
    /// Logs both hosts in; they have received the unit attention of the array's start.
    fn new(disk: &Arc<SimDisk>) -> Self {
        let clock = Arc::new(SimClock::new(TICK_NS));
        let mut array = Controller::open(disk, &setup(), &clock).unwrap();
        let mut network = Network::new(1, Rules { slow_percent: 0, ..Rules::default() });
        let hosts = (0..2).map(|number| {
            let link = network.open(Duration::ZERO);
            array.accept(link, 1);
            let (initiator_name, target_name) = (host_name(number), TARGET_NAME.into());
            let options = Options { initiator_name, target_name, ..Options::default() };
            let mut host = Initiator::new(options);
            host.login();
            (host, link)
        });
        let hosts = hosts.collect();
        let mut world = Self { network, array, clock, rng: Rng::new(1), hosts, tsih: [0; 2] };
        world.until(|world| {
            for (tsih, (host, _)) in world.tsih.iter_mut().zip(&mut world.hosts) {
                if let Some(Event::LoggedIn { tsih: given }) = host.next_event() {
                    *tsih = given;
                }
            }
            !world.tsih.contains(&0)
        });
        for at in 0..2 {
            world.send(at, &[&[0; 6][..]; 4]);
            world.until_answered(at, 4);
        }
        world
    }

    fn send(&mut self, host: usize, commands: &[&[u8]]) {
        let lun = [0, 1, 0, 0, 0, 0, 0, 0];
        for cdb in commands {
            let expected = if cdb.len() > 6 { 4096 } else { 0 };
            self.hosts[host].0.command(lun, cdb, Attribute::Simple, None, expected).unwrap();
        }
    }

    /// Makes the first host read blocks.
    fn send_reads(&mut self, blocks: std::ops::Range<usize>) {
        let reads: Vec<_> = blocks
            .map(|at| at as u16)
            .map(|at| [0x28, 0, 0, 0, (at >> 5) as u8, (at << 3) as u8, 0, 0, 8, 0])
            .collect();
        let reads: Vec<&[u8]> = reads.iter().map(|cdb| &cdb[..]).collect();
        self.send(0, &reads);
    }

    /// Delivers all that the network can deliver now.
    fn carry(&mut self) {
        let now = self.clock.time();
        for (host, link) in &mut self.hosts {
            let sent = self.network.send(*link, Side::Host, host.output(), now);
            host.taken(sent);
            let mut bytes = [0; 4096];
            while let Some(count) = self.network.receive(*link, Side::Host, &mut bytes, now) {
                assert!(count > 0, "the connection was closed");
                host.receive(&bytes[..count]).unwrap();
            }
        }
    }

    fn turn(&mut self) {
        self.clock.advance_to(self.clock.time() + Duration::from_millis(1));
        self.carry();
        self.clock.advance_to(self.clock.time() + Duration::from_millis(1));
        self.array.turn(0, &mut self.network, &mut self.rng);
        self.clock.advance_to(self.clock.time() + Duration::from_millis(1));
        self.carry();
    }

    fn end_all_reads(&mut self) {
        while self.array.is_busy(0) {
            self.array.disk_step(0, &mut self.rng);
        }
    }

    fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..10_000 {
            if done(self) {
                return;
            }
            self.turn();
            self.array.disk_step(0, &mut self.rng);
        }
        panic!("nothing happens");
    }

    /// Returns the answers that a host has received.
    fn take_answers(&mut self, host: usize) -> Vec<Answer> {
        let event = std::iter::from_fn(|| self.hosts[host].0.next_event());
        let answer = |event| match event {
            Event::Answered(answer) => answer,
            event => panic!("{event:?}"),
        };
        event.map(answer).collect()
    }

    /// Returns how many those are.
    fn answers(&mut self, host: usize) -> usize {
        self.take_answers(host).len()
    }

    /// Returns how many answers to reads the first host has received, and how many others.
    fn answers_by_kind(&mut self) -> (usize, usize) {
        let (reads, others): (Vec<_>, Vec<_>) =
            self.take_answers(0).into_iter().partition(|answer| !answer.data_in.is_empty());
        (reads.len(), others.len())
    }

    fn until_answered(&mut self, host: usize, count: usize) {
        let mut left = count;
        self.until(|world| {
            left -= world.answers(host);
            left == 0
        });
    }

    /// The other host sends a command that needs no disk while `waiting` commands of the first one
    /// wait: it completes in the next turn, and not all others complete before it.
    fn assert_is_served_beside(&mut self, waiting: usize) {
        assert!(waiting > ANSWERS_OF_A_TURN_MAX, "enough completions are waiting: {waiting}");
        self.send(1, &[&[0; 6][..]]);
        self.turn();
        assert_eq!(self.answers(1), 1);
        let answered = self.answers(0);
        assert!(answered <= ANSWERS_OF_A_TURN_MAX, "{answered} of {waiting}");
        self.until_answered(0, waiting - answered);
    }
}

fn pool() -> Arc<SimDisk> {
    let disk = Arc::new(SimDisk::new(32 << 20, 1));
    make(&disk, &setup(), 64 << 10, &mut Rng::new(1)).unwrap();
    disk
}

#[test]
fn a_burst_from_one_host_does_not_delay_another_host() {
    let mut world = World::new(&pool());
    world.send(0, &[&[0; 6][..]; MANY]);
    world.assert_is_served_beside(MANY);
}

/// A pool with incompressible blocks, so that each is read by itself.
fn written() -> Arc<SimDisk> {
    let disk = pool();
    let first = World::new(&disk);
    let volume = first.array.array.lun_map(&host_name(0)).luns[&1].id;
    for block in 0..MANY {
        let range = SectorRange::new(8 * block as u64, 8);
        let mut rng = Rng::new(block as u64);
        let bytes: Vec<u8> = (0..4096).map(|_| rng.draw() as u8).collect();
        let data = DataOut::from_bytes(&bytes, 0);
        let write = VolumeRequest::Write { volume, range, data, fua: false };
        first.array.store.execute(write).unwrap();
    }
    disk
}

#[test]
fn a_burst_of_disk_completions_does_not_delay_another_host() {
    let disk = written();
    // Reads of the map complete before those of data: a first world counts the steps they take.
    let mut world = reading(&disk);
    let mut steps = 0;
    while world.answers(0) == 0 {
        steps += 1;
        world.end_all_reads();
        (0..100).for_each(|_| world.turn());
    }
    drop(world);
    let mut world = reading(&disk);
    for _ in 1..steps {
        world.end_all_reads();
        (0..100).for_each(|_| world.turn());
    }
    assert_eq!(world.array.in_flight(0), MANY);
    world.end_all_reads();
    world.assert_is_served_beside(MANY);
}

/// A world with nothing in memory, whose first host reads all blocks.
fn reading(disk: &Arc<SimDisk>) -> World {
    let mut world = World::new(disk);
    world.send_reads(0..MANY);
    (0..100).for_each(|_| world.turn());
    world
}

#[test]
fn a_front_end_polls_for_reads_but_not_for_commits() {
    let disk = written();
    let mut world = World::new(&disk);
    let write = |world: &mut World, block: u8| {
        let lun = [0, 1, 0, 0, 0, 0, 0, 0];
        let cdb = [0x2a, 0, 0, 0, 0, block << 3, 0, 0, 8, 0];
        let data = Some(vec![block; 4096]);
        world.hosts[0].0.command(lun, &cdb, Attribute::Simple, data, 0).unwrap();
    };
    (0..4).for_each(|block| write(&mut world, block));
    let mut has_begun = || {
        world.turn();
        world.array.is_busy(0)
    };
    assert!((0..100).any(|_| has_begun()));
    // There may be received data to process first.
    let mut sleeps = || {
        world.turn();
        world.array.is_busy(0) && world.array.due_at() > world.clock.time()
    };
    assert!((0..10).any(|_| sleeps()), "it sleeps until the commit has ended");
    world.until_answered(0, 4);
    drop(world);
    let mut world = World::new(&disk);
    world.send_reads(8..12);
    let mut has_begun = || {
        world.turn();
        world.array.is_busy(0)
    };
    assert!((0..100).any(|_| has_begun()));
    assert!(world.array.due_at() <= world.clock.time(), "it polls");
}

#[test]
fn reads_are_submitted_in_a_separate_turn() {
    let mut world = World::new(&written());
    world.send_reads(0..MANY / 2);
    (0..100).for_each(|_| world.turn());
    world.end_all_reads();
    world.send_reads(MANY / 2..MANY);
    world.turn();
    assert_eq!(world.array.in_flight(0), 0, "the completions used up the turn's time");
    assert!(world.array.due_at() <= world.clock.time(), "the next turn is due");
    world.send(1, &[&[0; 6][..]]);
    world.turn();
    assert_eq!(world.answers(1), 1);
    assert!(world.array.in_flight(0) > 0);
    let answered = world.answers(0);
    world.until_answered(0, MANY - answered);
}

#[test]
fn disk_completions_wait_at_most_a_few_turns() {
    let mut world = World::new(&written());
    world.send_reads(0..MANY);
    (0..100).for_each(|_| world.turn());
    world.end_all_reads();
    // Several turns' worth of commands that need no disk.
    world.send(0, &[&[0; 6][..]; MANY]);
    world.turn();
    let (reads, others) = world.answers_by_kind();
    assert_eq!(reads, 0, "the received commands used up the turn's time");
    assert!(others > 0 && world.array.due_at() <= world.clock.time(), "the next turn is due");
    world.turn();
    let (reads, more) = world.answers_by_kind();
    assert!(reads > 0, "reads end although commands keep arriving");
    world.until_answered(0, 2 * MANY - others - reads - more);
}

const LUN: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];

/// A world whose first host has a write in flight to the disk, and the write's tag.
fn writing(disk: &Arc<SimDisk>) -> (World, Itt) {
    let mut world = World::new(disk);
    let cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    let data = Some(vec![7; 4096]);
    let itt = world.hosts[0].0.command(LUN, &cdb, Attribute::Simple, data, 0).unwrap();
    let mut has_begun = || {
        world.turn();
        world.array.is_busy(0)
    };
    assert!((0..100).any(|_| has_begun()));
    (world, itt)
}

/// A host resets the unit. The answer comes once the write has completed, and not before.
fn assert_reset_awaits_the_write(world: &mut World, host: usize) {
    let reset = Function::LogicalUnitReset;
    let asked = world.hosts[host].0.task_management(reset, LUN).unwrap();
    (0..100).for_each(|_| world.turn());
    assert!(world.array.is_busy(0));
    assert_eq!(world.hosts[host].0.next_event(), None, "the write may still take effect");
    let mut answer = None;
    world.until(|world| {
        answer = answer.take().or_else(|| world.hosts[host].0.next_event());
        answer.is_some()
    });
    match answer {
        Some(Event::TaskManagementAnswered { itt, response: 0, .. }) if itt == asked => {}
        other => panic!("{other:?}"),
    }
}

/// A host does this on its second path after losing the first one.
#[test]
fn a_reset_awaits_a_write_whose_connection_is_lost() {
    let (mut world, _) = writing(&pool());
    let (_, link) = world.hosts.remove(0);
    world.network.close(link, Side::Host, world.clock.time());
    (0..100).for_each(|_| world.turn());
    assert_reset_awaits_the_write(&mut world, 0);
}

#[test]
fn a_reset_awaits_a_write_that_is_being_aborted() {
    let (mut world, itt) = writing(&pool());
    world.hosts[0].0.abort(itt).unwrap();
    (0..100).for_each(|_| world.turn());
    assert_eq!(world.hosts[0].0.next_event(), None);
    assert_reset_awaits_the_write(&mut world, 1);
    let aborted = world.hosts[0].0.next_event();
    assert!(matches!(aborted, Some(Event::TaskManagementAnswered { response: 0, .. })));
}

/// Connection reinstatement: the host repeats commands without a response, and sends more.
#[test]
fn session_reinstatement_waits_for_the_old_connections_write() {
    let (mut world, _) = writing(&pool());
    let (initiator_name, target_name) = (host_name(0), TARGET_NAME.into());
    let options =
        Options { initiator_name, target_name, tsih: world.tsih[0], ..Options::default() };
    let mut again = Initiator::joining(options, &world.hosts[0].0);
    again.login();
    let link = world.network.open(world.clock.time());
    world.array.accept(link, 1);
    world.hosts[0] = (again, link);
    (0..100).for_each(|_| world.turn());
    assert!(matches!(world.hosts[0].0.next_event(), Some(Event::LoggedIn { .. })));
    world.send(0, &[&[0; 6][..]]);
    (0..100).for_each(|_| world.turn());
    assert!(world.array.is_busy(0));
    assert_eq!(world.answers(0), 0, "the write may still take effect");
    world.until_answered(0, 1);
}
