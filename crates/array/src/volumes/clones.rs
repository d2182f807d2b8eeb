//! Volumes created from another volume or a snapshot, or overwritten with one.
//!
//! These operations take the same time regardless of the content of the volumes: the store shares
//! the data.

use block::{Offloads, VolumeLimits};
use store::{Change, VolumeChange};

use super::types::{NewCopy, VolumeInfo};
use crate::array::Array;
use crate::error::Error;
use crate::objects::volumes::{SourceRecord, VolumeRecord};
use crate::record;
use crate::state::State;
use crate::values::limits;
use crate::values::name::VolumeName;

impl Array {
    /// Creates a volume from the current content of a volume or a snapshot; durable when it
    /// returns.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_snapshot`, `snapshot_destroyed` for the
    /// source; those of [`Array::create_volume`] for the new one.
    pub fn clone_volume(
        &self,
        source: &str,
        name: VolumeName,
        created_ms: u64,
    ) -> Result<VolumeInfo, Error> {
        let (source, names, limits) = (source.to_owned(), Vec::new(), VolumeLimits::NONE);
        let new = NewCopy { source, names, overwrite: false, limits, created_ms };
        let plan = |state: &State| self.plan_clone(state, 0, name, &new);
        self.change(plan, |state, record| self.show_new_volume(state, record))
    }

    /// Plans a clone, which inherits the copyable tags of the source. `before`: the number of
    /// volumes that the same commit creates before this one.
    pub(crate) fn plan_clone(
        &self,
        state: &State,
        before: usize,
        name: VolumeName,
        new: &NewCopy,
    ) -> Result<(Change, VolumeRecord), Error> {
        limits::check(new.limits)?;
        let source = state.source(&new.source)?;
        state.check_free(&name, None)?;
        let name = state.placed(&name, Some(before))?;
        let (id, serial) = self.allocate_volume(state, before)?;
        let record = VolumeRecord {
            id,
            name,
            size: source.size,
            logical_block: source.logical_block,
            company_id: state.settings().company_id,
            serial,
            created_ms: new.created_ms,
            offloads: Offloads::ALL,
            limits: new.limits,
            source: Some(SourceRecord { id: source.id, name: source.name }),
            eradicate_ms: None,
        };
        let mut change = Change {
            volumes: vec![VolumeChange::Clone { source: source.id, id, snapshot: false }],
            config: vec![(record::volume_key(id), Some(record::volume(&record)?))],
            ..Change::default()
        };
        let tags = state.tags.copied(source.id);
        if !tags.is_empty() {
            state.tags.check_room(tags.len() * (before + 1))?;
            change.config.push(record::tags_row(id, &tags)?);
        }
        Ok((change, record))
    }

    /// Overwrites a volume, including its size, with another volume or a snapshot. Its old content
    /// is gone. Hosts keep it under the same LUN, and get a unit attention if the size changes.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_snapshot`, `snapshot_destroyed`;
    /// `wrong_source` if the source is the volume itself, or has logical blocks of another size;
    /// and those of the store.
    pub fn overwrite_volume(&self, name: &str, source: &str) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| plan_overwrite(state, name, source);
        self.change(plan, |state, record| self.show_volume(state, record))
    }
}

pub(crate) fn plan_overwrite(
    state: &State,
    name: &str,
    source: &str,
) -> Result<(Change, VolumeRecord), Error> {
    let entry = state.volume(name)?;
    let source = state.source(source)?;
    let (old, refuse) = (&entry.record, |why: &str| {
        let text = format!("Volume {} can't be overwritten: {why}.", entry.record.name);
        Err(Error::invalid("wrong_source", text))
    });
    if source.id == old.id {
        return refuse("it is the source itself");
    }
    if source.logical_block != old.logical_block {
        return refuse("its logical block size differs from that of the source");
    }
    let mut record = VolumeRecord { size: source.size, ..old.clone() };
    // A volume restored from its own snapshot keeps its source.
    if state.snapshots().get(&source.id).is_none_or(|snapshot| snapshot.source != old.id) {
        record.source = Some(SourceRecord { id: source.id, name: source.name });
    }
    let (source, destination) = (source.id, old.id);
    let mut change = Change {
        volumes: vec![VolumeChange::Overwrite { source, destination }],
        ..Change::default()
    };
    if record != *old {
        let row = record::volume(&record)?;
        change.config.push((record::volume_key(record.id), Some(row)));
    }
    Ok((change, record))
}
