//! COMPARE AND WRITE repeated because the response was lost: by the same nexus it ends with GOOD,
//! and by any other nexus, or one that knows the result, with MISCOMPARE.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use libiscsi::Cdb;

use crate::array::Array;
use crate::initiator::{Initiator, Pdu, opcode};
use crate::report::Report;
use crate::target::{self, Target};

const BLOCK: usize = 512;
const ISID: u32 = 0x616e_7377;
/// How long a response may take.
const HANG: Duration = Duration::from_secs(30);
/// How often the array is killed at a random moment of a command.
const KILLS: u64 = 6;

/// A command by which a host takes the lock in a block.
#[derive(Clone)]
struct Take {
    lba: u64,
    old: u8,
    new: u8,
}

impl Take {
    /// Creates one for a block that contains zeros, or whose content is unknown.
    fn of(lba: u64) -> Self {
        Self { lba, old: 0, new: lba as u8 | 0x80 }
    }

    fn cdb(&self) -> Cdb {
        Cdb::compare_and_write(self.lba, 1)
    }

    fn data(&self) -> Vec<u8> {
        [[self.old; BLOCK], [self.new; BLOCK]].concat()
    }

    /// Sends it, and waits until the response has arrived, without reading it.
    fn lose(&self, host: &mut Initiator) -> Result<()> {
        self.send(host)?;
        host.receive_peek(HANG)?.context("no response").map(drop)
    }

    /// Sends it with its data.
    fn send(&self, host: &mut Initiator) -> Result<()> {
        host.command(&self.cdb(), self.data().len())?;
        let r2t = host.receive()?;
        host.answer(&r2t, &self.data())
    }

    /// Sends the command. Returns whether it ended with GOOD; `false` is MISCOMPARE.
    fn is_done(&self, host: &mut Initiator) -> Result<bool> {
        let (status, sense) = host.execute(&self.cdb(), &self.data(), 0)?;
        let key = sense.get(4).map(|key| key & 0xf);
        ensure!(status == 0 || key == Some(0xe), "it ended with {status:02X}h, {sense:02X?}");
        Ok(status == 0)
    }
}

/// Logs in, and takes pending unit attentions.
fn enter(target: &Target, isid: u32) -> Result<Initiator> {
    let mut host = Initiator::login(target, isid)?;
    for _ in 0..8 {
        if host.execute(&Cdb::test_unit_ready(), &[], 0)?.0 == 0 {
            return Ok(host);
        }
    }
    bail!("unit attentions never end")
}

/// Kills and restarts `array`, which has these volumes of zeros that nothing else uses.
pub fn answers(report: &mut Report, array: &mut Array, one: &Target, other: &Target) {
    report.check("repeated in a new session after its response was lost: GOOD", || {
        let take = Take::of(1);
        take.lose(&mut enter(one, ISID)?)?;
        take.lose(&mut enter(one, ISID)?)?;
        let mut host = enter(one, ISID)?;
        ensure!(take.is_done(&mut host)?, "a miscompare");
        holds(&mut host, &take)
    });
    report.check("the same, by a session that replaces the old one", || {
        let take = Take::of(2);
        let mut old = enter(one, ISID)?;
        take.lose(&mut old)?;
        ensure!(take.is_done(&mut enter(one, ISID)?)?, "a miscompare");
        Ok(String::new())
    });
    report.check("its response received but not acknowledged: GOOD", || {
        let take = Take::of(3);
        ensure!(take.is_done(&mut enter(one, ISID)?)?, "the first");
        ensure!(take.is_done(&mut enter(one, ISID)?)?, "a miscompare");
        Ok(String::new())
    });
    report.check("acknowledged: MISCOMPARE", || {
        let take = Take::of(4);
        let mut host = enter(one, ISID)?;
        ensure!(take.is_done(&mut host)?, "the first");
        host.execute(&Cdb::test_unit_ready(), &[], 0)?;
        drop(host);
        ensure!(!take.is_done(&mut enter(one, ISID)?)?, "GOOD");
        Ok(String::new())
    });
    report.check("in the same session: MISCOMPARE", || same_session(one));
    report.check("another initiator, ISID, port, volume, block or data: MISCOMPARE", || {
        others(array, one, other)
    });
    report.check("the block has changed since: MISCOMPARE", || {
        let take = Take::of(7);
        take.lose(&mut enter(one, ISID)?)?;
        let mut second = enter(&one.as_initiator(&target::second(&one.initiator)), ISID)?;
        let back = Take { old: take.new, new: 1, ..take };
        ensure!(back.is_done(&mut second)?, "the other session could not take the lock");
        ensure!(!take.is_done(&mut enter(one, ISID)?)?, "GOOD");
        Ok(String::new())
    });
    report.check("after kill -9: GOOD, and MISCOMPARE for another host", || killed(array, one));
    report.check("killed at any moment of the command: GOOD", || killed_amid(array, one));
}

fn holds(host: &mut Initiator, take: &Take) -> Result<String> {
    let (status, held) = host.execute(&Cdb::read_16(take.lba, 1), &[], BLOCK)?;
    ensure!(status == 0 && held == [take.new; BLOCK], "the block contains other data");
    Ok(String::new())
}

/// The ExpStatSN of the second command does not acknowledge the first one's status.
fn same_session(target: &Target) -> Result<String> {
    let take = Take::of(5);
    let mut host = enter(target, ISID)?;
    take.lose(&mut host)?;
    let (again, sent) = host.command_pdu(&take.cdb(), 2 * BLOCK);
    let exp_stat_sn = again.field(28);
    host.send(&again)?;
    let first = host.receive()?;
    ensure!(first.opcode() == opcode::SCSI_RESPONSE && first.header[3] == 0, "the first");
    let r2t = host.receive()?;
    ensure!(r2t.opcode() == opcode::R2T && r2t.tag() == sent.tag, "no R2T: {:02X?}", r2t.header);
    let data = Pdu::new(opcode::DATA_OUT, 0x80)
        .with_bytes(8, &again.header[8..16])
        .with(16, sent.tag)
        .with(20, r2t.field(20))
        .with(28, exp_stat_sn)
        .with_data(&take.data());
    host.send(&data)?;
    let second = host.receive()?;
    ensure!(second.tag() == sent.tag && second.header[3] == 2, "GOOD: {:02X?}", second.header);
    Ok(String::new())
}

fn others(array: &Array, one: &Target, other: &Target) -> Result<String> {
    let take = Take::of(6);
    take.lose(&mut enter(one, ISID)?)?;
    // The data that it would write is present, too.
    let beside = Take { lba: 16, ..take.clone() };
    ensure!(beside.is_done(&mut enter(one, 77)?)?, "the adjacent block");
    ensure!(take.is_done(&mut enter(other, 77)?)?, "the other volume");
    let initiator = one.as_initiator(&target::second(&one.initiator));
    ensure!(!take.is_done(&mut enter(&initiator, ISID)?)?, "GOOD for another initiator");
    ensure!(!take.is_done(&mut enter(one, ISID + 1)?)?, "GOOD for another ISID");
    let portal = array.portals.get(1).context("one portal")?.clone();
    let port = Target { portal, ..one.clone() };
    ensure!(!take.is_done(&mut enter(&port, ISID)?)?, "GOOD at another port");
    ensure!(!take.is_done(&mut enter(other, ISID)?)?, "GOOD for another volume");
    ensure!(!beside.is_done(&mut enter(one, ISID)?)?, "GOOD for another block");
    let old = Take { old: 9, ..take.clone() };
    ensure!(!old.is_done(&mut enter(one, ISID)?)?, "GOOD with other data to compare");
    let new = Take { new: 9, ..take.clone() };
    ensure!(!new.is_done(&mut enter(one, ISID)?)?, "GOOD with other data to write");
    let mut host = enter(one, ISID)?;
    ensure!(take.is_done(&mut host)?, "a miscompare at the end");
    holds(&mut host, &take)
}

fn killed(array: &mut Array, one: &Target) -> Result<String> {
    let take = Take::of(8);
    let mut old = enter(one, ISID)?;
    take.lose(&mut old)?;
    array.kill()?;
    array.inspect()?;
    array.start()?;
    let initiator = one.as_initiator(&target::second(&one.initiator));
    ensure!(!take.is_done(&mut enter(&initiator, ISID)?)?, "GOOD for another initiator");
    ensure!(!take.is_done(&mut enter(one, ISID + 1)?)?, "GOOD for another ISID");
    let mut host = enter(one, ISID)?;
    ensure!(take.is_done(&mut host)?, "a miscompare");
    ensure!(!take.is_done(&mut host)?, "GOOD in the same session");
    holds(&mut host, &take)
}

/// Whether it took effect or not: the host that repeats it has the lock.
fn killed_amid(array: &mut Array, one: &Target) -> Result<String> {
    let mut answered = 0;
    for round in 0..KILLS {
        let take = Take::of(32 + round);
        let mut old = enter(one, ISID)?;
        take.send(&mut old)?;
        std::thread::sleep(Duration::from_micros(150 * round));
        array.kill()?;
        // Responses that the array sent before it ended can still be read.
        answered += u64::from(old.receive().is_ok());
        array.start()?;
        let mut host = enter(one, ISID)?;
        ensure!(take.is_done(&mut host)?, "a miscompare in round {round}");
        holds(&mut host, &take)?;
    }
    array.kill()?;
    array.inspect()?;
    array.start()?;
    Ok(format!("{answered} of {KILLS} got a response before the kill"))
}
