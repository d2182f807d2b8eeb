//! The maps of volumes: radix trees of nodes, shared by copies and snapshots.
//!
//! * `tree`: changing one, `walk`: looking at one, `gather`: what a copy gathers from its source,
//! * `volumes`: the volumes as a whole, `extents`: what of one is mapped, `value`: what entries are
//!   set to.
//!
//! Invariants:
//! 1. A node with several references is never changed: who changes it takes a copy.
//! 2. The references of a node are the entries of live nodes and volumes that name it.

pub(crate) mod extents;
pub(crate) mod gather;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod volumes;
pub(crate) mod walk;
