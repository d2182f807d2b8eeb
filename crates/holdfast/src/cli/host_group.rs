//! `host-group …`.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args::{Common, HostGroupVerb};
use super::client::Client;
use super::connection::{self, Line};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table};
use super::rest::{Named, first, named, names};

const RESOURCE: &str = "host-groups";
const HOSTS: &str = "host-groups/hosts";

/// A host group in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
struct HostGroup {
    name: String,
    host_count: u64,
    connection_count: u64,
}

/// A member of a group in the form of REST 2.x.
#[derive(Deserialize)]
pub struct Member {
    pub group: Named,
    pub member: Named,
}

/// A host group with its members and connections.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    group: HostGroup,
    hosts: Vec<String>,
    connections: Vec<Line>,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &HostGroupVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        HostGroupVerb::Create { name } => {
            let query = named("names", name)?;
            let made = client.change(Method::POST, RESOURCE, &query, &json!({}))?;
            let made: HostGroup = first(made)?;
            show(form, &made, || {
                format!(
                    "Host group {0} was created. Add hosts: holdfast host-group add {0} HOST\n",
                    made.name
                )
            })
        }
        HostGroupVerb::Add { name, hosts } => {
            client.order(Method::POST, HOSTS, &with(name, hosts)?)?;
            show(form, &json!({ "host_group": name, "added": hosts }), || {
                format!("Host group {name} now has {}.\n", hosts.join(", "))
            })
        }
        HostGroupVerb::Remove { name, hosts } => {
            client.order(Method::DELETE, HOSTS, &with(name, hosts)?)?;
            show(form, &json!({ "host_group": name, "removed": hosts }), || {
                format!("Host group {name} no longer has {}.\n", hosts.join(", "))
            })
        }
        HostGroupVerb::List(listing) => list(&client, form, listing),
        HostGroupVerb::Show { name } => show_one(&client, form, name),
        HostGroupVerb::Rename { name, new_name } => {
            let body = json!({ "name": new_name });
            let query = named("names", name)?;
            let group: HostGroup = first(client.change(Method::PATCH, RESOURCE, &query, &body)?)?;
            show(form, &group, || format!("Host group {name} was renamed to {}.\n", group.name))
        }
        HostGroupVerb::Delete { name } => {
            client.order(Method::DELETE, RESOURCE, &named("names", name)?)?;
            show(form, &json!({ "deleted": name }), || format!("Host group {name} is deleted.\n"))
        }
    }
}

fn with(group: &str, hosts: &[String]) -> Result<String, Failure> {
    Ok(format!("{}&member_names={}", named("group_names", group)?, names(hosts)?))
}

fn list(client: &Client, form: Form, listing: &Listing) -> Result<(), Failure> {
    let groups: Vec<HostGroup> = listing.of(client.items(RESOURCE, "")?)?;
    let columns = [("NAME", Align::Left), ("HOSTS", Align::Right), ("VOLUMES", Align::Right)];
    let row = |group: &HostGroup| {
        vec![group.name.clone(), group.host_count.to_string(), group.connection_count.to_string()]
    };
    show(form, &groups, || {
        let rows: Vec<_> = groups.iter().map(row).collect();
        table(&columns, &rows, "No host groups. Create one: holdfast host-group create NAME")
    })
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let group: HostGroup = client.item(RESOURCE, &named("names", name)?)?;
    let members: Vec<Member> = client.items(HOSTS, &named("group_names", name)?)?;
    let hosts = members.into_iter().filter_map(|member| member.member.name).collect();
    let connections = connection::lines(client, &named("host_group_names", name)?)?;
    let shown = Shown { group, hosts, connections };
    show(form, &shown, || {
        let hosts = match shown.hosts.is_empty() {
            true => "none".into(),
            false => shown.hosts.join(", "),
        };
        let facts = facts(&[("Name", shown.group.name.clone()), ("Hosts", hosts)]);
        let nothing = "No volumes are connected.";
        format!("{facts}\n{}", connection::listed(&shown.connections, nothing))
    })
}
