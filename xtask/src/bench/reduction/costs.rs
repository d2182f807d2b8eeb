//! The cost of an operation against the amount it covers: it should be constant.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, median_by, number};

/// The rows' names, for `--rows`.
pub const ROWS: &[&str] =
    &["cost-snapshot", "cost-copy", "cost-unmap", "cost-destroy", "cost-free"];

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// How often a verb is run; the median counts.
const VERB_COUNT: usize = 15;
/// The lengths of one EXTENDED COPY.
const COPY_SIZES: [u64; 4] = [MIB, 64 * MIB, 240 * MIB, GIB];
/// The lengths of UNMAP and of destroyed volumes.
const SIZES: [u64; 4] = [MIB, 64 * MIB, GIB, 16 * GIB];
/// The length freed at once.
const FREED_BYTES: u64 = 10 * TIB;
/// Copies of a piece whose length is not a power of two share its leaves, of 1 MiB, but no node
/// above them: so there is the most to free for the stored data.
const FREED_PIECE_BYTES: u64 = 240 * MIB;
/// Data that is written once as the source of copies.
const SOURCE_BYTES: u64 = GIB;
/// Writes of 256 KiB, anywhere in a volume of 10 TiB: 2 GiB.
const SPREAD_WRITES: u64 = 8192;
/// Three quarters of each block are one byte, so little is stored.
const LIGHT: &str = "--compressible 75";

/// The cost of an operation: medians, or means if commands were counted together.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The operation.
    pub operation: &'static str,
    /// The amount covered; `None` for nothing, as a comparison.
    pub bytes: Option<u64>,
    /// The time until its response, in milliseconds.
    pub answer_ms: f64,
    /// Commits.
    pub commits: f64,
    /// Bytes written to the device.
    pub device_bytes: f64,
    /// The time until its space was free, in seconds, if it frees any.
    pub freed_s: Option<f64>,
}

/// Measures the rows.
pub fn measure(bench: &Bench, rows: &[&str]) -> Result<Vec<Cost>> {
    let mut costs = Vec::new();
    for row in rows {
        eprintln!("{row}");
        costs.extend(match *row {
            "cost-snapshot" => snapshots(bench)?,
            "cost-copy" => copies(bench)?,
            "cost-unmap" => unmaps(bench)?,
            "cost-free" => vec![free(bench, FREED_BYTES)?],
            _ => destructions(bench)?,
        });
    }
    Ok(costs)
}

/// Measures a verb's cost. Its time is that of the program, from its start to its end.
fn verb(bench: &Bench, operation: &'static str, bytes: Option<u64>, text: &str) -> Result<Cost> {
    let (commits, written) = counts(bench)?;
    let start = Instant::now();
    bench.array.verb(text)?;
    let answer_ms = millis(start.elapsed());
    let (commits_after, written_after) = counts(bench)?;
    Ok(Cost {
        operation,
        bytes,
        answer_ms,
        commits: (commits_after - commits) as f64,
        device_bytes: (written_after - written) as f64,
        freed_s: None,
    })
}

fn counts(bench: &Bench) -> Result<(u64, u64)> {
    Ok((bench.array.pool()?.commit_count, bench.array.written_bytes()?))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Measures the cost of each size once in every round. Returns medians.
fn in_turn(
    bench: &Bench,
    sizes: &[u64],
    measure: impl Fn(u64) -> Result<Cost>,
) -> Result<Vec<Cost>> {
    let mut costs = vec![Vec::new(); sizes.len()];
    for _ in 0..bench.options.rounds {
        for (bytes, costs) in sizes.iter().zip(&mut costs) {
            costs.push(measure(*bytes)?);
        }
    }
    costs.into_iter().map(median).collect()
}

fn median(costs: Vec<Cost>) -> Result<Cost> {
    median_by(costs, |cost| cost.answer_ms).context("nothing was measured")
}

/// Measures snapshots and clones of a small volume and of a large one, in turn.
fn snapshots(bench: &Bench) -> Result<Vec<Cost>> {
    let (small, large) = (GIB, 10 * TIB);
    let url = bench.array.create_volume("small", small, 2, "")?;
    bench.load(&url, &format!("--prefill --rw read --commands 1 --seed 101 {LIGHT}"))?;
    let url = bench.array.create_volume("large", large, 3, "")?;
    let spread = format!("--rw randwrite --block 256k --depth 8 --commands {SPREAD_WRITES}");
    bench.load(&url, &format!("{spread} --seconds 60 --seed 102 {LIGHT}"))?;
    let mut costs = vec![Vec::new(); 5];
    for turn in 0..VERB_COUNT {
        costs[0].push(verb(bench, "a verb that changes nothing", None, "volume show small")?);
        for (at, (volume, bytes)) in [("small", small), ("large", large)].into_iter().enumerate() {
            let snapshot = format!("snapshot create {volume} --suffix s{turn}");
            costs[1 + at].push(verb(bench, "snapshot", Some(bytes), &snapshot)?);
            let clone = format!("volume clone {volume} {volume}-{turn}");
            costs[3 + at].push(verb(bench, "clone", Some(bytes), &clone)?);
        }
    }
    costs.into_iter().map(median).collect()
}

/// Measures consecutive EXTENDED COPY commands.
fn copies(bench: &Bench) -> Result<Vec<Cost>> {
    let url = source(bench, "copies", 4)?;
    in_turn(bench, &COPY_SIZES, |bytes| commands(bench, &url, "EXTENDED COPY", "xcopy", bytes, 64))
}

/// Measures UNMAP of mapped ranges.
fn unmaps(bench: &Bench) -> Result<Vec<Cost>> {
    let url = source(bench, "unmaps", 5)?;
    in_turn(bench, &SIZES, |bytes| {
        // The steps of the copies equal those of the following commands.
        let count = (256 * GIB / bytes).min(64);
        let length = bytes.min(SOURCE_BYTES);
        commands(bench, &url, "EXTENDED COPY", "xcopy", length, count * bytes / length)?;
        commands(bench, &url, "UNMAP", "unmap", bytes, count)
    })
}

/// Creates a large volume with some data at its beginning. Returns its URL.
fn source(bench: &Bench, name: &str, lun: u16) -> Result<String> {
    let url = bench.array.create_volume(name, TIB, lun, "")?;
    let fill = format!("--prefill --rw read --commands 1 --span {SOURCE_BYTES} --seed {lun}");
    bench.load(&url, &format!("{fill} {LIGHT}"))?;
    Ok(url)
}

/// Runs `count` commands that advance after the source's data, one at a time.
fn commands(
    bench: &Bench,
    url: &str,
    operation: &'static str,
    command: &str,
    bytes: u64,
    count: u64,
) -> Result<Cost> {
    let (commits, written) = counts(bench)?;
    let report = bench.load(
        url,
        &format!(
            "--command {command} --length {bytes} --span {SOURCE_BYTES} --commands {count} \
             --seconds 60"
        ),
    )?;
    let (commits_after, written_after) = counts(bench)?;
    let done = number(&report, "commands")?;
    Ok(Cost {
        operation,
        bytes: Some(bytes),
        answer_ms: number(&report, "latency_us.p50")? / 1e3,
        commits: (commits_after - commits) as f64 / done,
        device_bytes: (written_after - written) as f64 / done,
        freed_s: None,
    })
}

/// Measures freeing a volume that is full of references to shared data.
pub fn free(bench: &Bench, bytes: u64) -> Result<Cost> {
    let cost = eradicate(bench, "free what is shared", bytes, FREED_PIECE_BYTES)?;
    let speed = bytes as f64 / TIB as f64 / cost.freed_s.unwrap_or(f64::INFINITY);
    eprintln!("background freeing: {speed:.2} TiB/s (aim 1.0)");
    Ok(cost)
}

/// Measures volumes that are filled, destroyed and eradicated.
fn destructions(bench: &Bench) -> Result<Vec<Cost>> {
    in_turn(bench, &SIZES, |bytes| destroy(bench, bytes))
}

fn destroy(bench: &Bench, bytes: u64) -> Result<Cost> {
    eradicate(bench, "destroy and eradicate", bytes, bytes.min(64 * MIB))
}

/// Fills a volume with copies of a piece, and eradicates it.
fn eradicate(bench: &Bench, operation: &'static str, bytes: u64, piece: u64) -> Result<Cost> {
    let before = bench.array.pool()?.data_bytes;
    let url = bench.array.create_volume("doomed", bytes, 6, "")?;
    let fill =
        format!("--prefill --rw read --length {piece} --commands 1 --span {piece} --seed 103");
    bench.load(&url, &format!("{fill} {LIGHT}"))?;
    if bytes > piece {
        let copies = bytes / piece - 1;
        let copy = format!("--command xcopy --length {piece} --span {piece} --commands {copies}");
        bench.load(&url, &format!("{copy} --seconds 600"))?;
    }
    bench.array.verb("disconnect doomed lab")?;
    let cost = verb(bench, operation, Some(bytes), "volume destroy doomed --eradicate")?;
    let freed_s = Some(bench.wait_freed(before)?.as_secs_f64());
    Ok(Cost { freed_s, ..cost })
}
