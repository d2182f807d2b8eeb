//! Runs other programs, each with a time limit, and finds ports for them.

use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// A program's output and exit code.
pub struct Finished {
    /// The command line, for messages.
    pub line: String,
    /// Its exit code; 124 if it had to be stopped.
    pub code: i32,
    /// Its output, followed by its errors.
    pub text: String,
}

impl Finished {
    /// Returns the output, if the program ended with 0.
    pub fn good(self) -> Result<String> {
        if self.code != 0 {
            bail!("{} ended with {}:\n{}", self.line, self.code, tail(&self.text, 15));
        }
        Ok(self.text)
    }
}

/// Runs a program for at most `seconds` (coreutils' timeout stops it).
pub fn run(seconds: u32, program: &str, arguments: &[&str]) -> Result<Finished> {
    let line = format!("{program} {}", arguments.join(" "));
    let output = Command::new("timeout")
        .args(["--kill-after=5", &seconds.to_string(), program])
        .args(arguments)
        .output()
        .with_context(|| format!("could not start: {line}"))?;
    Ok(Finished { line, code: exit_code(&output), text: text_of(&output) })
}

/// Returns whether a program is available.
pub fn exists(program: &str) -> bool {
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|directory| directory.join(program).is_file())
}

/// Returns the last `count` lines.
pub fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn exit_code(output: &Output) -> i32 {
    // A program that a signal ended has no exit code.
    output.status.code().unwrap_or(-1)
}

fn text_of(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}
