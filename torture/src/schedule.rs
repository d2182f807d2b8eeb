//! What happens to which devices, and when; reproducible from a seed.

use std::time::Duration;

use tests_peer::random::Random;

use crate::faults::{Faults, Refusal};

/// The number of devices.
pub const DEVICES: usize = 6;

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// It is gone for a while, and returns without unflushed data.
    TornOut,
    /// It is gone for a while, and returns in an earlier state.
    OldData,
    /// It is gone and back several times, also while it catches up.
    Flaps,
    /// It is slow.
    Late,
    /// Some or all reads fail.
    ReadErrors,
    /// Some or all writes fail.
    WriteErrors,
    /// Some or all flushes fail.
    FlushErrors,
    /// Writes find no space.
    Full,
    /// Reads have wrong bits.
    Lies,
    /// No call ends.
    Hangs,
}

/// The faults used by default.
pub const BY_DEFAULT: [Kind; 9] = [
    Kind::TornOut,
    Kind::OldData,
    Kind::Flaps,
    Kind::Late,
    Kind::ReadErrors,
    Kind::WriteErrors,
    Kind::FlushErrors,
    Kind::Full,
    Kind::Lies,
];

/// A device, and its fault in a round.
#[derive(Clone, Debug)]
pub struct Victim {
    /// Its number, from 0.
    pub device: usize,
    /// The kind of fault.
    pub kind: Kind,
    /// The delay after the previous fault.
    pub after: Duration,
    /// The faults meanwhile.
    pub faults: Faults,
    /// How long it is back and gone each time it flaps.
    pub flaps: Vec<[Duration; 2]>,
}

/// A kill -9 of the array.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// The delay after the last fault has begun.
    pub after: Duration,
    /// Whether all devices also lose power.
    pub loses_power: bool,
}

/// What happens before recovery.
#[derive(Clone, Debug)]
pub struct Round {
    /// One or two devices.
    pub victims: Vec<Victim>,
    /// How long their faults last, without a kill.
    pub lasts: Duration,
    /// Whether the array is killed meanwhile.
    pub kill: Option<Kill>,
}

impl Round {
    /// Draws the next round, with these kinds of faults.
    pub fn draw(random: &mut Random, kinds: &[Kind]) -> Self {
        let first = random.below(DEVICES as u64) as usize;
        let second = (first + 1 + random.below(DEVICES as u64 - 1) as usize) % DEVICES;
        let count = if random.below(3) == 0 { 1 } else { 2 };
        let victims = [first, second].into_iter().take(count);
        let victims = victims.map(|device| Victim::draw(random, device, kinds)).collect();
        let lasts = millis(random, 200, 2_000);
        let kill = (random.below(3) == 0)
            .then(|| Kill { after: millis(random, 50, 1_000), loses_power: random.below(2) == 0 });
        Self { victims, lasts, kill }
    }
}

impl Victim {
    fn draw(random: &mut Random, device: usize, kinds: &[Kind]) -> Self {
        let kind = kinds[random.below(kinds.len() as u64) as usize];
        let flaps = match kind {
            Kind::Flaps => 1 + random.below(3),
            _ => 0,
        };
        Self {
            device,
            kind,
            after: millis(random, 0, 500),
            faults: kind.faults(random),
            flaps: (0..flaps).map(|_| [millis(random, 10, 400), millis(random, 50, 400)]).collect(),
        }
    }
}

impl Victim {
    /// Describes the faults in a few words.
    pub fn faults_text(&self) -> String {
        let some = |refusal: Refusal| format!("{:?}, {refusal:?}", self.kind);
        match self.kind {
            Kind::Late => format!("{:?} by {} ms", self.kind, self.faults.delay.as_millis()),
            Kind::ReadErrors => some(self.faults.reads),
            Kind::WriteErrors => some(self.faults.writes),
            Kind::FlushErrors => some(self.faults.flushes),
            kind => format!("{kind:?}"),
        }
    }
}

impl Kind {
    /// Returns whether the fault makes a device misbehave, not just slow.
    pub fn fails(self) -> bool {
        !matches!(self, Self::Late | Self::Hangs)
    }

    /// Returns the device faults of this kind.
    fn faults(self, random: &mut Random) -> Faults {
        let well = Faults::default();
        match self {
            Self::TornOut | Self::OldData | Self::Flaps => Faults { is_gone: true, ..well },
            Self::Late => Faults { delay: millis(random, 20, 1_200), ..well },
            Self::ReadErrors => Faults { reads: some_or_all(random), ..well },
            Self::WriteErrors => Faults { writes: some_or_all(random), ..well },
            Self::FlushErrors => Faults { flushes: some_or_all(random), ..well },
            Self::Full => Faults { is_full: true, ..well },
            Self::Lies => Faults { lies: true, ..well },
            Self::Hangs => Faults { hangs: true, ..well },
        }
    }
}

fn some_or_all(random: &mut Random) -> Refusal {
    match random.below(2) {
        0 => Refusal::Always,
        _ => Refusal::Times(1 + random.below(12) as u32),
    }
}

fn millis(random: &mut Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + random.below(to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(seed: u64) -> Vec<Round> {
        let mut random = Random::new(seed);
        (0..300).map(|_| Round::draw(&mut random, &BY_DEFAULT)).collect()
    }

    #[test]
    fn a_seed_decides_what_happens() {
        let text = |seed| format!("{:?}", rounds(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn at_most_two_devices_are_hurt_at_once_and_every_fault_occurs() {
        let rounds = rounds(1);
        for round in &rounds {
            let devices: Vec<usize> = round.victims.iter().map(|victim| victim.device).collect();
            assert!(matches!(devices[..], [_] | [_, _]), "{round:?}");
            assert!(devices.iter().all(|device| *device < DEVICES));
            assert!(devices.len() == 1 || devices[0] != devices[1], "{round:?}");
        }
        let has = |kind| rounds.iter().flat_map(|round| &round.victims).any(|it| it.kind == kind);
        assert!(BY_DEFAULT.into_iter().all(has));
        assert!(!has(Kind::Hangs));
        assert!(rounds.iter().filter_map(|round| round.kill).any(|kill| kill.loses_power));
    }
}
