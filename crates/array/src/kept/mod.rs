//! What is stored for the target, without knowing what it means: states of hosts, ROD tokens, the
//! ids of ports.

mod host_states;
mod ports;
mod tokens;
