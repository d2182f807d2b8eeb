//! Runs a program that may hang, or print too much, in bounded time and memory.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Far more than any report, in bytes.
pub(super) const OUTPUT_MAX: usize = 1 << 20;
/// Killed programs that have not ended because they wait for a device. With this many of them no
/// more are started.
const STUCK_MAX: usize = 4;
/// How long a killed program may take to end, and the interval for checking that.
const END_WAIT: Duration = Duration::from_secs(1);
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The reason why a program returned nothing usable.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("it did not end within {0:?}")]
    TooLong(Duration),
    #[error("it printed more than {OUTPUT_MAX} bytes")]
    TooMuch,
    #[error("{STUCK_MAX} others that were killed have not ended")]
    Stuck,
    #[error("the array ends")]
    Stopped,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs programs one after the other.
#[derive(Default)]
pub(super) struct Runner {
    stuck: Vec<Child>,
}

impl Runner {
    /// Returns the output of a program, which must end within `limit`, and before `stopped` returns
    /// true. Otherwise it is killed by its process id, whatever signals it ignores.
    pub(super) fn run(
        &mut self,
        program: &Path,
        arguments: &[&OsStr],
        limit: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, RunError> {
        self.stuck.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.stuck.len() >= STUCK_MAX {
            return Err(RunError::Stuck);
        }
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let until = Instant::now() + limit;
        let may_go_on = || match stopped() {
            true => Err(RunError::Stopped),
            false if Instant::now() >= until => Err(RunError::TooLong(limit)),
            false => Ok(()),
        };
        let said = match child.stdout.take() {
            Some(output) => read_all(output, may_go_on),
            None => Ok(Vec::new()),
        };
        let ended = said.and_then(|said| wait(&mut child, may_go_on).map(|()| said));
        if ended.is_err() {
            self.end(child);
        }
        ended
    }

    fn end(&mut self, mut child: Child) {
        // One that has ended by itself can't be killed, and need not be.
        let _ = child.kill();
        let start = Instant::now();
        let may_go_on = || match start.elapsed() < END_WAIT {
            true => Ok(()),
            false => Err(RunError::TooLong(END_WAIT)),
        };
        if wait(&mut child, may_go_on).is_err() {
            self.stuck.push(child);
        }
    }
}

/// Reads to the end of the output, which any process that has inherited it may delay.
fn read_all(
    mut output: ChildStdout,
    may_go_on: impl Fn() -> Result<(), RunError>,
) -> Result<Vec<u8>, RunError> {
    let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let (mut said, mut chunk) = (Vec::new(), [0; 16 << 10]);
    loop {
        may_go_on()?;
        let mut descriptors = [PollFd::new(&output, PollFlags::IN)];
        match poll(&mut descriptors, Some(&pause)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(RunError::Io(error.into())),
        }
        match output.read(&mut chunk)? {
            0 => return Ok(said),
            count if said.len() + count > OUTPUT_MAX => return Err(RunError::TooMuch),
            count => said.extend_from_slice(&chunk[..count]),
        }
    }
}

fn wait(child: &mut Child, may_go_on: impl Fn() -> Result<(), RunError>) -> Result<(), RunError> {
    while child.try_wait()?.is_none() {
        may_go_on()?;
        thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Result<Vec<u8>, RunError>, Duration) {
        let start = Instant::now();
        let arguments = [OsStr::new("-c"), OsStr::new(script)];
        let said = Runner::default().run(Path::new("/bin/sh"), &arguments, limit, &|| false);
        (said, start.elapsed())
    }

    #[test]
    fn the_output_of_a_program_is_returned() {
        let limit = Duration::from_secs(20);
        assert_eq!(shell("echo one; exit 4", limit).0.unwrap(), b"one\n");
        // More than a pipe can hold.
        let long = shell("head -c 1000000 /dev/zero", limit).0.unwrap();
        assert_eq!(long.len(), 1_000_000);
        let missing = Runner::default().run(Path::new("/none"), &[], limit, &|| false);
        assert!(
            matches!(missing, Err(RunError::Io(error)) if error.kind() == io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn a_program_that_hangs_and_ignores_signals_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let pid_file = directory.path().join("pid");
        let limit = Duration::from_millis(300);
        let script =
            format!("trap '' TERM INT HUP; echo $$ >{}; while :; do :; done", pid_file.display());
        let (said, took) = shell(&script, limit);
        assert!(matches!(said, Err(RunError::TooLong(_))), "{said:?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        let pid = std::fs::read_to_string(pid_file).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "it was killed and waited for");
    }

    #[test]
    fn a_program_with_endless_output_is_bounded() {
        // Another process keeps the output open.
        let (said, took) = shell("sleep 3 & exit 0", Duration::from_millis(300));
        assert!(matches!(said, Err(RunError::TooLong(_))), "{said:?}");
        assert!(took < Duration::from_millis(2500), "{took:?}");
        let (said, _) = shell("exec cat /dev/zero", Duration::from_secs(20));
        assert!(matches!(said, Err(RunError::TooMuch)));
        // It prints everything, and does not end.
        let (said, _) = shell("exec >&-; exec sleep 60", Duration::from_millis(300));
        assert!(matches!(said, Err(RunError::TooLong(_))));
    }

    #[test]
    fn a_program_is_killed_when_the_array_ends() {
        let arguments = [OsStr::new("60")];
        let start = Instant::now();
        let stopped = || start.elapsed() > Duration::from_millis(200);
        let limit = Duration::from_secs(60);
        let said = Runner::default().run(Path::new("/bin/sleep"), &arguments, limit, &stopped);
        assert!(matches!(said, Err(RunError::Stopped)));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
