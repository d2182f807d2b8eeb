//! Requests of the array to other servers on its management network: name resolution, the time, and
//! logins of directory users.
//!
//! All calls block, each within a time limit, and so must run on threads that serve no hosts, and
//! not on threads of a tokio runtime.

mod directory;
mod names;
mod time;

pub use directory::{DIRECTORY_TIMEOUT, Directories, DirectoryLogin, DirectoryTest};
pub use names::{Names, connect};
pub use time::{ClockState, TimeAnswer, Timekeeper};
