//! Requests that a full pool refused after some of their commits were done.
//!
//! Each block then has its old or its new content, which is determined by reading it. Nothing
//! touches these blocks before.

use block::{SectorRange, VolumeReply, VolumeRequest};
use store::Store;

use super::Desk;
use crate::content::tags_of;
use crate::generate::{Region, touch};
use crate::model::{Changing, Effect, blocks_of};

impl Desk {
    /// Returns whether some of these sectors are of a request that may have been done in part.
    pub(super) fn is_torn(&self, regions: &[Region]) -> bool {
        let torn = self.torn.iter().flat_map(|change| &change.effects);
        torn.filter_map(region_of).any(|torn| regions.iter().any(|other| touch(&torn, other)))
    }

    /// Determines how much was done of what was refused.
    pub(crate) fn look_at_torn(&mut self, store: &Store) -> Result<(), String> {
        while !self.disk.has_failed()
            && let Some(change) = self.torn.pop()
        {
            let mut done = Vec::new();
            for part in change.effects.iter().flat_map(blocks_of) {
                match self.is_done(store, &part) {
                    Err(_) if self.disk.has_failed() => {
                        self.torn.push(change);
                        return Ok(());
                    }
                    is_done => done.extend(is_done?.then_some(part)),
                }
            }
            self.time += 1;
            let change = Changing { effects: done, by_block: true, ..change };
            match self.durable_answers {
                true => self.model.answered(self.time, change, true),
                false => self.model.answered_in_pieces(self.time, change),
            }
        }
        Ok(())
    }

    /// Returns whether a block, or a part of one, has its new content.
    fn is_done(&self, store: &Store, part: &Effect) -> Result<bool, String> {
        let (Some(region), Effect::Sectors { tags, .. }) = (region_of(part), part) else {
            return Ok(false);
        };
        let Region { slot, range } = region;
        let now = &self.model.now.volumes[slot];
        let reply = store.execute(VolumeRequest::Read { volume: now.id, range });
        let Ok(VolumeReply::Data(data)) = reply else {
            return Err(format!("a block of a refused request can't be read: {reply:?}"));
        };
        let have = tags_of(&data.to_vec())
            .map_err(|at| format!("sector {at} of a refused request was never written"))?;
        let before = &now.tags[range.start.0 as usize..][..tags.len()];
        if have != *tags && have != before {
            return Err(format!("{region:?} of a refused request is neither old nor new"));
        }
        Ok(have == *tags)
    }
}

fn region_of(effect: &Effect) -> Option<Region> {
    let Effect::Sectors { slot, start, tags } = effect else { return None };
    Some(Region { slot: *slot, range: SectorRange::new(*start, tags.len() as u64) })
}
