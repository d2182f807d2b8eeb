//! The targets: how each is started, and what it supports and guarantees.

use std::path::Path;

use anyhow::{Context, Result};

use super::array::{Array, Plan};
use super::options::Options;
use super::process::{self, Background, Programs, free_port, words};
use super::rows::{Kind, Row};

/// Holdfast's name in the tables, and the directory of its pool.
pub const HOLDFAST: &str = "Holdfast";
/// The name of the target with which each row is compared: an earlier build, or a pool on one file.
pub const BEFORE: &str = "before";
pub const NOW: &str = "now";

/// A running target.
#[derive(Debug)]
pub struct Target {
    /// Its name in the tables.
    pub name: &'static str,
    /// Its logical unit.
    pub url: String,
    process: Background,
    is_holdfast: bool,
    is_volatile: bool,
}

/// How tgt stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// WCE 0: tgt calls fdatasync for each write before it responds.
    Durable,
    /// WCE 1: a write is acknowledged from the page cache.
    Volatile,
    /// aio, which tgt always opens with O_DIRECT: it bypasses the page cache, but never flushes the
    /// device's own cache.
    Direct,
}

impl Target {
    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns whether it supports a row.
    pub fn can(&self, row: &Row) -> bool {
        match row.kind {
            Kind::Read | Kind::Write | Kind::Command => true,
            Kind::Copy | Kind::Offload | Kind::LongOffload => self.is_holdfast,
        }
    }

    /// Waits until a volatile target's writes have reached the device, before the next one is
    /// measured.
    pub fn settle(&self) -> Result<()> {
        if self.is_volatile {
            process::output(Path::new("sync"), &[])?;
        }
        Ok(())
    }
}

/// Starts the requested targets: Holdfast first, then tgt in each of its modes.
pub fn start(options: &Options, programs: &Programs) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    if !options.without_holdfast {
        targets.push(start_holdfast(options, programs, (HOLDFAST, 1))?);
    }
    let bytes = options.volume_bytes();
    targets.push(start_tgt(&options.dir, Mode::Durable, bytes)?);
    if options.all {
        targets.push(start_tgt(&options.dir, Mode::Volatile, bytes)?);
        targets.push(start_tgt(&options.dir, Mode::Direct, bytes)?);
    }
    Ok(targets)
}

/// Removes the targets' data, and nothing else in the directory; their logs stay.
pub fn clear(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let is_image = path.extension().is_some_and(|extension| extension == "img");
        let is_own = [HOLDFAST, BEFORE, NOW].iter().any(|name| path.ends_with(name));
        let removed = if path.is_dir() && is_own {
            std::fs::remove_dir_all(&path)
        } else if is_image {
            std::fs::remove_file(&path)
        } else {
            continue;
        };
        removed.with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

/// Starts Holdfast, with that name, on its own pool in a directory of that name.
pub fn start_holdfast(
    options: &Options,
    programs: &Programs,
    (name, devices): (&'static str, u16),
) -> Result<Target> {
    let config = match &options.config {
        Some(path) => path.clone(),
        None => {
            let path = options.dir.join("holdfast.toml");
            std::fs::write(&path, benchmark_config(options))?;
            path
        }
    };
    let plan = Plan {
        name,
        capacity_bytes: pool_bytes(options),
        devices,
        config: Some(config),
        is_conditioned: false,
    };
    let array = Array::start(programs, &options.dir, &plan)?;
    array.create_volume("bench", options.volume_bytes(), 1, "")?;
    let (process, url) = array.into_parts(1);
    Ok(Target { name, url, process, is_holdfast: true, is_volatile: false })
}

/// Returns space for the span, and for a log of everything that all measurements may write.
fn pool_bytes(options: &Options) -> u64 {
    let log_bytes = (options.rounds as f64 * options.seconds * 4.0 * 1e9) as u64;
    (options.span * 4 + log_bytes).max(16 << 30) >> 20 << 20
}

/// Returns a configuration with enough memory to cache the whole span, as tgt's page cache does. At
/// least a quarter is reserved for metadata, and some for the index.
fn benchmark_config(options: &Options) -> String {
    let memory_mib = (options.span >> 20) * 2;
    format!("memory = \"{memory_mib}M\"\n")
}

impl Mode {
    /// Returns its name in tables and in file names, and tgt's options for it.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Durable => ("tgt durable", "durable", "--bstype rdwr"),
            Self::Volatile => ("tgt volatile", "volatile", "--bstype rdwr"),
            Self::Direct => ("tgt aio direct", "direct", "--bstype aio"),
        }
    }
}

/// Starts tgt on its own sparse file of that size, in a directory.
pub fn start_tgt(dir: &Path, mode: Mode, bytes: u64) -> Result<Target> {
    let backing = dir.join(format!("tgt-{}.img", mode.names().1));
    let file =
        std::fs::File::create(&backing).with_context(|| format!("making {}", backing.display()))?;
    file.set_len(bytes).context("making tgt's sparse file")?;
    serve_by_tgt(dir, mode, &backing)
}

/// Starts tgt on a file, which it does not write by itself.
pub fn serve_by_tgt(dir: &Path, mode: Mode, backing: &Path) -> Result<Target> {
    let (name, label, extra) = mode.names();
    let port = free_port()?;
    // tgt numbers its control sockets; the number of a free port is unique.
    let control = format!("-C {}", port / 2);
    let log = dir.join(format!("tgt-{label}.log"));
    let serve = words(&format!("-f {control} --iscsi portal=127.0.0.1:{port}"));
    let mut process = Background::start(Path::new("tgtd"), &serve, &log)?;
    let admin =
        |text: &str| process::output(Path::new("tgtadm"), &words(&format!("{control} {text}")));
    process.wait_until(|| admin("--op show --mode sys").is_ok()).context("tgtd")?;
    let target = format!("iqn.2025-01.example.bench:{label}");
    admin(&format!("--lld iscsi --op new --mode target --tid 1 -T {target}"))?;
    let new = "--lld iscsi --op new --mode logicalunit --tid 1 --lun 1";
    admin(&format!("{new} --backing-store {} {extra}", backing.display()))?;
    if mode == Mode::Durable {
        let update = "--lld iscsi --op update --mode logicalunit --tid 1 --lun 1 --params";
        admin(&format!("{update} mode_page={CACHING_PAGE_WCE_0}"))?;
    }
    admin("--lld iscsi --op bind --mode target --tid 1 -I ALL")?;
    Ok(Target {
        name,
        url: format!("iscsi://127.0.0.1:{port}/{target}/1"),
        process,
        is_holdfast: false,
        is_volatile: mode == Mode::Volatile,
    })
}

/// Mode page 08h in tgt's notation, with WCE 0.
const CACHING_PAGE_WCE_0: &str =
    "8:0:18:0x10:0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:0x14:0:0:0:0:0:0";

#[cfg(test)]
mod tests {
    use super::*;

    /// Once, any directory with a pool in it was removed.
    #[test]
    fn only_files_of_the_benchmark_are_removed() {
        let dir = std::env::temp_dir().join(format!("bench-clear-{}", std::process::id()));
        for name in [HOLDFAST, BEFORE, NOW, "other"] {
            let pool = dir.join(name);
            std::fs::create_dir_all(&pool).unwrap();
            std::fs::write(pool.join("pool.data"), "").unwrap();
        }
        clear(&dir).unwrap();
        let left: Vec<_> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(left, ["other"]);
    }
}
