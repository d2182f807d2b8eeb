//! Common parts of the tests of the real binary: an array that is started, killed and queried by
//! its verbs, loads of hosts that know what every block must contain, and rows of a report.

pub mod array;
pub mod command;
pub mod devices;
pub mod linear;
pub mod load;
pub mod pair;
mod ports;
pub mod process;
pub mod random;
pub mod report;
mod shape;
pub mod target;
