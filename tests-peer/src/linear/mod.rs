//! Histories of commands to a few blocks of two volumes, and a checker that decides whether any
//! order of them explains what hosts saw.
//!
//! - [`history`]: what was done and when; [`checker`]: whether it is right; [`lines`]: for other
//!   checkers.
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
