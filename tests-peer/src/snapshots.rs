//! Snapshots and clones as seen by hosts: their content when taken under load, volumes after a
//! restore, and recovery of destroyed objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Session, Status};

use crate::array::Array;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
/// The logical blocks of a write of 64 KiB.
const SOME_BLOCKS: u64 = 128;
/// The number of snapshots of the group taken under load.
const MOMENTS: usize = 25;
/// The LUN of a clone that is read.
const CLONE_LUN: u16 = 9;
/// How long background eradication may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A value that does not change for this long has settled.
const SETTLES: Duration = Duration::from_millis(500);
/// How often that is checked.
const LOOKS: usize = 40;

/// Tests everything about them. The targets are the volumes `alpha` and `beta`, of 1 GiB each.
pub fn snapshots(report: &mut Report, array: &mut Array, [alpha, beta]: [&Target; 2]) {
    report.check("group snapshots under load are consistent", || {
        array.verb(&["group", "create", "both", "alpha", "beta"])?;
        under_load(array, [alpha, beta])
    });
    report.check("a clone has its snapshot's data, and is independent", || clones(array, alpha));
    report.check("a restored volume has its old data; its hosts learn the size", || {
        restores(array, alpha)
    });
    report.check("10 snapshots take no data, and an offload remains one commit", || {
        costs(array, alpha)
    });
    report.check("destroyed objects can be recovered, also after kill -9", || comes_back(array));
    report.check("eradicated objects are gone, and their space is free", || goes(array));
    report.check("the pool is sound", || {
        array.stop()?;
        array.inspect()?;
        array.start()?;
        Ok(String::new())
    });
}

/// Returns a block that contains a number.
fn number(n: u64) -> Vec<u8> {
    n.to_le_bytes().repeat(512)
}

fn read_number(target: &Target) -> Result<u64> {
    let held = Session::connect(&target.config())?.read(0, 8, BLOCK)?;
    let first: [u8; 8] = held.get(..8).context("a short read")?.try_into()?;
    let said = u64::from_le_bytes(first);
    ensure!(held == number(said), "a torn block");
    Ok(said)
}

/// Reads the content of a snapshot through a clone that is connected for a while.
fn through_clone<T>(
    array: &Array,
    snapshot: &str,
    look: impl FnOnce(&Target) -> Result<T>,
) -> Result<T> {
    array.verb(&["volume", "clone", snapshot, "clone"])?;
    array.verb(&["connect", "clone", "peer", "--lun", &CLONE_LUN.to_string()])?;
    let seen = look(&array.target(CLONE_LUN)?);
    array.verb(&["disconnect", "clone", "peer"])?;
    array.verb(&["volume", "destroy", "clone", "--eradicate"])?;
    seen
}

/// A host counts up on one volume, then on the other: in no moment is the second one ahead.
fn under_load(array: &Array, targets: [&Target; 2]) -> Result<String> {
    let done = AtomicBool::new(false);
    let counted = std::thread::scope(|scope| {
        let host = scope.spawn(|| -> Result<u64> {
            let mut sessions = Vec::new();
            for target in targets {
                let mut session = Session::connect(&target.config())?;
                session.write(0, number(0), BLOCK)?;
                sessions.push(session);
            }
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                for session in &mut sessions {
                    session.write(0, number(n), BLOCK)?;
                }
            }
            Ok(n)
        });
        let made = (0..MOMENTS).try_for_each(|_| -> Result<()> {
            array.verb(&["snapshot", "create", "--group", "both"])?;
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        let counted = host.join().map_err(|_| anyhow::anyhow!("the host panicked"))?;
        made.and(counted)
    })?;
    let mut last = 0;
    for moment in 1..=MOMENTS {
        let first = through_clone(array, &format!("both.{moment}.alpha"), read_number)?;
        let second = through_clone(array, &format!("both.{moment}.beta"), read_number)?;
        ensure!(first == second || first == second + 1, "{first} in alpha, {second} in beta");
        ensure!(first >= last, "snapshot {moment} contains {first}, the one before {last}");
        last = first;
    }
    ensure!(last > 0, "no snapshot was made while the host wrote");
    Ok(format!("{MOMENTS} snapshots while a host counted to {counted}"))
}

fn clones(array: &Array, alpha: &Target) -> Result<String> {
    let mut random = Random::new(21);
    let [old, new, own] = [(); 3].map(|()| random.bytes(64 << 10));
    let mut session = Session::connect(&alpha.config())?;
    session.write(SOME_BLOCKS, old.clone(), BLOCK)?;
    array.verb(&["snapshot", "create", "alpha", "--suffix", "before"])?;
    session.write(SOME_BLOCKS, new.clone(), BLOCK)?;
    through_clone(array, "alpha.before", |clone| {
        let mut clone = Session::connect(&clone.config())?;
        let held = clone.read(SOME_BLOCKS, SOME_BLOCKS as u32, BLOCK)?;
        ensure!(held == old, "the clone does not contain the data written before it");
        clone.write(SOME_BLOCKS, own.clone(), BLOCK)?;
        ensure!(clone.read(SOME_BLOCKS, SOME_BLOCKS as u32, BLOCK)? == own, "a write is lost");
        ensure!(clone.naa()? != session.naa()?, "two volumes have the same name");
        Ok(())
    })?;
    // A clone came and went: REPORTED LUNS DATA HAS CHANGED (06/3F/0E) is reported once.
    while !matches!(session.test_unit_ready()?, Status::Good) {}
    ensure!(session.read(SOME_BLOCKS, SOME_BLOCKS as u32, BLOCK)? == new, "the volume changed");
    through_clone(array, "alpha.before", |clone| {
        let held =
            Session::connect(&clone.config())?.read(SOME_BLOCKS, SOME_BLOCKS as u32, BLOCK)?;
        ensure!(held == old, "the snapshot changed");
        Ok(String::new())
    })
}

fn restores(array: &Array, alpha: &Target) -> Result<String> {
    let mut session = Session::connect(&alpha.config())?;
    let before = through_clone(array, "alpha.before", |clone| {
        Ok(Session::connect(&clone.config())?.read(0, 2 * SOME_BLOCKS as u32, BLOCK)?)
    })?;
    array.verb(&["volume", "resize", "alpha", "--size", "2G"])?;
    while !matches!(session.test_unit_ready()?, Status::Good) {}
    array.verb(&["volume", "restore", "alpha", "alpha.before"])?;
    // CAPACITY DATA HAS CHANGED (06/2A/09, SBC-3, 4.7).
    let told = (0..4).any(|_| {
        matches!(session.test_unit_ready(), Ok(Status::CheckCondition(sense))
            if sense.key == 6 && sense.asc_ascq == 0x2A09)
    });
    ensure!(told, "no unit attention 06/2A/09 after the restore");
    ensure!(session.capacity()?.bytes() == 1 << 30, "the size is not that of the snapshot");
    let held = session.read(0, 2 * SOME_BLOCKS as u32, BLOCK)?;
    ensure!(held == before, "the volume differs from the snapshot");
    let refused = array.try_verb(&["volume", "restore", "beta", "alpha.before"])?;
    ensure!(refused.code == 1, "a snapshot of another volume was restored");
    array.verb(&["volume", "overwrite", "beta", "--from", "alpha"])?;
    Ok(String::new())
}

fn pool_number(array: &Array, name: &str) -> Result<u64> {
    let status = array.verb(&["status"])?;
    status["pool"][name].as_u64().with_context(|| format!("no pool.{name}"))
}

/// Returns the bytes of data after background work has freed what earlier checks overwrote.
fn settled_data(array: &Array) -> Result<u64> {
    let mut last = pool_number(array, "data_bytes")?;
    for _ in 0..LOOKS {
        std::thread::sleep(SETTLES);
        let now = pool_number(array, "data_bytes")?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    bail!("the pool's data size does not settle")
}

fn costs(array: &Array, alpha: &Target) -> Result<String> {
    let mut session = Session::connect(&alpha.config())?;
    let before = settled_data(array)?;
    for _ in 0..10 {
        array.verb(&["snapshot", "create", "alpha"])?;
    }
    let after = pool_number(array, "data_bytes")?;
    ensure!(after == before, "{before} bytes of data became {after}");
    let commits = pool_number(array, "commit_count")?;
    let fill = session.write_same(0, 1 << 20, vec![0x5A; BLOCK as usize], false)?;
    ensure!(matches!(fill, Status::Good), "{fill:?}");
    let more = pool_number(array, "commit_count")? - commits;
    ensure!(more == 1, "a fill of 512 MiB took {more} commits");
    array.verb(&["volume", "restore", "alpha", "alpha.before"])?;
    Ok(String::new())
}

fn comes_back(array: &mut Array) -> Result<String> {
    let bytes = Random::new(22).bytes(64 << 10);
    let gone = array.volume("gone", "1G", "peer", CLONE_LUN)?;
    Session::connect(&gone.config())?.write(0, bytes.clone(), BLOCK)?;
    array.verb(&["snapshot", "create", "gone", "--suffix", "kept"])?;
    let refused = array.try_verb(&["volume", "destroy", "gone"])?;
    ensure!(refused.code == 1 && refused.text.contains("existing connections"), "{}", refused.text);
    array.verb(&["disconnect", "gone", "peer"])?;
    array.verb(&["volume", "destroy", "gone"])?;
    array.kill()?;
    array.inspect()?;
    array.start()?;
    let refused = array.try_verb(&["volume", "create", "gone", "--size", "1G"])?;
    ensure!(refused.text.contains("has been destroyed"), "{}", refused.text);
    let refused = array.try_verb(&["volume", "clone", "gone.kept", "other"])?;
    ensure!(refused.code == 1, "a destroyed volume was cloned");
    let listed = array.verb(&["volume", "list", "--destroyed"])?;
    ensure!(listed[0]["name"] == "gone", "it is not listed: {listed}");
    array.verb(&["volume", "recover", "gone"])?;
    array.verb(&["snapshot", "show", "gone.kept"])?;
    array.verb(&["connect", "gone", "peer", "--lun", &CLONE_LUN.to_string()])?;
    let mut session = Session::connect(&array.target(CLONE_LUN)?.config())?;
    ensure!(session.read(0, SOME_BLOCKS as u32, BLOCK)? == bytes, "its data has changed");
    drop(session);
    array.verb(&["disconnect", "gone", "peer"])?;
    Ok(String::new())
}

fn goes(array: &Array) -> Result<String> {
    let before = pool_number(array, "data_bytes")?;
    array.verb(&["array", "set", "--eradication-delay", "1"])?;
    array.verb(&["volume", "destroy", "gone"])?;
    let begin = Instant::now();
    while array.try_verb(&["volume", "show", "gone"])?.code == 0
        || pool_number(array, "data_bytes")? > before - (64 << 10)
    {
        ensure!(begin.elapsed() < PATIENCE, "it still exists, or its space is not free");
        std::thread::sleep(Duration::from_millis(100));
    }
    array.verb(&["array", "set", "--eradication-delay", "86400"])?;
    array.volume("gone", "1G", "peer", CLONE_LUN)?;
    Ok(format!("after {} ms", begin.elapsed().as_millis()))
}
