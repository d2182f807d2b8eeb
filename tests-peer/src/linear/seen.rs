//! What hosts saw of their commands.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use libiscsi::{Naa, Status};

use super::history::{Action, Step, Swap, steps};
use super::zone::{Planned, VOLUMES, Values};

/// The state that all hosts share.
pub struct Field {
    /// The only clock.
    pub clock: Instant,
    /// Values that no other session writes.
    pub values: Values,
    /// The volumes' names.
    pub names: [Naa; VOLUMES],
}

impl Field {
    /// Returns its time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

/// The observations of one thread in a round.
#[derive(Default)]
pub struct Seen {
    /// The steps of all its commands; the numbers of the commands are per thread.
    pub steps: Vec<Step>,
    /// The number of commands.
    pub commands: usize,
    /// The number of COMPARE AND WRITEs with GOOD, and with MISCOMPARE.
    pub compared: (usize, usize),
    /// The number of commands aborted before their response.
    pub aborted: usize,
}

impl Seen {
    /// Adds what a command did, or may have done, between two times.
    pub fn add(&mut self, action: Action, times: (u64, u64), certain: bool) {
        match &action {
            Action::Compare { swap: Swap::Done, .. } => self.compared.0 += 1,
            Action::Compare { swap: Swap::Miscompare(_), .. } => self.compared.1 += 1,
            _ => {}
        }
        if certain || !matches!(action, Action::Read { .. }) {
            self.steps.extend(steps(action, times, certain, self.commands));
        }
        self.commands += 1;
    }

    /// Adds the observations of another thread.
    pub fn join(&mut self, other: Seen) {
        for mut step in other.steps {
            step.command += self.commands;
            self.steps.push(step);
        }
        self.commands += other.commands;
        self.compared.0 += other.compared.0;
        self.compared.1 += other.compared.1;
        self.aborted += other.aborted;
    }
}

/// Returns what a command with a response did.
pub fn read_end(planned: &Planned, status: &Status, bytes: &[u8]) -> Result<Action> {
    match (status, &planned.action) {
        (Status::Good, _) => planned.done(bytes),
        (Status::CheckCondition(sense), Action::Compare { .. })
            if (sense.key, sense.asc_ascq) == (0x0e, 0x1d00) =>
        {
            let place = information(&sense.raw).context("MISCOMPARE without an offset")?;
            Ok(planned.ended(Swap::Miscompare(place as usize)))
        }
        (status, action) => bail!("{action:x?} ended with {status}"),
    }
}

/// Returns the INFORMATION field of fixed format sense data (SPC-4, 4.5.3). libiscsi leaves the two
/// bytes of iSCSI's sense length before it.
pub fn information(raw: &[u8]) -> Option<u32> {
    let sense = if raw.first() == Some(&0) { raw.get(2..)? } else { raw };
    let valid = sense.first()? & 0x80 != 0;
    let field: [u8; 4] = sense.get(3..7)?.try_into().ok()?;
    valid.then(|| u32::from_be_bytes(field))
}
