//! `connect`, `disconnect`, `connection …` and `port …`: which hosts reach which volumes, and on
//! which LUNs and ports.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args::{Common, ConnectArgs, ConnectionVerb, DisconnectArgs, PortVerb, WithHost};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, Form, show, table};
use super::rest::{Named, first, named};

/// The resource of REST 2.x.
pub const RESOURCE: &str = "connections";

/// A connection in the form of REST 2.x.
#[derive(Deserialize)]
struct Item {
    host: Named,
    host_group: Named,
    lun: u16,
    volume: Named,
}

/// A connection in the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub volume: String,
    /// `None` if the connected host group has no hosts.
    pub host: Option<String>,
    pub host_group: Option<String>,
    pub lun: u16,
}

impl Line {
    /// Returns the host that sees the volume, with the LUN: `esx1 (LUN 3)`; for a host group
    /// without hosts, the group.
    pub fn side(&self) -> String {
        let name = self.host.as_ref().or(self.host_group.as_ref());
        format!("{} (LUN {})", name.map_or("-", String::as_str), self.lun)
    }
}

impl From<Item> for Line {
    fn from(item: Item) -> Self {
        let Item { host, host_group, lun, volume } = item;
        let volume = volume.name.unwrap_or_default();
        Self { volume, host: host.name, host_group: host_group.name, lun }
    }
}

/// Returns the connections that match a query.
pub fn lines(client: &Client, query: &str) -> Result<Vec<Line>, Failure> {
    Ok(client.items::<Item>(RESOURCE, query)?.into_iter().map(Line::from).collect())
}

/// Connects a volume to a host or a host group.
pub fn connect(common: &Common, options: &ConnectArgs) -> Result<(), Failure> {
    let ConnectArgs { volume, with, lun } = options;
    let client = Client::find(common)?;
    if let Some(group) = &with.host_group {
        let made = make(&client, &pair(volume, "host_group_names", group)?, *lun)?;
        let lun = first(made.clone())?.lun;
        return show(common.form, &made, || {
            format!("The hosts of {group} now see volume {volume} as LUN {lun}.\n")
        });
    }
    let host = host(with)?;
    let made = with_host(&client, volume, host, *lun)?;
    show(common.form, &made, || {
        let Line { volume, host, lun, .. } = &made;
        let host = host.as_deref().unwrap_or_default();
        format!("Host {host} now sees volume {volume} as LUN {lun}.\n")
    })
}

/// Disconnects a volume from a host or a host group.
pub fn disconnect(common: &Common, options: &DisconnectArgs) -> Result<(), Failure> {
    let DisconnectArgs { volume, with } = options;
    if let Some(group) = &with.host_group {
        let query = pair(volume, "host_group_names", group)?;
        Client::find(common)?.order(Method::DELETE, RESOURCE, &query)?;
        let gone = json!({ "disconnected": { "volume": volume, "host_group": group } });
        return show(common.form, &gone, || {
            format!("The hosts of {group} no longer see volume {volume}.\n")
        });
    }
    let host = host(with)?;
    let query = pair(volume, "host_names", host)?;
    Client::find(common)?.order(Method::DELETE, RESOURCE, &query)?;
    let gone = json!({ "disconnected": { "volume": volume, "host": host } });
    show(common.form, &gone, || format!("Host {host} no longer sees volume {volume}.\n"))
}

/// Connects a volume to a host; without a LUN, under one that the array chooses.
pub fn with_host(
    client: &Client,
    volume: &str,
    host: &str,
    lun: Option<u16>,
) -> Result<Line, Failure> {
    first(make(client, &pair(volume, "host_names", host)?, lun)?)
}

fn make(client: &Client, query: &str, lun: Option<u16>) -> Result<Vec<Line>, Failure> {
    let body = lun.map_or_else(|| json!({}), |lun| json!({ "lun": lun }));
    let made: Vec<Item> = client.change(Method::POST, RESOURCE, query, &body)?;
    Ok(made.into_iter().map(Line::from).collect())
}

fn pair(volume: &str, parameter: &str, name: &str) -> Result<String, Failure> {
    Ok(format!("{}&{}", named("volume_names", volume)?, named(parameter, name)?))
}

/// Returns the host, unless a host group is given.
fn host(with: &WithHost) -> Result<&String, Failure> {
    let missing = || Failure::Usage("name a host, or a host group with --host-group".into());
    with.host.as_ref().ok_or_else(missing)
}

/// Runs a verb of connections.
pub fn run(common: &Common, verb: &ConnectionVerb) -> Result<(), Failure> {
    let ConnectionVerb::List { volume, host, host_group, listing } = verb;
    let wanted = [
        ("volume_names", volume.as_ref()),
        ("host_names", host.as_ref()),
        ("host_group_names", host_group.as_ref()),
    ];
    let wanted = wanted.into_iter().filter_map(|(parameter, name)| Some((parameter, name?)));
    let query = wanted.map(|(parameter, name)| named(parameter, name));
    let query = query.collect::<Result<Vec<_>, _>>()?.join("&");
    let found = listing.of(lines(&Client::find(common)?, &query)?)?;
    show(common.form, &found, || {
        listed(&found, "No connections. Connect a volume: holdfast connect VOLUME HOST")
    })
}

/// Returns a table of connections.
pub fn listed(found: &[Line], nothing: &str) -> String {
    let columns = [
        ("HOST", Align::Left),
        ("HOST GROUP", Align::Left),
        ("LUN", Align::Right),
        ("VOLUME", Align::Left),
    ];
    let or_none = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".into());
    let row = |line: &Line| {
        let (host, group) = (or_none(&line.host), or_none(&line.host_group));
        vec![host, group, line.lun.to_string(), line.volume.clone()]
    };
    table(&columns, &found.iter().map(row).collect::<Vec<_>>(), nothing)
}

/// A port of the target in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
struct Port {
    name: String,
    portal: Option<String>,
    iqn: Option<String>,
}

/// Runs a verb of ports.
pub fn ports(common: &Common, verb: &PortVerb) -> Result<(), Failure> {
    let PortVerb::List(listing) = verb;
    let ports: Vec<Port> = listing.of(Client::find(common)?.items("ports", "")?)?;
    show_ports(common.form, &ports)
}

fn show_ports(form: Form, ports: &[Port]) -> Result<(), Failure> {
    let columns = [("NAME", Align::Left), ("PORTAL", Align::Left), ("TARGET", Align::Left)];
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let row = |port: &Port| vec![port.name.clone(), text(&port.portal), text(&port.iqn)];
    show(form, &ports, || table(&columns, &ports.iter().map(row).collect::<Vec<_>>(), "No ports."))
}
