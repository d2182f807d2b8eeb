//! Processes of this machine, from `/proc`.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Returns whether a process has ended, even if it is still a zombie.
pub fn has_ended(pid: u32) -> bool {
    state(Path::new("/proc").join(pid.to_string())).is_none_or(|(state, _)| state == 'Z')
}

/// Returns the state and the parent of the process or thread with this directory.
pub fn state(directory: impl AsRef<Path>) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(directory.as_ref().join("stat")).ok()?;
    // After its name, which may contain anything.
    let mut words = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Returns the running children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let (state, of) = state(entry.path())?;
        (of == parent && state != 'Z').then_some(pid)
    };
    entries.filter_map(child).collect()
}

/// Kills a process and those that it has started: a killed supervisor leaves them.
pub fn end(mut process: Child) {
    let children = children(process.id());
    // Any of them may have ended meanwhile; there is nothing more to do about it.
    let _ = process.kill();
    let _ = process.wait();
    if !children.is_empty() {
        let pids = children.iter().map(u32::to_string);
        let _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
    }
}

/// A process that is killed when this is dropped.
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the peak memory of a process, in KiB.
pub fn peak_kib(pid: impl Into<u64>) -> Option<u64> {
    kib(pid, "status", "VmHWM:")
}

/// Returns a field, in KiB, of a file of a process in `/proc`.
pub fn kib(pid: impl Into<u64>, file: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/{file}", pid.into())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the command line of a process; empty once it has ended.
pub fn words(pid: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        // The kernel lets the parent continue before the new program has its arguments.
        while words(child.id()).len() < 2 {
            assert!(!has_ended(child.id()));
            std::thread::yield_now();
        }
        assert_eq!(words(child.id())[..2], ["sleep", "60"]);
        assert!(!has_ended(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_ended(child.id()) && words(child.id()).len() <= 1);
    }
}
