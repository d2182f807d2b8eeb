//! The processes of two controllers, and restarting them.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests_peer::array::Array;
use tests_peer::pair::{self, READY};
use tests_peer::process::{self, has_ended};

/// The controllers, in the order of their portals.
pub const NAMES: [&str; 2] = ["ct0", "ct1"];
const LOOK: Duration = Duration::from_millis(2);
/// How long the successor of a process may take to appear.
const SUCCESSOR: Duration = Duration::from_secs(5);
/// How long a process that was asked to end may take.
const END: Duration = Duration::from_secs(30);

/// A process that does not outlive the run.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An array that two controllers serve.
pub struct House {
    pub array: Array,
    /// Used without the array's supervisor.
    own: Option<Own>,
}

/// The processes, and a thread that restarts them.
struct Own {
    children: Arc<Mutex<[Child; 2]>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl House {
    /// Serves the pool; with the array's supervisor, or with processes that this one restarts.
    ///
    /// # Errors
    /// If a process does not start.
    pub fn start(mut array: Array, is_supervised: bool) -> Result<Self> {
        let own = match is_supervised {
            true => array.start().map(|_| None)?,
            false => Some(Own::start(&array)?),
        };
        let house = Self { array, own };
        pair::both(&house.array)?;
        Ok(house)
    }

    /// Shuts both down cleanly, and serves again.
    ///
    /// # Errors
    /// If a process does not end or does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        match self.own {
            None => self.array.start().map(drop)?,
            Some(_) => self.own = Some(Own::start(&self.array)?),
        }
        pair::both(&self.array).map(drop)
    }

    /// Shuts both down cleanly.
    ///
    /// # Errors
    /// If a process does not end.
    pub fn stop(&mut self) -> Result<()> {
        match &mut self.own {
            None => self.array.stop(),
            Some(own) => own.stop(),
        }
    }

    /// Kills both, if they run.
    pub fn kill(&mut self) {
        self.own = None;
        // It may have ended.
        let _ = self.array.kill();
    }

    /// Checks that no process has ended by itself, according to the log.
    ///
    /// # Errors
    /// If one has, or if there is no log.
    pub fn must_have_run(&self) -> Result<()> {
        let log = self.array.whole_log()?;
        let is_wrong = |line: &&str| {
            let has_ended = line.contains(" has ended (") && !line.contains("SIGKILL");
            has_ended || line.contains("panicked")
        };
        match log.lines().find(is_wrong) {
            Some(line) => bail!("a process ended unexpectedly: {line}"),
            None => Ok(()),
        }
    }

    /// Returns whether a controller that has shut down cleanly is restarted.
    pub fn restarts_all(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the process of this controller, once there is one other than `before`.
    ///
    /// # Errors
    /// If there is none for too long.
    pub fn process(&self, name: &str, before: Option<u32>) -> Result<u32> {
        let begin = Instant::now();
        loop {
            if let Some(pid) = self.find(name)?.filter(|pid| Some(*pid) != before) {
                return Ok(pid);
            }
            ensure!(begin.elapsed() < SUCCESSOR, "no process runs as {name}");
            thread::sleep(LOOK);
        }
    }

    fn find(&self, name: &str) -> Result<Option<u32>> {
        let number = NAMES.iter().position(|it| *it == name).context("no such controller")?;
        match &self.own {
            Some(own) => {
                let children = own.children.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(Some(children[number].id()).filter(|pid| !has_ended(*pid)))
            }
            None => Ok(child_of(self.array.pid().context("the supervisor is not running")?, name)),
        }
    }
}

impl Own {
    fn start(array: &Array) -> Result<Self> {
        let mut commands = [array.command()?, array.command()?];
        for (command, name) in commands.iter_mut().zip(NAMES) {
            command.args(["--controller", name]);
        }
        let [first, second] = &mut commands;
        let first = first.spawn()?;
        let begin = Instant::now();
        // The first one takes over the pool.
        while pair::ready(array)?.is_empty() {
            if array.try_verb(&["status"])?.code == 0 {
                break;
            }
            ensure!(
                begin.elapsed() < READY,
                "the first controller does not serve:\n{}",
                array.log()
            );
        }
        let children = Arc::new(Mutex::new([first, second.spawn()?]));
        let is_over = Arc::new(AtomicBool::new(false));
        let (kept, over) = (children.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let mut children = kept.lock().unwrap_or_else(PoisonError::into_inner);
                for (child, command) in children.iter_mut().zip(&mut commands) {
                    if let Ok(Some(_)) = child.try_wait()
                        && let Ok(next) = command.spawn()
                    {
                        *child = next;
                    }
                }
                drop(children);
                thread::sleep(LOOK);
            }
        });
        Ok(Self { children, is_over, thread: Some(thread) })
    }

    /// Stops restarting.
    fn give_up(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The processes it has started are ended here anyway.
            let _ = thread.join();
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.give_up();
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        // First the one that forwards; otherwise it would take over.
        for child in children.iter_mut().rev() {
            super::strikes::signal(child.id(), rustix::process::Signal::TERM)?;
        }
        for child in children.iter_mut() {
            wait_for_end(child.id(), END)?;
            let status = child.wait()?;
            if !status.success() {
                bail!("a controller ended with {status} on SIGTERM");
            }
        }
        Ok(())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.give_up();
        for child in self.children.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            // They may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a process has ended.
///
/// # Errors
/// If it does not end in time.
pub fn wait_for_end(pid: u32, patience: Duration) -> Result<()> {
    let begin = Instant::now();
    while !has_ended(pid) {
        ensure!(begin.elapsed() < patience, "process {pid} does not end");
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns the child of a process that was started as this controller.
fn child_of(parent: u32, name: &str) -> Option<u32> {
    process::children(parent).into_iter().find(|pid| {
        let words = process::words(*pid);
        words.windows(2).any(|two| two == ["--controller", name])
    })
}
