//! The node's calls on a simulated machine, whose driver and array are killed at any step.

mod calls;
mod kills;
mod process;
mod programs;
mod secrets;
mod sysfs;
mod world;
