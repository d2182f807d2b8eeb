//! Commands from hand-made CDBs against volumes in memory.

mod copy;
mod data;
mod discovery;
mod fuzz;
mod long;
mod parameters;
mod reservations;
mod tokens;
mod world;
mod writes;
