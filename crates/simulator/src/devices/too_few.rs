//! More disks fail than a striped pool can lose: what can't be read is an error, and what is read
//! is right.

use block::{SectorRange, VolumeReply, VolumeRequest};
use segments::DeviceSet;

use super::drive::Trouble;
use super::{Pool, World};
use crate::commits::Ground;
use crate::content::tags_of;
use crate::history::locked;

/// Sectors in a read: a block.
const SECTORS: u64 = 8;

impl World {
    /// Takes away one disk more than the pool can lose, reads everything, and brings the disks
    /// back. Nothing is in flight.
    pub(super) fn lose_too_many(&mut self, pool: &Pool) -> Result<(), String> {
        let are_in = self.sharing_in();
        let is_sure = are_in.iter().all(|at| self.is_true(*at));
        if self.least() == 1 || !is_sure || self.power.has_failed() {
            return Ok(());
        }
        let left = self.some_of(are_in, self.least() - 1);
        let copies = left.iter().map(|at| self.copy(*at)).collect();
        if DeviceSet::open(copies, true).is_ok() {
            return Err(format!("disks {left:?} open, but {} are needed", self.least()));
        }
        let is_lost = |at: &usize| !left.contains(at);
        let lost: Vec<usize> = (0..self.drives.len()).filter(is_lost).collect();
        lost.iter().for_each(|at| self.drives[*at].set_trouble(Trouble::Gone));
        let seen = self.read_what_is_left(pool);
        lost.iter().for_each(|at| self.drives[*at].set_trouble(Trouble::None));
        let [right, refused] = seen?;
        self.seen.too_few[0] += right;
        self.seen.too_few[1] += refused;
        Ok(())
    }

    /// Returns how many reads were right, and how many were refused.
    fn read_what_is_left(&self, pool: &Pool) -> Result<[u64; 2], String> {
        let mut seen = [0, 0];
        let volumes = locked(&self.desk).model.now.volumes.clone();
        for volume in volumes {
            for (at, expected) in volume.tags.chunks(SECTORS as usize).enumerate() {
                let range = SectorRange::new(at as u64 * SECTORS, expected.len() as u64);
                match pool.store.execute(VolumeRequest::Read { volume: volume.id, range }) {
                    Ok(VolumeReply::Data(data)) => {
                        if tags_of(&data.to_vec()).as_deref() != Ok(expected) {
                            return Err(format!("{}: {range:?} is wrong", volume.id));
                        }
                        seen[0] += 1;
                    }
                    _ => seen[1] += 1,
                }
            }
        }
        Ok(seen)
    }
}
