//! Storage of a pool's segments: requests and completions, addressed by place.
//!
//! * [`Segments`]: blocking calls that read a place, append to a segment, free it, replace the
//!   root, and fence an epoch; [`Shared`]: a cloneable handle to it,
//! * [`Channel`]: one thread's non-blocking access to them,
//! * [`Local`]: one file or device, or any disk, such as a simulated one,
//! * [`device_set`]: several devices, mirrored or striped,
//! * [`parts`]: free parts of devices of any sizes, and their allocation to segments; not used yet,
//! * [`slow`]: the same with a latency added to each request, for tests and benchmarks.
//!
//! No layer above this crate knows an offset on a disk.

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
