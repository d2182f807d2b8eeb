//! The path of a read, from its request to its answer.
//!
//! A read walks the volume's map, under its lock, to the rows of its chunks (`walk`, `fetch`). Data
//! in memory is returned at once; the rest becomes device reads, first of metadata (`asking`), then
//! of data. Data that was read is checked against its fingerprint before it is returned.

use block::{BlockRange, SectorRange, VolumeError, VolumeId};

use crate::chunks::asking::Asked;
use crate::engine::Engine;
use crate::fetch::Fetch;
use crate::map::extents::extents;
use crate::operation::Pending;
use crate::operation::Then;
use crate::operation::wait_for_metadata;
use crate::world::view::View;
use crate::{ReadOperation, Started};

impl Engine {
    pub(crate) fn start_read(&self, volume: VolumeId, range: SectorRange, asked: Asked) -> Started {
        let located = self.locate(View::asking(&self.world, &asked), volume, range);
        if asked.is_waiting() {
            return wait_for_metadata(asked, &self.world, Then::Read { volume, range });
        }
        match located {
            Ok(mut fetch) => {
                let phase = range.start.offset_in_block_bytes();
                let len = (range.count.0 * block::SECTOR_BYTES) as usize;
                let reads = fetch.take_reads();
                if reads.is_empty() {
                    return Started::Done(fetch.reply(phase, len));
                }
                let pending = Pending::Read { fetch, phase, len };
                Started::Read(Box::new(ReadOperation { reads, pending }))
            }
            Err(error) => Started::Done(Err(error)),
        }
    }

    pub(crate) fn start_extents(
        &self,
        volume: VolumeId,
        range: SectorRange,
        limit: usize,
        asked: Asked,
    ) -> Started {
        let found = extents(View::asking(&self.world, &asked), volume, range, limit);
        if asked.is_waiting() {
            return wait_for_metadata(asked, &self.world, Then::Extents { volume, range, limit });
        }
        Started::Done(found)
    }

    fn locate(
        &self,
        view: View<'_>,
        id: VolumeId,
        range: SectorRange,
    ) -> Result<Fetch, VolumeError> {
        range.end().ok_or(VolumeError::OutOfRange)?;
        if range.bytes().is_none_or(|bytes| bytes > block::request::limits::TRANSFER_BYTES_MAX) {
            return Err(VolumeError::TooLong);
        }
        self.locate_blocks(view, id, range.covering_blocks())
    }

    pub(crate) fn locate_blocks(
        &self,
        view: View<'_>,
        id: VolumeId,
        blocks: BlockRange,
    ) -> Result<Fetch, VolumeError> {
        let volume = self.world.volume(id).ok_or(VolumeError::NoSuchVolume(id))?;
        let mut fetch = Fetch::default();
        fetch.locate(view, &volume, blocks)?;
        Ok(fetch)
    }
}
