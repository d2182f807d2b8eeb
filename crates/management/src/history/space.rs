//! Samples the space of volumes, from the last accounting pass.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use array::{AccountedVolume, AccountingPass, Array};
use history::space::{SpaceSample, Volumes};
use history::{History, VolumeFigures};
use sys::wall::now_ms;

/// The time between two looks for a new pass.
const INTERVAL: Duration = Duration::from_secs(10);

/// Looks for new passes.
pub(super) struct Spaces {
    array: Arc<Array>,
    next: Duration,
    /// The last pass that was found, and its sample.
    last: Option<(AccountingPass, SpaceSample)>,
}

impl Spaces {
    pub(super) fn new(array: Arc<Array>) -> Self {
        Self { array, next: Duration::ZERO, last: None }
    }

    /// Records the figures of the last pass, if it is time to look.
    ///
    /// # Errors
    /// Those of [`History::record_space`].
    pub(super) fn look(&mut self, history: &History, now: Duration) -> io::Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + INTERVAL;
        self.sample(now_ms()).map_or(Ok(()), |sample| history.record_space(sample))
    }

    /// Returns the figures of the last pass, with the latest time as of which they are known to be
    /// exact; `None` before the first pass.
    fn sample(&mut self, now_ms: u64) -> Option<SpaceSample> {
        let pass = self.array.accounting_pass()?;
        let (time_ms, volumes) = match self.last.take() {
            Some((last, sample)) if !pass.differs_from(&last) => (sample.time_ms, sample.volumes),
            _ => (pass.as_of_s * 1000, Arc::new(volumes_of(&self.array, &pass))),
        };
        // If nothing has changed since the pass, its figures are those of now.
        let time_ms = if pass.is_current { now_ms } else { time_ms };
        let sample = SpaceSample { time_ms, volumes };
        self.last = Some((pass, sample.clone()));
        Some(sample)
    }
}

fn volumes_of(array: &Array, pass: &AccountingPass) -> Volumes {
    let figures = |volume: AccountedVolume| VolumeFigures {
        size_bytes: volume.space.size_bytes,
        mapped_bytes: volume.space.mapped_bytes,
        unique_bytes: volume.space.unique_bytes,
        share_bytes: volume.space.share_bytes,
        snapshots_bytes: volume.snapshots_bytes,
    };
    let volumes = array.accounted_volumes(pass).into_iter();
    volumes.map(|(id, volume)| (id.0, figures(volume))).collect()
}

#[cfg(test)]
mod tests {
    use array::{NewSnapshots, NewVolume, Reduction, SnapshotSource, VolumeName};
    use block::{LogicalBlockSize, VolumeLimits};
    use store::SpacePass;

    use super::*;

    #[test]
    fn figures_are_of_the_pass_until_something_changes() {
        let directory = tempfile::tempdir().unwrap();
        let disk = sys::FileDisk::create(&directory.path().join("pool"), 512 << 20).unwrap();
        store::Store::create(&disk, &[7; 64]).unwrap();
        let options = store::OpenOptions::default();
        let store = Arc::new(store::Store::open(Arc::new(disk), options).unwrap());
        let array = Arc::new(Array::open(store.clone(), false).unwrap());
        let create = |name: &str| {
            array.create_volume(NewVolume {
                name: VolumeName::new(name).unwrap(),
                size_bytes: 1 << 20,
                logical_block: LogicalBlockSize::default(),
                reduction: Reduction::default(),
                limits: VolumeLimits::default(),
                created_ms: 1,
            })
        };
        let account = |now_s| {
            assert_eq!(store.account_space(now_s, &mut || true).unwrap(), SpacePass::Complete);
        };
        let mut spaces = Spaces::new(array.clone());
        let mut look = |now_ms| {
            let found = spaces.sample(now_ms)?;
            let sizes = found.volumes.iter().map(|(_, figures)| figures.size_bytes >> 20);
            Some((found.time_ms, sizes.collect::<Vec<_>>()))
        };
        create("a").unwrap();
        assert_eq!(look(5_000), None);
        account(7);
        assert_eq!(look(8_500), Some((8_500, vec![1])));
        assert_eq!(look(9_500), Some((9_500, vec![1])));
        create("b").unwrap();
        assert_eq!(look(19_500), Some((9_500, vec![1])), "b is not accounted for");
        account(20);
        create("c").unwrap();
        assert_eq!(look(29_500), Some((20_000, vec![1, 1])), "as of the pass");
        // A snapshot is no volume.
        let source = SnapshotSource::Volumes(vec!["a".into()]);
        let new = NewSnapshots { source, suffix: None, apply_retention: false, created_ms: 1 };
        array.create_snapshots(&new).unwrap();
        account(30);
        assert_eq!(look(39_500), Some((39_500, vec![1, 1, 1])));
    }
}
