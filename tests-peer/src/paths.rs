//! Two target port groups: a host sets the state of a path, and is served on the other.

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Direction, Session};

use crate::array::Array;
use crate::offload::{good, refused};
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
/// States of a target port group (SPC-4, 5.15.2.4).
const ACTIVE: u8 = 0;
const NON_OPTIMIZED: u8 = 1;
const STANDBY: u8 = 2;
const UNAVAILABLE: u8 = 3;
/// ASYMMETRIC ACCESS STATE CHANGED.
const CHANGED: (u8, u16) = (6, 0x2A06);

/// `target` is at the first of two portals, which are in separate groups.
pub fn paths(report: &mut Report, array: &Array, target: &Target) -> Result<()> {
    let portal = array.portals.get(1).context("the array has no second portal")?.clone();
    let other = Target { portal, ..target.clone() };
    report.check("each portal has its tag, and each group its ports", || {
        let found = libiscsi::discover(&target.config())?;
        let told = found.first().context("discovery found no target")?;
        for (index, portal) in array.portals.iter().enumerate() {
            let wanted = format!("{portal},{}", index + 1);
            ensure!(told.portals.contains(&wanted), "{wanted} is not in {:?}", told.portals);
        }
        let mut session = Session::connect(&other.config())?;
        let groups = groups(&mut session)?;
        ensure!(groups == [(1, ACTIVE, vec![1]), (2, ACTIVE, vec![2])], "{groups:?}");
        ensure!(own_group(&mut session)? == 2, "VPD 83h names another group");
        Ok(String::new())
    });
    report.check("a path in standby or unavailable refuses, the other serves", || {
        let (mut first, mut second) = connect(target, &other)?;
        first.write(0, vec![5; 4096], BLOCK)?;
        for (state, qualifier) in [(STANDBY, 0x040B), (UNAVAILABLE, 0x040C)] {
            set(&mut first, &[(state, 2)])?;
            // Notified once, then refused.
            refused(&second.test_unit_ready()?, CHANGED)?;
            refused(&second.test_unit_ready()?, (2, qualifier))?;
            let read = second.execute(Cdb::read_16(0, 8), Data::In(vec![0; 4096]))?;
            refused(&read.status, (2, qualifier))?;
            ensure!(second.inquiry(None).is_ok(), "INQUIRY was refused, too");
            ensure!(groups(&mut second)?[1].1 == state, "REPORT TARGET PORT GROUPS differs");
            // The nexus that has set it is not notified, and is served.
            ensure!(first.read(0, 8, BLOCK)? == [5; 4096], "the other path reads other data");
            first.write(0, vec![5; 4096], BLOCK)?;
        }
        set(&mut second, &[(NON_OPTIMIZED, 2)])?;
        refused(&first.test_unit_ready()?, CHANGED)?;
        second.write(8, vec![6; 4096], BLOCK)?;
        ensure!(first.read(8, 8, BLOCK)? == [6; 4096], "the paths lead to different volumes");
        Ok(String::new())
    });
    report.check("without an active path, any recovered path is used", || {
        let (mut first, mut second) = connect(target, &other)?;
        set(&mut first, &[(UNAVAILABLE, 1), (STANDBY, 2)])?;
        refused(&second.test_unit_ready()?, CHANGED)?;
        refused(&first.test_unit_ready()?, (2, 0x040C))?;
        set(&mut second, &[(ACTIVE, 1), (ACTIVE, 2)])?;
        refused(&first.test_unit_ready()?, CHANGED)?;
        for session in [&mut first, &mut second] {
            good(session.test_unit_ready()?)?;
        }
        Ok(String::new())
    });
    report.check("an invalid access state is refused, without effect", || {
        let (mut first, _) = connect(target, &other)?;
        for wrong in [&[(STANDBY, 1), (14, 2)][..], &[(STANDBY, 1), (STANDBY, 3)]] {
            let list = descriptors(wrong);
            let status = first.execute(set_cdb(list.len()), Data::Out(list))?.status;
            refused(&status, (5, 0x2600))?;
        }
        let groups = groups(&mut first)?;
        ensure!(groups.iter().all(|(_, state, _)| *state == ACTIVE), "{groups:?}");
        Ok(String::new())
    });
    Ok(())
}

fn connect(first: &Target, second: &Target) -> Result<(Session, Session)> {
    let (mut one, mut two) =
        (Session::connect(&first.config())?, Session::connect(&second.config())?);
    good(one.test_unit_ready()?)?;
    good(two.test_unit_ready()?)?;
    Ok((one, two))
}

fn descriptors(states: &[(u8, u8)]) -> Vec<u8> {
    let mut list = vec![0; 4];
    states.iter().for_each(|(state, group)| list.extend([*state, 0, 0, *group]));
    list
}

fn set_cdb(length: usize) -> Cdb {
    Cdb::raw(&[0xA4, 0x0A, 0, 0, 0, 0, 0, 0, 0, length as u8, 0, 0], Direction::Out)
}

/// SET TARGET PORT GROUPS: states and groups.
fn set(session: &mut Session, states: &[(u8, u8)]) -> Result<()> {
    let list = descriptors(states);
    let status = session.execute(set_cdb(list.len()), Data::Out(list))?.status;
    good(status).context("SET TARGET PORT GROUPS")
}

/// REPORT TARGET PORT GROUPS: each group, its state and its ports.
fn groups(session: &mut Session) -> Result<Vec<(u16, u8, Vec<u16>)>> {
    let cdb = Cdb::raw(&[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0], Direction::In);
    let answer = session.execute(cdb, Data::In(vec![0; 255]))?;
    good(answer.status).context("REPORT TARGET PORT GROUPS")?;
    let data = answer.buffer;
    let (end, mut at) = (4 + usize::from(data[3]), 4);
    let mut found = Vec::new();
    let number = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    while at < end {
        let count = usize::from(data[at + 7]);
        let ports = (0..count).map(|port| number(at + 8 + 4 * port + 2)).collect();
        found.push((number(at + 2), data[at] & 0x0F, ports));
        at += 8 + 4 * count;
    }
    Ok(found)
}

/// Returns the target port group in VPD 83h: designator type 5 of the port.
fn own_group(session: &mut Session) -> Result<u8> {
    let page = session.inquiry(Some(0x83))?;
    let mut at = 4;
    while at + 4 <= page.len() {
        if page[at + 1] & 0x3F == 0x15 {
            return page.get(at + 7).copied().context("a short designator");
        }
        at += 4 + usize::from(page[at + 3]);
    }
    anyhow::bail!("VPD 83h names no target port group")
}
