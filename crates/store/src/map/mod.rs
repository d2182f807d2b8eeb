//! The maps of volumes: radix trees of nodes, shared by copies and snapshots.
//!
//! * `tree`: changing a map; `walk`: reading one; `gather`: what a copy takes from its source,
//! * `volumes`: volumes as a whole; `extents`: which parts are mapped; `value`: what entries are
//!   set to.
//!
//! Invariants:
//! 1. A node with several references is never changed, but copied first.
//! 2. The reference count of a node is the number of entries of live nodes and volumes that refer
//!    to it.

pub(crate) mod extents;
pub(crate) mod gather;
pub(crate) mod tree;
pub(crate) mod value;
pub(crate) mod volumes;
pub(crate) mod walk;
