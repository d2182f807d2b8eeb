//! Target ports as they are stored.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How many addresses can be served, and are remembered.
pub const PORTS_MAX: usize = 256;

/// Where a target port listens, as the administrator said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortPlace {
    pub address: SocketAddr,
    /// Which of those with the same address: with port 0, which stands for any free one, there can
    /// be several.
    pub nth: u16,
}

/// The ids of all ports that were ever served, by where they listen.
pub(crate) type Ports = BTreeMap<PortPlace, u16>;
