//! What hosts saw of their commands.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use libiscsi::{Naa, Status};

use super::history::{Action, Step, Swap, steps};
use super::zone::{Planned, VOLUMES, Values};

/// What all hosts share.
pub struct Field {
    /// The one clock.
    pub clock: Instant,
    /// Values that nobody else writes.
    pub values: Values,
    /// The volumes' names.
    pub names: [Naa; VOLUMES],
}

impl Field {
    /// The time of it, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }
}

/// What one thread saw in a round.
#[derive(Default)]
pub struct Seen {
    /// The steps of all its commands; the numbers of the commands are of this thread.
    pub steps: Vec<Step>,
    /// How many commands.
    pub commands: usize,
    /// COMPARE AND WRITE that ended GOOD, and with MISCOMPARE.
    pub compared: (usize, usize),
    /// Commands that were aborted before they were answered.
    pub aborted: usize,
}

impl Seen {
    /// Adds what a command did between two times, or may have done.
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

    /// Adds what another thread saw.
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

/// What a command did that was answered.
pub fn read_end(planned: &Planned, status: &Status, bytes: &[u8]) -> Result<Action> {
    match (status, &planned.action) {
        (Status::Good, _) => planned.done(bytes),
        (Status::CheckCondition(sense), Action::Compare { .. })
            if (sense.key, sense.asc_ascq) == (0x0e, 0x1d00) =>
        {
            let place = information(&sense.raw).context("MISCOMPARE without a place")?;
            Ok(planned.ended(Swap::Miscompare(place as usize)))
        }
        (status, action) => bail!("{action:x?} ended with {status}"),
    }
}

/// The INFORMATION field of fixed format sense data (SPC-4, 4.5.3). libiscsi leaves the two bytes
/// of iSCSI's sense length before it.
pub fn information(raw: &[u8]) -> Option<u32> {
    let sense = if raw.first() == Some(&0) { raw.get(2..)? } else { raw };
    let valid = sense.first()? & 0x80 != 0;
    let field: [u8; 4] = sense.get(3..7)?.try_into().ok()?;
    valid.then(|| u32::from_be_bytes(field))
}
