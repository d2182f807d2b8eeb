//! Capturing changed leaves: each gets its next location, which is recorded in its row. The rows
//! are captured afterwards, like those of any table.

use std::ops::Bound;

use format::LeafRow;
use format::key_space::encode_pair;
use format::row::ROW_BYTES;

use crate::StoreError;
use crate::checkpoint::placer::{Placer, Rounded, add_stream};
use crate::checkpoint::slices::Captured;
use crate::key_space::KeySpace;
use crate::key_space::leaves::{Pairs, Piece};
use crate::space::segments::Segments;
use crate::world::World;

/// A captured leaf, and its previous row.
pub(crate) struct CapturedLeaf {
    number: u64,
    /// Its new location; none if it is removed.
    pieces: Vec<Piece>,
    before: (LeafRow, Vec<Piece>),
}

impl KeySpace {
    /// Captures what has changed, and returns the numbers of removed leaves. The caller holds the
    /// writer's lock.
    ///
    /// # Errors
    /// If memory and medium differ now.
    pub(crate) fn capture(
        &mut self,
        world: &World,
        placer: &mut Placer<'_>,
        captured: &mut Captured,
    ) -> Result<Vec<u64>, StoreError> {
        let Some((pairs, leaves)) = self.divided_mut() else { return Ok(Vec::new()) };
        let dropped = leaves.take_dropped();
        let gone = dropped.iter().map(|(number, _)| *number).collect();
        for (number, stored) in dropped {
            release(placer, &stored)?;
            let before = (set_row(world, number, LeafRow::default())?, stored);
            captured.add_leaf(CapturedLeaf { number, pieces: Vec::new(), before });
        }
        for (cut, end) in leaves.take_dirty() {
            let content = content(pairs, &cut, end.as_deref());
            let (images, mut pieces) = (&mut captured.images, Vec::new());
            let medium = &world.medium;
            let first =
                add_stream(medium, placer, &content, Rounded::ToBlocks, images, &mut pieces)?;
            // From the first piece to the last, as a reader follows them.
            pieces.reverse();
            let (number, stored) = leaves.set_stored(&cut, pieces.clone());
            release(placer, &stored)?;
            let before = (set_row(world, number, LeafRow { first })?, stored);
            captured.add_leaf(CapturedLeaf { number, pieces, before });
        }
        Ok(gone)
    }
}

impl CapturedLeaf {
    /// Undoes the capture: the leaf is at its previous location, and marked as changed.
    ///
    /// # Errors
    /// If memory and medium differ now.
    pub(crate) fn give_back(
        self,
        world: &World,
        segments: &mut Segments,
        config: &mut KeySpace,
    ) -> Result<(), StoreError> {
        let Self { number, pieces, before: (row, stored) } = self;
        for (place, units) in pieces {
            segments.sub_live(place, units)?;
        }
        for (place, units) in &stored {
            segments.add_live(*place, *units)?;
        }
        set_row(world, number, row)?;
        if let Some(leaves) = config.leaves_mut() {
            leaves.give_back(number, stored);
        }
        Ok(())
    }
}

fn release(placer: &mut Placer<'_>, pieces: &[Piece]) -> Result<(), StoreError> {
    pieces.iter().try_for_each(|(place, units)| placer.release(*place, *units))
}

/// Sets the row of a leaf, and returns the previous one. The pages of these rows are always in
/// memory.
fn set_row(world: &World, number: u64, row: LeafRow) -> Result<LeafRow, StoreError> {
    world.leaves.update(&world.medium, number, |raw: &mut [u8]| {
        let before = LeafRow::decode(&raw[..ROW_BYTES]).unwrap_or_default();
        row.encode(raw);
        before
    })
}

fn content(pairs: &Pairs, cut: &[u8], end: Option<&[u8]>) -> Vec<u8> {
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let mut out = Vec::new();
    for (key, value) in pairs.range::<[u8], _>((Bound::Included(cut), end)) {
        encode_pair(key, value, &mut out);
    }
    out
}
