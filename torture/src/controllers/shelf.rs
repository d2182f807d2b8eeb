//! Six devices below both controllers, of which one or two are slow or fail while a fault happens.

use std::path::PathBuf;

use anyhow::Result;
use tests_peer::array::Array;
use tests_peer::random::Random;

use crate::faults::Faults;
use crate::mount::Mounted;
use crate::schedule::{Kind, Round};

/// What happens to them. A device that is gone has to be missed before it may come back, and
/// nobody is there to say so while the owner is killed: that is the other torture's.
const KINDS: [Kind; 3] = [Kind::Late, Kind::ReadErrors, Kind::WriteErrors];

/// The devices; none if the pool is on a file that is well.
#[derive(Default)]
pub struct Shelf(Vec<Mounted>);

impl Shelf {
    /// Puts one in the place of each file of a pool.
    ///
    /// # Errors
    /// What can't be mounted.
    pub fn over(array: &Array) -> Result<Self> {
        let files = array.places().into_iter().map(|place| PathBuf::from(place).join("pool.data"));
        Ok(Self(files.map(|file| Mounted::over(&file)).collect::<Result<_>>()?))
    }

    /// Whether there are any.
    pub fn is_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// Has one or two of them be slow or fail. Returns what happens.
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

    /// All are well. A start reads one thing after the other, and of a slow device that is minutes.
    pub fn mend(&self) {
        self.0.iter().for_each(|mounted| mounted.device().set(Faults::default()));
    }

    /// They are gone, behind those who have them open.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
