//! Two separately started controllers, each on its own machine, with a link over the network. The
//! pool is in files that both reach; so a lock of this machine decides which one has it, and not
//! the devices.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::nets::{Nets, host_side, link, moving, part};
use crate::command::{self, Finished};
use crate::pair::{Found, READY};
use crate::process;
use crate::target::{INITIATOR, Target, second};

/// The port of the link at each controller.
pub const LINK_PORT: u16 = 3261;
const PORTAL_PORT: u16 = 3260;
const API: &str = "127.0.0.1:3290";

/// Both controllers, their pool and their networks.
pub struct Site {
    program: PathBuf,
    directory: TempDir,
    pub nets: Nets,
    running: [Option<Child>; 2],
    /// Whether hosts reach it by moving addresses.
    moves: bool,
}

impl Site {
    /// Creates a pool, and serves it by both.
    pub fn new(program: PathBuf, nets: Nets, moves: bool) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("holdfast-link-").tempdir()?;
        let mut site = Self { program, directory, nets, running: [None, None], moves };
        std::fs::create_dir(site.path("pool"))?;
        let (pool, secret) = (site.text("pool"), site.text("secret"));
        site.holdfast(&["pool", "create", &pool, "--capacity", "3G"])?.good()?;
        site.holdfast(&["controller", "secret", &secret])?.good()?;
        for number in 0..2 {
            site.start(number, "secret")?;
            let begin = Instant::now();
            while number == 0 && site.listed()?.is_none() {
                ensure!(begin.elapsed() < READY, "ct0 does not serve:\n{}", site.log(0));
                thread::sleep(Duration::from_millis(20));
            }
        }
        site.both()?;
        let second = second(INITIATOR);
        site.verb(&["host", "create", "peer", "--iqn", INITIATOR, "--iqn", &second])?;
        Ok(site)
    }

    /// Starts a controller, with the secret in this file.
    pub fn start(&mut self, number: usize, secret: &str) -> Result<()> {
        let at = |number| format!("{}:{LINK_PORT}", link(number));
        let name = self.path(&format!("{}.log", part(number)));
        let log = File::options().create(true).append(true).open(name)?;
        let mut command = self.nets.command(part(number), &self.program)?;
        command
            .args(["serve", &self.text("pool"), "--supervised", "--controller", part(number)])
            .args(["--iscsi", &self.portals().join(",")])
            .args(["--api", API, "--api-http"])
            .args(["--link", &at(number), "--link-peer", &at(1 - number)])
            .args(["--link-secret", &self.text(secret)])
            .args(self.moving())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.running[number] = Some(command.spawn()?);
        Ok(())
    }

    /// Returns the portals of both.
    fn portals(&self) -> Vec<String> {
        let of = |number: usize| {
            let name = part(number);
            match self.moves {
                false => vec![format!("{name}={}:{PORTAL_PORT}", host_side(number))],
                true => {
                    let [four, six] = moving(number);
                    [format!("{four}:{PORTAL_PORT}"), format!("[{six}]:{PORTAL_PORT}")]
                        .map(|portal| format!("{name}={portal}"))
                        .into()
                }
            }
        };
        (0..2).flat_map(of).collect()
    }

    /// Returns the arguments for moving addresses.
    fn moving(&self) -> Vec<String> {
        if !self.moves {
            return Vec::new();
        }
        let all: Vec<String> =
            (0..2).flat_map(moving).map(|address| format!("{address}@eth1")).collect();
        vec!["--link-addresses".to_owned(), all.join(",")]
    }

    /// Kills a controller and its supervisor, like a machine that dies.
    pub fn kill(&mut self, found: &Found) -> Result<()> {
        let child = self.running[found.number()].take().context("the controller is not running")?;
        crate::controllers::signal(child.id().into(), "KILL")?;
        crate::controllers::signal(found.pid, "KILL")?;
        process::end(child);
        Ok(())
    }

    /// Asks a controller to end (SIGTERM to its supervisor), and waits for that.
    pub fn stop(&mut self, number: usize) -> Result<()> {
        let mut child = self.running[number].take().context("the controller is not running")?;
        let pid = child.id().to_string();
        let asked = command::run(5, "kill", &["-TERM", &pid]).and_then(Finished::good);
        let begin = Instant::now();
        while asked.is_ok() && begin.elapsed() < READY {
            if let Some(status) = child.try_wait()? {
                ensure!(status.success(), "it ended with {status}:\n{}", self.log(number));
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        process::end(child);
        Err(anyhow!("{} does not end:\n{}", part(number), self.log(number)))
    }

    /// Returns a file of its directory.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Creates a secret that the other controller does not have.
    pub fn make_secret(&self, name: &str) -> Result<()> {
        self.holdfast(&["controller", "secret", &self.text(name)])?.good()?;
        let mode = std::fs::metadata(self.path(name))?.permissions().mode();
        ensure!(mode & 0o777 == 0o600, "its mode is {mode:o}");
        Ok(())
    }

    /// Runs `holdfast` without an array.
    pub fn holdfast(&self, words: &[&str]) -> Result<Finished> {
        command::run(60, &self.program.display().to_string(), words)
    }

    /// Runs a verb, which the owner executes.
    pub fn verb(&self, words: &[&str]) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let mut failed = String::new();
            for number in 0..2 {
                let finished = self.at(number, words)?;
                match finished.code {
                    0 if finished.text.trim().is_empty() => return Ok(Value::Null),
                    0 => return Ok(serde_json::from_str(&finished.text)?),
                    _ => failed.push_str(&finished.text),
                }
            }
            ensure!(begin.elapsed() < READY, "{words:?}: {failed}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a verb on the machine of a controller.
    pub fn at(&self, number: usize, words: &[&str]) -> Result<Finished> {
        let program = self.program.display().to_string();
        let pool = self.text("pool");
        let words = [&[program.as_str()], words, &["--json", "--pool", &pool]].concat();
        self.nets.try_inside(part(number), &words)
    }

    /// Starts asking a controller to hand the pool over to the other one.
    pub fn switch(&self, number: usize) -> Result<Child> {
        let mut command = self.nets.command(part(number), &self.program)?;
        command.args(["controller", "switch", "--pool", &self.text("pool")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.spawn()?)
    }

    /// Returns the controllers that are ready, as reported by the owner, and which that is; `None`
    /// while there is no owner.
    pub fn listed(&self) -> Result<Option<(usize, Vec<Found>)>> {
        for number in 0..2 {
            let listed = self.at(number, &["controller", "list"])?;
            if listed.code == 0 {
                let told: Value = serde_json::from_str(&listed.text)?;
                let all = told.as_array().into_iter().flatten().filter_map(Found::of).collect();
                return Ok(Some((number, all)));
            }
        }
        Ok(None)
    }

    /// Returns both controllers, once they are ready, the owner first.
    pub fn both(&self) -> Result<[Found; 2]> {
        let begin = Instant::now();
        loop {
            if let Some((_, mut all)) = self.listed()? {
                all.sort_by_key(|it| !it.is_owner);
                if let Ok(both) = <[Found; 2]>::try_from(all) {
                    return Ok(both);
                }
            }
            let logs = || [self.log(0), self.log(1)].join("\n--- ct1:\n");
            ensure!(begin.elapsed() < READY, "the controllers are not ready:\n{}", logs());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns a volume at a portal.
    pub fn volume(&self, lun: u16, portal: usize) -> Result<Target> {
        let name = format!("volume-{lun}");
        self.verb(&["volume", "create", &name, "--size", "1G"])?;
        self.verb(&["connect", &name, "peer", "--lun", &lun.to_string()])?;
        let place = if self.moves { moving(portal)[0].clone() } else { host_side(portal) };
        Target::discovered(format!("{place}:{PORTAL_PORT}"), lun)
    }

    /// Returns the log of a controller.
    pub fn whole_log(&self, number: usize) -> String {
        std::fs::read_to_string(self.path(&format!("{}.log", part(number)))).unwrap_or_default()
    }

    /// Returns the end of a machine's log.
    pub fn log(&self, number: usize) -> String {
        command::tail(&self.whole_log(number), 20)
    }

    /// Runs `inspect` on the pool while no process serves it.
    pub fn inspect(&self) -> Result<()> {
        self.holdfast(&["inspect", &self.text("pool")])?.good().map(drop)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.running.iter_mut().filter_map(Option::take).for_each(process::end);
    }
}
