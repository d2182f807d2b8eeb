//! The results of a run.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use crate::faults::Counts;
use crate::schedule::Kind;

/// What was done.
#[derive(Default)]
pub struct Summary {
    /// The number of each fault.
    pub faults: BTreeMap<Kind, u64>,
    /// Rounds that ended with all devices in.
    pub rounds: u64,
    /// Faults, kills and flaps that were skipped because a healthy device was not in.
    pub left_out: u64,
    /// How often a device to which nothing was done was out in a round.
    pub bystanders: u64,
    /// How often that was one more than the array tolerates.
    pub three_out: u64,
    /// How often the array was killed, and how often all devices lost power as well.
    pub kills: u64,
    pub power_losses: u64,
    /// The counts of the devices.
    pub devices: Counts,
    /// The longest time until all devices were in again.
    pub return_max: Duration,
    /// Acknowledged operations of hosts, and reads compared meanwhile.
    pub acknowledged: u64,
    pub reads: u64,
    /// Bytes compared at the end, and bytes read by the last scrub.
    pub verified_bytes: u64,
    pub scrubbed_bytes: u64,
    /// What the first scrub repaired; 0 unless devices lied.
    pub repaired: u64,
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> =
            self.faults.iter().map(|(kind, count)| format!("{count} x {kind:?}")).collect();
        writeln!(f, "{} rounds; faults: {}", self.rounds, faults.join(", "))?;
        writeln!(f, "kill -9: {}, {} of them with a power failure", self.kills, self.power_losses)?;
        writeln!(f, "devices: {:?}", self.devices)?;
        writeln!(f, "all devices back in after at most {:.1} s", self.return_max.as_secs_f64())?;
        writeln!(f, "hosts: {} operations, {} reads compared", self.acknowledged, self.reads)?;
        let (verified, scrubbed) = (self.verified_bytes, self.scrubbed_bytes);
        writeln!(f, "{verified} bytes verified, 0 lost; {scrubbed} bytes scrubbed, nothing found")?;
        self.write_repairs(f)?;
        self.write_machine(f)
    }
}

impl Summary {
    fn write_repairs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repaired {
            0 => Ok(()),
            count => writeln!(f, "devices lied: the scrub before that repaired {count} places"),
        }
    }

    /// Writes what the machine was too slow for.
    fn write_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bystanders, left_out) = (self.bystanders, self.left_out);
        write!(f, "machine too slow: {bystanders} times a healthy device was late, ")?;
        write!(f, "{left_out} times a fault was skipped because of that, ")?;
        match self.three_out {
            0 => write!(f, "never were three devices out at once"),
            count => write!(
                f,
                "and {count} times three devices were out at once: errors that hosts got then are \
                 ignored. All acknowledged writes were present"
            ),
        }
    }
}
