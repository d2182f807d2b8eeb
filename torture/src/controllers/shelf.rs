//! Six devices below both controllers, of which one or two are slow or fail during a fault.

use std::path::PathBuf;

use anyhow::Result;
use tests_peer::array::Array;
use tests_peer::random::Random;

use crate::faults::Faults;
use crate::mount::Mounted;
use crate::schedule::{Kind, Round};

/// The faults. A device that is gone must be detected before it may come back, and that is not
/// possible while the owner is killed: the other torture tests this.
const KINDS: [Kind; 3] = [Kind::Late, Kind::ReadErrors, Kind::WriteErrors];

/// The devices; none if the pool is on a healthy file.
#[derive(Default)]
pub struct Shelf(Vec<Mounted>);

impl Shelf {
    /// Mounts one in place of each file of a pool.
    ///
    /// # Errors
    /// What can't be mounted.
    pub fn over(array: &Array) -> Result<Self> {
        let files = array.places().into_iter().map(|place| PathBuf::from(place).join("pool.data"));
        Ok(Self(files.map(|file| Mounted::over(&file)).collect::<Result<_>>()?))
    }

    /// Returns whether there are any.
    pub fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Makes one or two of them slow or faulty. Returns the faults.
    pub fn hurt(&self, random: &mut Random) -> Vec<Kind> {
        if !self.is_there() {
            return Vec::new();
        }
        let round = Round::draw(random, &KINDS);
        let victims = round.victims.iter();
        let hurt = victims.map(|victim| {
            self.0[victim.device].device().set(victim.faults.clone());
            victim.kind
        });
        hurt.collect()
    }

    /// Makes all healthy. A start reads sequentially, which takes minutes on a slow device.
    pub fn mend(&self) {
        self.0.iter().for_each(|mounted| mounted.device().set(Faults::default()));
    }

    /// Removes them, after the processes that have them open.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
