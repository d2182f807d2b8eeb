//! Causes the scheduled faults in real processes.

use std::collections::BTreeSet;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal,
};
use tests_peer::process::{has_ended, state};
use tests_peer::random::Random;

use super::house::{House, NAMES, wait_for_end};
use crate::schedule::Kind;

use super::schedule::{Fault, Way, What, When, Whom, millis};

/// How long a process that was killed, or asked to end, may take to be gone.
const GONE: Duration = Duration::from_secs(5);
const ENDED: Duration = Duration::from_secs(30);
/// How long it may take until there is a link.
const LINKED: Duration = Duration::from_secs(10);
/// How long to wait for a checkpoint.
const CHECKPOINT: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_micros(200);
const STOPPED_LOOK: Duration = Duration::from_millis(5);
/// The thread that writes checkpoints.
const CHECKPOINT_THREAD: &str = "checkpoint";
/// The suffix of the link's path.
const LINK: &str = ".link";

/// What was done.
#[derive(Default)]
pub struct Done {
    /// How often each process was ended by a signal, by controller.
    pub ends: [u32; 2],
    /// How often the owner was ended by SIGKILL, or by its supervisor while stopped.
    pub owner_kills: u64,
    /// Processes that had already ended by themselves before a signal arrived.
    pub missed: u64,
    /// Whether no checkpoint was written in time.
    pub no_checkpoint: bool,
    /// The controller that has shut down cleanly.
    pub ended: Option<usize>,
    /// The faults of devices at the same time.
    pub hurt: Vec<Kind>,
    /// Link connections that were shut down.
    pub cut: u64,
}

/// Causes a fault. `owner` is the controller that has the pool.
///
/// # Errors
/// What could not be done.
pub fn strike(
    house: &House,
    fault: Fault,
    mut owner: usize,
    random: &mut Random,
    mut switch: impl FnMut() -> Result<()>,
) -> Result<Done> {
    let mut done = Done::default();
    match fault.when {
        When::Alone => {}
        When::Checkpoint => {
            let pid = house.process(NAMES[owner], None)?;
            done.no_checkpoint = !wait_for_checkpoint(pid);
        }
        When::Switch => {
            switch()?;
            thread::sleep(millis(random, 0, 250));
        }
        When::After => {
            let first = random.below(2) as usize;
            let pid = house.process(NAMES[first], None)?;
            kill(pid)?;
            done.ends[first] += 1;
            thread::sleep(millis(random, 0, 700));
            if first == owner {
                done.owner_kills += 1;
                owner = 1 - owner;
            }
        }
    }
    let victims: &[usize] = match fault.whom {
        Whom::Owner => &[owner],
        Whom::Other => &[1 - owner],
        Whom::Both => &[1 - owner, owner],
    };
    match fault.what {
        What::Switch => switch()?,
        What::Cut(way) => done.cut = cut_link(house, way)?,
        what => hit(house, what, victims, owner, random, &mut done)?,
    }
    Ok(done)
}

/// Applies the fault to each of these, one after the other.
fn hit(
    house: &House,
    what: What,
    victims: &[usize],
    owner: usize,
    random: &mut Random,
    done: &mut Done,
) -> Result<()> {
    for (turn, victim) in victims.iter().enumerate() {
        if turn > 0 {
            thread::sleep(millis(random, 0, 100));
        }
        let pid = house.process(NAMES[*victim], None)?;
        match what {
            What::End => {
                signal(pid, Signal::TERM)?;
                wait_for_end(pid, ENDED)?;
                done.ended = Some(*victim);
            }
            _ => {
                let has_been_ended = by_signal(pid, what)?;
                done.ends[*victim] += u32::from(has_been_ended);
                done.missed += u64::from(!has_been_ended);
                done.owner_kills += u64::from(*victim == owner && has_been_ended);
            }
        }
    }
    Ok(())
}

/// Sends the signal, and waits for its effect. Returns whether it ended the process, other than by
/// a clean shutdown.
fn by_signal(pid: u32, what: What) -> Result<bool> {
    match what {
        What::Kill => kill(pid),
        What::Stop(ms) => stop(pid, Duration::from_millis(ms)),
        _ => bail!("{what:?} is not a signal that ends a process at once"),
    }
}

/// Sends a signal to a process, which may have ended.
///
/// # Errors
/// Other errors of the system.
pub fn signal(pid: u32, signal: Signal) -> Result<bool> {
    let Some(process) = opened(pid)? else { return Ok(false) };
    match pidfd_send_signal(process, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a process, so that a reused process id does no harm; `None` if it has ended.
fn opened(pid: u32) -> Result<Option<OwnedFd>> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).context("no such process")?;
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn kill(pid: u32) -> Result<bool> {
    let was_there = !has_ended(pid) && signal(pid, Signal::KILL)?;
    wait_for_end(pid, GONE)?;
    Ok(was_there)
}

/// Stops a process for this time, unless its supervisor kills it. Returns whether it did.
fn stop(pid: u32, time: Duration) -> Result<bool> {
    let Some(process) = opened(pid)? else { return Ok(false) };
    if pidfd_send_signal(&process, Signal::STOP).is_err() {
        return Ok(false);
    }
    let begin = Instant::now();
    while begin.elapsed() < time {
        if has_ended(pid) {
            return Ok(true);
        }
        thread::sleep(STOPPED_LOOK.min(time));
    }
    // The descriptor refers to that process, even if its id was reused.
    Ok(pidfd_send_signal(&process, Signal::CONT).is_err())
}

/// Waits until the thread that writes checkpoints works. Returns whether it did in time.
fn wait_for_checkpoint(pid: u32) -> bool {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    let named = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm"))
            .is_ok_and(|name| name.trim() == CHECKPOINT_THREAD)
    };
    let listed = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let Some(thread) = listed.map(|entry| entry.path()).find(named) else { return false };
    let begin = Instant::now();
    while begin.elapsed() < CHECKPOINT {
        if state(&thread).is_some_and(|(state, _)| matches!(state, 'R' | 'D')) {
            return true;
        }
        thread::sleep(LOOK);
    }
    false
}

/// Cuts the link, once there is one: at the current owner.
fn cut_link(house: &House, way: Way) -> Result<u64> {
    let begin = Instant::now();
    loop {
        let mut count = 0;
        for name in NAMES {
            count += cut(house.process(name, None)?, way)?;
        }
        if count > 0 {
            return Ok(count);
        }
        ensure!(begin.elapsed() < LINKED, "no link is connected");
        thread::sleep(LOOK);
    }
}

/// Shuts all link connections down at the end of this process, by copies of its sockets, so that
/// the process does not know. Returns how many.
fn cut(pid: u32, way: Way) -> Result<u64> {
    let inodes = link_inodes()?;
    let Some(process) = opened(pid)? else { return Ok(0) };
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let how = match way {
        Way::Both => Shutdown::Both,
        Way::ToOwner => Shutdown::Read,
        Way::FromOwner => Shutdown::Write,
    };
    let mut count = 0;
    for entry in entries.into_iter().flatten().flatten() {
        let Ok(link) = std::fs::read_link(entry.path()) else { continue };
        let text = link.to_string_lossy();
        let inode = text.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let (Some(inode), Some(number)) = (inode.and_then(|it| it.parse().ok()), number) else {
            continue;
        };
        if inodes.contains(&inode) {
            // It may have been closed meanwhile.
            let Ok(copy) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
                continue;
            };
            count += u64::from(UnixStream::from(copy).shutdown(how).is_ok());
        }
    }
    Ok(count)
}

/// Returns the inodes of all connected sockets with the name of a link.
fn link_inodes() -> Result<BTreeSet<u64>> {
    let text = std::fs::read_to_string("/proc/net/unix")?;
    // Num RefCount Protocol Flags Type St Inode Path
    let connected = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_link = words.get(7)?.ends_with(LINK) && *words.get(5)? == "03";
        is_link.then(|| words.get(6)?.parse().ok()).flatten()
    };
    let all: BTreeSet<u64> = text.lines().filter_map(connected).collect();
    Ok(all)
}
