//! Each commit that ends connections remembers their LUNs: see [`crate::objects::releases`].

use store::Change;

use crate::error::Error;
use crate::objects::releases::{LunOwner, Release, ReleaseKey, ReleaseUpdate};
use crate::record::{self, Row};
use crate::state::State;

/// Adds to a commit what it releases, and drops old releases. Returns what is to be applied in
/// memory once it is durable.
pub(super) fn account(state: &State, change: &mut Change) -> Result<Vec<ReleaseUpdate>, Error> {
    let now_ms = state.time.known_ms();
    let at_ms = state.releases.next_ms(now_ms);
    let released = |row: &Row| {
        let (key, volume) = released_by(state, row)?;
        Some((key, Some(Release { at_ms, volume })))
    };
    let mut updates: Vec<ReleaseUpdate> = change.config.iter().filter_map(released).collect();
    if updates.is_empty() {
        return Ok(updates);
    }
    updates.extend(state.releases.dropped(&updates, now_ms));
    for update in &updates {
        change.notes.push(record::release_row(*update)?);
    }
    Ok(updates)
}

/// Returns what ends by changing one record, and the volume that was connected.
fn released_by(state: &State, (key, value): &Row) -> Option<(ReleaseKey, Option<block::VolumeId>)> {
    let Some(value) = value else {
        let (owner, id) = record::connection_of(key)?;
        let volume = state.volumes().get(&id)?;
        let lun = match owner {
            LunOwner::Host(host) => volume.hosts.get(&host)?,
            LunOwner::Group(group) => volume.host_groups.get(&group)?,
        };
        return Some((ReleaseKey::Lun(owner, *lun), Some(id)));
    };
    let (host, group) = record::membership_of(key, value)?;
    let old = state.hosts().get(&host)?.host.group?;
    (group != Some(old)).then_some((ReleaseKey::Membership(host, old), None))
}
