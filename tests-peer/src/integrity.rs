//! Corrupted bytes of the pool: scrub finds and reports them, hosts get MEDIUM ERROR with the right
//! block and never wrong data, and an overwrite heals. On several devices scrub repairs them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, Data, Sense, Session, Status};
use serde_json::Value;

use crate::array::Array;
use crate::devices;
use crate::random::Random;
use crate::report::Report;
use crate::space::copy;
use crate::target::Target;

const BLOCK: u32 = 512;
const MIB: usize = 1 << 20;
const MIB_BLOCKS: u64 = 2048;
/// The logical blocks of a block of the pool.
const POOL_BLOCK: u64 = 8;
/// The data, and its copy.
const DATA_MIB: u64 = 3;
const COPY_MIB: u64 = 40;
/// The damaged blocks, from the start of the data: the second one is in another leaf.
const DAMAGED: [u64; 2] = [5, 300];
/// How long a pass over a few MiB may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Damages the pool of `array`, whose volume `name` is at `target`.
pub fn integrity(report: &mut Report, array: &mut Array, target: &Target, name: &str) {
    let data = Random::new(21).bytes(2 * MIB);
    report.check("a pass over a sound pool lists nothing", || {
        let mut session = Session::connect(&target.config())?;
        session.write(DATA_MIB * MIB_BLOCKS, data.clone(), BLOCK)?;
        copy(&mut session, DATA_MIB, COPY_MIB, 2)?;
        let read = scrub(array)?["done_bytes"].as_u64().context("no done_bytes")?;
        ensure!(read > 2 * MIB as u64, "it read {read} bytes, less than 2 MiB and their map");
        ensure!(damage(array)?.is_empty(), "{:?}", damage(array)?);
        Ok(format!("{} KiB", read >> 10))
    });
    match array.devices() {
        1 => lost_for_good(report, array, target, name, &data),
        _ => lost_on_one(report, array, target, &data),
    }
    if array.devices() == 1 {
        superblocks(report, array);
    }
    report.check("the pool is sound after a kill", || {
        array.kill()?;
        array.inspect()?;
        array.start()?;
        Ok(String::new())
    });
}

/// Each device has its own superblocks, of which the newest counts; the next checkpoint rewrites
/// them, and a pass does not check them.
fn superblocks(report: &mut Report, array: &Array) {
    report.check("corrupt superblocks of a running array are rewritten", || {
        for offset in [0, 8 << 20] {
            turn(&array.pool().join("pool.data"), offset + 70)?;
            scrub(array)?;
            let listed = damage(array)?;
            let [entry] = &listed[..] else { bail!("{listed:?}") };
            ensure!(entry["kind"] == "superblock" && entry["repaired"] == true, "{entry}");
        }
        scrub(array)?;
        ensure!(damage(array)?.is_empty(), "{:?}", damage(array)?);
        Ok(String::new())
    });
}

/// With one device there is no other copy of the corrupted bytes.
fn lost_for_good(report: &mut Report, array: &mut Array, target: &Target, name: &str, data: &[u8]) {
    report.check("corrupt blocks are listed by volume and LBA", || {
        turn_blocks(array, data)?;
        scrub(array)?;
        let mut listed = Vec::new();
        for entry in damage(array)? {
            ensure!(entry["kind"] == "data" && entry["volume"] == name, "{entry}");
            ensure!(entry["blocks"] == POOL_BLOCK && entry["repaired"] == false, "{entry}");
            listed.push(entry["first_lba"].as_u64().context("no first_lba")?);
        }
        listed.sort_unstable();
        let places = [DATA_MIB, COPY_MIB].into_iter();
        let wanted: Vec<u64> =
            places.flat_map(|mib| DAMAGED.map(|block| lba(mib, block))).collect();
        ensure!(listed == wanted, "listed {listed:?}, damaged {wanted:?}");
        Ok(format!("{} ranges", listed.len()))
    });
    report.check("a host gets MEDIUM ERROR with the first lost LBA", || lost(target, data));
    report.check("an overwrite repairs a block, and the next pass finds nothing", || {
        let mut session = Session::connect(&target.config())?;
        for mib in [DATA_MIB, COPY_MIB] {
            for block in DAMAGED {
                let bytes = data[block as usize * 4096..][..4096].to_vec();
                session.write(lba(mib, block), bytes, BLOCK)?;
            }
        }
        scrub(array)?;
        ensure!(damage(array)?.is_empty(), "{:?}", damage(array)?);
        is_right(&mut session, data)?;
        Ok(String::new())
    });
}

/// With several devices, the others can reconstruct it.
fn lost_on_one(report: &mut Report, array: &mut Array, target: &Target, data: &[u8]) {
    report.check("a pass rewrites corrupt blocks", || {
        turn_blocks(array, data)?;
        let before = devices::mended(array)?;
        scrub(array)?;
        let mended = devices::mended(array)? - before;
        ensure!(mended == DAMAGED.len() as u64, "{mended} locations were rewritten");
        is_right(&mut Session::connect(&target.config())?, data)?;
        ensure!(devices::mended(array)? == before + mended, "reads of hosts found more damage");
        Ok(format!("{mended} blocks"))
    });
    report.check("no block was lost, and the next passes find nothing", || {
        // What was rewritten on reading is listed by the pass that follows.
        scrub(array)?;
        for entry in damage(array)? {
            ensure!(entry["kind"] == "data" && entry["repaired"] == true, "{entry}");
            ensure!(entry["first_lba"].is_null(), "no host's block is lost: {entry}");
        }
        scrub(array)?;
        ensure!(damage(array)?.is_empty(), "{:?}", damage(array)?);
        Ok(String::new())
    });
    report.check("hosts read corrupt blocks correctly before a pass", || {
        turn_blocks(array, data)?;
        is_right(&mut Session::connect(&target.config())?, data)?;
        // What reads have rewritten is listed until the next pass has ended.
        scrub(array)?;
        scrub(array)?;
        ensure!(damage(array)?.is_empty(), "{:?}", damage(array)?);
        Ok(String::new())
    });
}

/// Flips a bit of each block to damage, while the array is stopped.
fn turn_blocks(array: &mut Array, data: &[u8]) -> Result<()> {
    array.stop()?;
    for block in DAMAGED {
        turn_block(array, &data[block as usize * 4096..][..4096])?;
    }
    array.start().map(drop)
}

/// Returns an error unless the data and its copy are read as written.
fn is_right(session: &mut Session, data: &[u8]) -> Result<()> {
    for mib in [DATA_MIB, COPY_MIB] {
        for half in 0..2 {
            let at = (mib + half) * MIB_BLOCKS;
            let read = session.read(at, MIB_BLOCKS as u32, BLOCK)?;
            ensure!(read == data[half as usize * MIB..][..MIB], "MiB {} is wrong", mib + half);
        }
    }
    Ok(())
}

/// Checks that a damaged pool returns right data, or an error with the unreadable block.
fn lost(target: &Target, data: &[u8]) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    let first = lba(DATA_MIB, DAMAGED[0]);
    let whole = Cdb::read_16(DATA_MIB * MIB_BLOCKS, MIB_BLOCKS as u32);
    is_lost(&mut session, whole, Data::In(vec![0; MIB]), first)?;
    is_lost(&mut session, Cdb::read_16(first + 3, 64), Data::In(vec![0; 64 * 512]), first + 3)?;
    let second = lba(COPY_MIB, DAMAGED[1]);
    is_lost(&mut session, Cdb::read_16(second - 1, 4), Data::In(vec![0; 2048]), second)?;
    // The rest of the block is needed, and must not be invented.
    is_lost(&mut session, Cdb::write_16(second + 2, 1), Data::Out(vec![1; 512]), second + 2)?;
    let compare = Cdb::compare_and_write(first, 1);
    is_lost(&mut session, compare, Data::Out(vec![0; 1024]), first)?;
    let verify = [0x8f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0];
    let mut verify = verify.to_vec();
    verify[2..10].copy_from_slice(&first.to_be_bytes());
    let verify = Cdb::raw(&verify, libiscsi::Direction::None);
    is_lost(&mut session, verify, Data::None, first)?;
    let sound = session.read(first + POOL_BLOCK, 64, BLOCK)?;
    let at = (DAMAGED[0] as usize + 1) * 4096;
    ensure!(sound == data[at..at + 64 * 512], "the blocks after it are wrong");
    Ok(String::new())
}

fn lba(mib: u64, block: u64) -> u64 {
    mib * MIB_BLOCKS + block * POOL_BLOCK
}

/// Executes a command that must end with 03/11/00 and this LBA in INFORMATION (SPC-4, 4.5.3).
fn is_lost(session: &mut Session, cdb: Cdb, data: Data, lba: u64) -> Result<()> {
    let name = format!("{:02x?}", cdb.bytes());
    match session.execute(cdb, data)?.status {
        Status::CheckCondition(Sense { key: 3, asc_ascq: 0x1100, raw }) => {
            let sense = raw.get(2..10).context("the sense data is short")?;
            ensure!(sense[0] == 0xf0, "{name}: VALID is not set: {sense:02x?}");
            let told = u32::from_be_bytes([sense[3], sense[4], sense[5], sense[6]]);
            ensure!(u64::from(told) == lba, "{name}: LBA {told} was reported, {lba} is lost");
            Ok(())
        }
        status => bail!("{name} ended with {status:?}"),
    }
}

/// Runs a whole pass. Returns its final status.
fn scrub(array: &Array) -> Result<Value> {
    let begun = array.verb(&["pool", "scrub", "start"])?;
    ensure!(begun["running"] == true, "{begun}");
    let begin = Instant::now();
    loop {
        let status = array.verb(&["pool", "scrub", "status"])?;
        if status["running"] == false {
            ensure!(status["completed_ms"].as_u64() > Some(0), "{status}");
            return Ok(status);
        }
        ensure!(begin.elapsed() < PATIENCE, "the pass does not end: {status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn damage(array: &Array) -> Result<Vec<Value>> {
    let list = array.verb(&["pool", "damage"])?;
    list["damage"].as_array().cloned().context("no list")
}

/// Flips a bit of the block with this content, wherever it is in the pool.
fn turn_block(array: &Array, content: &[u8]) -> Result<()> {
    for path in files(array) {
        let mut file = File::open(&path)?;
        let mut piece = vec![0; MIB];
        for at in (0..file.metadata()?.len() / MIB as u64).map(|mib| mib * MIB as u64) {
            file.read_exact(&mut piece)?;
            if let Some(found) = piece.chunks_exact(4096).position(|block| block == content) {
                return turn(&path, at + found as u64 * 4096 + 1234);
            }
        }
    }
    bail!("the block was not found in the pool")
}

/// Returns the files of the pool.
fn files(array: &Array) -> impl Iterator<Item = PathBuf> {
    let directory = array.pool();
    (1..=array.devices()).map(move |number| match number {
        1 => directory.join("pool.data"),
        number => directory.join(format!("pool.{number}.data")),
    })
}

/// Flips a bit of a file of the pool.
fn turn(path: &Path, offset: u64) -> Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(&mut byte)?;
    byte[0] ^= 0x10;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(&byte)?;
    file.sync_all()?;
    Ok(())
}
