//! What the array keeps for the target without knowing what it means: states of hosts, ROD tokens,
//! the ids of ports.
//!
//! The array notes which incarnation of the pool has written a state or a token. The ids of ports
//! are the same in all incarnations.

mod host_states;
mod ports;
mod tokens;
