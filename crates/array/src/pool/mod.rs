//! The pool: its capacity, which objects its bytes are stored for, scrubbing, and the background
//! pass of reduction.
//!
//! Nothing here changes an object, and no figure includes the array's own volume as a volume.

mod accounting;
mod capacity;
mod integrity;
mod joint;
mod optimize;
mod passes;
mod sums;

pub use accounting::{ObjectSpace, PoolFigures, PoolSpace};
pub use integrity::{Damage, DamageReport, DamagedBlocks};
pub use joint::{AccountedSpace, VolumesSpace};
pub use passes::{AccountedVolume, AccountingPass};
pub use sums::{SpaceSums, VolumesOf};
