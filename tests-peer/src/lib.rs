//! What the tests of the real binary have in common: an array that is started, killed and asked by
//! its verbs, hosts' loads that know what every block must hold, and rows of a report.

pub mod array;
pub mod command;
pub mod devices;
pub mod linear;
pub mod load;
pub mod pair;
pub mod process;
pub mod random;
pub mod report;
mod shape;
pub mod target;
