//! Persistent reservations through kill -9: registrations with APTPL are preserved, others are gone
//! (SPC-4, 5.13.5).

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Direction, Session, Status};

use crate::array::Array;
use crate::offload::good;
use crate::report::Report;
use crate::target::{self, Target};

const BLOCK: u32 = 512;
pub const HOLDER: u64 = 0x686f_6c64;
const OTHER: u64 = 0x6f74_6865;

pub const RESERVE: u8 = 1;
const CLEAR: u8 = 3;
pub const REGISTER_AND_IGNORE: u8 = 6;
/// Write exclusive, registrants only.
const REGISTRANTS_ONLY: u8 = 5;
pub const APTPL: u8 = 0x01;

/// Kills and restarts `array`, which has `kept` and `lost`, two volumes that nothing else uses.
pub fn reservations(report: &mut Report, array: &mut Array, kept: &Target, lost: &Target) {
    report.check("APTPL: registrations and reservations survive kill -9", || {
        restart(array, kept, lost)
    });
    report.check("ports keep their ids when --iscsi lists them in another order", || {
        reorder(array, kept)
    });
    report.check("APTPL: cleared registrations do not return", || {
        let mut session = Session::connect(&kept.config())?;
        good(out(&mut session, REGISTER_AND_IGNORE, APTPL, 0, HOLDER)?)?;
        good(out(&mut session, CLEAR, 0, HOLDER, 0)?)?;
        array.kill()?;
        array.inspect()?;
        array.start()?;
        let mut session = Session::connect(&kept.config())?;
        let status = read(&mut session, 3)?;
        ensure!(status.len() == 8, "an initiator is registered: {status:02x?}");
        session.write(0, vec![3; BLOCK as usize], BLOCK)?;
        Ok(String::new())
    });
}

/// Returns the Device Identification page (VPD 83h), which contains the target port of the session.
fn identification(target: &Target) -> Result<Vec<u8>> {
    Ok(Session::connect(&target.config())?.inquiry(Some(0x83))?)
}

/// Restarts `array` with its addresses in reverse order. Each must be the same target port as
/// before, because registrations refer to the port.
fn reorder(array: &mut Array, kept: &Target) -> Result<String> {
    let at = |portal: &String| Target { portal: portal.clone(), ..kept.clone() };
    let paths: Vec<Target> = array.portals.iter().map(at).collect();
    let before = paths.iter().map(identification).collect::<Result<Vec<_>>>()?;
    ensure!(before.windows(2).all(|pair| pair[0] != pair[1]), "ports do not differ");
    let mut holder = Session::connect(&kept.config())?;
    good(out(&mut holder, REGISTER_AND_IGNORE, APTPL, 0, HOLDER)?)?;
    let registered = read(&mut holder, 3)?;
    array.kill()?;
    array.portals.reverse();
    array.start()?;
    let after = paths.iter().map(identification).collect::<Result<Vec<_>>>()?;
    ensure!(after == before, "ports have changed: {before:02x?}, {after:02x?}");
    let mut session = Session::connect(&kept.config())?;
    let kept_status = read(&mut session, 3)?;
    ensure!(kept_status[4..] == registered[4..], "{registered:02x?}, {kept_status:02x?}");
    // A second registration over the same address must refer to the same target port.
    good(out(&mut session, REGISTER_AND_IGNORE, APTPL, 0, OTHER)?)?;
    let both = read(&mut session, 3)?;
    let port = |at: usize| both.get(8 + at + 18..8 + at + 20).map(<[u8]>::to_vec);
    let second = 24 + u32::from_be_bytes(both[28..32].try_into()?) as usize;
    ensure!(port(0).is_some() && port(0) == port(second), "not the same port: {both:02x?}");
    good(out(&mut session, CLEAR, 0, OTHER, 0)?)?;
    array.kill()?;
    array.portals.reverse();
    array.start()?;
    Ok(format!("{} ports", paths.len()))
}

fn restart(array: &mut Array, kept: &Target, lost: &Target) -> Result<String> {
    let mut before = Vec::new();
    for (target, flags) in [(kept, APTPL), (lost, 0)] {
        let mut holder = Session::connect(&target.config())?;
        let second = target.as_initiator(&target::second(&target.initiator));
        let mut other = Session::connect(&second.config())?;
        good(out(&mut holder, REGISTER_AND_IGNORE, flags, 0, HOLDER)?)?;
        good(out(&mut other, REGISTER_AND_IGNORE, flags, 0, OTHER)?)?;
        good(out(&mut holder, RESERVE, 0, HOLDER, 0)?)?;
        before.push(read(&mut other, 3)?);
    }
    array.kill()?;
    array.inspect()?;
    let took = array.start()?;
    // These sessions are other nexuses: their ISIDs are new.
    let mut session = Session::connect(&kept.config())?;
    let after = read(&mut session, 3)?;
    ensure!(after[..4] == [0; 4], "PRGENERATION is {:02x?} after the restart", &after[..4]);
    ensure!(after[4..] == before[0][4..], "changed: {:02x?}, {after:02x?}", before[0]);
    let active = |data: &[u8]| data.get(3).map(|flags| flags & 1).context("no PTPL_A");
    ensure!(active(&read(&mut session, 2)?)? == 1, "PTPL_A is 0");
    let held = read(&mut session, 1)?;
    ensure!(held.get(8..16) == Some(&HOLDER.to_be_bytes()[..]), "it is held by {held:02x?}");
    let write = session.execute(Cdb::write_16(0, 1), Data::Out(vec![1; BLOCK as usize]))?;
    ensure!(write.status == Status::Other(0x18), "a write ended with {}", write.status);
    session.read(0, 1, BLOCK)?;
    // A nexus that registers now is admitted, and can end it.
    good(out(&mut session, REGISTER_AND_IGNORE, APTPL, 0, 7)?)?;
    session.write(0, vec![2; BLOCK as usize], BLOCK)?;
    good(out(&mut session, CLEAR, 0, 7, 0)?)?;
    let mut session = Session::connect(&lost.config())?;
    let status = read(&mut session, 3)?;
    ensure!(status.len() == 8, "an initiator is registered without APTPL: {status:02x?}");
    ensure!(active(&read(&mut session, 2)?)? == 0, "PTPL_A is 1");
    session.write(0, vec![1; BLOCK as usize], BLOCK)?;
    Ok(format!("served again in {} ms", took.as_millis()))
}

/// PERSISTENT RESERVE OUT.
pub fn out(
    session: &mut Session,
    action: u8,
    flags: u8,
    key: u64,
    action_key: u64,
) -> Result<Status> {
    let kind = if action == RESERVE { REGISTRANTS_ONLY } else { 0 };
    let cdb = Cdb::raw(&[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], Direction::Out);
    let mut list = key.to_be_bytes().to_vec();
    list.extend(action_key.to_be_bytes());
    list.resize(24, 0);
    list[20] = flags;
    Ok(session.execute(cdb, Data::Out(list))?.status)
}

/// PERSISTENT RESERVE IN: the parameter data.
pub fn read(session: &mut Session, action: u8) -> Result<Vec<u8>> {
    let cdb = Cdb::raw(&[0x5e, action, 0, 0, 0, 0, 0, 4, 0, 0], Direction::In);
    let answer = session.execute(cdb, Data::In(vec![0; 1024]))?;
    good(answer.status)?;
    let mut data = answer.buffer;
    data.truncate(data.len() - answer.residual);
    Ok(data)
}
