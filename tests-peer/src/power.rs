//! A start of the array is a power on, after kill -9 as well as after SIGTERM: which state hosts
//! then find, by kind, and the unit attentions for starts, resets and lost sessions (29h; SAM-5,
//! 5.14).

use anyhow::{Result, ensure};
use libiscsi::{Cdb, Data, Direction, Session, Status};

use crate::array::Array;
use crate::initiator::{Function, Initiator, Sent, opcode};
use crate::offload::good;
use crate::report::Report;
use crate::reservations::{APTPL, HOLDER, REGISTER_AND_IGNORE, out, read};
use crate::target::{self, Target};

const BLOCK: u32 = 512;
const CONFLICT: Status = Status::Other(0x18);
/// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED.
const POWER_ON: (u8, u8) = (0x29, 0x00);
/// SCSI BUS RESET OCCURRED.
const TARGET_RESET: (u8, u8) = (0x29, 0x02);
/// BUS DEVICE RESET FUNCTION OCCURRED.
const UNIT_RESET: (u8, u8) = (0x29, 0x03);
/// I_T NEXUS LOSS OCCURRED.
const NEXUS_LOSS: (u8, u8) = (0x29, 0x07);
/// ASYMMETRIC ACCESS STATE NON-OPTIMIZED.
const NON_OPTIMIZED: u8 = 1;

/// How the array is ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Stopped,
}

/// Ends and starts `array`, which has two volumes that nothing else uses.
pub fn power(report: &mut Report, array: &mut Array, one: &Target, other: &Target) {
    for (end, name) in [(End::Killed, "kill -9"), (End::Stopped, "SIGTERM")] {
        report
            .check(&format!("{name}: RESERVE is gone, another host can reserve the unit"), || {
                reserve(array, one, end)
            });
        report.check(&format!("{name}: access states set by hosts are gone"), || {
            access_states(array, one, end)
        });
        report.check(&format!("{name}: APTPL applies to each volume separately"), || {
            registrations(array, one, other, end)
        });
    }
    report.check(
        "starts, resets and lost sessions are reported by their own unit attentions",
        || attentions(array, one),
    );
}

fn again(array: &mut Array, end: End) -> Result<()> {
    match end {
        End::Killed => array.kill()?,
        End::Stopped => array.stop()?,
    }
    array.inspect()?;
    array.start()?;
    Ok(())
}

fn reserve(array: &mut Array, one: &Target, end: End) -> Result<String> {
    let second = one.as_initiator(&target::second(&one.initiator));
    let mut holder = Session::connect(&one.config())?;
    let mut other = Session::connect(&second.config())?;
    good(holder.execute(Cdb::reserve_6(), Data::None)?.status)?;
    let status = other.execute(Cdb::reserve_6(), Data::None)?.status;
    ensure!(status == CONFLICT, "another host's RESERVE ended with {status}");
    again(array, end)?;
    let mut other = Session::connect(&second.config())?;
    good(other.execute(Cdb::reserve_6(), Data::None)?.status)?;
    good(other.execute(Cdb::release_6(), Data::None)?.status)?;
    // A RESERVE ends with its session, and is not restored by the next start.
    let mut holder = Session::connect(&one.config())?;
    good(holder.execute(Cdb::reserve_6(), Data::None)?.status)?;
    drop(holder);
    for _ in 0..200 {
        match other.execute(Cdb::reserve_6(), Data::None)?.status {
            CONFLICT => std::thread::sleep(std::time::Duration::from_millis(10)),
            status => {
                good(status)?;
                good(other.execute(Cdb::release_6(), Data::None)?.status)?;
                return Ok(String::new());
            }
        }
    }
    anyhow::bail!("a lost session holds the unit forever")
}

/// Returns state and status code of the first target port group.
fn state_of(session: &mut Session) -> Result<(u8, u8)> {
    let cdb = Cdb::raw(&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0], Direction::In);
    let answer = session.execute(cdb, Data::In(vec![0; 255]))?;
    good(answer.status)?;
    Ok((answer.buffer[4] & 0x0f, answer.buffer[9]))
}

fn access_states(array: &mut Array, one: &Target, end: End) -> Result<String> {
    let mut session = Session::connect(&one.config())?;
    let list = vec![0, 0, 0, 0, NON_OPTIMIZED, 0, 0, 1];
    let set = Cdb::raw(&[0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], Direction::Out);
    good(session.execute(set, Data::Out(list))?.status)?;
    let state = state_of(&mut session)?;
    ensure!(state == (NON_OPTIMIZED, 1), "set by a host: {state:?}");
    again(array, end)?;
    let state = state_of(&mut Session::connect(&one.config())?)?;
    ensure!(state == (0, 0), "after the start: {state:?}");
    Ok(String::new())
}

fn registrations(array: &mut Array, one: &Target, other: &Target, end: End) -> Result<String> {
    for (target, flags) in [(one, APTPL), (other, 0)] {
        let mut session = Session::connect(&target.config())?;
        good(out(&mut session, REGISTER_AND_IGNORE, flags, 0, HOLDER)?)?;
    }
    again(array, end)?;
    for (target, count) in [(one, 1), (other, 0)] {
        let mut session = Session::connect(&target.config())?;
        let keys = read(&mut session, 0)?;
        ensure!(keys.len() == 8 + 8 * count, "keys of {}: {keys:02x?}", target.lun);
        ensure!(keys[..4] == [0; 4], "PRGENERATION is {:02x?}", &keys[..4]);
    }
    // Without APTPL it is no longer preserved, and neither is the previous one.
    let mut session = Session::connect(&one.config())?;
    good(out(&mut session, REGISTER_AND_IGNORE, 0, 0, HOLDER)?)?;
    again(array, end)?;
    let keys = read(&mut Session::connect(&one.config())?, 0)?;
    ensure!(keys.len() == 8, "still registered without APTPL: {keys:02x?}");
    Session::connect(&one.config())?.write(0, vec![1; BLOCK as usize], BLOCK)?;
    Ok(String::new())
}

/// Returns the pending unit attentions, in order.
fn told(session: &mut Initiator) -> Result<Vec<(u8, u8)>> {
    let mut all = Vec::new();
    loop {
        match session.execute(&Cdb::test_unit_ready(), &[], 0)? {
            (0, _) => return Ok(all),
            (2, sense) if sense.len() > 15 && sense[4] & 0x0f == 6 => {
                all.push((sense[14], sense[15]));
            }
            (status, sense) => anyhow::bail!("status {status:02x}: {sense:02x?}"),
        }
        ensure!(all.len() < 20, "unit attentions never end: {all:02x?}");
    }
}

fn attentions(array: &mut Array, one: &Target) -> Result<String> {
    let expect = |session: &mut Initiator, want: &[(u8, u8)], when: &str| {
        let got = told(session)?;
        ensure!(got == want, "{when}: {got:02x?}, not {want:02x?}");
        Ok(())
    };
    again(array, End::Killed)?;
    // The same nexus each time: the same initiator, ISID and port.
    let mut session = Initiator::login(one, 1)?;
    expect(&mut session, &[POWER_ON], "after a start")?;
    drop(session);
    let mut session = Initiator::login(one, 1)?;
    expect(&mut session, &[NEXUS_LOSS], "after its session was lost")?;
    let mut session = Initiator::login(one, 1)?;
    expect(&mut session, &[NEXUS_LOSS], "after it was reinstated")?;
    let mut other = Initiator::login(one, 2)?;
    expect(&mut other, &[POWER_ON], "for an unknown nexus")?;
    for (function, what) in
        [(Function::LunReset, UNIT_RESET), (Function::TargetWarmReset, TARGET_RESET)]
    {
        let tag = other.manage(function, Sent { tag: 0, cmd_sn: 0 })?;
        let answer = other.receive()?;
        ensure!(answer.tag() == tag && answer.header[2] == 0, "{:02x?}", answer.header);
        ensure!(answer.opcode() == opcode::TASK_MANAGEMENT_RESPONSE, "{:02x?}", answer.header);
        expect(&mut session, &[what], "after a reset by another session")?;
        expect(&mut other, &[what], "after its own reset")?;
    }
    again(array, End::Killed)?;
    let mut session = Initiator::login(one, 1)?;
    expect(&mut session, &[POWER_ON], "after the next start, which has precedence over the loss")?;
    Ok(String::new())
}
