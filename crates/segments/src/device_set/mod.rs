//! A pool on several devices: mirrored on up to three, striped from four on.
//!
//! A device holds of segment s, at the offset that s would have on a single device, all of it (a
//! mirror), or a column of data or parity ([`placement`]). The copies of the root are on each
//! device. Two devices survive the loss of one, three and more that of two.
//!
//! * [`placement`]: what is on which device; [`access`]: blocking reads and writes; [`gather`]:
//!   reads from other devices if one is late; [`workers`]: the threads for calls to devices that
//!   may take long,
//! * [`device`]: a device and its state,
//! * [`members`]: which devices are in, and how that changes; [`sharing`]: how many are needed;
//!   [`changing`]: changes by administrators; [`labelling`]: recording it in labels,
//! * [`opening`]: creating a pool, and finding out from labels which devices are in,
//! * [`table`] and [`maps`]: the location of columns of a striped pool, in memory and on devices;
//!   [`growing`]: adding columns; [`moving`]: moving them to other parts; [`giving`]: copying
//!   earlier data; [`laying`]: changing the width of empty segments,
//! * [`survey`]: what labels say if too few devices are present to open the pool,
//! * [`roots`]: the root on all devices,
//! * [`set`]: [`crate::Segments`] over the devices; [`channel`] and [`reads`]: one thread's
//!   non-blocking access to them, through [`lanes`], which waits for no device for long ([`late`]).
//!
//! Invariants:
//! 1. Each device that is in by the newest durable label has everything acknowledged that it should
//!    have. So a device that failed is out in the labels of the others *before* anything is
//!    acknowledged that it lacks ([`members::Members::fail`]), and no device that lacks anything is
//!    in ([`crate::Segments::given`]).
//! 2. As many devices as are needed to have all data (one, or as many as there are data columns)
//!    are in, and stay in, regardless of their errors: their errors are then the pool's.
//! 3. A device that is out is not read, not even its root.
//! 4. A device is taken back only when no request from before it went out is in flight: one that
//!    lands late would overwrite what was written since.

use std::sync::Arc;

use crate::segments::{Segments, Shared};

mod access;
mod changing;
mod channel;
mod device;
mod gather;
mod giving;
mod growing;
mod labelling;
mod lanes;
mod late;
mod laying;
mod maps;
mod members;
mod moving;
mod opening;
mod placement;
mod reads;
mod roots;
mod set;
mod sharing;
mod survey;
mod table;
mod workers;

pub use device::Device;
pub use opening::{DeviceSetError, has_labels_of_several};
pub use placement::least_in;
pub use set::DeviceSet;
pub use survey::{Found, Survey, Surveyed};

impl From<Arc<DeviceSet>> for Shared {
    fn from(set: Arc<DeviceSet>) -> Self {
        Self::from(set as Arc<dyn Segments>)
    }
}

#[cfg(test)]
mod coming_tests;
#[cfg(test)]
mod cut_off_tests;
#[cfg(test)]
mod hang_tests;
#[cfg(test)]
mod hanging;
#[cfg(test)]
mod laying_tests;
#[cfg(test)]
mod moving_tests;
#[cfg(test)]
mod stripes_checked;
#[cfg(test)]
mod stripes_out_tests;
#[cfg(test)]
mod stripes_tests;
#[cfg(test)]
mod tests;
