//! Reading the content of a checkpoint: the state without the log after it.

use std::sync::Arc;

use block::VolumeId;
use format::codec::Reader;
use format::{Compared, FormatError, NodeId, Superblock, VolumeRow};

use crate::StoreError;
use crate::checkpoint::placer::NO_CHUNK;
use crate::checkpoint::segment_table;
use crate::chunks::medium::Medium;
use crate::chunks::memory::Budgets;
use crate::chunks::table::LostPage;
use crate::chunks::table_name::TableName;
use crate::key_space;
use crate::log::checkpointer::Checkpointer;
use crate::log::plausible::{self, check_run};
use crate::space::segments::Segments;
use crate::sync::RwLock;
use crate::world::{State, Volume, World};

fn damaged(error: FormatError) -> StoreError {
    StoreError::Damaged(error.to_string())
}

/// Objects that are in streams or in tables, depending on the pool.
struct Contents {
    config: Vec<u8>,
    segments: Vec<u8>,
}

/// Loads the streams, but no tables yet.
fn load_state(
    medium: &Medium,
    superblock: &Superblock,
    checkpointer: &mut Checkpointer,
) -> Result<(State, Vec<Compared>, Contents), StoreError> {
    let streams = [superblock.config, superblock.pending, superblock.segments];
    let mut contents: [Vec<u8>; 3] = Default::default();
    let all = streams.into_iter().zip(&mut checkpointer.streams).zip(&mut contents);
    for ((stream, placed), content) in all {
        *content = medium.read_stream(stream, placed)?;
    }
    let mut state = State {
        segments: Segments::new(medium.geometry(), superblock.version),
        next_chunk: superblock.next_chunk.0,
        next_node: superblock.next_node.0,
        next_volume: superblock.next_volume.0,
        pending: Vec::new(),
        stuck: Vec::new(),
        staged: Default::default(),
        pins: Default::default(),
        replaying: true,
        losses: 0,
        config: Default::default(),
        provisioned_blocks: 0,
    };
    let compared = decode_pending(&contents[1], &mut state).map_err(damaged)?;
    state.staged.iter().try_for_each(|(first, count)| check_run(*first, *count))?;
    let [config, _, segments] = contents;
    Ok((state, compared, Contents { config, segments }))
}

fn decode_pending(bytes: &[u8], state: &mut State) -> Result<Vec<Compared>, FormatError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(bytes);
    for _ in 0..reader.u64()? {
        state.pending.push(NodeId(reader.u64()?));
    }
    while reader.remaining() > 0 {
        let (first, count) = (reader.u64()?, reader.u32()?);
        if first == NO_CHUNK {
            return (0..count).map(|_| Compared::decode(&mut reader)).collect();
        }
        state.staged.insert(first, count);
    }
    Ok(Vec::new())
}

/// Loads the state of a checkpoint, without the log after it.
pub(crate) fn load_checkpoint(
    medium: Medium,
    budgets: Budgets,
    checkpointer: &mut Checkpointer,
) -> Result<(World, State), StoreError> {
    let superblock = checkpointer.superblock().clone();
    let (mut state, compared, contents) = load_state(&medium, &superblock, checkpointer)?;
    let world = World::new(medium, budgets, TableName::roots(&superblock));
    state.segments = segment_table::load(&world, &superblock, &contents.segments)?;
    plausible::check_metadata_segment(&superblock, &state.segments)?;
    state.config = key_space::load::load(
        &world.medium,
        (&world.leaves, &world.bad_leaves),
        &superblock,
        &contents.config,
    )?;
    compared.iter().for_each(|compared| world.comparisons.note(compared));
    load_volumes(&world, &mut state)?;
    Ok((world, state))
}

/// Volumes whose rows can't be read are lost, and the others are loaded.
fn load_volumes(world: &World, state: &mut State) -> Result<(), StoreError> {
    let mut lost = read_volumes(world, state)?;
    if !lost.is_empty() {
        // A read error that does not repeat is not damage.
        lost = read_volumes(world, state)?;
    }
    // Ids that were not assigned yet are no loss.
    lost.retain(|page| page.rows.start < state.next_volume);
    let ids =
        lost.iter().map(|page| (page.key, page.rows.start..state.next_volume.min(page.rows.end)));
    *world.lost_volumes.write() = ids.collect();
    Ok(())
}

fn read_volumes(world: &World, state: &mut State) -> Result<Vec<LostPage>, StoreError> {
    let mut volumes = world.volumes.write();
    let mut lost_rows = world.lost_rows.write();
    volumes.clear();
    lost_rows.clear();
    state.provisioned_blocks = 0;
    let mut failed = None;
    let lost = world.volume_table.visit(&world.medium, &mut |_| {}, &mut |id, raw| {
        let id = VolumeId(id);
        match VolumeRow::decode(raw, world.medium.tuning.fanout) {
            Some(VolumeRow::LOST) => drop(lost_rows.insert(id.0)),
            Some(row) => {
                state.provisioned_blocks += crate::map::volumes::provisioned(&row);
                volumes.insert(id, Arc::new(Volume { id, map: RwLock::new(Some(row)) }));
            }
            None => failed = Some(id),
        }
    });
    match failed {
        Some(id) => Err(StoreError::Damaged(format!("the row of volume {id} is invalid"))),
        None => Ok(lost),
    }
}
