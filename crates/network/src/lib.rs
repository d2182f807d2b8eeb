//! What the array asks of others on its management network: addresses of names, and the time.
//!
//! All of it waits for others, each time within a limit, and so belongs on threads that serve no
//! hosts, and on none that runs a runtime of tokio.

mod names;
mod time;

pub use names::{Names, connect};
pub use time::{ClockState, TimeAnswer, Timekeeper};
