//! What remains after a kill, according to the configured promise: `durability = "flush"`, and the
//! recovery time of a long log.

use std::time::Duration;

use anyhow::{Result, ensure};
use libiscsi::{Cdb, Data, Direction, Session};

use crate::array::Array;
use crate::offload::good;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
/// The length of a write in bytes.
const WRITE_BYTES: usize = 64 << 10;
/// The length of a write in logical blocks.
const WRITE_BLOCKS: u64 = WRITE_BYTES as u64 / BLOCK as u64;
/// The data in the recovered log: 1 GiB, in MiB.
const LOG_MIB: u64 = 1024;
/// When the array must serve again with such a log.
const RESTART: Duration = Duration::from_secs(2);

/// The settings of an array that acknowledges writes from memory.
pub const FLUSH_SETTINGS: &str = "durability = \"flush\"\n";
/// The settings of an array that writes no checkpoint while the log of the test is written.
pub const LONG_LOG_SETTINGS: &str = "checkpoint_log = \"8G\"\n";

/// Tests an array with `durability = "flush"`.
pub fn flush(report: &mut Report, array: &mut Array, target: &Target) {
    report.check("flush: WCE is 1", || {
        let mut session = Session::connect(&target.config())?;
        let cdb = Cdb::raw(&[0x1A, 0x08, 0x08, 0, 0xFF, 0], Direction::In);
        let answer = session.execute(cdb, Data::In(vec![0; 255]))?;
        good(answer.status)?;
        // After the header of 4 bytes: page 08h, its length, and WCE in bit 2 of byte 2.
        let page = answer.buffer.get(4..).unwrap_or_default();
        ensure!(page.first().is_some_and(|code| code & 0x3F == 8), "not the caching page");
        ensure!(page.get(2).is_some_and(|flags| flags & 4 != 0), "WCE is 0");
        Ok(String::new())
    });
    report.check("flush: kill -9 loses nothing before SYNCHRONIZE CACHE, nor FUA writes", || {
        let mut random = Random::new(3);
        let data: Vec<Vec<u8>> = (0..64).map(|_| random.bytes(WRITE_BYTES)).collect();
        let mut session = Session::connect(&target.config())?;
        for (index, bytes) in data.iter().enumerate().take(48) {
            session.write(index as u64 * WRITE_BLOCKS, bytes.clone(), BLOCK)?;
        }
        good(session.execute(Cdb::synchronize_cache_16(), Data::None)?.status)?;
        for (index, bytes) in data.iter().enumerate().skip(48) {
            let mut cdb = [0; 16];
            cdb[0] = 0x8A;
            cdb[1] = 0x08; // FUA
            cdb[2..10].copy_from_slice(&(index as u64 * WRITE_BLOCKS).to_be_bytes());
            cdb[10..14].copy_from_slice(&(WRITE_BLOCKS as u32).to_be_bytes());
            let answer =
                session.execute(Cdb::raw(&cdb, Direction::Out), Data::Out(bytes.clone()))?;
            good(answer.status)?;
        }
        array.kill()?;
        array.inspect()?;
        array.start()?;
        let mut session = Session::connect(&target.config())?;
        for (index, bytes) in data.iter().enumerate() {
            let read = session.read(index as u64 * WRITE_BLOCKS, WRITE_BLOCKS as u32, BLOCK)?;
            ensure!(read == *bytes, "write {index} of 64 is missing");
        }
        Ok(String::new())
    });
}

/// Writes a log of 1 GiB, kills the array, and measures how long it takes until it serves again.
pub fn recovery(report: &mut Report, array: &mut Array, target: &Target) {
    report.check("a log of 1 GiB is recovered, every byte", || {
        fill(target, LOG_MIB)?;
        let log = array.pool_number("log_bytes")?;
        ensure!(log >= LOG_MIB << 20, "the log has only {} MiB", log >> 20);
        array.kill()?;
        let took = array.start()?;
        verify(target)?;
        let aim = if took < RESTART { "" } else { ", over the goal of 2 s" };
        Ok(format!("{} MiB of log in {} ms{aim}", log >> 20, took.as_millis()))
    });
}

/// Writes this many MiB from the start of the volume, all different.
pub fn fill(target: &Target, mibs: u64) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    let mut random = Random::new(9);
    for mib in 0..mibs {
        session.write(mib * 2048, random.bytes(1 << 20), BLOCK)?;
    }
    Ok(())
}

fn verify(target: &Target) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    let mut random = Random::new(9);
    for mib in 0..LOG_MIB {
        let read = session.read(mib * 2048, 2048, BLOCK)?;
        ensure!(read == random.bytes(1 << 20), "MiB {mib} differs from what was written");
    }
    Ok(())
}
