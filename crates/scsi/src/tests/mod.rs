//! Commands from handmade CDBs against volumes in memory.

mod alua;
mod attentions;
mod barred;
mod bounded;
mod cdbs;
mod copy;
mod data;
mod discovery;
mod fuzz;
mod keeping;
mod long;
mod offloads;
mod parameters;
mod provisioning;
mod registering;
mod reservations;
mod saves;
mod thresholds;
mod token_ends;
mod tokens;
mod world;
mod writes;
