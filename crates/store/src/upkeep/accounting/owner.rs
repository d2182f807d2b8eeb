//! Owners of stored data, and how much each has.

use format::PLACE_UNIT_BYTES;

/// The owner of something stored: the volumes and snapshots that refer to it, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// One of them, by its index.
    One { index: u32, snapshot: bool },
    /// Several snapshots, and no volume.
    Snapshots,
    /// A volume and something else.
    Shared,
}

impl Owner {
    /// Returns the owner of what both refer to.
    pub(super) fn join(self, other: Self) -> Self {
        if self == other {
            self
        } else if self.is_of_snapshots() && other.is_of_snapshots() {
            Self::Snapshots
        } else {
            Self::Shared
        }
    }

    fn is_of_snapshots(self) -> bool {
        matches!(self, Self::Snapshots | Self::One { snapshot: true, .. })
    }
}

/// How much is stored for whom, in units of 64 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// For each volume and snapshot, by its index: what nothing else refers to.
    pub(super) unique_units: Vec<u64>,
    /// Its share of everything that it refers to.
    pub(super) share_units: Vec<f64>,
    /// What only snapshots refer to, one or several.
    pub(super) snapshots_units: u64,
    /// What a volume refers to, and something else.
    pub(super) shared_units: u64,
    /// What one volume refers to, and nothing else.
    pub(super) volumes_units: u64,
}

impl Tally {
    pub(super) fn new(owners: usize) -> Self {
        let (unique_units, share_units) = (vec![0; owners], vec![0.0; owners]);
        Self { unique_units, share_units, ..Self::default() }
    }

    /// Adds a chunk.
    pub(super) fn add(&mut self, owner: Owner, units: u32) {
        let units = u64::from(units);
        if let Owner::One { index, .. } = owner {
            self.unique_units[index as usize] += units;
        }
        *match owner {
            Owner::One { snapshot: false, .. } => &mut self.volumes_units,
            Owner::One { .. } | Owner::Snapshots => &mut self.snapshots_units,
            Owner::Shared => &mut self.shared_units,
        } += units;
    }

    /// Adds the result of a further round.
    pub(super) fn add_all(&mut self, round: &Self) {
        let unique = self.unique_units.iter_mut().zip(&round.unique_units);
        unique.for_each(|(sum, more)| *sum += more);
        let shares = self.share_units.iter_mut().zip(&round.share_units);
        shares.for_each(|(sum, more)| *sum += more);
        self.snapshots_units += round.snapshots_units;
        self.shared_units += round.shared_units;
        self.volumes_units += round.volumes_units;
    }

    /// Returns everything that has a reference.
    pub(super) fn named_units(&self) -> u64 {
        self.volumes_units + self.snapshots_units + self.shared_units
    }
}

pub(super) fn bytes(units: u64) -> u64 {
    units * PLACE_UNIT_BYTES
}
