//! Target ports as they are stored.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The maximum number of addresses that are served or remembered.
pub const PORTS_MAX: usize = 256;

/// The listening address of a target port, as the administrator gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortPlace {
    pub address: SocketAddr,
    /// Its position among those with the same address. There can be several with port 0, which
    /// stands for any free port.
    pub nth: u16,
}

/// The ids of all ports that were ever served, by their listening addresses.
pub(crate) type Ports = BTreeMap<PortPlace, u16>;
