//! Random histories of ROD tokens: created, used, deleted, revoked and expired, failing saves, and
//! takeovers, compared with what was written and what was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use block::{SectorRange, VolumeId};
use proptest::prelude::*;

use super::target;
use crate::rods::INACTIVITY_S_DEFAULT;
use crate::*;

const KEY: TokenKey = TokenKey([5; 32]);

#[derive(Clone, Debug)]
enum Step {
    Make { source: u64, count: u64 },
    Publish,
    Delete(usize),
    Revoke(u64),
    Wait { s: u64 },
    Take,
    Saved(bool),
    Sweep(bool),
    Takeover,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..4u64, 1..3000u64).prop_map(|(source, count)| Step::Make { source, count }),
        8 => Just(Step::Publish),
        3 => (0..8usize).prop_map(Step::Delete),
        1 => (1..4u64).prop_map(Step::Revoke),
        1 => (1..400u64).prop_map(|s| Step::Wait { s }),
        8 => Just(Step::Take),
        6 => Just(Step::Saved(true)),
        2 => Just(Step::Saved(false)),
        5 => Just(Step::Sweep(true)),
        1 => Just(Step::Sweep(false)),
        1 => Just(Step::Takeover),
    ]
}

/// What a command waits for.
enum Waiting {
    Begin(u64, Arc<Rod>),
    End(u64, Vec<u64>),
}

struct Machine {
    target: Target,
    now_ms: u64,
    copies: Vec<Arc<Rod>>,
    waiting: Vec<Waiting>,
    taken: Option<UnsavedRods>,
    /// The stored state.
    maker: Option<TokenMaker>,
    rows: BTreeMap<u64, KeptRod>,
    /// Tokens that a host has, and those whose end was reported to it.
    given: BTreeMap<u64, KeptRod>,
    ended: BTreeSet<u64>,
}

impl Machine {
    fn new() -> Self {
        Self {
            target: target(),
            now_ms: 1000,
            copies: Vec::new(),
            waiting: Vec::new(),
            taken: None,
            maker: None,
            rows: BTreeMap::new(),
            given: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    fn rods(&self) -> &Rods {
        self.target.rods()
    }

    fn answer(&mut self, waiting: Waiting) {
        match waiting {
            Waiting::Begin(change, rod) => {
                if self.rods().outcome(change, Some(&rod)).is_ok() {
                    let kept = self.rows.get(&id_of(&rod.token));
                    // Unless it was revoked before it was written.
                    if let Some(kept) = kept.cloned() {
                        assert_eq!((kept.token, &kept.pieces), (rod.token, &rod.pieces));
                        self.given.insert(kept.id, kept);
                    }
                }
            }
            Waiting::End(change, ids) => {
                if self.rods().outcome(change, None).is_ok() {
                    self.ended.extend(ids);
                }
            }
        }
    }

    fn wait(&mut self, change: Change, waiting: impl FnOnce(u64) -> Waiting) {
        match change {
            Change::Durable => self.answer(waiting(0)),
            Change::Unsaved(change) => self.waiting.push(waiting(change)),
        }
    }

    fn saved(&mut self, is_ok: bool) {
        let Some(taken) = self.taken.take() else { return };
        if is_ok {
            self.maker = taken.maker.or(self.maker);
            for (id, row) in &taken.rows {
                match row {
                    Some(row) => drop(self.rows.insert(*id, row.clone())),
                    None => drop(self.rows.remove(id)),
                }
            }
        }
        self.rods().saved(taken, if is_ok { Ok(()) } else { Err(SaveError::NoRoom) });
        for waiting in std::mem::take(&mut self.waiting) {
            self.answer(waiting);
        }
    }

    fn takeover(&mut self) {
        (self.copies, self.waiting, self.taken) = Default::default();
        self.target = target();
        self.rods().set_time(self.now_ms);
        let rods: Vec<_> = self.rows.values().cloned().collect();
        let rods = self.maker.map(|maker| KeptRods { maker, rods });
        let kept = KeptState { volumes: Vec::new(), rods };
        assert_eq!(self.target.restore(Start::Takeover, kept), Ok(()));
        for (id, given) in &self.given {
            let found = self.rods().find(&given.token);
            assert_eq!(found.is_ok(), self.rows.contains_key(id), "{found:?}");
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Make { source, count } => {
                let ranges = [SectorRange::new(count % 7, count)];
                let (source, token) = (VolumeId(source), [1; 512]);
                let made = self.rods().reserve(source, &ranges, INACTIVITY_S_DEFAULT, "a", token);
                self.copies.extend(made);
            }
            Step::Publish => {
                if let Some(rod) = self.copies.pop() {
                    let change = self.rods().publish(&rod);
                    self.wait(change, |change| Waiting::Begin(change, rod));
                }
            }
            Step::Delete(at) => {
                let live = |given: &&KeptRod| !self.ended.contains(&given.id);
                let given = self.given.values().filter(live).nth(at);
                let found = given.and_then(|given| self.rods().find(&given.token).ok());
                if let Some(rod) = found {
                    let change = self.rods().used(&rod, true);
                    self.wait(change, |change| Waiting::End(change, vec![id_of(&rod.token)]));
                }
            }
            Step::Revoke(source) => {
                let change = self.rods().revoke(VolumeId(source));
                let of_source = self.given.values().filter(|kept| kept.source.0 == source);
                let ids = of_source.map(|kept| kept.id).collect();
                self.wait(change, |change| Waiting::End(change, ids));
            }
            Step::Wait { s } => {
                self.now_ms += s * 1000;
                self.rods().set_time(self.now_ms);
            }
            Step::Take if self.taken.is_none() => self.taken = self.rods().unsaved(),
            Step::Take => {}
            Step::Saved(is_ok) => self.saved(is_ok),
            Step::Sweep(is_done) => drop(self.rods().sweep(|_| is_done)),
            Step::Takeover => self.takeover(),
        }
        self.check();
    }

    fn check(&self) {
        for id in &self.ended {
            assert!(!self.rows.contains_key(id), "the end of token {id} was reported");
            let given = self.given.get(id).map(|kept| self.rods().find(&kept.token));
            assert!(given.is_none_or(|found| found.is_err()));
        }
        // The stored space of a token belongs to it alone.
        for (copy, row) in
            self.copies.iter().flat_map(|copy| self.rows.values().map(move |row| (copy, row)))
        {
            let overlap = |a: &SectorRange, b: &SectorRange| {
                a.start.0 < b.start.0 + b.count.0 && b.start.0 < a.start.0 + a.count.0
            };
            let shared = copy.pieces.iter().any(|a| row.pieces.iter().any(|b| overlap(a, b)));
            assert!(!shared, "space of token {} is reused", row.id);
        }
    }
}

fn id_of(token: &Token) -> u64 {
    u64::from_be_bytes(token[8..16].try_into().unwrap())
}

proptest! {
    #[test]
    fn only_tokens_that_hosts_have_survive_a_takeover(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut machine = Machine::new();
        for step in steps {
            machine.run(step);
        }
        machine.takeover();
        machine.check();
    }
}

fn made(target: &Target) -> KeptRods {
    let rods = target.rods();
    let ranges = [SectorRange::new(3, 5), SectorRange::new(90, 8)];
    let rod = rods.reserve(VolumeId(1), &ranges, 400, "a", [1; 512]).unwrap();
    let Change::Unsaved(change) = rods.publish(&rod) else { panic!("it must be saved") };
    assert_eq!(rods.find(&rod.token).err(), Some(TokenError::Unknown), "it is not durable yet");
    let unsaved = rods.unsaved().unwrap();
    let maker = unsaved.maker.unwrap();
    assert_eq!(maker.key, KEY);
    let kept = unsaved.rows.values().flatten().cloned().collect();
    rods.saved(unsaved, Ok(()));
    assert_eq!(rods.outcome(change, Some(&rod)), Ok(()));
    KeptRods { maker, rods: kept }
}

#[test]
fn a_power_on_ends_tokens() {
    let kept = made(&target());
    let token = kept.rods[0].token;
    for (start, found) in [(Start::PowerOn, Some(TokenError::Unknown)), (Start::Takeover, None)] {
        let target = target();
        let all = KeptState { volumes: Vec::new(), rods: Some(kept.clone()) };
        assert_eq!(target.restore(start, all), Ok(()));
        assert_eq!(target.rods().find(&token).err(), found);
    }
}

#[test]
fn invalid_stored_tokens_are_not_restored() {
    let good = made(&target());
    let rod = good.rods[0].clone();
    let with = |rods: Vec<KeptRod>| KeptRods { rods, ..good.clone() };
    let with_pieces = |pieces| with(vec![KeptRod { pieces, ..rod.clone() }]);
    let bad = [
        KeptRods { maker: TokenMaker { key: TokenKey([6; 32]), ..good.maker }, ..good.clone() },
        KeptRods { maker: TokenMaker { next_id: rod.id, ..good.maker }, ..good.clone() },
        KeptRods { maker: TokenMaker { next_id: u64::MAX - 1, ..good.maker }, ..good.clone() },
        with(vec![KeptRod { id: rod.id + 1, ..rod.clone() }]),
        with(vec![rod.clone(), rod.clone()]),
        with(vec![rod.clone(); rods::TOKENS_MAX + 1]),
        with_pieces(vec![SectorRange::new(0, 8), SectorRange::new(7, 1)]),
        with_pieces(vec![SectorRange::new(1 << 20, 1)]),
        with_pieces((0..33).map(|at| SectorRange::new(at, 1)).collect()),
    ];
    for kept in bad {
        let all = KeptState { volumes: Vec::new(), rods: Some(kept) };
        let restored = target().restore(Start::Takeover, all);
        assert!(matches!(restored, Err(Nonsense::Rods(_))), "{restored:?}");
    }
}
