//! Histories of what hosts did to a few blocks of two volumes, and a checker that says whether what
//! they saw can have happened in any order.
//!
//! - [`history`]: what was done and when; [`checker`]: whether it is right; [`lines`]: for others
//!   who judge it.
//! - [`zone`]: the blocks and the commands on them; [`seen`]: what hosts saw of them; [`rounds`]:
//!   threads that begin and end together.

pub mod checker;
#[cfg(test)]
mod checker_tests;
#[cfg(test)]
mod fault_tests;
pub mod history;
pub mod lines;
mod parts;
pub mod rounds;
pub mod seen;
mod tighten;
pub mod zone;
