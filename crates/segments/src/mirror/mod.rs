//! A pool on several devices, each of which has all of it.
//!
//! Segment s is where it would be on the only device of a pool, on each of them, and so are the
//! copies of the root. Two devices survive the loss of one, three that of two.
//!
//! * [`device`]: a device, and what is known of it,
//! * [`members`]: which devices are in, and how that changes, [`labelling`]: having all say so,
//! * [`opening`]: making a pool, and finding out from labels who is in,
//! * [`roots`]: the root on all of them,
//! * [`mirrored`]: [`crate::Segments`] over them, [`channel`]: a thread's way to them, by
//!   [`lanes`], where none is waited for for long ([`late`]).
//!
//! Invariants:
//! 1. What was acknowledged is on all devices that are in by the newest label that is durable. So a
//!    device that failed is out in the labels of the others *before* anything is acknowledged that
//!    it does not have ([`members::Members::fail`]), and no device is in that lacks anything
//!    ([`crate::Segments::caught_up`]).
//! 2. One device at least is in, and stays so, whatever it refuses: then its errors are the pool's.
//! 3. A device that is out is not read, not even its root.
//! 4. A device is taken back only when none of the requests is on its way any more that it had
//!    before it went out: one that lands late would be over what was written since.

mod access;
mod channel;
mod device;
mod labelling;
mod lanes;
mod late;
mod members;
mod mirrored;
mod opening;
mod roots;

pub use device::Device;
pub use mirrored::Mirrored;
pub use opening::{MirrorError, has_labels_of_several};

#[cfg(test)]
mod coming_tests;
#[cfg(test)]
mod tests;
