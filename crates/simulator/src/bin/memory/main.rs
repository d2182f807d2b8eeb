//! The effect of the size of the store's memory, with pools of distinct chunks that no disk could
//! hold.
//!
//! ```text
//! memory curve   [--chunks N,...] [--per-tib GIB,...] [--seconds S] [--files FILE,...] [--dir DIR]
//! memory opening [--chunks N,...] [--memory MIB,...] [--dir DIR]
//! memory cold    [--chunks N,...] [--per-tib GIB] [--latency-ms MS,...] [--seconds S] [--dir DIR]
//! memory aged    [--chunks N,...] [--full PERCENT,...] [--passes N] [--dir DIR]
//! ```
//!
//! `curve` fills a pool with N distinct chunks, and opens it again with each memory size (in GiB
//! per TiB stored): which duplicates are found ([`duplicates`]), and how fast it is ([`rates`]).
//! `opening` fills a pool for each N, and opens it as a shutdown and as a crash would leave it
//! ([`opening`]). What that reads must depend on the log, not on N: otherwise it fails. `cold`
//! reads a pool whose metadata is on a slow device ([`cold`]). `aged` overwrites a pool that is so
//! full, again and again ([`aged`]).
//!
//! The device generates data from seeds in memory, and keeps metadata in a sparse file in DIR,
//! through the page cache: so the times are the processor's, and a real device would add the number
//! of reads times its latency.

mod aged;
mod below;
mod cold;
mod duplicates;
mod files;
mod opening;
mod pool;
mod rates;
mod slow;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// As in the array: the C library's allocator takes twice the memory for a frame.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: memory curve [--chunks N,...] [--per-tib GIB,...] [--seconds S] \
    [--files FILE,...] [--dir DIR]\n       memory opening [--chunks N,...] [--memory MIB,...] \
    [--dir DIR]\n       memory cold [--chunks N,...] [--per-tib GIB] [--latency-ms MS,...] \
    [--seconds S] [--dir DIR]\n       \
    memory aged [--chunks N,...] [--full PERCENT,...] [--passes N] [--dir DIR]";
/// The minimum number of chunks: a pool of 40 MB.
const CHUNKS_MIN: u64 = 10_000;

type Measured<T> = Result<T, Box<dyn std::error::Error>>;

enum Table {
    Curve,
    Opening,
    Cold,
    Aged,
}

struct Options {
    table: Table,
    chunks: Vec<u64>,
    per_tib_gib: Vec<f64>,
    memory_mib: Vec<u64>,
    latency_ms: Vec<f64>,
    full_percent: Vec<u64>,
    passes: u64,
    seconds: f64,
    files: Vec<PathBuf>,
    dir: PathBuf,
}

fn list<T: FromStr>(value: &str) -> Option<Vec<T>> {
    value.split(',').map(|word| word.parse().ok()).collect()
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let table = match words.next()?.as_str() {
        "curve" => Table::Curve,
        "opening" => Table::Opening,
        "cold" => Table::Cold,
        "aged" => Table::Aged,
        _ => return None,
    };
    let mut options = Options {
        table,
        chunks: vec![1_000_000],
        per_tib_gib: vec![0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0],
        memory_mib: vec![64, 1024],
        latency_ms: vec![1.0, 10.0],
        full_percent: vec![60, 80],
        passes: 6,
        seconds: 3.0,
        files: Vec::new(),
        dir: std::env::temp_dir(),
    };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--chunks" => options.chunks = list(&value)?,
            "--per-tib" => options.per_tib_gib = list(&value)?,
            "--seconds" => options.seconds = value.parse().ok()?,
            "--files" => options.files = list(&value)?,
            "--memory" => options.memory_mib = list(&value)?,
            "--full" => options.full_percent = list(&value)?,
            "--passes" => options.passes = value.parse().ok()?,
            "--latency-ms" => options.latency_ms = list(&value)?,
            "--dir" => options.dir = value.into(),
            _ => return None,
        }
    }
    options.chunks.iter().all(|chunks| *chunks >= CHUNKS_MIN).then_some(options)
}

/// Prints both tables of the curve, for one size of the pool.
fn curve(options: &Options, chunks: u64) -> Measured<()> {
    let most = options.per_tib_gib.iter().copied().fold(0.0, f64::max);
    let pool = pool::make(&options.dir, chunks, pool::budget_bytes(chunks, most))?;
    // Duplicates first: the rates overwrite their originals.
    let pool = duplicates::table(pool, options)?;
    rates::table(pool, options)
}

/// Returns whether everything that was checked was right.
fn run(options: &Options) -> Measured<bool> {
    let each = |table: fn(&Options, u64) -> Measured<()>| {
        options.chunks.iter().try_for_each(|chunks| table(options, *chunks)).map(|()| true)
    };
    match options.table {
        Table::Opening => opening::table(options),
        Table::Curve => each(curve),
        Table::Cold => each(cold::table),
        Table::Aged => each(aged::table),
    }
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("memory: {error}");
            ExitCode::FAILURE
        }
    }
}
