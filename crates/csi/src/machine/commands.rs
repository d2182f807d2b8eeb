//! Runs programs of the machine, with lists of arguments, never through a shell.

use std::ffi::OsStr;
use std::process::Output;

use super::{Fault, System};

/// Runs a program, and returns its output and status, whatever the status is.
pub fn output<A: AsRef<OsStr>>(
    system: &dyn System,
    program: &str,
    arguments: &[A],
) -> Result<Output, Fault> {
    let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let done = system.command(program, &arguments);
    done.map_err(|error| Fault::Failed(format!("can't run {program}: {error}")))
}

/// Runs a program that must succeed, or end with one of these codes.
pub fn run<A: AsRef<OsStr>>(
    system: &dyn System,
    program: &str,
    arguments: &[A],
    also: &[i32],
) -> Result<(), Fault> {
    let done = output(system, program, arguments)?;
    let is_fine = done.status.success() || done.status.code().is_some_and(|c| also.contains(&c));
    match is_fine {
        true => Ok(()),
        false => Err(failed(program, &done)),
    }
}

/// Returns the fault of a failed program, with its message.
pub fn failed(program: &str, done: &Output) -> Fault {
    let text = String::from_utf8_lossy(&done.stderr);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Fault::Failed(format!("{program} failed ({}): {text}", done.status))
}
