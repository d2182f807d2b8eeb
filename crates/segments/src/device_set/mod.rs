//! A pool on several devices: up to three each have all of it, and from four on it is in stripes.
//!
//! What a device has of segment s is where that would be on the only device of a pool: all of it,
//! or a column of data, or of parity ([`placement`]). The copies of the root are on each of them.
//! Two devices survive the loss of one, and three and more that of two.
//!
//! * [`placement`]: what is on which device, [`access`]: reading and writing it, for who may wait,
//!   [`gather`]: of others where one is late, [`workers`]: the threads on which devices are asked
//!   that may take long,
//! * [`device`]: a device, and what is known of it,
//! * [`members`]: which devices are in, and how that changes, [`sharing`]: how many it takes,
//!   [`changing`]: what administrators change of it, [`labelling`]: having all say so,
//! * [`opening`]: making a pool, and finding out from labels who is in,
//! * [`table`] and [`maps`]: where the columns of a pool in stripes are, in memory and on devices;
//!   [`growing`]: more of them, [`moving`]: in other parts, [`giving`]: what was there before,
//!   [`laying`]: of segments that nothing is in, on fewer devices or on more,
//! * [`survey`]: what labels say where too few are there to open it,
//! * [`roots`]: the root on all of them,
//! * [`set`]: [`crate::Segments`] over them, [`channel`] and [`reads`]: a thread's way to
//!   them, by [`lanes`], where none is waited for for long ([`late`]).
//!
//! Invariants:
//! 1. Of what was acknowledged each device that is in by the newest label that is durable has what
//!    it should have. So one that failed is out in the labels of the others *before* anything is
//!    acknowledged that it does not have ([`members::Members::fail`]), and no device is in that
//!    lacks anything ([`crate::Segments::caught_up`]).
//! 2. As many devices as it takes to have all are in, one or as many as there are columns of data,
//!    and stay so, whatever they refuse: then their errors are the pool's.
//! 3. A device that is out is not read, not even its root.
//! 4. A device is taken back only when none of the requests is on its way any more that it had
//!    before it went out: one that lands late would be over what was written since.

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
