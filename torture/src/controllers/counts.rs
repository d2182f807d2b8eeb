//! Statistics of a run of two controllers, including how long hosts waited for a response.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::schedule::Kind;

use super::hosts::Told;
use super::schedule::Fault;
use super::strikes::Done;

/// The places of a host's path before the fault.
pub const PATHS: [&str; 3] = ["at the owner", "at the other controller", "with both paths"];

/// The statistics.
#[derive(Default)]
pub struct Counts {
    faults: BTreeMap<Fault, u64>,
    /// The longest time without a response of each host in each round, in nanoseconds, by fault
    /// and by the place of the host's path.
    gaps: BTreeMap<Fault, [Vec<u64>; 3]>,
    pub rounds: u64,
    pub undecided: u64,
    pub commands: u64,
    pub locks: (u64, u64),
    bytes: u64,
    attentions: BTreeMap<u16, u64>,
    repeated: u64,
    repeated_locks: u64,
    logins: u64,
    refused: u64,
    /// How often each controller was ended by a signal other than SIGTERM.
    ends: [u64; 2],
    /// How often that was the owner.
    pub owner_kills: u64,
    missed: u64,
    no_checkpoint: u64,
    cut: u64,
    /// The faults of devices at the same time.
    hurt: BTreeMap<Kind, u64>,
    /// The results of the load: acknowledged operations, and bytes compared at the end.
    pub load: (u64, u64),
}

impl Counts {
    /// Counts a fault.
    pub fn add_done(&mut self, fault: Fault, done: &Done) {
        *self.faults.entry(fault).or_default() += 1;
        for (sum, ends) in self.ends.iter_mut().zip(done.ends) {
            *sum += u64::from(ends);
        }
        self.owner_kills += done.owner_kills;
        self.missed += done.missed;
        self.no_checkpoint += u64::from(done.no_checkpoint);
        self.cut += done.cut;
        for kind in &done.hurt {
            *self.hurt.entry(*kind).or_default() += 1;
        }
    }

    /// Adds the longest time that a host waited for a response, by the place of its path in
    /// [`PATHS`].
    pub fn add_gap(&mut self, fault: Fault, path: usize, nanoseconds: u64) {
        self.gaps.entry(fault).or_default()[path].push(nanoseconds);
    }

    /// Adds the observations of a host.
    pub fn add_told(&mut self, told: &Told) {
        self.commands += told.seen.commands as u64;
        self.locks.0 += told.seen.compared.0 as u64;
        self.locks.1 += told.seen.compared.1 as u64;
        self.bytes += told.bytes;
        for (code, count) in &told.attentions {
            *self.attentions.entry(*code).or_default() += count;
        }
        self.repeated += told.repeated;
        self.repeated_locks += told.repeated_locks;
        self.logins += told.logins;
        self.refused += told.refused;
    }

    /// Adds compared bytes.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

/// Returns the percentile `hundredths`, in milliseconds.
fn quantile(sorted: &[u64], hundredths: usize) -> u64 {
    let rank = (sorted.len() * hundredths).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0, |nanoseconds| nanoseconds.div_ceil(1_000_000))
}

impl Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "faults:")?;
        for (fault, count) in &self.faults {
            writeln!(f, "{count:6} x {fault}")?;
        }
        let all: u64 = self.faults.values().sum();
        let [first, second] = self.ends;
        writeln!(f, "{all:6} in all; the owner was killed {} times; ct0 {first}, ct1 {second}", {
            self.owner_kills
        })?;
        let (missed, no_checkpoint, cut) = (self.missed, self.no_checkpoint, self.cut);
        writeln!(
            f,
            "{missed} signals came too late or had no effect, {no_checkpoint} checkpoints"
        )?;
        writeln!(f, "were missed; {cut} connections of the link were cut")?;
        if !self.hurt.is_empty() {
            writeln!(f, "devices meanwhile: {:?}", self.hurt)?;
        }
        writeln!(f, "longest times without a response in ms, p50/p99/max of (hosts x faults):")?;
        for (fault, paths) in &self.gaps {
            write!(f, "  {fault}:")?;
            for (name, gaps) in PATHS.iter().zip(paths) {
                let mut sorted = gaps.clone();
                sorted.sort_unstable();
                let [p50, p99, max] = [50, 99, 100].map(|part| quantile(&sorted, part));
                write!(f, " {name} {p50}/{p99}/{max} ({});", sorted.len())?;
            }
            writeln!(f)?;
        }
        self.write_hosts(f)
    }
}

impl Counts {
    fn write_hosts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (won, lost) = self.locks;
        writeln!(
            f,
            "hosts: {} commands, {} repeated; {won} locks won, {lost} lost, {} of them",
            { self.commands },
            self.repeated,
            self.repeated_locks
        )?;
        writeln!(f, "repeated and reported as won; {} logins, {} refused", self.logins, {
            self.refused
        })?;
        let attentions: Vec<String> =
            self.attentions.iter().map(|(code, count)| format!("{count} x {code:04x}h")).collect();
        writeln!(f, "commands with errors: 0; unit attentions: {}", attentions.join(", "))?;
        writeln!(f, "load: {} operations, {} bytes verified at the end", self.load.0, self.load.1)?;
        let judged = self.rounds - self.undecided;
        write!(
            f,
            "{} bytes verified, 0 lost; {judged} of {} histories judged, all linearizable",
            { self.bytes },
            self.rounds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_observed_values() {
        let sorted: Vec<u64> = (1..=100).map(|ms| ms * 1_000_000).collect();
        assert_eq!([50, 99, 100].map(|part| quantile(&sorted, part)), [50, 99, 100]);
        assert_eq!(quantile(&[7_000_001], 50), 8);
        assert_eq!(quantile(&[], 99), 0);
    }
}
