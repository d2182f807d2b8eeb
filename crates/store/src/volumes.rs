//! Applying the entries that make, change and end whole volumes.
//!
//! None of them looks at what is in a volume: a clone shares the root of its source, and what was
//! shared and is changed later is copied then, node by node (`map`).

use std::sync::Arc;

use block::VolumeId;
use format::map::{level_for, span_blocks};
use format::{MapEntry, VolumeRow};
use parking_lot::RwLock;

use crate::StoreError;
use crate::apply::with_map;
use crate::map::{Editor, Value};
use crate::nodes::Referenced;
use crate::world::{State, Volume, World};

/// An empty volume.
pub(crate) fn create(
    world: &World,
    state: &mut State,
    id: VolumeId,
    size_blocks: u64,
) -> Result<(), StoreError> {
    let row = VolumeRow { root: MapEntry::Hole, size_blocks, level: level_for(size_blocks) };
    insert(world, state, id, row)
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
    world.volume_table.update(&world.medium, id.0, |raw| row.encode(raw))?;
    let volume = Arc::new(Volume { id, map: RwLock::new(Some(row)) });
    world.volumes.write().insert(id, volume);
    state.next_volume = state.next_volume.max(id.0 + 1);
    state.provisioned_blocks += row.size_blocks;
    Ok(())
}

pub(crate) fn clone(
    world: &World,
    state: &mut State,
    source: VolumeId,
    id: VolumeId,
) -> Result<(), StoreError> {
    let Some(from) = world.volume(source) else { return Ok(()) };
    let Some(row) = *from.map.read() else { return Ok(()) };
    if let MapEntry::Node(node) = row.root {
        let mut root = [Referenced::unread(node)];
        world.nodes.reference_all(&world.medium, &mut root)?;
    }
    insert(world, state, id, row)
}

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
        while span_blocks(map.level) < size_blocks {
            Editor { world, state }.raise(map)?;
        }
        map.size_blocks = size_blocks;
        state.provisioned_blocks = state.provisioned_blocks - old + size_blocks;
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn destroy(world: &World, state: &mut State, id: VolumeId) -> Result<(), StoreError> {
    let Some(volume) = world.volumes.write().remove(&id) else { return Ok(()) };
    let Some(map) = volume.map.write().take() else { return Ok(()) };
    world.volume_table.update(&world.medium, id.0, |raw| raw.fill(0))?;
    state.provisioned_blocks -= map.size_blocks;
    Editor { world, state }.release(map.root)
}
