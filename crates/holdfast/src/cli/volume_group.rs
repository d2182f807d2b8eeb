//! `volume-group …`.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args::{Common, VolumeGroupVerb};
use super::client::Client;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, show, table};
use super::rest::{first, named};
use super::size::human;

const RESOURCE: &str = "volume-groups";

/// A volume group in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
struct VolumeGroup {
    name: String,
    volume_count: u64,
    destroyed: bool,
    space: Space,
}

/// The stored data of its volumes.
#[derive(Serialize, Deserialize)]
struct Space {
    total_provisioned: u64,
    #[serde(rename = "virtual")]
    written: u64,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &VolumeGroupVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        VolumeGroupVerb::Create { name } => {
            let query = named("names", name)?;
            let made = client.change(Method::POST, RESOURCE, &query, &json!({}))?;
            let made: VolumeGroup = first(made)?;
            let next = format!("holdfast volume create {}/NAME --size SIZE", made.name);
            show(form, &made, || {
                format!("Volume group {} is made. Make a volume in it: {next}\n", made.name)
            })
        }
        VolumeGroupVerb::List { destroyed, listing } => list(&client, form, *destroyed, listing),
        VolumeGroupVerb::Rename { name, new_name } => {
            let group = patched(&client, name, &json!({ "name": new_name }))?;
            show(form, &group, || {
                format!(
                    "Volume group {name} is called {} now, and so are its volumes.\n",
                    group.name
                )
            })
        }
        VolumeGroupVerb::Destroy { name, eradicate } => {
            patched(&client, name, &json!({ "destroyed": true }))?;
            if *eradicate {
                gone(&client, name)?;
            }
            show(form, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Volume group {name} is gone, with its volumes.\n"),
                false => format!(
                    "Volume group {name} is destroyed with its volumes. To bring them back: \
                     holdfast volume-group recover {name}\n"
                ),
            })
        }
        VolumeGroupVerb::Recover { name } => {
            let group = patched(&client, name, &json!({ "destroyed": false }))?;
            show(form, &group, || format!("Volume group {name} is back, with its volumes.\n"))
        }
        VolumeGroupVerb::Eradicate { name } => {
            gone(&client, name)?;
            show(form, &json!({ "eradicated": name }), || {
                format!("Volume group {name} is gone, with its volumes.\n")
            })
        }
    }
}

fn patched(client: &Client, name: &str, body: &serde_json::Value) -> Result<VolumeGroup, Failure> {
    first(client.change(Method::PATCH, RESOURCE, &named("names", name)?, body)?)
}

fn gone(client: &Client, name: &str) -> Result<(), Failure> {
    client.order(Method::DELETE, RESOURCE, &named("names", name)?)
}

fn list(client: &Client, form: Form, destroyed: bool, listing: &Listing) -> Result<(), Failure> {
    let groups = client.items(RESOURCE, &format!("destroyed={destroyed}"))?;
    let groups: Vec<VolumeGroup> = listing.of(groups)?;
    let columns = [
        ("NAME", Align::Left),
        ("VOLUMES", Align::Right),
        ("SIZE", Align::Right),
        ("WRITTEN", Align::Right),
    ];
    let row = |group: &VolumeGroup| {
        let Space { total_provisioned, written } = group.space;
        let count = group.volume_count.to_string();
        vec![group.name.clone(), count, human(total_provisioned), human(written)]
    };
    show(form, &groups, || {
        let rows: Vec<_> = groups.iter().map(row).collect();
        table(&columns, &rows, "No volume groups. Make one: holdfast volume-group create NAME")
    })
}
