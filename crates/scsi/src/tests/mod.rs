//! Commands from hand-made CDBs against volumes in memory.

mod alua;
mod copy;
mod data;
mod discovery;
mod fuzz;
mod long;
mod offloads;
mod parameters;
mod reservations;
mod thresholds;
mod world;
