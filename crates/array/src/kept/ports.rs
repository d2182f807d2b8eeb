//! The ids of target ports, which stay with their addresses.
//!
//! A port's relative target port identifier (SPC-4, 7.8.6.8) is part of its name, and registrations
//! name it: an I_T nexus consists of an initiator port and a target port (SAM-5, 4.7). So it must
//! not depend on the order of the addresses in the options of `serve`: each address keeps the id
//! that it got when it was first served. In a pool of a version that did not store ids, the first
//! start stores the positions of the addresses, which were the ids.
//!
//! An address that is no longer served keeps its id, because it may be served again. If there would
//! be more than [`PORTS_MAX`] addresses, those are removed that are not served and that no
//! registration names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::ports::{PORTS_MAX, PortPlace, Ports};
use crate::record;
use crate::state::State;

/// Returns the places of the ports at these addresses, in their order.
fn places(addresses: &[SocketAddr]) -> Vec<PortPlace> {
    let mut seen: BTreeMap<SocketAddr, u16> = BTreeMap::new();
    let place = |address: &SocketAddr| {
        let count = seen.entry(*address).or_default();
        *count += 1;
        PortPlace { address: *address, nth: *count - 1 }
    };
    addresses.iter().map(place).collect()
}

/// Returns all ports once these places are served. Each new place gets the lowest free id.
fn serving(state: &State, served: &[PortPlace]) -> Ports {
    let mut ports = state.ports.clone();
    let is_new = |place: &&PortPlace| !state.ports.contains_key(place);
    let new: Vec<PortPlace> = served.iter().filter(is_new).copied().collect();
    if ports.len() + new.len() > PORTS_MAX {
        let named: BTreeSet<u16> = state.host_states.named_ports().collect();
        ports.retain(|place, id| served.contains(place) || named.contains(id));
    }
    let mut taken: BTreeSet<u16> = ports.values().copied().collect();
    for place in new {
        if let Some(id) = (1..=u16::MAX).find(|id| taken.insert(*id)) {
            ports.insert(place, id);
        }
    }
    ports
}

impl Array {
    /// Returns the relative target port identifiers of the ports at these addresses, in their
    /// order; durable when it returns. An address keeps its identifier from the first time it is
    /// served, regardless of its position in the list.
    ///
    /// # Errors
    /// `limit_reached` if there are more than [`PORTS_MAX`], with those that registrations name,
    /// and the errors of the store.
    pub fn port_ids(&self, addresses: &[SocketAddr]) -> Result<Vec<u16>, Error> {
        let served = places(addresses);
        self.change(
            |state| {
                let ports = serving(state, &served);
                if ports.len() > PORTS_MAX {
                    return Err(Error::Limit { what: "target ports", limit: PORTS_MAX });
                }
                let gone = state.ports.iter().filter(|(place, _)| !ports.contains_key(place));
                let mut rows: BTreeMap<u16, _> = gone.map(|(_, id)| (*id, None)).collect();
                // After the removal of the others: a new port may get the id of one of them.
                for (place, id) in ports.iter().filter(|(p, _)| !state.ports.contains_key(p)) {
                    rows.insert(*id, Some(record::port(place)?));
                }
                // Notes, because a full pool must start on another address.
                let notes = rows.into_iter().map(|(id, row)| (record::port_key(id), row));
                Ok((Change { notes: notes.collect(), ..Change::default() }, ports))
            },
            |state, ports| {
                let ids = served.iter().filter_map(|place| ports.get(place).copied()).collect();
                state.ports = ports;
                ids
            },
        )
    }
}
