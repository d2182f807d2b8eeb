//! Executions of simulated blocks by simulated hosts: correct ones never raise an alarm; each one
//! with a fault does.

use super::*;
use crate::rng::Rng;

const BLOCKS: u64 = 4;

/// A fault; an execution has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A read returns the content before the last acknowledged write.
    StaleRead,
    /// A write is acknowledged but not executed.
    LostUpdate,
    /// A write is executed after the response to its abort.
    LateWrite,
    /// Two compare-and-writes have matched the same content.
    MatchedTwice,
    /// A refused write was done all the same.
    RefusedWrite,
    /// A copy writes its source's content from before the copy began.
    StaleCopy,
}

/// A command in flight.
struct Command {
    id: OpId,
    block: Block,
    op: Op,
    /// Its answer; `None` until it has taken effect.
    outcome: Option<Outcome>,
    lost: bool,
}

/// The blocks and their users.
struct World {
    rng: Rng,
    monitor: Linear,
    values: BTreeMap<Block, u64>,
    commands: Vec<Command>,
    next_value: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            monitor: monitor(),
            values: BTreeMap::new(),
            commands: Vec::new(),
            next_value: 1,
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn value(&self, block: Block) -> u64 {
        self.values.get(&block).copied().unwrap_or(0)
    }

    fn any_op(&mut self, block: Block) -> Op {
        match self.rng.below(10) {
            0..3 => Op::Write(self.fresh()),
            3 => Op::Write(0),
            4..6 => {
                let expected = match self.rng.chance(70) {
                    true => self.value(block),
                    false => self.next_value,
                };
                Op::CompareAndWrite { expected, new: self.fresh(), repeats: false }
            }
            6 => Op::CopyOf(Block(self.rng.below(BLOCKS))),
            _ => Op::Read,
        }
    }

    fn effect(&mut self, at: usize) {
        let (block, op) = (self.commands[at].block, self.commands[at].op);
        let value = self.value(block);
        let (value, outcome) = match op {
            Op::Write(new) => (new, Outcome::Done),
            Op::CompareAndWrite { expected, new, .. } if value == expected => {
                (new, Outcome::Matched)
            }
            Op::CompareAndWrite { .. } => (value, Outcome::Miscompare),
            Op::Read => (value, Outcome::Read(value)),
            Op::CopyOf(source) => (self.value(source), Outcome::Done),
        };
        self.values.insert(block, value);
        self.commands[at].outcome = Some(outcome);
    }

    /// Lets one event happen.
    fn step(&mut self) -> Result<(), Wrong> {
        if self.commands.len() < 8 && (self.commands.is_empty() || self.rng.chance(40)) {
            let block = Block(self.rng.below(BLOCKS));
            let op = self.any_op(block);
            let id = self.monitor.invoke(block, op);
            self.commands.push(Command { id, block, op, outcome: None, lost: false });
            return Ok(());
        }
        let at = self.rng.below(self.commands.len() as u64) as usize;
        if self.commands[at].outcome.is_none() && self.rng.chance(70) {
            self.effect(at);
            return Ok(());
        }
        self.conclude(at)
    }

    fn conclude(&mut self, at: usize) -> Result<(), Wrong> {
        let end = self.rng.below(20);
        let command = &mut self.commands[at];
        match command.outcome {
            Some(outcome) if !command.lost && end > 2 => {
                let id = self.commands.swap_remove(at).id;
                self.monitor.answer(id, outcome)
            }
            None if !command.lost && end == 0 => {
                let id = self.commands.swap_remove(at).id;
                self.monitor.refused(id)
            }
            _ if !command.lost && end == 1 => {
                command.lost = true;
                self.monitor.lost(command.id);
                if command.op == Op::Read {
                    self.commands.swap_remove(at);
                }
                Ok(())
            }
            _ if command.lost || end == 2 => {
                let id = self.commands.swap_remove(at).id;
                self.monitor.never_again(id)
            }
            _ => Ok(()),
        }
    }

    /// Completes all commands, and reads each block.
    fn settle(&mut self) -> Result<(), Wrong> {
        while let Some(command) = self.commands.pop() {
            self.monitor.never_again(command.id)?;
        }
        for block in (0..BLOCKS).map(Block) {
            self.read(block, self.value(block))?;
        }
        Ok(())
    }

    fn read(&mut self, block: Block, value: u64) -> Result<(), Wrong> {
        let id = self.monitor.invoke(block, Op::Read);
        self.monitor.answer(id, Outcome::Read(value))
    }

    fn write(&mut self, block: Block) -> Result<(), Wrong> {
        let value = self.fresh();
        let id = self.monitor.invoke(block, Op::Write(value));
        self.values.insert(block, value);
        self.monitor.answer(id, Outcome::Done)
    }

    /// Injects the fault into a block while others are busy.
    fn inject(&mut self, fault: Fault, block: Block) -> Result<(), Wrong> {
        let before = self.value(block);
        match fault {
            Fault::StaleRead => {
                self.write(block)?;
                self.busy()?;
                self.read(block, before)
            }
            Fault::LostUpdate => {
                self.write(block)?;
                self.values.insert(block, before);
                self.busy()
            }
            Fault::LateWrite => {
                let value = self.fresh();
                let id = self.monitor.invoke(block, Op::Write(value));
                self.busy()?;
                self.monitor.never_again(id)?;
                self.read(block, before)?;
                self.values.insert(block, value);
                self.busy()
            }
            Fault::MatchedTwice => {
                let swap = |new| Op::CompareAndWrite { expected: before, new, repeats: false };
                let (one, two) = (self.fresh(), self.fresh());
                let one = self.monitor.invoke(block, swap(one));
                let two = self.monitor.invoke(block, swap(two));
                self.monitor.answer(one, Outcome::Matched)?;
                self.busy()?;
                self.monitor.answer(two, Outcome::Matched)
            }
            Fault::RefusedWrite => {
                let value = self.fresh();
                let id = self.monitor.invoke(block, Op::Write(value));
                self.values.insert(block, value);
                self.busy()?;
                self.monitor.refused(id)
            }
            Fault::StaleCopy => {
                let source = Block(BLOCKS + 1);
                self.write(source)?;
                let stale = self.value(source);
                self.write(source)?;
                let id = self.monitor.invoke(block, Op::CopyOf(source));
                self.values.insert(block, stale);
                self.busy()?;
                self.monitor.answer(id, Outcome::Done)
            }
        }
    }

    /// Lets something else happen, on other blocks.
    fn busy(&mut self) -> Result<(), Wrong> {
        for _ in 0..5 {
            let block = Block(100 + self.rng.below(2));
            self.write(block)?;
            self.read(block, self.value(block))?;
        }
        Ok(())
    }
}

#[test]
fn a_correct_execution_never_raises_an_alarm() {
    for seed in 0..400 {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
        world.settle().unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn a_faulty_execution_always_raises_an_alarm() {
    for fault in [
        Fault::StaleRead,
        Fault::LostUpdate,
        Fault::LateWrite,
        Fault::MatchedTwice,
        Fault::RefusedWrite,
        Fault::StaleCopy,
    ] {
        for seed in 0..100 {
            let mut world = World::new(seed);
            for _ in 0..100 {
                world.step().unwrap();
            }
            world.settle().unwrap();
            // The block has a content that nothing else writes.
            let block = Block(world.rng.below(BLOCKS));
            world.write(block).unwrap();
            let result = world.inject(fault, block).and_then(|()| world.settle());
            assert!(
                matches!(result, Err(Wrong::Impossible { .. })),
                "{fault:?} {seed}: {result:?}"
            );
        }
    }
}
