//! What the array asks of others on its management network: addresses of names.
//!
//! All of it waits for others, each time within a limit, and so belongs on threads that serve no
//! hosts, and on none that runs a runtime of tokio.

mod names;

pub use names::{Names, connect};
