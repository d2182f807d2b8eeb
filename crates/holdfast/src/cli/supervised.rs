//! `serve --supervised`: the array in a separate process, which is restarted when it ends without a
//! request, and killed when it is stopped (SIGSTOP) or silent.
//!
//! The array sends the same messages as to systemd ([`crate::serve::Kept`]): that it is ready, that
//! it is alive, and which sockets to keep for the next process. The socket for these messages is in
//! a directory that only this user can write.
//!
//! No process is started before the previous one has certainly ended, so that two never serve at
//! once. A stopped process is never continued: the hosts may already have repeated elsewhere the
//! requests that its sockets have received.

mod holds;
mod messages;
mod state;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use management::private;
use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::args::ServeArgs;
use super::config::Config;
use super::discover::user_directory;
use super::failure::Failure;
use super::log;
use crate::serve::controllers::Controller;
use crate::serve::{HELD, tell_alive, watchdog_limit};
use holds::Holds;
use messages::receive;
use state::{LOOK_INTERVAL, SILENCE_MAX, State, was_asked};

/// The exit code of a controller that gives the pool up to the other one (`EX_TEMPFAIL` of
/// `sysexits.h`): it is restarted, and then follows.
pub const GIVES_WAY: u8 = 75;

/// A process that ends more often than this within [`OFTEN_WITHIN`] is restarted only after a
/// pause.
const OFTEN: usize = 10;
const OFTEN_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(2);
/// How long the array may be stopped (SIGSTOP).
const STOPPED_MAX: Duration = Duration::from_millis(300);
/// The first descriptor that is given to a process (`sd_listen_fds(3)`).
const FIRST_DESCRIPTOR: i32 = 3;

/// Serves until SIGTERM or SIGINT, or until the array ends by itself without an error. Each of two
/// controllers has its own process, and is restarted independently.
pub fn run(options: &ServeArgs) -> Result<ExitCode, Failure> {
    log::start(Config::load(options.config.as_deref())?.log_level);
    let failed = |error: io::Error| Failure::Machine(format!("can't supervise: {error}"));
    if !options.are_two() || options.controller.is_some() {
        return Supervisor::start(None, &Holds::default()).and_then(|it| it.run()).map_err(failed);
    }
    let holds = Holds::default();
    let start = |controller| Supervisor::start(Some(controller), &holds).map_err(failed);
    let (first, second) = (start(Controller::Ct0)?, start(Controller::Ct1)?);
    let state = first.state.clone();
    let running = thread::Builder::new().name("ct0".into()).spawn(move || first.run());
    let running = running.map_err(failed)?;
    // The first controller creates the pool, and has it, unless it can't be started at all.
    while !state.lock().was_ready && !running.is_finished() {
        thread::sleep(LOOK_INTERVAL);
    }
    let end = if state.lock().was_ready { second.run() } else { Ok(ExitCode::SUCCESS) };
    let first = running.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
    let (first, second) = (first.map_err(failed)?, end.map_err(failed)?);
    Ok(if first == ExitCode::SUCCESS { second } else { first })
}

/// Returns the exit code as a shell would; a process that was asked to end counts as successful.
fn code_of(status: ExitStatus) -> ExitCode {
    if was_asked(status) {
        return ExitCode::SUCCESS;
    }
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
}

struct Supervisor {
    state: Arc<Mutex<State>>,
    socket: PathBuf,
    /// The controller that it starts, if there are two.
    controller: Option<Controller>,
    /// The path of this program at its start: it may contain another version now.
    program: PathBuf,
}

impl Supervisor {
    fn start(controller: Option<Controller>, holds: &Holds) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let directory = user_directory();
        private::make_directory(&directory)?;
        let name = controller.map_or_else(String::new, |it| format!("-{}", it.name()));
        let socket = directory.join(format!("supervisor-{}{name}.socket", std::process::id()));
        // A killed process with the same number may have left it.
        let _ = std::fs::remove_file(&socket);
        let bound = UnixDatagram::bind(&socket)?;
        bound.set_read_timeout(Some(LOOK_INTERVAL))?;
        let state = State { own: controller, holds: holds.clone(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let heard = state.clone();
        thread::Builder::new().name("supervised".into()).spawn(move || listen(&bound, &heard))?;
        let (mut signals, asked) = (Signals::new([SIGTERM, SIGINT])?, state.clone());
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|_| asked.lock().stop()))?;
        Ok(Self { state, socket, controller, program })
    }

    /// Returns the name of the process, for the log.
    fn name(&self) -> &'static str {
        self.controller.map_or("the array", Controller::name)
    }

    /// Runs the array repeatedly, until it is not to be restarted.
    fn run(&self) -> io::Result<ExitCode> {
        let mut ends = Vec::new();
        loop {
            if !self.wait_while_held() {
                return Ok(ExitCode::SUCCESS);
            }
            let status = self.run_once()?;
            if self.state.lock().is_held() {
                continue;
            }
            if self.state.lock().is_over(status) {
                return Ok(code_of(status));
            }
            if status.code() == Some(GIVES_WAY.into()) {
                tracing::info!("{} has given up the pool, and is restarted", self.name());
                continue;
            }
            let now = Instant::now();
            ends.retain(|end| now.duration_since(*end) < OFTEN_WITHIN);
            ends.push(now);
            tracing::warn!("{} has ended ({status}), and is restarted", self.name());
            if ends.len() > OFTEN {
                thread::sleep(PAUSE);
            }
            if self.state.lock().is_over(status) {
                return Ok(code_of(status));
            }
        }
    }

    /// Waits while the controller is kept stopped. Returns false if the supervisor is to end
    /// meanwhile.
    fn wait_while_held(&self) -> bool {
        let mut is_first = true;
        loop {
            let mut state = self.state.lock();
            if !state.is_held() {
                return true;
            }
            if state.is_stopping {
                return false;
            }
            state.kept.clear();
            drop(state);
            if std::mem::replace(&mut is_first, false) {
                tracing::info!("{} is kept down until a request to start it", self.name());
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Starts the array, and waits for its end.
    fn run_once(&self) -> io::Result<ExitStatus> {
        let mut child = self.spawn()?;
        let status = self.wait(&mut child)?;
        let mut state = self.state.lock();
        (state.process, state.silence, state.is_told) = (None, None, false);
        if state.is_over(status) {
            state.kept.clear(); // New connections are refused; hosts use the other one.
        }
        Ok(status)
    }

    /// Waits for the end of the array, and ends it if it is stopped.
    fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let process = WaitId::Pid(Pid::from_child(child));
        let seen = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let is_stopped = |how| match waitid(process.clone(), seen | how) {
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(io::Error::from(error)),
            Ok(status) => Ok(status.map(|status| status.stopped())),
        };
        loop {
            match is_stopped(WaitIdOptions::empty())? {
                None => continue,
                Some(false) => return child.wait(),
                Some(true) => {}
            }
            thread::sleep(STOPPED_MAX);
            if is_stopped(WaitIdOptions::NOHANG)? == Some(true) {
                tracing::error!("{} was stopped by a signal, and is killed", self.name());
                self.state.lock().signal(Signal::KILL);
                return child.wait();
            }
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut state = self.state.lock();
        let mut command = self.command();
        let names: Vec<&str> = state.kept.keys().map(String::as_str).collect();
        if !names.is_empty() {
            command.env("LISTEN_FDS", names.len().to_string());
            command.env("LISTEN_FDNAMES", names.join(":"));
        }
        match self.controller {
            Some(_) => command.env(HELD, state.holds.held().map_or("", Controller::name)),
            None => command.env_remove(HELD),
        };
        let mapping = |(child_fd, kept): (i32, &OwnedFd)| {
            Ok(FdMapping { parent_fd: kept.try_clone()?, child_fd })
        };
        let mappings = (FIRST_DESCRIPTOR..).zip(state.kept.values()).map(mapping);
        let mappings = mappings.collect::<io::Result<Vec<_>>>()?;
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        state.process = Some(pidfd_open(pid, PidfdFlags::empty())?);
        if state.is_stopping {
            state.stop();
        }
        Ok(child)
    }

    /// Returns the command of this program with the same arguments, but not supervised.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(std::env::args_os().skip(1).filter(|word| word != "--supervised"))
            .env("NOTIFY_SOCKET", &self.socket)
            .env("WATCHDOG_USEC", SILENCE_MAX.as_micros().to_string())
            .env_remove("WATCHDOG_PID")
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_FDNAMES")
            .args(self.controller.iter().flat_map(|it| ["--controller", it.name()]))
            // An interrupt of the terminal reaches this process, which forwards it, once.
            .process_group(0);
        command
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Receives the messages of the array, and detects its silence. Reports to the supervisor of this
/// process, if there is one, that this process is alive.
fn listen(socket: &UnixDatagram, state: &Mutex<State>) {
    let is_watched = watchdog_limit().is_some();
    let mut looked = Instant::now();
    loop {
        state.lock().obey();
        match receive(socket) {
            Ok((message, descriptors)) => state.lock().hear(&message, descriptors),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Only then have all messages been received.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let passed = std::mem::replace(&mut looked, Instant::now()).elapsed();
                state.lock().pass_time(passed);
                if is_watched && let Err(error) = tell_alive() {
                    tracing::warn!("can't report that the supervisor is alive: {error}");
                }
            }
            Err(error) => {
                tracing::warn!("messages of the array can't be received any more: {error}");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_reported_like_in_a_shell() {
        assert_eq!(code_of(ExitStatus::from_raw(9)), ExitCode::from(137));
        assert_eq!(code_of(ExitStatus::from_raw(2 << 8)), ExitCode::from(2));
    }
}
