//! Commands from hand-made CDBs against volumes in memory.

mod barred;
mod copy;
mod data;
mod discovery;
mod fuzz;
mod keeping;
mod long;
mod parameters;
mod registering;
mod reservations;
mod tokens;
mod world;
mod writes;
