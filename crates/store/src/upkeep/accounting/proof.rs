//! Checking the sums of space: the same figures, computed in another way, with unbounded memory and
//! without any reference count.
//!
//! All nodes are processed level by level, from the top: before a level, all references to its
//! nodes were seen, so each is examined once. Aliases are younger than their originals, so they are
//! processed from the youngest on.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use format::map::LEVEL_MAX;
use format::{ChunkId, ChunkRow, MapEntry, NodeId, SegmentState};

use super::count::{Halt, Limits, count, owner_at, owners_of};
use super::figures;
use super::owner::{Owner, Tally, bytes};
use crate::StoreError;
use crate::chunks::pages::FastState;
use crate::nodes::node_of;
use crate::world::{State, World};

/// No bound for the other count either: in a large pool it would take many rounds.
const LIMITS: Limits = Limits { nodes: usize::MAX, chunks: usize::MAX };

/// Returns what is wrong with the sums of space, a line each. The world does not change meanwhile,
/// and is consistent otherwise.
pub(crate) fn findings(world: &World, state: &State) -> Result<Vec<String>, StoreError> {
    let owners = owners_of(world);
    let counted = match count(world, &owners, LIMITS, &mut || true) {
        Ok(tally) => tally,
        Err(Halt::Failed(error)) => return Err(error),
        Err(_) => return Ok(vec!["space accounting did not complete".into()]),
    };
    let mut levels: [Owners<NodeId>; LEVEL_MAX as usize + 1] = Default::default();
    for (index, (_, row)) in owners.iter().enumerate() {
        if let Some(root) = node_of(row.root) {
            levels[usize::from(row.level)].join(root, owner_at(index, row));
        }
    }
    let mut chunks = Owners::default();
    for level in (1..=LEVEL_MAX).rev() {
        for (id, owner) in std::mem::take(&mut levels[usize::from(level)]).0 {
            for entry in world.nodes.get(&world.medium, id, level)?.entries() {
                match entry {
                    MapEntry::Node(child) => levels[usize::from(level) - 1].join(child, owner),
                    MapEntry::Chunk(id) => chunks.join(id, owner),
                    _ => {}
                }
            }
        }
    }
    let (proven, unnamed_units) = tally(world, owners.len(), chunks)?;
    let mut findings = Vec::new();
    for (index, (id, _)) in owners.iter().enumerate() {
        let units = [&counted, &proven].map(|tally| tally.unique_units[index]);
        compare(&mut findings, &format!("unique to volume {id}"), units);
    }
    let parts = |tally: &Tally| [tally.volumes_units, tally.snapshots_units, tally.shared_units];
    let names = ["unique to volumes", "of snapshots only", "shared"];
    for ((name, counted), proven) in names.iter().zip(parts(&counted)).zip(parts(&proven)) {
        compare(&mut findings, name, [counted, proven]);
    }
    let figures = figures(world, state, &owners, &counted)?;
    if figures.unnamed_bytes != bytes(unnamed_units) {
        let (counted, proven) = (figures.unnamed_bytes, bytes(unnamed_units));
        findings
            .push(format!("{proven} bytes of data are unreferenced, but the count is {counted}"));
    }
    let metadata_units = metadata_units(state);
    if figures.metadata_bytes != bytes(metadata_units) {
        let (counted, proven) = (figures.metadata_bytes, bytes(metadata_units));
        findings.push(format!("{proven} bytes are metadata, but {counted} are counted"));
    }
    let sum = bytes(proven.named_units() + unnamed_units + metadata_units);
    if sum != state.segments.live_bytes() {
        let live = state.segments.live_bytes();
        findings.push(format!("space adds up to {sum} bytes, but {live} are live"));
    }
    Ok(findings)
}

/// Returns the live metadata, with second copies. That each segment counts its content was checked
/// before.
fn metadata_units(state: &State) -> u64 {
    let rows = state.segments.rows().filter(|(_, row)| row.state == SegmentState::Metadata);
    rows.map(|(_, row)| u64::from(row.live_units) * (1 + u64::from(row.mirrored))).sum()
}

fn compare(findings: &mut Vec<String>, what: &str, [counted, proven]: [u64; 2]) {
    if counted != proven {
        let (counted, proven) = (bytes(counted), bytes(proven));
        findings.push(format!("{proven} bytes are {what}, but {counted} are counted"));
    }
}

/// The owners of everything.
struct Owners<K>(HashMap<K, Owner, FastState>);

impl<K> Default for Owners<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Hash + Eq> Owners<K> {
    fn join(&mut self, key: K, owner: Owner) {
        let entry = self.0.entry(key);
        entry.and_modify(|known| *known = known.join(owner)).or_insert(owner);
    }
}

/// Returns how much each owner has, and how much has no owner.
fn tally(
    world: &World,
    owner_count: usize,
    mut chunks: Owners<ChunkId>,
) -> Result<(Tally, u64), StoreError> {
    let mut rows = BTreeMap::new();
    let lost = world.chunks.visit(&world.medium, &mut |_| {}, &mut |id, raw| {
        rows.extend(ChunkRow::decode(raw).map(|row| (ChunkId(id), row)));
    });
    if let Some(lost) = lost.into_iter().next() {
        return Err(lost.error);
    }
    let mut tally = Tally::new(owner_count);
    let mut unnamed_units = 0;
    for (id, row) in rows.iter().rev() {
        let owner = chunks.0.get(id).copied();
        match (owner, row.original) {
            (Some(owner), Some(original)) => chunks.join(original, owner),
            (Some(owner), None) if !row.place.is_none() => tally.add(owner, row.share_units()),
            (None, None) if !row.place.is_none() => unnamed_units += u64::from(row.share_units()),
            _ => {}
        }
    }
    Ok((tally, unnamed_units))
}
