//! The pool: its space, what its bytes are stored for, its integrity, and how well it is reduced.
//! Nothing here changes an object.

mod accounting;
mod capacity;
mod integrity;
mod optimize;

pub use accounting::{ObjectSpace, PoolFigures, PoolSpace};
pub use integrity::{Damage, DamageReport, DamagedBlocks};
