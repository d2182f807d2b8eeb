//! Where the segments of a pool live: requests and completions in terms of places.
//!
//! * [`Segments`]: read a place, append to a segment, free it, replace the root, fence an
//!   epoch, for who may wait; [`Shared`]: a handle to it,
//! * [`Channel`]: one thread's way to them, which blocks nobody,
//! * [`Local`]: one file or device, or any disk, such as a simulated one,
//! * [`device_set`]: several of them, each of which has all of the pool, or which are in stripes,
//! * [`parts`]: which parts of devices of any sizes are free, and which of them a segment takes;
//!   nothing uses it yet,
//! * [`slow`]: the same with a latency added to each request, for tests and benchmarks.
//!
//! Nothing above knows an offset into a disk.

pub mod channel;
pub mod device_set;
pub mod devices;
mod first_segment;
mod labels;
mod layout;
pub mod local;
pub mod parts;
mod plan;
mod root;
pub mod segments;
pub mod slow;

pub use channel::Channel;
pub use device_set::{
    Device, DeviceSet, DeviceSetError, Found, Survey, Surveyed, has_labels_of_several, least_in,
};
pub use devices::{DeviceError, DeviceState, DeviceStatus, Lacking, PartsUse, Rebuilt, ToLayAnew};
pub use local::Local;
pub use parity::Stripe;
pub use parts::{Part, Parts};
pub use plan::{DEVICES_MAX, StripePlan, stripe_columns};
pub use segments::{BadLabel, Fence, RootError, Segments, Shared};
pub use sys::{
    Buffers, Completion, DiskSnapshot, LATENCY_BOUNDS_US, Latencies, Persist, TransferCounters,
    TransferSnapshot,
};
