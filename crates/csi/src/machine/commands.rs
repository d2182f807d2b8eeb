//! Runs programs of the machine: by lists of arguments, never by a shell.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use super::Fault;

/// Runs a program, and returns what it did, however it ended.
pub fn output<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<Output, Fault> {
    let mut command = Command::new(program);
    // What is read from programs is not to depend on the language.
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
    let done = command.output();
    done.map_err(|error| Fault::Failed(format!("can't run {program}: {error}")))
}

/// Runs a program that has to succeed, or to end with one of these codes.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A], also: &[i32]) -> Result<(), Fault> {
    let done = output(program, arguments)?;
    let is_fine = done.status.success() || done.status.code().is_some_and(|c| also.contains(&c));
    match is_fine {
        true => Ok(()),
        false => Err(failed(program, &done)),
    }
}

/// That a program failed, and why it says.
pub fn failed(program: &str, done: &Output) -> Fault {
    let text = String::from_utf8_lossy(&done.stderr);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Fault::Failed(format!("{program} failed ({}): {text}", done.status))
}
