//! The ids of the next chunks and nodes.

use crate::edits::edit::Edit;
use crate::world::view::View;
use crate::world::{State, World};
use crate::writer::Writer;

impl Writer {
    /// Makes sure that the rows of the next `blocks` chunks and `nodes` nodes can be created: if
    /// the page that they would share with older rows is damaged, its remaining ids are skipped.
    pub(crate) fn find_ids(&mut self, view: View<'_>, blocks: usize, nodes: u64) -> bool {
        let State { next_chunk, next_node, .. } = &mut self.state;
        view.chunks.find_rows(view.medium, next_chunk, blocks as u64)
            && view.nodes.table.find_rows(view.medium, next_node, nodes.max(1))
    }

    /// The same as [`Writer::find_ids`], for an edit that creates up to `nodes_max` nodes.
    pub(crate) fn find_ids_for(&mut self, world: &World, edit: &Edit, nodes_max: u64) -> bool {
        let nodes = self.unapplied_nodes_max() + nodes_max;
        let view = View::asking(world, &edit.asked).planning(edit.plan);
        self.find_ids(view, edit.new_chunks_max(), nodes)
    }

    /// Returns how many nodes unapplied records create, at most.
    pub(crate) fn unapplied_nodes_max(&self) -> u64 {
        let sealed = self.sealed.iter().filter(|commit| !commit.applied);
        sealed.map(|commit| commit.record.nodes_max).sum::<u64>() + self.open.nodes_max
    }
}
