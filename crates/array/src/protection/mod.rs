//! Groups of volumes: their snapshots, schedules and retention, and what is done when it is due.

mod due;
mod ends;
mod groups;
mod moments;
mod several;
mod turns;

pub use groups::{GroupChange, GroupInfo};
pub use moments::GroupSnapshotInfo;
pub use turns::Ran;
