//! The machine of the lab, as the kernel reports it.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A machine: what a reader needs to know to judge a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model, or the architecture if the kernel reports no model.
    pub cpu: String,
    /// The number of processors that the kernel sees.
    pub cores: u32,
    /// All of its memory.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution's name and version.
    pub os: String,
}

impl Machine {
    /// Returns this machine. What can't be determined is "unknown", or 0.
    pub fn this() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        Self {
            cpu: cpu_model(&cpuinfo).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: cores(&cpuinfo),
            memory_bytes: memory_bytes(&read("/proc/meminfo")).unwrap_or(0),
            kernel: known(read("/proc/sys/kernel/osrelease").trim()),
            os: known(&os_name(&read("/etc/os-release")).unwrap_or_default()),
        }
    }
}

/// Returns a file's text; empty if it can't be read: the report then says "unknown".
fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default()
}

fn known(text: &str) -> String {
    if text.is_empty() { String::from("unknown") } else { text.to_owned() }
}

/// Returns the first processor's `model name`. ARM's kernels report none.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn cores(cpuinfo: &str) -> u32 {
    let is_processor =
        |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.trim_end() == "processor");
    cpuinfo.lines().filter(is_processor).count() as u32
}

/// `MemTotal`, which is in KiB.
fn memory_bytes(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// `PRETTY_NAME`, without its quotes.
fn os_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Machine, cores, cpu_model, memory_bytes, os_name};

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: Some  Processor @ 2.0GHz\nflags\t: a b\n\n\
                           processor\t: 1\nmodel name\t: Some  Processor @ 2.0GHz\n";

    #[test]
    fn the_kernels_files_are_parsed() {
        assert_eq!(cpu_model(CPUINFO).as_deref(), Some("Some Processor @ 2.0GHz"));
        assert_eq!(cores(CPUINFO), 2);
        assert_eq!(memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        let release = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
        assert_eq!(os_name(release).as_deref(), Some("Debian GNU/Linux 12"));
    }

    #[test]
    fn missing_values_are_unknown() {
        assert_eq!(cpu_model("processor\t: 0\n"), None);
        assert_eq!(cores(""), 0);
        assert_eq!(memory_bytes("MemTotal: much\n"), None);
        assert_eq!(os_name("ID=debian\n"), None);
    }

    #[test]
    fn this_machine_has_processors_memory_and_a_kernel() {
        let this = Machine::this();
        assert!(this.cores > 0, "{this:?}");
        assert!(this.memory_bytes > 1 << 20, "{this:?}");
        assert!(!this.cpu.is_empty() && this.kernel != "unknown", "{this:?}");
    }
}
