//! Programs: requirements, builds, and background processes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::options::Options;

/// Holdfast's own programs.
#[derive(Debug)]
pub struct Programs {
    /// `holdfast`.
    pub holdfast: PathBuf,
    /// `holdfast-lab`.
    pub lab: PathBuf,
}

impl Programs {
    /// The same with another `holdfast`.
    ///
    /// # Errors
    /// If the file does not exist.
    pub fn with_holdfast(&self, path: &Path) -> Result<Self> {
        let holdfast = path.canonicalize().with_context(|| format!("{}", path.display()))?;
        Ok(Self { holdfast, lab: self.lab.clone() })
    }
}

/// A process that ends with its owner.
#[derive(Debug)]
pub struct Background(Child);

impl Background {
    /// Starts a program; its output goes to the file `log`.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let file =
            std::fs::File::create(log).with_context(|| format!("making {}", log.display()))?;
        let errors = file.try_clone()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Self(child))
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until `ready` returns true, for ten seconds at most.
    pub fn wait_until(&mut self, ready: impl FnMut() -> bool) -> Result<()> {
        self.wait_until_every(Duration::from_millis(50), ready)
    }

    /// The same with this polling interval.
    pub fn wait_until_every(
        &mut self,
        pause: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            if let Some(status) = self.0.try_wait()? {
                bail!("the target ended at once ({status})");
            }
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the target does not respond");
            }
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Waits until it has ended by itself, for a minute at most.
    pub fn wait_end(&mut self) -> Result<()> {
        let start = Instant::now();
        while self.0.try_wait()?.is_none() {
            if start.elapsed() > Duration::from_secs(60) {
                bail!("the target does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program to its end, and returns its output.
pub fn output(program: &Path, arguments: &[String]) -> Result<String> {
    let shown = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("starting {shown}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} {}: {}", arguments.join(" "), reason.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the words of a command line, none of which contains a blank.
pub fn words(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// Returns a free loopback port.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Returns whether a program is on the path.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")])
        .any(|directory| directory.join(program).is_file())
}

/// Installs missing Debian packages, and says so; tgt and fio only if needed.
pub fn install_missing(with_tgt: bool, with_fio: bool) -> Result<()> {
    let mut packages = Vec::new();
    if with_tgt && !is_installed("tgtd") {
        packages.push("tgt");
    }
    if with_fio && !is_installed("fio") {
        packages.push("fio");
    }
    if !Path::new("/usr/include/iscsi/iscsi.h").is_file() {
        packages.push("libiscsi-dev");
    }
    if packages.is_empty() {
        return Ok(());
    }
    eprintln!("installing with apt-get: {}", packages.join(" "));
    let status = Command::new("apt-get")
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(&packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()
        .context("starting apt-get")?;
    if !status.success() {
        bail!("install first, as root: apt-get install -y {}", packages.join(" "));
    }
    Ok(())
}

/// Builds the programs, optimised, and returns where they are.
pub fn build(options: &Options) -> Result<Programs> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "lab", "--message-format=json"]);
    if !options.without_holdfast {
        command.args(["-p", "holdfast"]);
    }
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("the build failed");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let executable = |name: &str| {
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
            .find(|path| path.file_name().is_some_and(|file| file == name))
    };
    let lab = executable("holdfast-lab").context("cargo built no holdfast-lab")?;
    let holdfast = executable("holdfast").unwrap_or_default();
    Ok(Programs { holdfast, lab })
}

/// Describes the machine in one line.
pub fn machine(directory: &Path) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(directory).output();
    let kind = kind.map(|k| String::from_utf8_lossy(&k.stdout).trim().to_owned());
    format!("{cpus} x {model}, Linux {}, directory on {}", kernel.trim(), kind.unwrap_or_default())
}
