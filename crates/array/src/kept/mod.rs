//! What the array stores for the target without interpreting it: states of hosts, ROD tokens, the
//! ids of ports.
//!
//! The array records which incarnation of the pool wrote a state or a token. The ids of ports are
//! the same in all incarnations.

mod host_states;
mod ports;
mod tokens;
