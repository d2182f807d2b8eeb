//! The known hardware of the array: `controllers`, `drives`, `hardware`, `ports`,
//! `network-interfaces`.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::arrays::{COMPATIBLE_VERSION, listed_by_name, short};
use super::{
    Answer, ItemsOf, ListParams, Listed, MaybeNamed, NameParams, Query, Refusals, Refused,
};
use crate::controllers::{Controller, NOT_THERE, STOPPED};
use crate::{Device, DeviceState, Interface, Shared};

listed_by_name!(RestController, RestDrive, RestHardware, RestInterface, RestPort);

/// A controller.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestController {
    /// `CT0` or `CT1`.
    pub name: String,
    /// `primary`: it has the pool; `secondary`: it takes over when the other one ends.
    pub mode: String,
    /// Since when it has had this mode, in milliseconds since 1970.
    pub mode_since: u64,
    /// Its model.
    pub model: String,
    /// `ready` or `not ready`.
    pub status: String,
    /// `array_controller`.
    pub r#type: String,
    /// See [`COMPATIBLE_VERSION`].
    pub version: String,
}

/// Lists the controllers: one or two.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/controllers",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestController>), Refusals)
)]
pub(super) async fn controllers(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let one = |controller: Controller| RestController {
            name: controller.name,
            mode: controller.mode,
            mode_since: controller.started_ms,
            model: "Holdfast".into(),
            status: match controller.status.as_str() {
                STOPPED => NOT_THERE.into(),
                _ => controller.status,
            },
            r#type: "array_controller".into(),
            version: COMPATIBLE_VERSION.into(),
        };
        Controller::all(interface).into_iter().map(one).collect()
    })
    .await
}

/// A drive: a device of the pool.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestDrive {
    /// `CH0.BAY` and its number in the pool.
    pub name: String,
    /// Its size in bytes; 0 if it is missing.
    pub capacity: u64,
    /// Its path; and why it is out, or its progress in catching up, with the remaining
    /// time.
    #[schema(required = true)]
    pub details: Option<String>,
    /// How it is attached: `null`, the array does not know.
    #[schema(required = true)]
    pub protocol: Option<String>,
    /// `healthy`; `unhealthy`, which reports that it is failing; `recovering`, which is catching
    /// up; `failed`, which is out; `missing`.
    pub status: String,
    /// `SSD`.
    pub r#type: String,
}

/// Returns whether a device reports that it fails.
fn is_failing(device: &Device) -> bool {
    device.health.as_ref().is_some_and(|it| it.passed == Some(false))
}

impl From<Device> for RestDrive {
    fn from(device: Device) -> Self {
        let status = match device.state {
            DeviceState::In if is_failing(&device) => "unhealthy",
            DeviceState::In => "healthy",
            DeviceState::CatchingUp => "recovering",
            DeviceState::Out => "failed",
            DeviceState::Missing => "missing",
        };
        let more = device.why_out.clone().or_else(|| {
            let progress = device.catching_up?;
            let left = progress.left().map_or_else(String::new, |left| format!(", {left}"));
            Some(format!("{}% complete{left}", progress.percent()))
        });
        let details = match more {
            Some(more) if device.name.is_empty() => more,
            Some(more) => format!("{}: {more}", device.name),
            None => device.name,
        };
        Self {
            name: format!("CH0.BAY{}", device.number),
            capacity: device.len_bytes,
            details: Some(details).filter(|details| !details.is_empty()),
            protocol: None,
            status: status.into(),
            r#type: "SSD".into(),
        }
    }
}

/// Lists the devices of the pool.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/drives",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestDrive>), Refusals)
)]
pub(super) async fn drives(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        interface.devices().devices.into_iter().map(RestDrive::from).collect()
    })
    .await
}

/// Changes drives: always refused; `/v1/devices` changes the devices of the pool.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/drives",
    tag = "hardware",
    params(NameParams),
    responses(Refusals)
)]
pub(super) async fn change_drives() -> Refused {
    Refused::unsupported("", "Settings of drives")
}

/// A part of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHardware {
    /// The component's name.
    pub name: String,
    /// More about its state.
    #[schema(required = true)]
    pub details: Option<String>,
    /// Whether its locator light is on; it has none.
    pub identify_enabled: bool,
    /// Its number among parts of the same type.
    pub index: u32,
    /// Its model.
    pub model: String,
    /// `ok`, `unhealthy` (a drive, by its own report), `critical` (out or not ready) or
    /// `not_installed` (missing).
    pub status: String,
    /// Its serial number: empty, because the array does not know the machine's.
    pub serial: String,
    /// Its temperature in degrees Celsius, if it reports one.
    #[schema(required = true)]
    pub temperature: Option<i64>,
    /// `controller` or `drive_bay`.
    pub r#type: String,
}

/// Lists the known parts of the array: its controllers and its drives.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hardware",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHardware>), Refusals)
)]
pub(super) async fn hardware(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let one = |(index, controller): (u32, Controller)| RestHardware {
            name: controller.name,
            details: None,
            identify_enabled: false,
            index,
            model: "Holdfast".into(),
            status: if controller.status == "ready" { "ok" } else { "critical" }.into(),
            serial: String::new(),
            temperature: None,
            r#type: "controller".into(),
        };
        let controllers = (0..).zip(Controller::all(interface)).map(one);
        let drives = interface.devices().devices.into_iter().map(RestHardware::from);
        controllers.chain(drives).collect()
    })
    .await
}

impl From<Device> for RestHardware {
    fn from(device: Device) -> Self {
        let index = device.number.into();
        let temperature = device.health.as_ref().and_then(|health| health.temperature_c);
        let status = match device.state {
            DeviceState::In if is_failing(&device) => "unhealthy",
            DeviceState::In | DeviceState::CatchingUp => "ok",
            DeviceState::Out => "critical",
            DeviceState::Missing => "not_installed",
        };
        let drive = RestDrive::from(device);
        Self {
            name: drive.name,
            details: drive.details,
            identify_enabled: false,
            index,
            model: String::new(),
            status: status.into(),
            serial: String::new(),
            temperature,
            r#type: "drive_bay".into(),
        }
    }
}

/// A port to which hosts log in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPort {
    /// `CT0.ETH` or `CT1.ETH` and a number.
    pub name: String,
    /// The iSCSI name of the target.
    #[schema(required = true)]
    pub iqn: Option<String>,
    /// Its NVMe name: `null`.
    #[schema(required = true)]
    pub nqn: Option<String>,
    /// Where it listens, as `ADDRESS:PORT`.
    #[schema(required = true)]
    pub portal: Option<String>,
    /// Its Fibre Channel name: `null`.
    #[schema(required = true)]
    pub wwn: Option<String>,
    /// The port that it replaces: `null`.
    #[schema(required = true)]
    pub failover: Option<String>,
}

/// Lists the ports to which hosts log in.
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
        let portals = interface.facts.named_portals().into_iter();
        portals.map(|(name, portal)| RestPort::new(name, portal, &target)).collect()
    })
    .await
}

impl RestPort {
    fn new(name: String, portal: &str, target: &str) -> Self {
        Self {
            name,
            iqn: Some(target.to_owned()),
            nqn: None,
            portal: Some(portal.to_owned()),
            wwn: None,
            failover: None,
        }
    }
}

/// Returns the ports with their relative identifiers, by which sessions refer to them.
pub(super) fn numbered_ports(interface: &Interface) -> Vec<(u16, RestPort)> {
    let target = interface.array.settings().target_name.to_string();
    let facts = &interface.facts;
    let ports = facts.port_ids.iter().zip(facts.port_names().zip(&facts.portals));
    ports.map(|(id, (name, portal))| (*id, RestPort::new(name, portal, &target))).collect()
}

/// A network interface of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestInterface {
    /// `ct0.eth` or `ct1.eth` and a number, as that of its port.
    pub name: String,
    /// Whether it is in use: always.
    pub enabled: bool,
    /// Its address.
    pub eth: RestEthernet,
    /// `eth`.
    pub interface_type: String,
    /// `iscsi`.
    pub services: Vec<String>,
    /// Its speed in bits per second: 0, because the array does not know the machine's.
    pub speed: u64,
}

/// The address of an interface.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestEthernet {
    /// The address, without its port.
    #[schema(required = true)]
    pub address: Option<String>,
    /// `physical`.
    pub subtype: String,
    /// The interfaces that it combines: none.
    pub subinterfaces: Vec<String>,
    /// Its subnet: `{}`, subnets are not supported.
    pub subnet: MaybeNamed,
}

/// Lists the interfaces on which hosts log in.
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
        let one = |(name, portal): (String, &str)| RestInterface {
            name: name.to_lowercase(),
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
        interface.facts.named_portals().into_iter().map(one).collect()
    })
    .await
}

/// Changes parts of the array: always refused, as they have no settings.
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

/// Changes interfaces: always refused, as the operating system configures them.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/network-interfaces",
    tag = "hardware",
    params(NameParams),
    responses(Refusals)
)]
pub(super) async fn change_interfaces() -> Refused {
    Refused::unsupported("", "Changing network settings, which belong to the operating system")
}
