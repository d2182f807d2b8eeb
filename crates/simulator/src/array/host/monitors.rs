//! The monitors of blocks and reservations, fed with whole commands.

use std::cell::Cell;

use std::collections::BTreeSet;

use super::attentions::{Attentions, Concerned, Moment};
use super::command::Command;
use super::content::{BLOCK_BYTES, tag_of};
use crate::array::linear::{self, Linear, Op};
use crate::array::reservations::{self, Kind, Nexus, Reservations};

/// The maximum number of configurations for a block or a unit.
const CONFIGURATIONS_MAX: usize = 20_000;

/// The number of operations on a block at which no other one is begun.
const CROWD: usize = 6;

type Settled = Result<(), reservations::Wrong>;

/// The result of the operations of a command.
type Told = Result<(), String>;

/// Everything that hosts know about an array.
#[derive(Debug)]
pub(super) struct Monitors {
    pub(super) linear: Linear,
    units: Vec<Reservations>,
    pub(super) attentions: Attentions,
    /// The actions on reservations in flight, by unit, and how many have begun.
    actions: Vec<BTreeSet<reservations::OpId>>,
    actions_begun: u64,
    /// Whether a repeated COMPARE AND WRITE must be recognized, because no copy reads what it
    /// writes.
    knows_again: bool,
    /// The disk has failed: what ends without success may be found after a start.
    has_failed: bool,
    /// It has failed before.
    had_failed: bool,
    /// What is in flight until then.
    doubtful: Vec<Watch>,
    /// How often the array has started: claims from before are over.
    starts: u32,
    /// More could have happened than is kept: nothing can be judged any longer.
    pub(super) gave_up: Cell<bool>,
}

/// The operations of a command.
#[derive(Debug, Default)]
pub(super) struct Watch {
    blocks: Vec<linear::OpId>,
    claims: Vec<Claim>,
    /// When it began, for [`Linear::made_durable`], and among all commands.
    since: u64,
    sent: Moment,
    /// The nexuses that get a unit attention if it is done; how many actions had begun by then.
    concerned: Option<(Concerned, u64)>,
}

impl Watch {
    /// Returns when it was sent.
    pub(super) fn sent(&self) -> Moment {
        self.sent
    }
}

/// An operation on the reservations of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    unit: usize,
    id: reservations::OpId,
    starts: u32,
}

impl Monitors {
    /// Creates monitors for this many nexuses and units.
    pub(super) fn new(nexuses: usize, unit_count: usize, durable: bool, knows_again: bool) -> Self {
        let units = (0..unit_count).map(|_| Reservations::new(CONFIGURATIONS_MAX)).collect();
        let linear = if durable { Linear::new } else { Linear::volatile };
        Self {
            linear: linear(CONFIGURATIONS_MAX),
            units,
            attentions: Attentions::new(nexuses, unit_count),
            actions: vec![BTreeSet::new(); unit_count],
            actions_begun: 0,
            knows_again,
            has_failed: false,
            had_failed: false,
            doubtful: Vec::new(),
            starts: 0,
            gave_up: Cell::new(false),
        }
    }

    /// Returns whether too much is in flight to a block of a command to be distinguished for long:
    /// the possibilities double with each.
    pub(super) fn is_crowded(&self, command: &Command) -> bool {
        let effects = command.effects();
        // A copy may copy any content that its source has had since it began.
        let copies = effects.iter().any(|(_, op)| matches!(op, Op::CopyOf(_)));
        let most = if copies { CROWD / 2 } else { CROWD };
        effects.into_iter().any(|(block, _)| self.linear.in_flight_at(block) >= most)
    }

    /// Begins a command that is about to be sent.
    pub(super) fn begin(&mut self, nexus: Nexus, command: &Command) -> Watch {
        let concerned = self.concerned(nexus, command);
        let since = self.linear.moment();
        let effects = command.effects();
        let blocks = effects.into_iter().map(|(block, op)| self.linear.invoke(block, op)).collect();
        let claims = command.claims(nexus).into_iter();
        let claims = claims.map(|(unit, op)| self.claim(unit, op)).collect();
        Watch { blocks, claims, since, sent: self.attentions.sent(), concerned }
    }

    /// Returns the nexuses that get a unit attention if a command succeeds, if that is certain.
    fn concerned(&mut self, nexus: Nexus, command: &Command) -> Option<(Concerned, u64)> {
        let Command::Out { unit, action, .. } = command else { return None };
        self.actions_begun += 1;
        let states = self.units[*unit].states();
        let mut all = states.iter().map(|state| (&state.keys, state.held));
        let first = all.next()?;
        if !self.actions[*unit].is_empty() || all.any(|other| other != first) {
            return None;
        }
        let state = states.first()?.clone();
        Some((self.attentions.acts(*unit, nexus, *action, &state), self.actions_begun))
    }

    /// Begins an operation on the reservations of a unit.
    pub(super) fn claim(&mut self, unit: usize, op: reservations::Op) -> Claim {
        let id = self.units[unit].invoke(op);
        if matches!(op, reservations::Op::Out(..)) {
            self.actions[unit].insert(id);
        }
        Claim { unit, id, starts: self.starts }
    }

    /// Processes GOOD for a command.
    pub(super) fn good(&mut self, watch: Watch, command: &Command, data: &[u8]) -> Told {
        let outcome = good_outcome(command, data)?;
        for claim in &watch.claims {
            self.settle(*claim, |unit, id| unit.answer(id, &outcome))?;
        }
        if let Some((concerned, begun)) = watch.concerned
            && begun == self.actions_begun
        {
            self.attentions.happened(command.unit(), concerned);
        }
        let mut pieces = data.chunks(BLOCK_BYTES);
        for ((block, op), id) in command.effects().into_iter().zip(watch.blocks) {
            let outcome = match op {
                Op::Read => {
                    let piece = pieces.next().unwrap_or_default();
                    let tag = tag_of(piece);
                    let tag =
                        tag.ok_or_else(|| format!("{block:?} has bytes that no host wrote"))?;
                    linear::Outcome::Read(tag)
                }
                Op::CompareAndWrite { repeats: true, .. } => {
                    let any = [linear::Outcome::Matched, linear::Outcome::Known];
                    self.answer_any(id, &any)?;
                    continue;
                }
                Op::CompareAndWrite { .. } => linear::Outcome::Matched,
                Op::Write(_) | Op::CopyOf(_) => linear::Outcome::Done,
            };
            self.answer_any(id, &[outcome])?;
        }
        for block in command.makes_durable() {
            self.linear.made_durable(block, watch.since);
        }
        Ok(())
    }

    fn answer_any(&mut self, id: linear::OpId, outcomes: &[linear::Outcome]) -> Told {
        self.linear.answer_any(id, outcomes).map_err(|wrong| text(&self.gave_up, wrong))
    }

    /// Processes the miscompare of a COMPARE AND WRITE. `is_late`: if it repeats another one, that
    /// is too long ago.
    pub(super) fn miscompare(&mut self, watch: Watch, is_late: bool) -> Told {
        let any = [linear::Outcome::Miscompare, linear::Outcome::Unknown];
        let possible = if is_late || !self.knows_again { &any[..] } else { &any[..1] };
        for claim in watch.claims {
            self.settle(claim, |unit, id| unit.answer(id, &reservations::Outcome::Good))?;
        }
        for id in watch.blocks {
            self.answer_any(id, possible)?;
        }
        Ok(())
    }

    /// RESERVATION CONFLICT.
    pub(super) fn conflict(&mut self, watch: Watch) -> Told {
        let mut claims = watch.claims.into_iter();
        let first = claims.next().ok_or("a reservation conflict without a reservation")?;
        self.settle(first, |unit, id| unit.answer(id, &reservations::Outcome::Conflict))?;
        // Nothing was said about another unit that does not determine the response.
        for claim in claims {
            self.settle(claim, Reservations::never_again)?;
        }
        self.had_no_effect(watch.blocks)
    }

    /// Processes that it was refused before it was examined: BUSY, TASK SET FULL, UNIT ATTENTION.
    pub(super) fn refused(&mut self, watch: Watch) -> Told {
        for claim in watch.claims {
            self.settle(claim, Reservations::refused)?;
        }
        self.had_no_effect(watch.blocks)
    }

    /// Processes that an action on reservations was refused because of its content.
    pub(super) fn failed(&mut self, watch: Watch) -> Told {
        for claim in watch.claims {
            self.settle(claim, |unit, id| unit.answer(id, &reservations::Outcome::Failed))?;
        }
        self.had_no_effect(watch.blocks)
    }

    fn had_no_effect(&mut self, blocks: Vec<linear::OpId>) -> Told {
        let refused = blocks.into_iter().try_for_each(|id| self.linear.refused(id));
        refused.map_err(|wrong| text(&self.gave_up, wrong))
    }

    /// Records that the response will never come: it may take effect until it is
    /// [`Monitors::over`].
    pub(super) fn lost(&mut self, watch: &Watch) {
        watch.blocks.iter().for_each(|id| self.linear.lost(*id));
        watch.claims.iter().for_each(|claim| self.lost_claim(*claim));
    }

    /// The same for an operation on reservations.
    pub(super) fn lost_claim(&mut self, claim: Claim) {
        if claim.starts == self.starts {
            self.units[claim.unit].lost(claim.id);
        }
    }

    /// Records that the disk has failed.
    pub(super) fn array_failed(&mut self) {
        (self.has_failed, self.had_failed) = (true, true);
    }

    /// Returns whether a response may result from that: even in a session from before the last
    /// start.
    pub(super) fn may_be_broken(&self, is_doomed: bool) -> bool {
        self.has_failed || is_doomed && self.had_failed
    }

    /// Records that it has had its effect, or never will.
    pub(super) fn over(&mut self, watch: Watch) -> Told {
        if self.has_failed {
            // What could not be written may be there nevertheless.
            self.lost(&watch);
            self.doubtful.push(watch);
            return Ok(());
        }
        self.is_over(watch)
    }

    fn is_over(&mut self, watch: Watch) -> Told {
        for id in watch.blocks {
            if self.linear.is_in_flight(id) {
                let over = self.linear.never_again(id);
                over.map_err(|wrong| text(&self.gave_up, wrong))?;
            }
        }
        let mut claims = watch.claims.into_iter();
        claims.try_for_each(|claim| self.settle(claim, Reservations::never_again))
    }

    /// Records that a reset or the loss of a session is over.
    pub(super) fn done(&mut self, claim: Claim) -> Told {
        self.settle(claim, |unit, id| unit.answer(id, &reservations::Outcome::Good))
    }

    /// Records that it can't have happened.
    pub(super) fn claim_is_none(&mut self, claim: Claim) -> Told {
        self.settle(claim, Reservations::refused)
    }

    /// The same if it is unknown whether it was done.
    pub(super) fn claim_is_over(&mut self, claim: Claim) -> Told {
        self.settle(claim, Reservations::never_again)
    }

    /// Records that the array has restarted.
    pub(super) fn array_started(&mut self) -> Told {
        self.starts += 1;
        self.has_failed = false;
        self.actions.iter_mut().for_each(BTreeSet::clear);
        self.attentions.array_started();
        if self.linear.is_volatile() {
            self.linear.lost_all();
        }
        for watch in std::mem::take(&mut self.doubtful) {
            self.is_over(watch)?;
        }
        let started = self.units.iter_mut().try_for_each(Reservations::restarted);
        started.map_err(|wrong| text(&self.gave_up, wrong))
    }

    fn settle(
        &mut self,
        claim: Claim,
        settle: impl FnOnce(&mut Reservations, reservations::OpId) -> Settled,
    ) -> Told {
        if claim.starts == self.starts {
            self.actions[claim.unit].remove(&claim.id);
        }
        if claim.starts != self.starts {
            // A start of the array has ended it.
            return Ok(());
        }
        match settle(&mut self.units[claim.unit], claim.id) {
            // What could not be made durable is rolled back, although others have observed it.
            Err(wrong) if self.has_failed && !wrong.is_too_many() => Ok(()),
            settled => settled.map_err(|wrong| text(&self.gave_up, wrong)),
        }
    }
}

/// A result that may be too much to judge.
trait Verdict: std::fmt::Display {
    fn is_too_many(&self) -> bool;
}

impl Verdict for linear::Wrong {
    fn is_too_many(&self) -> bool {
        matches!(self, Self::TooMany { .. })
    }
}

impl Verdict for reservations::Wrong {
    fn is_too_many(&self) -> bool {
        matches!(self, Self::TooMany { .. })
    }
}

fn text(gave_up: &Cell<bool>, wrong: impl Verdict) -> String {
    gave_up.set(gave_up.get() || wrong.is_too_many());
    wrong.to_string()
}

/// Returns what GOOD says about reservations.
fn good_outcome(command: &Command, data: &[u8]) -> Result<reservations::Outcome, String> {
    let word = |at: usize| Some(u64::from_be_bytes(*data.get(at..)?.first_chunk()?));
    let list = || {
        let length = data.get(4..)?.first_chunk::<4>()?;
        data.get(8..8 + u32::from_be_bytes(*length) as usize)
    };
    let wrong = || format!("{command:?} returned {data:02x?}");
    match command {
        Command::ReadKeys { .. } => {
            let list = list().ok_or_else(wrong)?;
            let keys = list.chunks(8).map(|key| Some(u64::from_be_bytes(*key.first_chunk()?)));
            let mut keys: Vec<u64> = keys.collect::<Option<_>>().ok_or_else(wrong)?;
            keys.sort_unstable();
            Ok(reservations::Outcome::Keys(keys))
        }
        Command::ReadReservation { .. } => {
            let list = list().ok_or_else(wrong)?;
            if list.is_empty() {
                return Ok(reservations::Outcome::Held(None));
            }
            let code = list.get(13).copied().ok_or_else(wrong)?;
            let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == code).ok_or_else(wrong)?;
            Ok(reservations::Outcome::Held(Some((word(8).ok_or_else(wrong)?, kind))))
        }
        _ => Ok(reservations::Outcome::Good),
    }
}
