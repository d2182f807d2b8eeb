//! What the array is made of, as far as it knows: `controllers`, `hardware`, `ports`,
//! `network-interfaces`.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::arrays::{COMPATIBLE_VERSION, listed_by_name, short};
use super::{
    Answer, ItemsOf, ListParams, Listed, MaybeNamed, NameParams, Query, Refusals, Refused,
};
use crate::Shared;
use crate::devices::CONTROLLER;

listed_by_name!(RestController, RestHardware, RestInterface, RestPort);

/// A controller.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestController {
    /// `CT0`.
    pub name: String,
    /// `primary`.
    pub mode: String,
    /// Since when it is, in milliseconds since 1970.
    pub mode_since: u64,
    /// What it is.
    pub model: String,
    /// `ready`.
    pub status: String,
    /// `array_controller`.
    pub r#type: String,
    /// See [`COMPATIBLE_VERSION`].
    pub version: String,
}

/// The controllers: one.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/controllers",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestController>), Refusals)
)]
pub(super) async fn controllers(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        vec![RestController {
            name: CONTROLLER.into(),
            mode: "primary".into(),
            mode_since: interface.facts.started_ms,
            model: "Holdfast".into(),
            status: "ready".into(),
            r#type: "array_controller".into(),
            version: COMPATIBLE_VERSION.into(),
        }]
    })
    .await
}

/// A part of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHardware {
    /// Its name.
    pub name: String,
    /// More of its state.
    pub details: Option<String>,
    /// Whether a light shows where it is: it has none.
    pub identify_enabled: bool,
    /// Which one of its sort it is.
    pub index: u32,
    /// What it is.
    pub model: String,
    /// `ok`.
    pub status: String,
    /// Its serial number: empty, the array does not know that of the machine's.
    pub serial: String,
    /// `controller`.
    pub r#type: String,
}

/// The parts of the array that it knows of: its controller.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hardware",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHardware>), Refusals)
)]
pub(super) async fn hardware(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |_| {
        vec![RestHardware {
            name: CONTROLLER.into(),
            details: None,
            identify_enabled: false,
            index: 0,
            model: "Holdfast".into(),
            status: "ok".into(),
            serial: String::new(),
            r#type: "controller".into(),
        }]
    })
    .await
}

/// A port to which hosts log in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPort {
    /// `CT0.ETH` and a number.
    pub name: String,
    /// The iSCSI name of the target.
    pub iqn: Option<String>,
    /// Its NVMe name: none.
    pub nqn: Option<String>,
    /// Where it listens, as `ADDRESS:PORT`.
    pub portal: Option<String>,
    /// Its Fibre Channel name: none.
    pub wwn: Option<String>,
    /// The port that it stands in for: none.
    pub failover: Option<String>,
}

/// The ports to which hosts log in.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/ports",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestPort>), Refusals)
)]
pub(super) async fn ports(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let target = interface.array.settings().target_name.to_string();
        let port = |(number, portal): (usize, &String)| RestPort {
            name: format!("{CONTROLLER}.ETH{number}"),
            iqn: Some(target.clone()),
            nqn: None,
            portal: Some(portal.clone()),
            wwn: None,
            failover: None,
        };
        interface.facts.portals.iter().enumerate().map(port).collect()
    })
    .await
}

/// An interface of the array to the network.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestInterface {
    /// `ct0.eth` and a number, as that of its port.
    pub name: String,
    /// Whether it is in use: always.
    pub enabled: bool,
    /// Its address.
    pub eth: RestEthernet,
    /// `eth`.
    pub interface_type: String,
    /// `iscsi`.
    pub services: Vec<String>,
    /// Its speed in bits a second: 0, as the array does not know that of the machine's.
    pub speed: u64,
}

/// The address of an interface.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestEthernet {
    /// The address, without its port.
    pub address: Option<String>,
    /// `physical`.
    pub subtype: String,
    /// The interfaces that it is made of: none.
    pub subinterfaces: Vec<String>,
    /// Its subnet: `{}`, there are none.
    pub subnet: MaybeNamed,
}

/// The interfaces on which hosts log in.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/network-interfaces",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestInterface>), Refusals)
)]
pub(super) async fn network_interfaces(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let address = |portal: &str| portal.parse::<std::net::SocketAddr>().ok();
        let one = |(number, portal): (usize, &String)| RestInterface {
            name: format!("ct0.eth{number}"),
            enabled: true,
            eth: RestEthernet {
                address: address(portal).map(|address| address.ip().to_string()),
                subtype: "physical".into(),
                subinterfaces: Vec::new(),
                subnet: MaybeNamed::default(),
            },
            interface_type: "eth".into(),
            services: vec!["iscsi".into()],
            speed: 0,
        };
        interface.facts.portals.iter().enumerate().map(one).collect()
    })
    .await
}

/// Settings of the parts of the array: refused, there are none.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/hardware",
    tag = "hardware",
    params(NameParams),
    responses(Refusals)
)]
pub(super) async fn change_hardware() -> Refused {
    Refused::unsupported("", "Settings of hardware")
}

/// Settings of interfaces: refused, the operating system has them.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/network-interfaces",
    tag = "hardware",
    params(NameParams),
    responses(Refusals)
)]
pub(super) async fn change_interfaces() -> Refused {
    Refused::unsupported("", "Settings of the network, which are the operating system's")
}
