//! An aborted command takes effect before the response to the abort, or never (invariant 3).
//!
//! Each way to abort a command (task management by the host itself or by another one, the loss of
//! its connection, the reinstatement of its session) is tried with each command that writes, at
//! each of its steps. Every case has its own blocks: they are read after the response, again after
//! another commit, and once more after all cases.

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, CopySegment, Naa, Session, Status, copy_parameters, unmap_parameters};

use crate::initiator::{Function, Initiator, NO_TAG, Pdu, Sent, opcode};
use crate::random::Random;
use crate::report::Report;
use crate::target::{self, Target};

const BLOCK: usize = 512;
/// The blocks of a case: 4 KiB.
const BLOCKS: usize = 8;
/// Where the cases' blocks begin; copies read from the blocks before them.
const FIRST_LBA: u64 = 64;
/// Where commands that keep the array busy write, 1 MiB each.
const BUSY_LBA: u64 = 1 << 20;
/// The number of commands before the tested one, if it must queue.
const BUSY: u64 = 4;
/// The number of commands of a session that must take long to end.
const LONG_BUSY: u64 = 12;
/// The most unit attentions that a nexus may have pending.
const ATTENTIONS: usize = 16;
/// The ISIDs of the host whose commands are aborted, and of one that requests it.
const VICTIM: u32 = 0x76_6963;
const ASKER: u32 = 0x61_736b;
/// No task of the requesting session.
const NOBODY: Sent = Sent { tag: NO_TAG, cmd_sn: 0 };

/// A command that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Compare,
    Copy,
    Same,
    Unmap,
}

/// How it is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Task management in its own session.
    Own(Function),
    /// Task management in another session.
    Other(Function),
    /// The connection is closed, and the host logs in again.
    Drop,
    /// The host logs in again while the old connection still exists.
    Reinstate,
}

/// The state in which it is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The target waits for its data.
    BeforeData,
    /// Other commands precede it.
    Queued,
    /// It is in progress.
    UnderWay,
    /// It has a response.
    Answered,
}

const KINDS: [Kind; 5] = [Kind::Write, Kind::Compare, Kind::Copy, Kind::Same, Kind::Unmap];
const WAYS: [Way; 9] = [
    Way::Own(Function::AbortTask),
    Way::Own(Function::AbortTaskSet),
    Way::Own(Function::ClearTaskSet),
    Way::Own(Function::LunReset),
    Way::Own(Function::TargetWarmReset),
    Way::Other(Function::LunReset),
    Way::Other(Function::TargetWarmReset),
    Way::Drop,
    Way::Reinstate,
];
const MOMENTS: [Moment; 4] =
    [Moment::BeforeData, Moment::Queued, Moment::UnderWay, Moment::Answered];

/// Aborts every command in every way in every state, `rounds` times, on a separate volume.
pub fn aborts(report: &mut Report, target: &Target, rounds: usize, seed: u64) {
    report.check("aborts, resets and lost sessions race commands that write", || {
        let mut cases = Cases::new(target, seed)?;
        for round in 0..rounds {
            for way in WAYS {
                for (kind, moment) in KINDS.iter().flat_map(|k| MOMENTS.map(|m| (*k, m))) {
                    let case = || format!("round {round}: {kind:?}, {way:?}, {moment:?}");
                    cases.case(kind, way, moment).with_context(case)?;
                }
            }
        }
        cases.verify()?;
        let Cases { done, undone, kept, .. } = cases;
        ensure!(done > 0 && undone > 0, "{done} took effect, {undone} did not: there was no race");
        Ok(format!("seed {seed}: {} cases, {done} took effect, {undone} did not", kept.len()))
    });
}

/// While the commands of an old session end, a host logs in, loses that connection too and replaces
/// it with another one: the new session must begin with the connection that exists.
pub fn reinstated(report: &mut Report, target: &Target, rounds: usize) {
    report.check("a connection replaces another while its session waits", || {
        for round in 0..rounds {
            reinstate_both(target).with_context(|| format!("round {round}"))?;
        }
        Ok(format!("{rounds} rounds"))
    });
}

fn reinstate_both(target: &Target) -> Result<()> {
    let mut old = log_in(target, VICTIM)?;
    keep_busy(&mut old, LONG_BUSY)?;
    let first = Initiator::login(target, VICTIM)?;
    let mut second = Initiator::join(target, VICTIM, first.tsih(), 0)?;
    drop(first);
    attend(&mut second, None, &mut None)
}

/// The sessions, and the expected content of each finished case.
struct Cases {
    target: Target,
    name: Naa,
    watcher: Session,
    victim: Initiator,
    asker: Initiator,
    random: Random,
    kept: Vec<(u64, Vec<u8>)>,
    done: usize,
    undone: usize,
}

/// A command, and the content of its blocks without it and with it.
struct Case {
    cdb: Cdb,
    out: Vec<u8>,
    lba: u64,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Cases {
    fn new(target: &Target, seed: u64) -> Result<Self> {
        let own = target.as_initiator(&target::second(&target.initiator));
        let mut watcher = Session::connect(&own.config())?;
        let name = watcher.naa()?.context("the volume has no NAA name")?;
        Ok(Self {
            target: target.clone(),
            name,
            watcher,
            victim: log_in(target, VICTIM)?,
            asker: log_in(target, ASKER)?,
            random: Random::new(seed),
            kept: Vec::new(),
            done: 0,
            undone: 0,
        })
    }

    fn case(&mut self, kind: Kind, way: Way, moment: Moment) -> Result<()> {
        let case = self.prepare(kind)?;
        if moment == Moment::Queued {
            keep_busy(&mut self.victim, BUSY)?;
        }
        let sent = self.victim.command(&case.cdb, case.out.len())?;
        let mut answered = None;
        let r2t = wait_for(&mut self.victim, sent, opcode::R2T)?;
        if moment != Moment::BeforeData {
            self.victim.answer(&r2t, &case.out)?;
        }
        match moment {
            Moment::UnderWay => {
                for _ in 0..self.random.below(16) * 2000 {
                    std::hint::spin_loop();
                }
            }
            Moment::Answered => {
                let end = wait_for(&mut self.victim, sent, opcode::SCSI_RESPONSE)?;
                answered = Some(end.header[3]);
            }
            Moment::BeforeData | Moment::Queued => {}
        }
        self.end(way, sent, &mut answered)?;
        self.judge(case, moment, answered)
    }

    /// Prepares the blocks of a new case, and a command on them.
    fn prepare(&mut self, kind: Kind) -> Result<Case> {
        let lba = FIRST_LBA + self.kept.len() as u64 * BLOCKS as u64;
        let bytes = BLOCKS * BLOCK;
        let before = self.random.bytes(bytes);
        self.write(lba, before.clone())?;
        let fresh = self.random.bytes(bytes);
        let blocks = BLOCKS as u32;
        let (cdb, out, after) = match kind {
            Kind::Write => (Cdb::write_16(lba, blocks), fresh.clone(), fresh),
            Kind::Compare => {
                let both = [before.as_slice(), &fresh].concat();
                (Cdb::compare_and_write(lba, BLOCKS as u8), both, fresh)
            }
            Kind::Copy => {
                self.write(0, fresh.clone())?;
                let segment = CopySegment {
                    source: 0,
                    destination: 0,
                    blocks: BLOCKS as u16,
                    source_lba: 0,
                    destination_lba: lba,
                };
                let list = copy_parameters(&[self.name], &[segment], BLOCK as u32);
                (Cdb::extended_copy(list.len() as u32), list, fresh)
            }
            Kind::Same => {
                let block = fresh[..BLOCK].to_vec();
                (Cdb::write_same_16(lba, blocks, false), block.clone(), block.repeat(BLOCKS))
            }
            Kind::Unmap => {
                let list = unmap_parameters(&[(lba, blocks)]);
                (Cdb::unmap(list.len() as u16), list, vec![0; bytes])
            }
        };
        Ok(Case { cdb, out, lba, before, after })
    }

    /// Aborts it. Returns when the target has responded to the abort, and sets `answered` if the
    /// command got its own response first.
    fn end(&mut self, way: Way, sent: Sent, answered: &mut Option<u8>) -> Result<()> {
        match way {
            Way::Own(function) => {
                let tag = self.victim.manage(function, sent)?;
                let response = ask(&mut self.victim, tag, sent, answered)?;
                let gone = function == Function::AbortTask && answered.is_some();
                ensure!(response == 0 || gone && response == 1, "response {response}");
            }
            Way::Other(function) => {
                let tag = self.asker.manage(function, sent)?;
                let response = ask(&mut self.asker, tag, NOBODY, &mut None)?;
                ensure!(response == 0, "response {response}");
            }
            Way::Drop => {
                self.victim.stream().shutdown(std::net::Shutdown::Both)?;
                self.victim = log_in(&self.target, VICTIM)?;
            }
            Way::Reinstate => self.victim = log_in(&self.target, VICTIM)?,
        }
        if let Way::Own(_) | Way::Other(_) = way {
            // A response that precedes the other host's request arrives now at the latest; one of
            // an aborted command never does.
            attend(&mut self.victim, Some(sent), answered)?;
            attend(&mut self.asker, None, &mut None)?;
        }
        Ok(())
    }

    /// Checks the content of the blocks, which must now be final.
    fn judge(&mut self, case: Case, moment: Moment, answered: Option<u8>) -> Result<()> {
        let now = self.read(case.lba)?;
        ensure!(now == case.before || now == case.after, "the blocks contain other data");
        let done = now == case.after;
        match answered {
            Some(0) => ensure!(done, "it ended with GOOD, but its data is missing"),
            Some(status) => ensure!(!done, "it ended with {status:02X}h, but its data was written"),
            None if moment == Moment::BeforeData => {
                ensure!(!done, "it took effect without its data")
            }
            None => {}
        }
        // After another commit.
        self.write(0, vec![0; BLOCK])?;
        ensure!(self.read(case.lba)? == now, "it took effect after the response");
        self.done += usize::from(done);
        self.undone += usize::from(!done);
        self.kept.push((case.lba, now));
        Ok(())
    }

    /// Checks that nothing has changed since.
    fn verify(&mut self) -> Result<()> {
        for (index, (lba, bytes)) in std::mem::take(&mut self.kept).into_iter().enumerate() {
            ensure!(self.read(lba)? == bytes, "case {index} took effect later");
            self.kept.push((lba, bytes));
        }
        Ok(())
    }

    fn read(&mut self, lba: u64) -> Result<Vec<u8>> {
        self.settle()?;
        Ok(self.watcher.read(lba, BLOCKS as u32, BLOCK as u32)?)
    }

    fn write(&mut self, lba: u64, bytes: Vec<u8>) -> Result<()> {
        self.settle()?;
        Ok(self.watcher.write(lba, bytes, BLOCK as u32)?)
    }

    /// Takes unit attentions; the watcher gets those of resets too.
    fn settle(&mut self) -> Result<()> {
        for _ in 0..ATTENTIONS {
            match self.watcher.test_unit_ready()? {
                Status::Good => return Ok(()),
                Status::CheckCondition(sense) if sense.key == 6 => {}
                status => bail!("TEST UNIT READY ended with {status}"),
            }
        }
        bail!("unit attentions never end")
    }
}

/// Sends long writes without waiting for their end; all of their data is sent.
fn keep_busy(initiator: &mut Initiator, commands: u64) -> Result<()> {
    let data = vec![0x5a; 1 << 20];
    for index in 0..commands {
        let cdb = Cdb::write_16(BUSY_LBA + index * 2048, 2048);
        let sent = initiator.command(&cdb, data.len())?;
        let r2t = wait_for(initiator, sent, opcode::R2T)?;
        initiator.answer(&r2t, &data)?;
    }
    Ok(())
}

fn log_in(target: &Target, isid: u32) -> Result<Initiator> {
    let mut initiator = Initiator::login(target, isid)?;
    attend(&mut initiator, None, &mut None)?;
    Ok(initiator)
}

/// Sends TEST UNIT READY until it is ready. All earlier responses have then arrived: the aborted
/// command is `watched`, and its status is stored in `answered`.
fn attend(
    initiator: &mut Initiator,
    watched: Option<Sent>,
    answered: &mut Option<u8>,
) -> Result<()> {
    for _ in 0..ATTENTIONS {
        let sent = initiator.command(&Cdb::test_unit_ready(), 0)?;
        loop {
            let pdu = initiator.receive()?;
            if pdu.opcode() != opcode::SCSI_RESPONSE {
                continue;
            }
            if watched.is_some_and(|watched| watched.tag == pdu.tag()) {
                *answered = Some(pdu.header[3]);
            }
            if pdu.tag() != sent.tag {
                continue;
            }
            match (pdu.header[3], pdu.data.get(4).map(|key| key & 0xf)) {
                (0, _) => return Ok(()),
                (2, Some(6)) => break,
                (status, key) => bail!("TEST UNIT READY: {status:02X}h, {key:?}"),
            }
        }
    }
    bail!("unit attentions never end")
}

/// Waits for the response to task management; a task's own status may precede it.
fn ask(initiator: &mut Initiator, asked: u32, task: Sent, answered: &mut Option<u8>) -> Result<u8> {
    loop {
        let pdu = initiator.receive()?;
        if pdu.opcode() == opcode::SCSI_RESPONSE && pdu.tag() == task.tag {
            *answered = Some(pdu.header[3]);
        }
        if pdu.opcode() == opcode::TASK_MANAGEMENT_RESPONSE && pdu.tag() == asked {
            return Ok(pdu.header[2]);
        }
    }
}

/// Waits for a PDU of a command, ignoring those of others.
fn wait_for(initiator: &mut Initiator, sent: Sent, wanted: u8) -> Result<Pdu> {
    loop {
        let pdu = initiator.receive()?;
        if pdu.tag() == sent.tag {
            let (came, status) = (pdu.opcode(), pdu.header[3]);
            ensure!(came == wanted, "received PDU {came:02X}h with status {status:02X}h");
            return Ok(pdu);
        }
    }
}
