//! A Holdfast array for the benchmark: its pool, its process, its verbs.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::process::{self, Background, Programs, words};

/// The initiator's name, which Holdfast must know.
const INITIATOR: &str = "iqn.2025-01.example.holdfast:lab";

/// The parameters of an array.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The directory of its pool, within that of the benchmark.
    pub name: &'static str,
    /// The capacity of the pool.
    pub capacity_bytes: u64,
    /// The number of its files.
    pub devices: u16,
    /// Its configuration; `None` for the defaults.
    pub config: Option<PathBuf>,
    /// Whether the whole file of the pool is written once first, as on a used device. Otherwise the
    /// array does that itself, ahead of its log, and that counts as its writes.
    pub is_conditioned: bool,
}

/// A running array.
#[derive(Debug)]
pub struct Array {
    process: Background,
    holdfast: PathBuf,
    pool: PathBuf,
    /// The portal of its iSCSI target.
    portal: String,
    /// The part of URLs before the LUN.
    target_url: String,
}

/// The state of an array's pool.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Pool {
    /// Its capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes that can't be written: live data, and dead data that is not reclaimed.
    pub allocated_bytes: u64,
    /// Stored bytes of volume data.
    pub data_bytes: u64,
    /// Bytes that hosts have written and not unmapped.
    pub mapped_bytes: u64,
    /// Commits since the start.
    pub commit_count: u64,
}

impl Array {
    /// Creates a pool in `dir`, replacing an older one, and serves it.
    pub fn start(programs: &Programs, dir: &Path, plan: &Plan) -> Result<Self> {
        Self::start_with(programs, dir, plan, None)
    }

    /// The same with two controllers: `portal` is that of the second one.
    pub fn start_two(programs: &Programs, dir: &Path, plan: &Plan, portal: &str) -> Result<Self> {
        Self::start_with(programs, dir, plan, Some(portal))
    }

    fn start_with(
        programs: &Programs,
        dir: &Path,
        plan: &Plan,
        second: Option<&str>,
    ) -> Result<Self> {
        let pool = dir.join(plan.name);
        remove(&pool)?;
        std::fs::create_dir_all(&pool)?;
        let place = pool.display().to_string();
        let mut create = words("pool create");
        create.extend([place.clone(), String::from("--capacity")]);
        create.push(plan.capacity_bytes.to_string());
        if plan.devices > 1 {
            create.extend([String::from("--devices"), plan.devices.to_string()]);
        }
        process::output(&programs.holdfast, &create)?;
        if plan.is_conditioned {
            condition(&pool.join("pool.data"))?;
        }
        let mut flags = Vec::new();
        if let Some(config) = &plan.config {
            flags.extend([String::from("--config"), config.display().to_string()]);
        }
        let log = dir.join(format!("{}.log", plan.name));
        let mut array = Self::begin(programs, pool, (&flags, second), &log)?;
        array.verb(&format!("host create lab --iqn {INITIATOR}"))?;
        array.discover(programs)?;
        Ok(array)
    }

    /// Serves a pool that [`Array::start`] has created and [`Array::stop`] has left, with
    /// additional flags of `serve`.
    pub fn serve(programs: &Programs, pool: PathBuf, flags: &[String], log: &Path) -> Result<Self> {
        let mut array = Self::begin(programs, pool, (flags, None), log)?;
        array.discover(programs)?;
        Ok(array)
    }

    /// Serves a pool that no process serves, until its portal listens and LUN 1 has responded to
    /// a command. Returns how long that took from the start of the program.
    pub fn serve_timed(
        programs: &Programs,
        pool: PathBuf,
        flags: &[String],
        log: &Path,
    ) -> Result<(Self, Duration)> {
        let start = Instant::now();
        let mut array = Self::spawn(programs, pool, (flags, None), log)?;
        let listens = || TcpStream::connect(&array.portal).is_ok();
        let waited = array.process.wait_until_every(Duration::from_millis(2), listens);
        waited.with_context(|| format!("Holdfast (see {})", log.display()))?;
        array.discover(programs)?;
        let one = words("--command tur --ramp 0 --commands 1");
        super::load(&programs.lab, &array.url(1), array.pid(), &one)?;
        let took = start.elapsed();
        // Management may be available later than that.
        array.wait().with_context(|| format!("Holdfast (see {})", log.display()))?;
        Ok((array, took))
    }

    fn begin(
        programs: &Programs,
        pool: PathBuf,
        with: (&[String], Option<&str>),
        log: &Path,
    ) -> Result<Self> {
        let mut array = Self::spawn(programs, pool, with, log)?;
        array.wait().with_context(|| format!("Holdfast (see {})", log.display()))?;
        Ok(array)
    }

    fn spawn(
        programs: &Programs,
        pool: PathBuf,
        (flags, second): (&[String], Option<&str>),
        log: &Path,
    ) -> Result<Self> {
        let (portal, api) = (process::free_port()?, process::free_port()?);
        let portal = format!("127.0.0.1:{portal}");
        let second = second.map(|second| format!(",ct1={second}")).unwrap_or_default();
        let mut serve = words(&format!("serve --iscsi {portal}{second} --api 127.0.0.1:{api}"));
        serve.extend([String::from("--pool"), pool.display().to_string()]);
        serve.extend_from_slice(flags);
        let process = Background::start(&programs.holdfast, &serve, log)?;
        let holdfast = programs.holdfast.clone();
        Ok(Self { process, holdfast, pool, portal, target_url: String::new() })
    }

    /// Finds its target as a known host.
    fn discover(&mut self, programs: &Programs) -> Result<()> {
        let portal = &self.portal;
        let targets =
            process::output(&programs.lab, &words(&format!("discover --portal {portal}")))?;
        let target = targets.split_whitespace().next().context("Holdfast shows no target")?;
        self.target_url = format!("iscsi://{portal}/{target}");
        Ok(())
    }

    /// Shuts it down cleanly, with a checkpoint. Returns its pool, which remains.
    pub fn stop(self) -> Result<PathBuf> {
        let Self { mut process, pool, .. } = self;
        process::output(Path::new("kill"), &words(&format!("-TERM {}", process.pid())))?;
        process.wait_end()?;
        Ok(pool)
    }

    /// Kills it with SIGKILL. Returns its pool, which remains.
    pub fn kill(self) -> PathBuf {
        let Self { process, pool, .. } = self;
        drop(process);
        pool
    }

    /// Shuts it down cleanly, and removes its pool.
    pub fn stop_and_remove(self) -> Result<()> {
        remove(&self.stop()?)
    }

    /// Returns the URL of a LUN at another portal.
    pub fn url_at(&self, portal: &str, lun: u16) -> String {
        format!("{}/{lun}", self.target_url.replacen(&self.portal, portal, 1))
    }

    /// Returns the URL of a LUN.
    pub fn url(&self, lun: u16) -> String {
        format!("{}/{lun}", self.target_url)
    }

    fn wait(&mut self) -> Result<()> {
        let (holdfast, pool) = (self.holdfast.clone(), self.pool.clone());
        self.process.wait_until(|| run_verb(&holdfast, &pool, "status").is_ok())
    }

    /// Runs a verb, and returns its output.
    pub fn verb(&self, text: &str) -> Result<String> {
        run_verb(&self.holdfast, &self.pool, text)
    }

    /// Creates a volume, with `flags` of `volume create`, and returns its URL.
    pub fn create_volume(&self, name: &str, bytes: u64, lun: u16, flags: &str) -> Result<String> {
        self.verb(format!("volume create {name} --size {bytes} {flags}").trim_end())?;
        self.verb(&format!("connect {name} lab --lun {lun}"))?;
        Ok(self.url(lun))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the state of its pool.
    pub fn pool(&self) -> Result<Pool> {
        #[derive(Deserialize)]
        struct Status {
            pool: Pool,
        }
        let status: Status = serde_json::from_str(&self.verb("status --json")?)?;
        Ok(status.pool)
    }

    /// Returns a counter of `GET /v1/counters` or another path: the number at this path of object
    /// names (of a list, the first element).
    pub fn counter(&self, path: &str, names: &[&str]) -> Result<u64> {
        let counters: Value = serde_json::from_str(&self.verb(&format!("api GET {path}"))?)?;
        let number = number_at(&counters, names);
        number.with_context(|| format!("{path} has no {}", names.join(".")))
    }

    /// Returns the bytes that it has written to the device.
    pub fn written_bytes(&self) -> Result<u64> {
        self.io("write_bytes")
    }

    /// Returns the bytes that it has read from the device.
    pub fn read_bytes(&self) -> Result<u64> {
        self.io("read_bytes")
    }

    /// Returns a field of the kernel's I/O counters.
    fn io(&self, field: &str) -> Result<u64> {
        let path = format!("/proc/{}/io", self.pid());
        let io = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let of = |line: &str| line.strip_prefix(field)?.strip_prefix(": ")?.parse().ok();
        io.lines().find_map(of).with_context(|| format!("{path} has no {field}"))
    }

    /// Ends it, and removes its pool.
    pub fn remove(self) -> Result<()> {
        let Self { process, pool, .. } = self;
        drop(process);
        remove(&pool)
    }

    /// Returns its process, which outlives the rest, and the URL of a LUN.
    pub fn into_parts(self, lun: u16) -> (Background, String) {
        let url = self.url(lun);
        (self.process, url)
    }
}

/// Returns the number at a path of object names; of a list, the first element counts.
fn number_at(counters: &Value, names: &[&str]) -> Option<u64> {
    let found = names.iter().try_fold(counters, |value, name| {
        let value = value.get(name)?;
        value.as_array().map_or(Some(value), |elements| elements.first())
    });
    found?.as_u64()
}

fn run_verb(holdfast: &Path, pool: &Path, text: &str) -> Result<String> {
    let mut all = words(text);
    all.extend([String::from("--pool"), pool.display().to_string()]);
    process::output(holdfast, &all)
}

fn remove(pool: &Path) -> Result<()> {
    if pool.exists() {
        std::fs::remove_dir_all(pool).with_context(|| format!("removing {}", pool.display()))?;
    }
    Ok(())
}

/// Rewrites a file once with its own content.
fn condition(path: &Path) -> Result<()> {
    let path = path.display();
    let copy = format!("if={path} of={path} bs=4M conv=notrunc oflag=direct status=none");
    process::output(Path::new("dd"), &words(&copy)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_field_names_or_in_a_lists_first_item() {
        let counters = serde_json::json!({"devices": [{"reads": {"ok": 7}}, {}], "none": []});
        assert_eq!(number_at(&counters, &["devices", "reads", "ok"]), Some(7));
        assert_eq!(number_at(&counters, &["devices", "reads"]), None);
        assert_eq!(number_at(&counters, &["none", "reads"]), None);
    }
}
