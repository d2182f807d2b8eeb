//! Worlds with plain hosts: each has one connection, and reads and writes single blocks.

use std::collections::BTreeMap;

use initiator::{Attribute, Event, Initiator, Itt, Nop, Options};
use iscsi::Limits;

use super::super::controller::TARGET_NAME;
use super::super::linear::{Block, Linear, Op, OpId, Outcome};
use super::super::network::Side;
use super::super::plan::plain;
use super::*;
use crate::array::STEPS;

const BLOCKS: u64 = 12;

fn name(number: usize) -> String {
    format!("iqn.2026-01.example:host-{number}")
}

/// The world of a seed with one small volume, for hosts that send fewer kinds of commands and
/// answer no pings.
fn world(seed: u64) -> World {
    let (mut world, _) = plain(seed, STEPS);
    world.setup.ports = 2;
    world.setup.hosts = (0..3).map(name).collect();
    world.setup.volume_bytes = vec![BLOCKS * 4096];
    (world.setup.limits, world.rules) = (Limits::default(), Rules::default());
    world
}

/// Returns the content that a tag stands for.
fn content(tag: u64) -> Vec<u8> {
    (0..512_u64)
        .flat_map(|word| if tag == 0 { [0; 8] } else { mix(tag ^ word << 40).to_le_bytes() })
        .collect()
}

struct Writer {
    link: Option<Link>,
    initiator: Initiator,
    under_way: BTreeMap<Itt, (OpId, bool)>,
    is_logged_in: bool,
    lost: Vec<OpId>,
}

/// All hosts, and the monitor.
struct Writers {
    all: Vec<Writer>,
    linear: Linear,
    rng: Rng,
    tags: BTreeMap<Vec<u8>, u64>,
    next_tag: u64,
    answers: u64,
    trace: u64,
}

fn initiator(number: usize) -> Initiator {
    let mut initiator = Initiator::new(Options {
        initiator_name: name(number),
        target_name: TARGET_NAME.into(),
        immediate_data: number.is_multiple_of(2),
        ..Options::default()
    });
    initiator.login();
    initiator
}

impl Writers {
    fn new(seed: u64) -> Self {
        let writer = |number| Writer {
            link: None,
            initiator: initiator(number),
            under_way: BTreeMap::new(),
            is_logged_in: false,
            lost: Vec::new(),
        };
        let tags = [(content(0), 0)].into();
        let (next_tag, answers, trace) = (1, 0, 0);
        let (linear, rng) = (Linear::new(4096), Rng::new(seed));
        Self { all: (0..3).map(writer).collect(), linear, rng, tags, next_tag, answers, trace }
    }

    /// Handles the loss of a host's connection.
    fn lost(&mut self, number: usize, for_ever: bool) {
        let writer = &mut self.all[number];
        for (op, writes) in std::mem::take(&mut writer.under_way).into_values() {
            self.linear.lost(op);
            writer.lost.extend(writes.then_some(op));
        }
        (writer.link, writer.is_logged_in) = (None, false);
        if for_ever {
            self.over(number);
        }
    }

    /// Lost commands have taken effect, or never will: their session has ended.
    fn over(&mut self, number: usize) {
        for op in std::mem::take(&mut self.all[number].lost) {
            self.linear.never_again(op).unwrap();
        }
    }

    fn begin(&mut self, number: usize) {
        let block = self.rng.below(BLOCKS);
        let writes = self.rng.chance(60);
        let writer = &mut self.all[number];
        if !writer.is_logged_in || writer.under_way.len() >= 3 {
            return;
        }
        let lun = [0, 1, 0, 0, 0, 0, 0, 0];
        let opcode = if writes { 0x2a } else { 0x28 };
        let cdb = [opcode, 0, 0, 0, 0, block as u8 * 8, 0, 0, 8, 0];
        let data = writes.then(|| {
            let data = content(self.next_tag);
            self.tags.insert(data.clone(), self.next_tag);
            data
        });
        let expected = if writes { 0 } else { 4096 };
        let Ok(itt) = writer.initiator.command(lun, &cdb, Attribute::Simple, data, expected) else {
            return;
        };
        let op = if writes { Op::Write(self.next_tag) } else { Op::Read };
        self.next_tag += u64::from(writes);
        let id = self.linear.invoke(Block(block), op);
        writer.under_way.insert(itt, (id, writes));
    }

    fn events(&mut self, number: usize) -> Result<(), String> {
        while let Some(event) = self.all[number].initiator.next_event() {
            self.answers += 1;
            match event {
                Event::LoggedIn { .. } => {
                    self.all[number].is_logged_in = true;
                    self.over(number);
                }
                Event::Answered(answer) => {
                    let found = self.all[number].under_way.remove(&answer.itt);
                    let (op, writes) = found.ok_or("a response that matches no request")?;
                    let done = match (answer.status, writes) {
                        (0, true) => self.linear.answer(op, Outcome::Done),
                        (0, false) => {
                            let tag =
                                self.tags.get(&answer.data_in).ok_or("bytes that no host wrote")?;
                            self.trace = mix(self.trace ^ tag);
                            self.linear.answer(op, Outcome::Read(*tag))
                        }
                        // A unit attention.
                        (2, _) if answer.sense.get(2) == Some(&6) => self.linear.refused(op),
                        _ => return Err(format!("{answer:?}")),
                    };
                    done.map_err(|wrong| wrong.to_string())?;
                }
                // About the window, from an array that continues the connection.
                Event::Nop(Nop::Told) => {}
                other => return Err(format!("{other:?}")),
            }
        }
        Ok(())
    }
}

impl Hosts for Writers {
    fn step(&mut self, network: &mut Network, now: Duration, begins: bool) -> Step {
        let number = self.rng.below(3) as usize;
        let Some(link) = self.all[number].link else {
            if begins {
                let link = network.open(now);
                self.all[number].link = Some(link);
                self.all[number].initiator = initiator(number);
                return Ok(vec![(link, 1 + number as u16 % 2)]);
            }
            return Ok(vec![]);
        };
        if begins && self.rng.chance(40) {
            self.begin(number);
        }
        let initiator = &mut self.all[number].initiator;
        let sent = network.send(link, Side::Host, initiator.output(), now);
        initiator.taken(sent);
        let mut bytes = [0; 700];
        match network.receive(link, Side::Host, &mut bytes, now) {
            Some(0) => {
                network.close(link, Side::Host, now);
                self.lost(number, false);
            }
            Some(count) => {
                initiator.receive(&bytes[..count]).map_err(|violation| violation.to_string())?;
                self.events(number)?;
            }
            None => {}
        }
        Ok(vec![])
    }

    fn due_at(&self) -> Option<Duration> {
        None
    }

    fn is_idle(&self) -> bool {
        self.all.iter().all(|writer| writer.under_way.is_empty())
    }

    fn answers(&self) -> u64 {
        self.answers
    }

    fn array_started(&mut self) {
        (0..3).for_each(|number| self.lost(number, true));
    }

    fn trace(&self) -> u64 {
        self.trace
    }
}

#[test]
fn simple_hosts_get_linearizable_responses() {
    let mut all = Summary::default();
    for seed in 0..40 {
        let done = world(seed).run(Box::new(Writers::new(seed)));
        all += done.unwrap_or_else(|(step, reason)| panic!("seed {seed}, step {step}: {reason}"));
    }
    eprintln!("{all}");
    assert!(all.answers > 10_000 && all.crashes > 100 && all.kills > 100, "{all}");
}

/// Hosts notice a pause, and nothing else: what they have sent is done once, at one array or the
/// next.
#[test]
fn plain_hosts_continue_after_planned_switches() {
    let mut all = Summary::default();
    for seed in 0..40 {
        let mut world = world(seed);
        world.events.switches = 1 + seed % 20;
        let done = world.run(Box::new(Writers::new(seed)));
        all += done.unwrap_or_else(|(step, reason)| panic!("seed {seed}, step {step}: {reason}"));
    }
    eprintln!("{all}");
    assert!(all.answers > 10_000 && all.switches > 100 && all.handed > 100, "{all}");
}

#[test]
fn a_seed_gives_the_same_run() {
    let run = || world(3).run(Box::new(Writers::new(3))).unwrap();
    assert_eq!(run(), run());
}
