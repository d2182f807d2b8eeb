//! What the array asks of others on its management network: addresses of names, the time, and
//! whether users of a directory service may log in.
//!
//! All of it waits for others, each time within a limit, and so belongs on threads that serve no
//! hosts, and on none that runs a runtime of tokio.

mod directory;
mod names;
mod time;

pub use directory::{DIRECTORY_TIMEOUT, Directories, DirectoryLogin, DirectoryTest};
pub use names::{Names, connect};
pub use time::{ClockState, TimeAnswer, Timekeeper};
