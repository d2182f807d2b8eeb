//! Measures the corpus on a running array: each part is a volume, written in commands of one size.
//!
//! The growth of stored data during the writes of a part counts for that part. A complete set is
//! verified, and measured again after a background pass. At the end everything is verified again,
//! because the pass has rewritten it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use lab::deploy::{Array, FillArgs, verify_image, write_image};
use lab::target::{self, ConnectArgs};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::corpus::{self, Part};

/// Commands in flight.
const DEPTH: usize = 16;
/// The name of the host object on the array.
const HOST: &str = "reduction";

/// The arguments of `measure`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The `holdfast` program.
    #[arg(long)]
    holdfast: PathBuf,
    /// The pool that the array serves, which must be empty; `holdfast` finds the array by it.
    #[arg(long)]
    pool: PathBuf,
    /// The array's iSCSI portal, `address:port`.
    #[arg(long)]
    portal: String,
    /// The corpus, made by `tests-reduction/build`.
    #[arg(long)]
    corpus: PathBuf,
    /// Bytes of one write.
    #[arg(long, value_parser = lab::size::parse)]
    write_size: u64,
    /// Write the results to this file as JSON.
    #[arg(long)]
    json: PathBuf,
}

/// The results of writing the corpus in commands of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes of one write.
    pub write_bytes: u64,
    /// Each part after it was written.
    pub parts: Vec<Grown>,
    /// Each set after the background pass.
    pub passes: Vec<Pass>,
    /// The pool's status before the first part; `pool_after` is that at the end.
    pub pool_before: Value,
    /// See `pool_before`.
    pub pool_after: Value,
    /// Whether every part was equal to its file, after writing and at the end; or what differed.
    pub read_back: Result<(), String>,
}

/// The growth of the pool by a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grown {
    /// What kind of data it is.
    pub set: String,
    /// The part's name.
    pub name: String,
    /// Growth of the stored volume data.
    pub stored_bytes: i64,
    /// The duration of the writes.
    pub write_seconds: f64,
}

/// The growth of the pool by a set, after the background pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pass {
    /// What kind of data it is.
    pub set: String,
    /// Growth of the stored volume data since the time before the set was written.
    pub stored_bytes: i64,
    /// The duration of the pass.
    pub seconds: f64,
}

/// Writes the corpus, verifies it, and writes the results.
pub fn run(arguments: &Arguments) -> Result<()> {
    let parts = corpus::parts(&arguments.corpus)?;
    let mut work = Work::begin(arguments)?;
    let mut volumes = Vec::new();
    for set in parts.chunk_by(|one, next| one.set == next.set) {
        let before = work.data_bytes()?;
        for part in set {
            let volume = work.make_volume(part, volumes.len() + 1)?;
            work.write(part, &volume)?;
            volumes.push(volume);
        }
        for volume in &volumes[volumes.len() - set.len()..] {
            work.verify(volume, "read back");
        }
        work.pass(&set[0].set, before)?;
    }
    volumes.iter().for_each(|volume| work.verify(volume, "read back after the pass"));
    work.measured.pool_after = work.pool()?;
    lab::report::write_json(&arguments.json, &work.measured).map_err(anyhow::Error::msg)
}

/// Reads the results that `run` wrote.
pub fn read(path: &Path) -> Result<Measured> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

struct Work<'a> {
    arguments: &'a Arguments,
    array: Array,
    target: String,
    connect: ConnectArgs,
    measured: Measured,
}

impl<'a> Work<'a> {
    fn begin(arguments: &'a Arguments) -> Result<Self> {
        let array = Array { program: arguments.holdfast.clone(), pool: arguments.pool.clone() };
        let connect = ConnectArgs {
            initiator: target::INITIATOR.to_owned(),
            header_digest: false,
            timeout_s: 120,
        };
        // Discovery only shows the target to known hosts.
        verb(&array, &["host", "create", HOST, "--iqn", &connect.initiator])?;
        let first = target::discover(&arguments.portal, &connect).map_err(anyhow::Error::msg)?;
        let target = first.into_iter().next().context("the portal reports no target")?.name;
        let measured = Measured {
            write_bytes: arguments.write_size,
            parts: Vec::new(),
            passes: Vec::new(),
            pool_before: Value::Null,
            pool_after: Value::Null,
            read_back: Ok(()),
        };
        let mut work = Self { arguments, array, target, connect, measured };
        work.measured.pool_before = work.pool()?;
        Ok(work)
    }

    /// Creates a volume of the part's length, and returns how to write it.
    fn make_volume(&self, part: &Part, lun: usize) -> Result<FillArgs> {
        let bytes = std::fs::metadata(&part.path).context(part.path.display().to_string())?.len();
        verb(&self.array, &["volume", "create", &part.name, "--size", &bytes.to_string()])?;
        verb(&self.array, &["connect", &part.name, HOST, "--lun", &lun.to_string()])?;
        Ok(FillArgs {
            url: format!("iscsi://{}/{}/{lun}", self.arguments.portal, self.target),
            image: part.path.clone(),
            depth: DEPTH,
            write_size: self.arguments.write_size,
            connect: self.connect.clone(),
        })
    }

    fn write(&mut self, part: &Part, volume: &FillArgs) -> Result<()> {
        let before = self.data_bytes()?;
        let start = Instant::now();
        write_image(volume, &format!("write {}", part.name)).map_err(anyhow::Error::msg)?;
        self.measured.parts.push(Grown {
            set: part.set.clone(),
            name: part.name.clone(),
            write_seconds: start.elapsed().as_secs_f64(),
            stored_bytes: self.data_bytes()? - before,
        });
        Ok(())
    }

    /// Verifies a volume. A difference is recorded as a result, and the run continues.
    fn verify(&mut self, volume: &FillArgs, what: &str) {
        let name = volume.image.display();
        if let Err(error) = verify_image(volume, &format!("{what}: {name}")) {
            eprintln!("tests-reduction: {name}: {error}");
            self.measured.read_back = Err(format!("{name}, {what}: {error}"));
        }
    }

    /// Runs the background pass, and measures the set again.
    fn pass(&mut self, set: &str, before: i64) -> Result<()> {
        let start = Instant::now();
        verb(&self.array, &["pool", "optimize", "--wait"])?;
        self.measured.passes.push(Pass {
            set: set.to_owned(),
            seconds: start.elapsed().as_secs_f64(),
            stored_bytes: self.data_bytes()? - before,
        });
        Ok(())
    }

    /// Returns the pool's status.
    fn pool(&self) -> Result<Value> {
        let text = verb(&self.array, &["status", "--json"])?;
        let status: Value = serde_json::from_str(&text).context("holdfast status --json")?;
        Ok(status["pool"].clone())
    }

    /// Returns the bytes of stored volume data, after reduction, without metadata.
    fn data_bytes(&self) -> Result<i64> {
        self.pool()?["data_bytes"].as_i64().context("the pool's status has no data_bytes")
    }
}

fn verb(array: &Array, arguments: &[&str]) -> Result<String> {
    array.run(arguments).map_err(anyhow::Error::msg)
}
