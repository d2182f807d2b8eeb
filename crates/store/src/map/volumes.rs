//! Applying the entries that create, change and destroy whole volumes.
//!
//! None of them examines the content of a volume: a clone shares the root of its source, and what
//! is shared is copied when it is changed later, node by node (`map`).

use std::sync::Arc;

use block::VolumeId;
use format::{Handling, MapEntry, VolumeRow};

use crate::StoreError;
use crate::chunks::medium::twice;
use crate::map::tree::Editor;
use crate::map::value::Value;
use crate::nodes::Referenced;
use crate::sync::RwLock;
use crate::world::{State, Volume, World};

/// Creates an empty volume.
pub(crate) fn create(
    world: &World,
    state: &mut State,
    id: VolumeId,
    size_blocks: u64,
) -> Result<(), StoreError> {
    let row = VolumeRow {
        root: MapEntry::Hole,
        size_blocks,
        level: world.medium.tuning.fanout.level_for(size_blocks),
        snapshot: false,
        handling: Handling::default(),
    };
    insert(world, state, id, row)
}

/// Adds a reference to a root. Returns `false` if that is impossible, because its row is lost.
fn reference(world: &World, state: &mut State, root: MapEntry) -> Result<bool, StoreError> {
    let MapEntry::Node(node) = root else { return Ok(true) };
    if world.nameable(state, root)? != root {
        return Ok(false);
    }
    world.nodes.reference_all(&world.medium, &mut [Referenced::unread(node)]).map(|()| true)
}

/// Returns how many of its blocks count as provisioned: none for a snapshot, which takes only what
/// it holds.
pub(crate) fn provisioned(row: &VolumeRow) -> u64 {
    if row.snapshot { 0 } else { row.size_blocks }
}

fn insert(
    world: &World,
    state: &mut State,
    id: VolumeId,
    row: VolumeRow,
) -> Result<(), StoreError> {
    if world.volume(id).is_some() {
        return Err(StoreError::Damaged(format!("volume {id} is created twice")));
    }
    let put = || world.volume_table.update(&world.medium, id.0, |raw| row.encode(raw));
    if let Err(error) = twice(put) {
        world.give_up(state, error)?;
        return world.lose_volume(state, id);
    }
    let volume = Arc::new(Volume { id, map: RwLock::new(Some(row)) });
    world.volumes.write().insert(id, volume);
    state.next_volume = state.next_volume.max(id.0 + 1);
    state.provisioned_blocks += provisioned(&row);
    Ok(())
}

/// Creates a volume that shares the root of another one.
pub(crate) fn clone(
    world: &World,
    state: &mut State,
    source: VolumeId,
    id: VolumeId,
    snapshot: bool,
) -> Result<(), StoreError> {
    let Some(row) = world.map_of(source) else {
        return lose_with(world, state, source, id);
    };
    if !reference(world, state, row.root)? {
        return world.lose_volume(state, id);
    }
    insert(world, state, id, VolumeRow { snapshot, ..row })
}

/// During replay: what has become the copy of a missing volume is lost if that volume is.
fn lose_with(
    world: &World,
    state: &mut State,
    source: VolumeId,
    id: VolumeId,
) -> Result<(), StoreError> {
    match state.replaying && world.is_lost(source) {
        true => world.lose_volume(state, id),
        false => Ok(()),
    }
}

/// Replaces the content of a volume by that of another. Readers see all of the one or all of the
/// other; what only the old map referred to is freed later.
pub(crate) fn overwrite(
    world: &World,
    state: &mut State,
    source: VolumeId,
    id: VolumeId,
) -> Result<(), StoreError> {
    if source == id || world.volume(id).is_none() {
        return Ok(());
    }
    let Some(from) = world.map_of(source) else {
        return lose_with(world, state, source, id);
    };
    if !reference(world, state, from.root)? {
        return world.lose_volume(state, id);
    }
    let replaced = with_map(world, id, |map| {
        let old = std::mem::replace(
            map,
            VolumeRow { snapshot: map.snapshot, handling: map.handling, ..from },
        );
        state.provisioned_blocks -= provisioned(&old);
        state.provisioned_blocks += provisioned(map);
        Ok(old.root)
    })?;
    replaced.map_or(Ok(()), |root| Editor { world, state }.release(root))
}

/// Changes the size. What is beyond it is unmapped, so that it is a hole if the volume grows again.
pub(crate) fn resize(
    world: &World,
    state: &mut State,
    id: VolumeId,
    size_blocks: u64,
) -> Result<(), StoreError> {
    with_map(world, id, |map| {
        let old = map.size_blocks;
        if size_blocks < old {
            let value = Value::Uniform(MapEntry::Hole);
            Editor { world, state }.set(map, size_blocks, old - size_blocks, value)?;
        }
        while world.span_blocks(map.level) < size_blocks {
            Editor { world, state }.raise(map)?;
        }
        map.size_blocks = size_blocks;
        if !map.snapshot {
            state.provisioned_blocks = state.provisioned_blocks - old + size_blocks;
        }
        Ok(())
    })?;
    Ok(())
}

/// Destroys a volume. What only it referred to is freed later: its root waits in `pending`.
pub(crate) fn destroy(world: &World, state: &mut State, id: VolumeId) -> Result<(), StoreError> {
    let Some(volume) = world.volumes.write().remove(&id) else { return Ok(()) };
    let Some(map) = volume.map.write().take() else { return Ok(()) };
    world.volume_table.update(&world.medium, id.0, |raw| raw.fill(0))?;
    state.provisioned_blocks -= provisioned(&map);
    Editor { world, state }.release(map.root)
}

/// Changes a volume's map under its lock, and stores its row if that has changed.
pub(crate) fn with_map<T>(
    world: &World,
    volume: VolumeId,
    change: impl FnOnce(&mut VolumeRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let Some(volume) = world.volume(volume) else { return Ok(None) };
    let mut guard = volume.map.write();
    let Some(map) = guard.as_mut() else { return Ok(None) };
    let before = *map;
    let result = change(map)?;
    if *map != before {
        let after = *map;
        world.volume_table.update(&world.medium, volume.id.0, |raw| after.encode(raw))?;
    }
    Ok(Some(result))
}
