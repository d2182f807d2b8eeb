//! Groups of volumes: their snapshots, schedules and retention, and due actions.
//!
//! The snapshots of a group that are made together have its name and a common suffix, and never
//! outlive it. Retention destroys only snapshots that were made for it. Nothing here reads a clock.

mod due;
mod ends;
mod groups;
mod moments;
mod several;
mod turns;

pub use groups::{GroupChange, GroupInfo};
pub use moments::GroupSnapshotInfo;
pub use turns::Ran;
