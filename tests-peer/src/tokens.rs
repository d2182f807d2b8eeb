//! ROD tokens (ODX) over the wire: their data, their cost, and when they end.

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, Completion, Data, Direction, Session, Status};

use crate::array::Array;
use crate::offload::refused;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
/// Blocks in a MiB.
const MIB_BLOCKS: u64 = 2048;
/// The MiB that a token represents here.
const SOME: u64 = 64;
const TOKEN_BYTES: usize = 512;

/// `source` and `destination` are two volumes of the array's first host.
pub fn tokens(report: &mut Report, array: &mut Array, source: &Target, destination: &Target) {
    let mut kept = None;
    report.check("a token copies data to another volume without a transfer", || {
        let token = carry(array, source, destination)?;
        kept = Some(token);
        Ok(format!("{SOME} MiB"))
    });
    let Some(token) = kept else { return };
    report
        .check("a deleted token's space is freed", || deleted(array, source, destination, &token));
    report.check("a token is invalid after a restart", || {
        let mut session = Session::connect(&source.config())?;
        let token = populate(&mut session, &[(0, (SOME * MIB_BLOCKS) as u32)])?;
        array.kill()?;
        array.start()?;
        let mut session = Session::connect(&destination.config())?;
        let status = write_using(&mut session, &token, 0, 0, &[(0, 8)])?;
        refused(&status, (5, 0x2305))?; // TOKEN CORRUPT: another start, another key
        array.stop()?;
        array.inspect()?;
        array.start()?;
        Ok(String::new())
    });
}

/// Populates from one volume, changes that volume, writes to the other, compares.
fn carry(array: &Array, source: &Target, destination: &Target) -> Result<Vec<u8>> {
    let mut from = Session::connect(&source.config())?;
    let mut to = Session::connect(&destination.config())?;
    let mut random = Random::new(21);
    let mut written = Vec::new();
    for mib in 0..SOME {
        let data = random.bytes(MIB_BLOCKS as usize * BLOCK as usize);
        from.write(mib * MIB_BLOCKS, data.clone(), BLOCK)?;
        written.push(data);
    }
    let before = data_bytes(array)?;
    let token = populate(&mut from, &[(0, (SOME * MIB_BLOCKS) as u32)])?;
    // The token represents the data of that moment.
    from.write(0, vec![0x55; MIB_BLOCKS as usize * BLOCK as usize], BLOCK)?;
    let status = write_using(&mut to, &token, 0, 0, &[(0, (SOME * MIB_BLOCKS) as u32)])?;
    ensure!(status == Status::Good, "WRITE USING TOKEN: {status}");
    let after = data_bytes(array)?;
    ensure!(after == before, "{} bytes of data were stored", after.abs_diff(before));
    for (mib, want) in written.iter().enumerate() {
        let held = to.read(mib as u64 * MIB_BLOCKS, MIB_BLOCKS as u32, BLOCK)?;
        ensure!(held == *want, "MiB {mib} differs");
    }
    // A part of it, from its middle, to a destination with different alignment within 4 KiB.
    let status = write_using(&mut to, &token, 0, 1001, &[(200_003, 77)])?;
    ensure!(status == Status::Good, "part of the token: {status}");
    let held = to.read(200_003, 77, BLOCK)?;
    let start = 1001 * BLOCK as usize;
    ensure!(held == written.concat()[start..start + 77 * BLOCK as usize], "the part differs");
    Ok(token)
}

/// Both volumes are unmapped: only the token keeps the data, until it is deleted.
fn deleted(array: &Array, source: &Target, destination: &Target, token: &[u8]) -> Result<String> {
    for target in [source, destination] {
        let mut session = Session::connect(&target.config())?;
        let blocks = session.capacity()?.blocks;
        ensure!(session.unmap(&[(0, u32::try_from(blocks)?)])? == Status::Good, "UNMAP");
    }
    settle(array, |bytes| bytes == SOME << 20).context("the token keeps its data")?;
    let mut session = Session::connect(&destination.config())?;
    let status = write_using(&mut session, token, 2, 0, &[(0, 8)])?;
    ensure!(status == Status::Good, "DEL_TKN: {status}");
    refused(&write_using(&mut session, token, 0, 0, &[(0, 8)])?, (5, 0x2309))?;
    settle(array, |bytes| bytes == 4096).context("the token is gone, and its data")?;
    Ok(String::new())
}

/// Waits until the stored data is as expected.
fn settle(array: &Array, good: impl Fn(u64) -> bool) -> Result<()> {
    for _ in 0..200 {
        if good(data_bytes(array)?) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    bail!("{} bytes of data are stored", data_bytes(array)?)
}

fn data_bytes(array: &Array) -> Result<u64> {
    let status = array.verb(&["status"])?;
    status["pool"]["data_bytes"].as_u64().with_context(|| format!("no data_bytes in {status}"))
}

fn with_ranges(mut list: Vec<u8>, ranges: &[(u64, u32)]) -> Vec<u8> {
    let at = list.len() - 2;
    list[at..].copy_from_slice(&(ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let length = (list.len() - 2) as u16;
    list[..2].copy_from_slice(&length.to_be_bytes());
    list
}

fn third_party_out(session: &mut Session, action: u8, list: Vec<u8>) -> Result<Completion> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[9]) = (0x83, action, 7);
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    Ok(session.execute(Cdb::raw(&cdb, Direction::Out), Data::Out(list))?)
}

/// POPULATE TOKEN. Returns the token (SBC-4, 5.18; SPC-4, 6.25).
fn populate(session: &mut Session, ranges: &[(u64, u32)]) -> Result<Vec<u8>> {
    let completion = third_party_out(session, 0x10, with_ranges(vec![0; 16], ranges))?;
    ensure!(completion.status == Status::Good, "POPULATE TOKEN: {}", completion.status);
    let ask = [0x84, 0x07, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
    let told = session.execute(Cdb::raw(&ask, Direction::In), Data::In(vec![0; 1024]))?;
    ensure!(told.status == Status::Good, "RECEIVE ROD TOKEN INFORMATION: {}", told.status);
    let token = told.buffer.get(38..38 + TOKEN_BYTES).context("no token was returned")?;
    Ok(token.to_vec())
}

/// WRITE USING TOKEN (SBC-4, 5.56).
fn write_using(
    session: &mut Session,
    token: &[u8],
    flags: u8,
    offset_blocks: u64,
    ranges: &[(u64, u32)],
) -> Result<Status> {
    let mut list = vec![0; 536];
    list[2] = flags;
    list[8..16].copy_from_slice(&offset_blocks.to_be_bytes());
    list[16..16 + TOKEN_BYTES].copy_from_slice(token);
    Ok(third_party_out(session, 0x11, with_ranges(list, ranges))?.status)
}
