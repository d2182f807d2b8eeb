//! `network-interfaces/performance`: the data that commands moved through each port.

use axum::extract::State;
use history::Object;
use serde::Serialize;
use utoipa::ToSchema;

use super::performance::RestPerformance;
use super::performance_by_array::RestArrayNamed;
use super::performance_groups::summed;
use super::performance_lists::TimeParams;
use super::{Answer, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused};
use crate::together::Members;
use crate::{Interface, Shared};

/// The traffic of a network interface.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestInterfacePerformance {
    /// The interface's name.
    pub name: String,
    /// When the sample begins, in milliseconds since 1970; for the last second, when it ends.
    pub time: u64,
    /// `eth`.
    pub interface_type: String,
    /// Its traffic.
    pub eth: RestEthernetPerformance,
}

/// The traffic of an Ethernet interface. Packets and errors are the operating system's: `null`.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RestEthernetPerformance {
    /// Bytes of data that hosts wrote, without headers.
    pub received_bytes_per_sec: u64,
    /// Bytes of data that hosts read, without headers.
    pub transmitted_bytes_per_sec: u64,
    /// Packets: not measured.
    #[schema(required = true)]
    pub received_packets_per_sec: Option<u64>,
    /// Packets: not measured.
    #[schema(required = true)]
    pub transmitted_packets_per_sec: Option<u64>,
    /// Checksum errors: not measured.
    #[schema(required = true)]
    pub received_crc_errors_per_sec: Option<u64>,
    /// Frame errors: not measured.
    #[schema(required = true)]
    pub received_frame_errors_per_sec: Option<u64>,
    /// Carrier errors: not measured.
    #[schema(required = true)]
    pub transmitted_carrier_errors_per_sec: Option<u64>,
    /// Dropped packets: not measured.
    #[schema(required = true)]
    pub transmitted_dropped_errors_per_sec: Option<u64>,
    /// Other errors: not measured.
    #[schema(required = true)]
    pub other_errors_per_sec: Option<u64>,
    /// All errors: not measured.
    #[schema(required = true)]
    pub total_errors_per_sec: Option<u64>,
}

impl RestEthernetPerformance {
    fn of(performance: &RestPerformance) -> Self {
        Self {
            received_bytes_per_sec: performance.write_bytes_per_sec,
            transmitted_bytes_per_sec: performance.read_bytes_per_sec,
            ..Self::default()
        }
    }
}

impl Listed for RestInterfacePerformance {
    fn key(&self) -> String {
        format!("{}\n{:020}", self.name, self.time)
    }
}

/// Returns the traffic of the interfaces on which hosts log in.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/network-interfaces/performance",
    tag = "hardware",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestInterfacePerformance>), Refusals)
)]
pub(super) async fn of_interfaces(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.list("names")?;
    let item = |_: &RestArrayNamed, (): &(), name, time, performance: RestPerformance| {
        let eth = RestEthernetPerformance::of(&performance);
        RestInterfacePerformance { name, time, interface_type: "eth".into(), eth }
    };
    summed(interface, query, move |interface| named(interface, &names), item).await
}

/// Returns the named interfaces, or all.
fn named(interface: &Interface, names: &[String]) -> Result<Vec<((), Members)>, Refused> {
    let facts = &interface.facts;
    let objects = facts.port_ids.iter().map(|id| vec![(Object::Port(u64::from(*id)), 0)]);
    let port_names = facts.port_names().map(|name| name.to_lowercase());
    let mut found: Vec<_> =
        port_names.zip(objects).map(|(name, objects)| Members { name, objects }).collect();
    let is = |port: &Members, name: &String| port.name.eq_ignore_ascii_case(name);
    if let Some(missing) = names.iter().find(|name| !found.iter().any(|port| is(port, name))) {
        return Err(Refused::missing(missing));
    }
    found.retain(|port| names.is_empty() || names.iter().any(|name| is(port, name)));
    Ok(found.into_iter().map(|port| ((), port)).collect())
}
