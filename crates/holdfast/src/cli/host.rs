//! `host …`.

use std::path::Path;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::args::{ChapArgs, Common, HostVerb};
use super::client::Client;
use super::connection;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table};
use super::rest::{Named, first, named};

/// The resource of REST 2.x.
pub const RESOURCE: &str = "hosts";

/// A host in the form of REST 2.x.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    pub iqns: Vec<String>,
    chap: Chap,
    connection_count: u64,
    host_group: Named,
    personality: Option<String>,
    port_connectivity: Connectivity,
}

/// How a host and the target authenticate each other: secrets are never shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chap {
    host_user: Option<String>,
    target_user: Option<String>,
}

/// The paths on which a host is logged in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Connectivity {
    details: String,
}

/// A host with its connections.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    host: Host,
    connected_to: Vec<connection::Line>,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &HostVerb) -> Result<(), Failure> {
    let form = common.form;
    match verb {
        HostVerb::Create { name, iqn, chap } => {
            let body = fields([("iqns", Some(json!(iqn))), ("chap", chap_setting(chap)?)]);
            let made = create(&Client::find(common)?, name, &body)?;
            let text = || {
                format!(
                    "Host {0} was created. Connect it: holdfast connect VOLUME {0}\n",
                    made.name
                )
            };
            show(form, &made, text)
        }
        HostVerb::Rename { name, new_name } => {
            let host = change(&Client::find(common)?, name, &json!({ "name": new_name }))?;
            show(form, &host, || format!("Host {name} was renamed to {}.\n", host.name))
        }
        HostVerb::Set { name, iqn, add_iqn, remove_iqn, chap, no_chap } => {
            let client = Client::find(common)?;
            let names = |names: &Vec<String>| (!names.is_empty()).then(|| json!(names));
            let chap = if *no_chap { Some(chap_fields(NONE, NONE)) } else { chap_setting(chap)? };
            let body = fields([
                ("iqns", names(iqn)),
                ("add_iqns", names(add_iqn)),
                ("remove_iqns", names(remove_iqn)),
                ("chap", chap),
            ]);
            change(&client, name, &body)?;
            show_one(&client, form, name)
        }
        HostVerb::List(listing) => list(&Client::find(common)?, form, listing),
        HostVerb::Show { name } => show_one(&Client::find(common)?, form, name),
        HostVerb::Check { name } => {
            super::host_check::run(&Client::find(common)?, form, name.as_deref())
        }
        HostVerb::Sessions { name } => {
            super::host_sessions::run(&Client::find(common)?, form, name.as_deref())
        }
        HostVerb::Delete { name } => {
            delete(&Client::find(common)?, name)?;
            show(form, &json!({ "deleted": name }), || format!("Host {name} is deleted.\n"))
        }
    }
}

/// Returns all hosts.
pub fn all(client: &Client) -> Result<Vec<Host>, Failure> {
    client.items(RESOURCE, "")
}

/// Returns a host.
pub fn find(client: &Client, name: &str) -> Result<Host, Failure> {
    client.item(RESOURCE, &named("names", name)?)
}

/// Creates a host.
pub fn create(client: &Client, name: &str, body: &Value) -> Result<Host, Failure> {
    first(client.change(Method::POST, RESOURCE, &named("names", name)?, body)?)
}

/// Deletes a host.
pub fn delete(client: &Client, name: &str) -> Result<(), Failure> {
    client.order(Method::DELETE, RESOURCE, &named("names", name)?)
}

fn change(client: &Client, name: &str, body: &Value) -> Result<Host, Failure> {
    first(client.change(Method::PATCH, RESOURCE, &named("names", name)?, body)?)
}

/// Returns a request body of the given fields.
fn fields<const N: usize>(all: [(&str, Option<Value>); N]) -> Value {
    let given = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect::<Map<_, _>>().into()
}

/// A user and its secret.
type User<'a> = (&'a str, &'a str);

/// The user that removes the previous one.
const NONE: User<'static> = ("", "");

/// Returns the fields of both directions: an omitted one would not change.
fn chap_fields(host: User<'_>, target: User<'_>) -> Value {
    json!({
        "host_user": host.0,
        "host_password": host.1,
        "target_user": target.0,
        "target_password": target.1,
    })
}

fn chap_setting(chap: &ChapArgs) -> Result<Option<Value>, Failure> {
    let host = credentials(&chap.chap_user, chap.chap_secret_file.as_deref())?;
    let target = credentials(&chap.chap_target_user, chap.chap_target_secret_file.as_deref())?;
    let target = target.as_ref().map_or(NONE, |(user, secret)| (user.as_str(), secret.as_str()));
    Ok(host.map(|(user, secret)| chap_fields((&user, &secret), target)))
}

fn credentials(
    user: &Option<String>,
    file: Option<&Path>,
) -> Result<Option<(String, String)>, Failure> {
    let (Some(user), Some(file)) = (user, file) else { return Ok(None) };
    let secret = management::private::read_secret(file)?;
    if user.is_empty() || secret.is_empty() {
        // To the array an empty user would mean removal.
        let text = "neither a CHAP user nor its secret may be empty; --no-chap removes both";
        return Err(Failure::Usage(text.into()));
    }
    Ok(Some((user.clone(), secret)))
}

fn list(client: &Client, form: Form, listing: &Listing) -> Result<(), Failure> {
    let hosts = listing.of(all(client)?)?;
    let columns = [
        ("NAME", Align::Left),
        ("GROUP", Align::Left),
        ("VOLUMES", Align::Right),
        ("PATHS", Align::Left),
        ("CHAP", Align::Left),
        ("IQNS", Align::Left),
    ];
    let row = |host: &Host| {
        vec![
            host.name.clone(),
            host.host_group.name.clone().unwrap_or_else(|| "-".into()),
            host.connection_count.to_string(),
            paths_text(host).to_owned(),
            chap_text(host).to_owned(),
            host.iqns.join(" "),
        ]
    };
    show(form, &hosts, || {
        let rows: Vec<_> = hosts.iter().map(row).collect();
        table(&columns, &rows, "No hosts. Create one: holdfast host create NAME --iqn IQN")
    })
}

fn chap_text(host: &Host) -> &'static str {
    match (&host.chap.host_user, &host.chap.target_user) {
        (None, _) => "no",
        (Some(_), None) => "yes",
        (Some(_), Some(_)) => "mutual",
    }
}

fn paths_text(host: &Host) -> &str {
    match host.port_connectivity.details.as_str() {
        "Redundant" => "several",
        "Single Path" => "one",
        "None" => "none",
        other => other,
    }
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let host = find(client, name)?;
    let connected_to = connection::lines(client, &named("host_names", name)?)?;
    let shown = Shown { host, connected_to };
    show(form, &shown, || {
        let host = &shown.host;
        let mut rows = vec![
            ("Name", host.name.clone()),
            ("Host group", host.host_group.name.clone().unwrap_or_else(|| "none".into())),
            ("IQNs", host.iqns.join(" ")),
            ("Paths", paths_text(host).to_owned()),
            ("CHAP", chap_text(host).to_owned()),
        ];
        rows.extend(host.chap.host_user.clone().map(|user| ("CHAP user", user)));
        rows.extend(host.chap.target_user.clone().map(|user| ("Target's user", user)));
        rows.extend(host.personality.clone().map(|personality| ("Personality", personality)));
        let connections = shown.connected_to.iter();
        let lines = connections.map(|c| vec![c.lun.to_string(), c.volume.clone()]);
        let columns = [("LUN", Align::Right), ("VOLUME", Align::Left)];
        let lines: Vec<_> = lines.collect();
        format!("{}\n{}", facts(&rows), table(&columns, &lines, "No volumes are connected."))
    })
}
