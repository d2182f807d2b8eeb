//! Transfers of all lengths, and events that end them early.

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Direction, Poller, Session, Status};

use crate::offload::{good, refused};
use crate::random::Random;
use crate::report::Report;
use crate::target::{self, Target};

const BLOCK: u32 = 512;
/// The longest command: MAXIMUM TRANSFER LENGTH, in blocks.
const LONGEST: u32 = 65_536;
/// The number of long writes in progress when they are aborted.
const WRITES: u8 = 6;
/// Turns of waiting until the last of them has ended.
const TURNS: usize = 100_000;
/// The token of the command after the writes.
const FENCE: u64 = 99;
/// INVALID FIELD IN CDB.
const INVALID_FIELD: (u8, u16) = (5, 0x2400);
/// The key of the preempting nexus.
const KEEPER: u64 = 0x4b45;
/// The key of the preempted nexus.
const LOSER: u64 = 0x4c4f;

/// Transfers data of many lengths to and from `target`, a volume of 1 GiB that nothing else uses.
pub fn transfers(report: &mut Report, target: &Target) {
    report.check("READ and WRITE of all sizes, aligned and unaligned", || sizes(target));
    report
        .check("no write takes effect after the response to PREEMPT AND ABORT", || preempt(target));
}

fn sizes(target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    let page = session.inquiry(Some(0xb0))?;
    let field = page.get(8..12).context("no MAXIMUM TRANSFER LENGTH")?;
    let told = u32::from_be_bytes(field.try_into()?);
    ensure!(told == LONGEST, "MAXIMUM TRANSFER LENGTH is {told}");
    let mut random = Random::new(5);
    let lengths = [1, 7, 8, 9, 255, 2048, 8191, 8192, 8193, 16_385, 40_000, LONGEST - 1, LONGEST];
    for (index, blocks) in lengths.into_iter().enumerate() {
        let lba = (index as u64 % 8) * 4097;
        let data = random.bytes(blocks as usize * BLOCK as usize);
        session.write(lba, data.clone(), BLOCK)?;
        let read = session.read(lba, blocks, BLOCK)?;
        ensure!(read == data, "{blocks} blocks at {lba} differ from what was written");
        let middle = session.read(lba + u64::from(blocks / 2), 1, BLOCK)?;
        let at = blocks as usize / 2 * BLOCK as usize;
        ensure!(middle == data[at..at + BLOCK as usize], "the middle of {blocks} blocks differs");
    }
    let room = vec![0; (LONGEST as usize + 1) * BLOCK as usize];
    let longer = session.execute(Cdb::read_16(0, LONGEST + 1), Data::In(room))?;
    refused(&longer.status, INVALID_FIELD).context("a longer command")?;
    let data = vec![1; (LONGEST as usize + 1) * BLOCK as usize];
    let longer = session.execute(Cdb::write_16(0, LONGEST + 1), Data::Out(data))?;
    refused(&longer.status, INVALID_FIELD).context("a longer command")?;
    Ok(format!("up to {} MiB", (u64::from(LONGEST) * u64::from(BLOCK)) >> 20))
}

const RESERVE: u8 = 1;
const CLEAR: u8 = 3;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;

/// PERSISTENT RESERVE OUT.
fn reserve_out(session: &mut Session, action: u8, key: u64, action_key: u64) -> Result<Status> {
    // For actions with a type: write exclusive.
    let kind = u8::from(matches!(action, RESERVE | PREEMPT_AND_ABORT));
    let cdb = Cdb::raw(&[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], Direction::Out);
    let mut list = key.to_be_bytes().to_vec();
    list.extend(action_key.to_be_bytes());
    list.resize(24, 0);
    Ok(session.execute(cdb, Data::Out(list))?.status)
}

/// One nexus holds the reservation and repeatedly writes the same blocks, in long commands; another
/// one preempts it. The content of the blocks is then final, regardless of the writes.
fn preempt(target: &Target) -> Result<String> {
    let mut keeper = Session::connect(&target.config())?;
    let other = target.as_initiator(&target::second(&target.initiator));
    let mut loser = Session::connect(&other.config())?;
    good(reserve_out(&mut keeper, REGISTER_AND_IGNORE, 0, KEEPER)?)?;
    good(reserve_out(&mut loser, REGISTER_AND_IGNORE, 0, LOSER)?)?;
    good(reserve_out(&mut loser, RESERVE, LOSER, 0)?)?;
    for number in 0..WRITES {
        let data = vec![number + 1; LONGEST as usize * BLOCK as usize];
        loser.submit(Cdb::write_16(0, LONGEST), Data::Out(data), number.into())?;
    }
    // The first has ended: the others are at different steps.
    let mut ended = Vec::new();
    let mut poller = Poller::new();
    for _ in 0..TURNS {
        ended.extend(loser.next_completion().map(|completion| completion.status));
        if !ended.is_empty() {
            break;
        }
        poller.poll(&mut [&mut loser], 1);
    }
    good(reserve_out(&mut keeper, PREEMPT_AND_ABORT, KEEPER, LOSER)?)?;
    let before = keeper.read(0, LONGEST, BLOCK)?;
    // Aborted commands get no response, because TAS is 0; all others have theirs by the time of
    // this response.
    loser.submit(Cdb::test_unit_ready(), Data::None, FENCE)?;
    let mut is_fenced = false;
    for _ in 0..TURNS {
        while let Some(completion) = loser.next_completion() {
            if completion.token == FENCE {
                is_fenced = true;
            } else {
                ended.push(completion.status);
            }
        }
        if is_fenced {
            break;
        }
        poller.poll(&mut [&mut loser], 1);
    }
    ensure!(is_fenced, "only {} writes ended, and nothing after them", ended.len());
    for status in &ended {
        let known = matches!(status, Status::Good | Status::Other(0x18))
            || matches!(status, Status::CheckCondition(sense) if sense.key == 6);
        ensure!(known, "a write ended with {status}");
    }
    let good_count = ended.iter().filter(|status| **status == Status::Good).count();
    let barred = usize::from(WRITES) - good_count;
    ensure!(barred > 0, "all writes had ended before the preemption: nothing was tested");
    ensure!(keeper.read(0, LONGEST, BLOCK)? == before, "a write took effect afterwards");
    good(reserve_out(&mut keeper, CLEAR, KEEPER, 0)?)?;
    Ok(format!("{barred} of {WRITES} writes were aborted or refused"))
}
