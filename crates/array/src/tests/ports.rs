//! Ids of target ports over restarts.

use std::net::SocketAddr;

use format::HostState;
use format::target_state::{NexusName, Registration};

use super::{new_array, new_volume};
use crate::{Array, PORTS_MAX};

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

#[test]
fn an_address_keeps_its_id_in_any_order() {
    let (store, array) = new_array();
    assert_eq!(array.port_ids(&[at(1), at(2)]).unwrap(), [1, 2], "as before ids were kept");
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(array.port_ids(&[at(2), at(1)]).unwrap(), [2, 1]);
    assert_eq!(array.port_ids(&[at(3), at(2)]).unwrap(), [3, 2], "the id of 1 is not free");
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.port_ids(&[at(1), at(3), at(2)]).unwrap(), [1, 3, 2]);
    assert!(array.port_ids(&[]).unwrap().is_empty());
}

#[test]
fn one_address_can_be_several_ports() {
    let (store, array) = new_array();
    assert_eq!(array.port_ids(&[at(0), at(7), at(0)]).unwrap(), [1, 2, 3]);
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.port_ids(&[at(7), at(0), at(0), at(0)]).unwrap(), [2, 1, 3, 4]);
    let scoped: SocketAddr = "[fe80::1%3]:3260".parse().unwrap();
    assert_eq!(array.port_ids(&[scoped]).unwrap(), [5]);
    assert_eq!(array.port_ids(&[at(0), scoped]).unwrap(), [1, 5]);
}

#[test]
fn only_unneeded_ports_are_forgotten() {
    let (store, array) = new_array();
    let all: Vec<SocketAddr> = (0..PORTS_MAX as u16).map(|port| at(100 + port)).collect();
    array.port_ids(&all).unwrap();
    let volume = array.create_volume(new_volume("one", 4096)).unwrap().id;
    let nexus = NexusName { target_port: 3, id: [0; 16], host: "iqn.a".into() };
    let registrations = vec![Registration { nexus, key: 1 }];
    let kept = HostState { aptpl: true, registrations, ..HostState::default() };
    array.keep_host_state(volume, Some(kept)).unwrap();
    // 5 is served, a registration names 3; each other id is free again.
    assert_eq!(array.port_ids(&[at(1), at(104), at(2), at(3)]).unwrap(), [1, 5, 2, 4]);
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.port_ids(&[at(3), at(102), at(104)]).unwrap(), [4, 3, 5]);
    let more: Vec<SocketAddr> = (0..=PORTS_MAX as u16).map(|port| at(2000 + port)).collect();
    assert_eq!(array.port_ids(&more).unwrap_err().code(), "limit_reached");
    assert_eq!(array.port_ids(&[at(2), at(104)]).unwrap(), [2, 5], "nothing has changed");
}
