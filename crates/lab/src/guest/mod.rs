//! Guests: what runs in a virtual machine and reads and writes its disks.

mod content;
mod delta;
mod disk;
mod load;
mod meter;
mod worker;

pub use content::{GUEST_BLOCK_BYTES, datastore_block, fill, fill_block};
pub use disk::GuestDisk;
pub use load::{Load, LoadPlan};
pub use meter::{Interval, Meter, Series};
