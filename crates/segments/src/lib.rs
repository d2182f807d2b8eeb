//! Where segments live: requests and completions.
//!
//! * [`Channel`]: one thread's way to them, which blocks nobody; [`Local`]: one file or device,
//! * [`slow`]: the same with a latency added to each request, for tests and benchmarks.

pub mod channel;
pub mod local;
pub mod slow;

pub use channel::Channel;
pub use local::Local;
pub use sys::{Buffers, Completion, Persist};
