//! A pool in a temporary directory, and the real `holdfast` that serves it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

pub use crate::shape::{Controllers, Shape};
use crate::target::Target;
use crate::{command, ports, process};

/// How long an array may take from its start to its first response.
const READY: Duration = Duration::from_secs(20);
/// How long it may take to end when asked to.
const STOP: Duration = Duration::from_secs(20);

/// Where the programs under test are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `holdfast`.
    pub holdfast: PathBuf,
    /// `holdfast-lab`.
    pub lab: PathBuf,
}

/// A pool, and the process that serves it if it runs.
pub struct Array {
    programs: Programs,
    shape: Shape,
    directory: TempDir,
    /// `address:port` of each portal.
    pub portals: Vec<String>,
    /// `address:port` of the management interface.
    pub api: String,
    process: Option<Child>,
    starts: usize,
}

impl Array {
    /// Creates a pool and serves it.
    pub fn new(programs: &Programs, shape: Shape) -> Result<Self> {
        let mut array = Self::made(programs, shape)?;
        array.start()?;
        Ok(array)
    }

    /// Creates a pool.
    pub fn made(programs: &Programs, shape: Shape) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("holdfast-peers-").tempdir()?;
        let ports = ports::reserve(shape.portals + 1)?;
        let mut addresses: Vec<String> =
            ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let api = addresses.pop().context("no free port for the management interface")?;
        let array = Self {
            programs: programs.clone(),
            shape,
            directory,
            portals: addresses,
            api,
            process: None,
            starts: 0,
        };
        std::fs::create_dir_all(array.pool())?;
        std::fs::write(array.file("holdfast.toml"), array.shape.settings)?;
        let devices = array.shape.devices.to_string();
        let places = array.places();
        let mut create = vec!["pool", "create", "--capacity", array.shape.capacity];
        create.extend(places.iter().map(String::as_str));
        if array.shape.devices > 1 && !array.shape.apart {
            create.extend(["--devices", &devices]);
        }
        array.offline(&create)?;
        Ok(array)
    }

    /// Adds an address to serve from the next start on.
    pub fn add_portal(&mut self) -> Result<()> {
        let ports = ports::reserve(1)?;
        self.portals.extend(ports.iter().map(|port| format!("127.0.0.1:{port}")));
        Ok(())
    }

    /// Returns the number of the pool's files.
    pub fn devices(&self) -> u16 {
        self.shape.devices
    }

    /// Returns the pool's directory.
    pub fn pool(&self) -> PathBuf {
        self.directory.path().join("pool")
    }

    /// Returns the directories of the pool's files; the first is [`Array::pool`].
    pub fn places(&self) -> Vec<String> {
        let apart = if self.shape.apart { self.shape.devices } else { 1 };
        let others = (2..=apart).map(|number| self.directory.path().join(format!("disk{number}")));
        [self.pool()].into_iter().chain(others).map(|path| path.display().to_string()).collect()
    }

    /// Returns a directory for other files of a test.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the process that serves, or the supervisor of those that do.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Starts the process and waits until it responds. Returns how long that took.
    pub fn start(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.starts += 1;
        let mut command = self.command()?;
        if self.shape.controllers == Controllers::First {
            command.args(["--controller", "ct0"]);
        }
        let child = command
            .spawn()
            .with_context(|| format!("could not start {}", self.programs.holdfast.display()))?;
        self.process = Some(child);
        while !self.answers() {
            if let Some(status) = self.child()?.try_wait()? {
                self.process = None;
                bail!("the array ended ({status}) at start {}:\n{}", self.starts, self.log());
            }
            if begin.elapsed() > READY {
                bail!("the array did not respond within {} s:\n{}", READY.as_secs(), self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(begin.elapsed())
    }

    /// Returns the command that serves the pool; the caller adds which of two controllers.
    pub fn command(&self) -> Result<Command> {
        let log = File::options().create(true).append(true).open(self.file("serve.log"))?;
        let mut command = Command::new(&self.programs.holdfast);
        command
            .arg("serve")
            .args(self.places())
            .args(["--iscsi", &self.portal_arguments(), "--api", &self.api])
            .args((!self.shape.encrypted).then_some("--api-http"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if !self.shape.settings.is_empty() {
            command.arg("--config").arg(self.file("holdfast.toml"));
        }
        command.args(self.shape.supervised.then_some("--supervised"));
        if let Some(interposer) = &self.shape.interposer {
            command.env("LD_PRELOAD", interposer).env("TRACE_FILE", self.trace_path());
            command.env("TRACE_POOL", self.pool().join("pool.data"));
            if self.shape.refuse_uring {
                command.env("TRACE_NO_URING", "1");
            }
        }
        Ok(command)
    }

    /// Asks the process to end, as an administrator does (SIGTERM), and waits for it.
    pub fn stop(&mut self) -> Result<()> {
        let pid = self.child()?.id().to_string();
        command::run(5, "kill", &["-TERM", &pid])?.good()?;
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child()?.try_wait()? {
                self.process = None;
                if !status.success() {
                    bail!("the array ended with {status} on SIGTERM:\n{}", self.log());
                }
                return Ok(());
            }
            if begin.elapsed() > STOP {
                bail!("the array did not end within {} s:\n{}", STOP.as_secs(), self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the process (SIGKILL), and those that it has started.
    pub fn kill(&mut self) -> Result<()> {
        process::end(self.process.take().context("the array is not running")?);
        Ok(())
    }

    /// Returns an error if the process has ended by itself.
    pub fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.child()?.try_wait()? {
            self.process = None;
            bail!("the array ended unexpectedly ({status}):\n{}", self.log());
        }
        Ok(())
    }

    /// Runs a verb against the running array, with `--json`. Returns its output.
    pub fn verb(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.try_verb(arguments)?.good()?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{arguments:?} printed: {text}"))
    }

    /// The same as [`Array::verb`], for one that may fail.
    pub fn try_verb(&self, arguments: &[&str]) -> Result<command::Finished> {
        let mut all = arguments.to_vec();
        let pool = self.pool().display().to_string();
        all.extend(["--json", "--pool", &pool]);
        // Longer than verbs wait themselves, which then report what they waited for.
        command::run(45, &self.programs.holdfast.display().to_string(), &all)
    }

    /// Returns `holdfast` without arguments; its output is discarded.
    pub fn program(&self) -> Command {
        let mut program = Command::new(&self.programs.holdfast);
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program
    }

    /// Runs `holdfast` with exactly these arguments.
    pub fn run(&self, arguments: &[&str]) -> Result<command::Finished> {
        command::run(30, &self.programs.holdfast.display().to_string(), arguments)
    }

    /// Runs a verb that needs no running array. Returns its output.
    pub fn offline(&self, arguments: &[&str]) -> Result<String> {
        command::run(120, &self.programs.holdfast.display().to_string(), arguments)?.good()
    }

    /// Runs `inspect` on the stopped pool. Returns an error if it finds anything.
    pub fn inspect(&self) -> Result<String> {
        let places = self.places();
        self.offline(
            &[&["inspect"], &places.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat(),
        )
    }

    /// Creates a volume and its connection. Returns it as this host finds it at the first portal.
    pub fn volume(&self, name: &str, size: &str, host: &str, lun: u16) -> Result<Target> {
        self.verb(&["volume", "create", name, "--size", size])?;
        self.verb(&["connect", name, host, "--lun", &lun.to_string()])?;
        self.target(lun)
    }

    /// Creates a host with these initiators.
    pub fn host(&self, name: &str, initiators: &[&str]) -> Result<()> {
        let mut arguments = vec!["host", "create", name];
        for initiator in initiators {
            arguments.extend(["--iqn", initiator]);
        }
        self.verb(&arguments).map(drop)
    }

    /// Returns an error unless `volume show` finds the volume.
    pub fn must_be_listed(&self, name: &str) -> Result<()> {
        self.verb(&["volume", "show", name]).map(drop)
    }

    /// Returns the logical unit `lun` of the only target at the first portal.
    pub fn target(&self, lun: u16) -> Result<Target> {
        let portal = self.portals.first().context("the array has no portal")?.clone();
        Target::discovered(portal, lun)
    }

    /// Returns the number of open connections of initiators, from the management interface.
    pub fn open_connections(&self) -> Result<u64> {
        self.counters()?["wire"]["connections"].as_u64().context("no count of connections")
    }

    /// Returns the management token that the array has left for its owner.
    pub fn token(&self) -> Result<String> {
        Ok(self.run_file()?["token"].as_str().context("the run file holds no token")?.to_owned())
    }

    /// Returns the run file that the serving process has left for verbs.
    pub fn run_file(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&std::fs::read(self.pool().join("array.run"))?)?)
    }

    /// Returns the counters of the management interface.
    pub fn counters(&self) -> Result<Value> {
        let token = self.token()?;
        let mut stream = TcpStream::connect(&self.api)?;
        write!(
            stream,
            "GET /v1/counters HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n\r\n",
            self.api
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no response")?;
        serde_json::from_str(body).with_context(|| head.to_owned())
    }

    /// Returns how many sessions have begun, and how many have ended, according to the log.
    pub fn sessions(&self) -> Result<(usize, usize)> {
        let log = self.whole_log()?;
        let count = |what: &str| log.lines().filter(|line| line.contains(what)).count();
        Ok((count(" logged in at portal "), count("the session of ")))
    }

    /// Returns the peak memory of the process.
    pub fn peak_kib(&self) -> Result<u64> {
        process::peak_kib(self.pid().context("the array is not running")?).context("no VmHWM")
    }

    /// Returns how many bytes the process has written to the device since its start.
    pub fn written_bytes(&self) -> Result<u64> {
        let child = self.process.as_ref().context("the array is not running")?;
        let text = std::fs::read_to_string(format!("/proc/{}/io", child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.context("no write_bytes")?.parse().context("write_bytes is not a number")
    }

    /// Returns a number of the pool from `status`.
    pub fn pool_number(&self, field: &str) -> Result<u64> {
        let status = self.verb(&["status"])?;
        status["pool"][field].as_u64().with_context(|| format!("no pool.{field}"))
    }

    /// Returns the end of the array's log.
    pub fn log(&self) -> String {
        command::tail(&self.whole_log().unwrap_or_default(), 20)
    }

    /// Returns the whole log; an error if it can't be read.
    pub fn whole_log(&self) -> std::io::Result<String> {
        std::fs::read_to_string(self.file("serve.log"))
    }

    /// Returns the path of an interposer's trace.
    pub fn trace_path(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    /// Returns a file in its directory.
    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn portal_arguments(&self) -> String {
        let group = |index: usize| if self.shape.grouped { index + 1 } else { 1 };
        let of_first = self.of_first_controller().len();
        let portals = self.portals.iter().enumerate();
        let each = portals.map(|(index, portal)| match index < of_first {
            true => format!("{portal}@{}", group(index)),
            false => format!("ct1={portal}"),
        });
        each.collect::<Vec<_>>().join(",")
    }

    /// Returns the portals of the first controller: all, if it is the only one.
    fn of_first_controller(&self) -> &[String] {
        match self.shape.controllers {
            Controllers::One => &self.portals,
            Controllers::Two | Controllers::First => &self.portals[..self.portals.len() / 2],
        }
    }

    fn child(&mut self) -> Result<&mut Child> {
        self.process.as_mut().context("the array is not running")
    }

    /// Returns whether every address accepts connections, and verbs find the array, which happens
    /// last.
    fn answers(&self) -> bool {
        let portals = match self.shape.controllers {
            Controllers::First => self.of_first_controller(),
            Controllers::One | Controllers::Two => &self.portals,
        };
        let mut addresses = portals.iter().chain([&self.api]);
        addresses.all(|address| TcpStream::connect(address).is_ok())
            && self.try_verb(&["status"]).is_ok_and(|finished| finished.code == 0)
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(child) = self.process.take() {
            process::end(child);
        }
    }
}
