//! Records that opening a pool stores in it.

use std::collections::BTreeSet;

use block::VolumeId;
use store::{Change, VolumeChange};

use super::State;
use crate::backing::Backing;
use crate::error::Error;
use crate::objects::volumes::TOKEN_VOLUME_SIZE;
use crate::record;

/// The approximate number of bytes of rows in one commit, which can contain up to 256 KiB in total.
const ROWS_BYTES: usize = 100 << 10;

impl State {
    /// Makes adopted snapshots durable: the groups first, so that after a crash no snapshot refers
    /// to a missing group.
    pub(crate) fn keep_adopted(&self, backing: &dyn Backing) -> Result<(), Error> {
        let ids = self.adopted.iter();
        let snapshots: Vec<_> = ids.filter_map(|id| Some((*id, self.snapshots.get(id)?))).collect();
        let groups: BTreeSet<_> = snapshots.iter().filter_map(|(_, s)| s.group).collect();
        let groups = groups.iter().filter_map(|id| Some((*id, self.groups.get(id)?)));
        let mut rows = Vec::new();
        for (id, group) in groups {
            rows.push((record::group_key(id), Some(record::group(group)?)));
        }
        for (id, snapshot) in snapshots {
            rows.push((record::snapshot_key(id), Some(record::snapshot(snapshot)?)));
        }
        let (mut config, mut bytes) = (Vec::new(), 0);
        for row in rows {
            bytes += row.1.as_ref().map_or(0, Vec::len);
            config.push(row);
            if bytes > ROWS_BYTES {
                bytes = 0;
                let config = std::mem::take(&mut config);
                backing.change(Change { config, ..Change::default() })?;
            }
        }
        if !config.is_empty() {
            backing.change(Change { config, ..Change::default() })?;
        }
        Ok(())
    }

    /// Creates the array's own volume in a pool that has none yet.
    pub(crate) fn make_token_volume(backing: &dyn Backing) -> Result<VolumeId, Error> {
        let id = backing.allocate_volume_id();
        backing.change(Change {
            volumes: vec![VolumeChange::Create { id, size: TOKEN_VOLUME_SIZE }],
            config: vec![(record::token_volume_key(), Some(record::token_volume(id)?))],
            ..Change::default()
        })?;
        Ok(id)
    }
}
