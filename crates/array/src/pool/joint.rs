//! Sums of the stored data of different volumes.

use store::VolumeSpace;

use super::passes::AccountedVolume;

/// The stored data of several volumes together. Figures are current unless they are those of the
/// last pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumesSpace {
    /// Their sizes.
    pub size_bytes: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// Stored bytes that only one of their snapshots refers to, as far as the last pass covers
    /// them.
    pub snapshots_bytes: u64,
    /// Stored bytes that eradicating all of them, and nothing else, would free. `None` if that is
    /// unknown: the pass does not cover one of them, or they share data, possibly with each other.
    pub unique_bytes: Option<u64>,
    /// Their figures of the last pass, as far as it covers them; `None` before the first pass.
    pub accounted: Option<AccountedSpace>,
}

/// The figures of a pass for several volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountedSpace {
    /// The time of the figures, in seconds since 1970.
    pub as_of_s: u64,
    /// Their sizes at that time.
    pub size_bytes: u64,
    /// Bytes that hosts had written and not unmapped at that time.
    pub mapped_bytes: u64,
    /// Their parts of what is stored: see [`store::VolumeSpace::share_bytes`].
    pub share_bytes: u64,
}

/// A volume's part of a sum.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) size_bytes: u64,
    pub(super) mapped_bytes: u64,
    pub(super) snapshots_bytes: u64,
    pub(super) accounted: Option<VolumeSpace>,
}

/// A sum over different volumes. Sums over disjoint sets of volumes can be merged.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    size_bytes: u64,
    mapped_bytes: u64,
    snapshots_bytes: u64,
    /// How many volumes there are, and how many of them the pass covers.
    count: usize,
    accounted_count: usize,
    /// The sum of the figures of the pass.
    accounted: AccountedSpace,
    unique_bytes: u64,
    /// Whether one of them shares data.
    shares: bool,
}

impl Sum {
    pub(super) fn add(&mut self, part: &Part) {
        let mut sum = Self {
            size_bytes: part.size_bytes,
            mapped_bytes: part.mapped_bytes,
            snapshots_bytes: part.snapshots_bytes,
            count: 1,
            ..Self::default()
        };
        if let Some(space) = part.accounted {
            sum.accounted_count = 1;
            sum.accounted = AccountedSpace {
                as_of_s: 0,
                size_bytes: space.size_bytes,
                mapped_bytes: space.mapped_bytes,
                share_bytes: space.share_bytes,
            };
            sum.unique_bytes = space.unique_bytes;
            sum.shares = space.share_bytes != space.unique_bytes;
        }
        self.merge(&sum);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.size_bytes, other.size_bytes),
            (&mut self.mapped_bytes, other.mapped_bytes),
            (&mut self.snapshots_bytes, other.snapshots_bytes),
            (&mut self.accounted.size_bytes, other.accounted.size_bytes),
            (&mut self.accounted.mapped_bytes, other.accounted.mapped_bytes),
            (&mut self.accounted.share_bytes, other.accounted.share_bytes),
            (&mut self.unique_bytes, other.unique_bytes),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.count += other.count;
        self.accounted_count += other.accounted_count;
        self.shares |= other.shares;
    }

    /// Returns the result; `as_of_s` is the time of the pass, if there was one.
    pub(super) fn space(&self, as_of_s: Option<u64>) -> VolumesSpace {
        // Shared data is part of a volume's share, but not unique to it. If no volume shares data,
        // the unique bytes of all are the sum. If one does, it may be more, by an unknown amount.
        // (Shares are rounded to bytes: 64 bytes that more than 128 volumes share can go
        // unnoticed.)
        let is_known = self.accounted_count == self.count && (self.count < 2 || !self.shares);
        VolumesSpace {
            size_bytes: self.size_bytes,
            mapped_bytes: self.mapped_bytes,
            snapshots_bytes: self.snapshots_bytes,
            unique_bytes: is_known.then_some(self.unique_bytes),
            accounted: as_of_s.map(|as_of_s| AccountedSpace { as_of_s, ..self.accounted }),
        }
    }
}

impl VolumesSpace {
    /// Returns the sum over volumes as of an earlier pass.
    pub fn of_pass(volumes: &[AccountedVolume], as_of_s: u64) -> Self {
        let mut sum = Sum::default();
        for AccountedVolume { space, snapshots_bytes } in volumes {
            sum.add(&Part {
                size_bytes: space.size_bytes,
                mapped_bytes: space.mapped_bytes,
                snapshots_bytes: *snapshots_bytes,
                accounted: Some(*space),
            });
        }
        sum.space(Some(as_of_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(accounted: Option<(u64, u64)>) -> Part {
        let accounted = accounted.map(|(unique_bytes, share_bytes)| VolumeSpace {
            size_bytes: 100,
            mapped_bytes: 50,
            unique_bytes,
            share_bytes,
            ..VolumeSpace::default()
        });
        Part { size_bytes: 200, mapped_bytes: 60, snapshots_bytes: 1, accounted }
    }

    fn sum_of(parts: &[Part]) -> Sum {
        let mut sum = Sum::default();
        parts.iter().for_each(|part| sum.add(part));
        sum
    }

    #[test]
    fn what_is_unique_to_several_is_known_only_if_they_share_nothing() {
        let (alone, sharing) = (part(Some((10, 10))), part(Some((10, 15))));
        for (parts, unique_bytes) in [
            (vec![], Some(0)),
            (vec![sharing], Some(10)),
            (vec![alone, alone], Some(20)),
            (vec![alone, sharing], None),
            (vec![alone, part(None)], None),
            (vec![part(None)], None),
        ] {
            let sum = sum_of(&parts).space(Some(7));
            assert_eq!(sum.unique_bytes, unique_bytes, "{}", parts.len());
            // In parts, the result is the same.
            let (some, others) = parts.split_at(parts.len() / 2);
            let mut merged = sum_of(some);
            merged.merge(&sum_of(others));
            assert_eq!(merged.space(Some(7)), sum, "{}", parts.len());
        }
        let sum = sum_of(&[alone, sharing, part(None)]).space(Some(7));
        assert_eq!((sum.size_bytes, sum.mapped_bytes, sum.snapshots_bytes), (600, 180, 3));
        let accounted =
            AccountedSpace { as_of_s: 7, size_bytes: 200, mapped_bytes: 100, share_bytes: 25 };
        assert_eq!(sum.accounted, Some(accounted));
        assert_eq!(sum_of(&[alone]).space(None).accounted, None);
    }
}
