//! One host and the array, over the network.

use initiator::{Attribute, Event, Initiator, Options};
use store::{Durability, Tuning};

use super::super::network::{Rules, Side};
use super::*;

const HOST: &str = "iqn.2026-01.example:host";
const MIB: u64 = 1 << 20;

pub(super) fn setup() -> Setup {
    Setup {
        options: OpenOptions {
            durability: Durability::Commit,
            tuning: Tuning::SMALL,
            memory_bytes: 256 << 10,
            ..OpenOptions::default()
        },
        threads: 2,
        ports: 2,
        limits: Limits::default(),
        hosts: vec![HOST.into()],
        volume_bytes: vec![MIB],
        volume_limits: VolumeLimits::NONE,
    }
}

/// A host with one connection.
struct World {
    network: Network,
    array: Controller,
    clock: Arc<SimClock>,
    rng: Rng,
    host: Initiator,
    link: Link,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = Arc::new(SimDisk::new(32 << 20, seed));
        let mut rng = Rng::new(seed);
        make(&disk, &setup(), 64 << 10, &mut rng).unwrap();
        let clock = Arc::new(SimClock::default());
        let mut array = Controller::open(&disk, &setup(), &clock).unwrap();
        let mut network = Network::new(seed, Rules::default());
        let link = network.open(Duration::ZERO);
        array.accept(link, 1);
        let mut host = Initiator::new(Options {
            initiator_name: HOST.into(),
            target_name: TARGET_NAME.into(),
            header_digest: seed % 2 == 1,
            ..Options::default()
        });
        host.login();
        Self { network, array, clock, rng, host, link }
    }

    /// Runs until the host has an event, and returns it.
    fn next_event(&mut self) -> Event {
        for _ in 0..100_000 {
            if let Some(event) = self.host.next_event() {
                return event;
            }
            let now = self.clock.time();
            let sent = self.network.send(self.link, Side::Host, self.host.output(), now);
            self.host.taken(sent);
            let mut bytes = [0; 512];
            match self.network.receive(self.link, Side::Host, &mut bytes, now) {
                Some(0) => panic!("the connection was closed"),
                Some(count) => self.host.receive(&bytes[..count]).unwrap(),
                None => {}
            }
            for index in 0..self.array.thread_count() {
                if self.array.is_due(index, &self.network) {
                    self.array.turn(index, &mut self.network, &mut self.rng);
                }
                self.array.disk_step(index, &mut self.rng);
            }
            self.clock.advance_to(now + Duration::from_micros(10));
        }
        panic!("nothing happens");
    }

    /// Returns status, sense data and data of a command.
    fn command(
        &mut self,
        cdb: &[u8],
        out: Option<Vec<u8>>,
        expected: u32,
    ) -> (u8, Vec<u8>, Vec<u8>) {
        let lun = [0, 1, 0, 0, 0, 0, 0, 0];
        let itt = self.host.command(lun, cdb, Attribute::Simple, out, expected).unwrap();
        match self.next_event() {
            Event::Answered(answer) if answer.itt == itt => {
                (answer.status, answer.sense, answer.data_in)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_host_writes_and_reads_over_the_network() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        assert!(matches!(world.next_event(), Event::LoggedIn { .. }));
        let mut attentions = 0;
        while world.command(&[0; 6], None, 0).0 == 2 {
            attentions += 1;
        }
        assert!(attentions > 0, "POWER ON is reported");
        let data: Vec<u8> = (0..65_536_u32).map(|at| ((at * 7) >> 3) as u8).collect();
        let cdb = |opcode| [opcode, 0, 0, 0, 0, 8, 0, 0, 128, 0];
        let (status, sense, _) = world.command(&cdb(0x2a), Some(data.clone()), 0);
        assert_eq!((status, sense), (0, vec![]));
        let (status, _, read) = world.command(&cdb(0x28), None, 65_536);
        assert!(status == 0 && read == data, "seed {seed}");
    }
}
