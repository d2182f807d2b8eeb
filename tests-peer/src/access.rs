//! Access control (invariant 6): no command of a host reaches a volume that is not connected to it.

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{CopySegment, Session, Status};

use crate::array::Array;
use crate::offload::good;
use crate::report::Report;
use crate::target::{self, STRANGER, Target};

/// The other host's initiator.
const NEIGHBOUR: &str = "iqn.2026-01.com.example:neighbour";
/// The initiator of the host with a secret.
const GUARDED: &str = "iqn.2026-01.com.example:guarded";
const USER: &str = "guarded-user";
const SECRET: &str = "a-secret-of-16-b";

/// Creates separate volumes and hosts on `array`, and tries every way around the connections. `own`
/// is a volume of the test's first host.
pub fn access(report: &mut Report, array: &Array, own: &Target) {
    report.check("an unknown initiator discovers no target and no volume", || stranger(own));
    report.check("a host sees only the volumes connected to it", || neighbour(array, own));
    report.check("EXTENDED COPY reaches no volume of another host", || copy(array, own));
    report.check("a volume that was disconnected is gone at once", || disconnect(array));
    report.check("CHAP: only the right secret is accepted", || chap(array));
}

/// Returns the guarded host's volume, for the tests that continue with CHAP.
pub fn guarded(array: &Array, lun: u16) -> Result<Target> {
    let secret = array.scratch().join("chap-secret");
    if !secret.exists() {
        std::fs::write(&secret, SECRET)?;
        let file = secret.display().to_string();
        array.verb(&[
            "host",
            "create",
            "guarded",
            "--iqn",
            GUARDED,
            "--iqn",
            &target::second(GUARDED),
            "--chap-user",
            USER,
            "--chap-secret-file",
            &file,
        ])?;
        array.verb(&["volume", "create", "guarded", "--size", "1G"])?;
        array.verb(&["connect", "guarded", "guarded", "--lun", &lun.to_string()])?;
    }
    let mut target = array.target(lun)?.as_initiator(GUARDED);
    target.chap = Some((USER.to_owned(), SECRET.to_owned()));
    Ok(target)
}

fn stranger(own: &Target) -> Result<String> {
    let stranger = own.as_initiator(STRANGER);
    if let Ok(targets) = libiscsi::discover(&stranger.config()) {
        ensure!(targets.is_empty(), "discovery shows {targets:?}");
    }
    ensure!(Session::connect(&stranger.config()).is_err(), "it reached the volume");
    Ok(String::new())
}

fn neighbour(array: &Array, own: &Target) -> Result<String> {
    array.host("neighbour", &[NEIGHBOUR])?;
    array.verb(&["volume", "create", "next-door", "--size", "1G"])?;
    array.verb(&["connect", "next-door", "neighbour", "--lun", "7"])?;
    let theirs = own.as_initiator(NEIGHBOUR).with_lun(7);
    let luns = Session::connect(&theirs.config())?.report_luns()?;
    ensure!(luns == [7], "the neighbour sees {luns:?}");
    let luns = Session::connect(&own.config())?.report_luns()?;
    ensure!(!luns.contains(&7) && luns.contains(&own.lun), "we see {luns:?}");
    for (initiator, lun) in [(NEIGHBOUR, own.lun), (own.initiator.as_str(), 7)] {
        let other = own.as_initiator(initiator).with_lun(lun);
        ensure!(Session::connect(&other.config()).is_err(), "{initiator} reached LUN {lun}");
    }
    Ok(String::new())
}

fn copy(array: &Array, own: &Target) -> Result<String> {
    array.must_be_listed("next-door")?;
    let mut theirs = Session::connect(&own.as_initiator(NEIGHBOUR).with_lun(7).config())?;
    let mut ours = Session::connect(&own.config())?;
    let their_name = theirs.naa()?.context("the neighbour's volume has no name")?;
    let our_name = ours.naa()?.context("our volume has no name")?;
    theirs.write(0, vec![0xAA; 4096], 512)?;
    ours.write(0, vec![0xBB; 4096], 512)?;
    let names = [our_name, their_name];
    let segment = |source, destination| CopySegment {
        source,
        destination,
        blocks: 8,
        source_lba: 0,
        destination_lba: 0,
    };
    // In both directions, alone and after an allowed segment.
    for segments in [vec![segment(0, 1)], vec![segment(1, 0)], vec![segment(0, 0), segment(1, 0)]] {
        match ours.extended_copy(&names, &segments, 512)? {
            // COPY ABORTED or ILLEGAL REQUEST, as in SPC-4, 6.4, for an unreachable CSCD.
            Status::CheckCondition(sense) if matches!(sense.key, 0x05 | 0x0A) => {}
            status => bail!("a copy from or to an unconnected volume ended with {status}"),
        }
    }
    ensure!(theirs.read(0, 8, 512)? == [0xAA; 4096], "the neighbour's volume was written");
    ensure!(ours.read(0, 8, 512)? == [0xBB; 4096], "the neighbour's volume was read");
    Ok(String::new())
}

fn disconnect(array: &Array) -> Result<String> {
    array.verb(&["volume", "create", "short", "--size", "1G"])?;
    array.verb(&["connect", "short", "peer", "--lun", "90"])?;
    let target = array.target(90)?;
    let mut session = Session::connect(&target.config())?;
    session.write(0, vec![1; 512], 512)?;
    array.verb(&["disconnect", "short", "peer"])?;
    ensure!(session.read(0, 1, 512).is_err(), "an old session still reads it");
    ensure!(session.write(0, vec![2; 512], 512).is_err(), "an old session still writes it");
    ensure!(Session::connect(&target.config()).is_err(), "a new session still reaches it");
    array.verb(&["connect", "short", "peer", "--lun", "91"])?;
    let mut session = Session::connect(&target.with_lun(91).config())?;
    ensure!(session.read(0, 1, 512)? == [1; 512], "it does not contain the written data");
    Ok(String::new())
}

fn chap(array: &Array) -> Result<String> {
    let target = guarded(array, 1)?;
    let mut session = Session::connect(&target.config())?;
    good(session.test_unit_ready()?)?;
    for (user, secret) in [(USER, "another-secret-1"), ("nobody-we-know", SECRET)] {
        let mut wrong = target.clone();
        wrong.chap = Some((user.to_owned(), secret.to_owned()));
        ensure!(Session::connect(&wrong.config()).is_err(), "{user} with {secret} logged in");
    }
    let mut bare = target.clone();
    bare.chap = None;
    ensure!(Session::connect(&bare.config()).is_err(), "it logged in without CHAP");
    Ok(String::new())
}
