//! CPU times of processes.

use std::time::Duration;

/// Returns the CPU time that a process (all its threads) has used, user and system, from `/proc`.
/// The resolution is a clock tick, 10 ms. None if there is no such process.
pub fn cpu_time(pid: &str) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&stat)
}

/// Returns the lab's own, by the kernel's precise clock: much of what is measured takes less than a
/// tick.
pub fn own_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// utime and stime are the 12th and 13th fields after the command's closing parenthesis. Linux
/// reports them in ticks of 1/100 s on every architecture that Debian supports.
fn parse_stat(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(user.saturating_add(system).saturating_mul(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_after_a_name_with_parentheses() {
        let stat = "1 (a) b) S 1 1 1 0 -1 4194560 5 6 7 8 150 50 3 4 20 0 1 0 9";
        assert_eq!(parse_stat(stat), Some(Duration::from_secs(2)));
        assert_eq!(parse_stat("nothing"), None);
        assert!(cpu_time("self").is_some());
        assert!(cpu_time("none").is_none());
    }

    #[test]
    fn work_of_less_than_a_tick_is_seen() {
        let before = own_cpu_time();
        let sum = (0..20_000u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        let took = own_cpu_time() - before;
        assert!(took > Duration::ZERO, "{sum}");
    }
}
