//! `host …`.

use std::path::Path;

use api::{ChapSetting, Credentials, Host, HostChange, HostCreate, Hosts};
use hyper::Method;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::args::{ChapArgs, Common, HostVerb};
use super::client::{Client, path_of};
use super::connection;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};
use super::rest;

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
            let new =
                HostCreate { name: name.clone(), iqns: iqn.clone(), chap: chap_setting(chap)? };
            let made: Host = Client::find(common)?.post("/v1/hosts", &new)?;
            let text = || {
                format!("Host {0} is made. Connect it: holdfast connect VOLUME {0}\n", made.name)
            };
            show(form, &made, text)
        }
        HostVerb::Rename { name, new_name } => {
            let change = HostChange { name: Some(new_name.clone()), ..HostChange::default() };
            let host: Host = Client::find(common)?.patch(&path_of("hosts", name)?, &change)?;
            show(form, &host, || format!("Host {name} is called {} now.\n", host.name))
        }
        HostVerb::Set { name, iqn, add_iqn, remove_iqn, chap, no_chap } => {
            let client = Client::find(common)?;
            if add_iqn.is_empty() && remove_iqn.is_empty() {
                let change = HostChange {
                    iqns: Some(iqn.clone()).filter(|iqns| !iqns.is_empty()),
                    chap: chap_setting(chap)?,
                    remove_chap: *no_chap,
                    ..HostChange::default()
                };
                client.patch::<Host>(&path_of("hosts", name)?, &change)?;
            } else {
                let body = json!({ "add_iqns": add_iqn, "remove_iqns": remove_iqn });
                let query = rest::named("names", name)?;
                client.change::<IgnoredAny>(Method::PATCH, "hosts", &query, &body)?;
            }
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
            Client::find(common)?.delete(&path_of("hosts", name)?)?;
            show(form, &json!({ "deleted": name }), || format!("Host {name} is deleted.\n"))
        }
    }
}

fn chap_setting(chap: &ChapArgs) -> Result<Option<ChapSetting>, Failure> {
    let initiator = credentials(&chap.chap_user, chap.chap_secret_file.as_deref())?;
    let target = credentials(&chap.chap_target_user, chap.chap_target_secret_file.as_deref())?;
    Ok(initiator.map(|initiator| ChapSetting { initiator, target }))
}

fn credentials(user: &Option<String>, file: Option<&Path>) -> Result<Option<Credentials>, Failure> {
    let (Some(user), Some(file)) = (user, file) else { return Ok(None) };
    Ok(Some(Credentials { user: user.clone(), secret: management::private::read_secret(file)? }))
}

fn list(client: &Client, form: Form, listing: &Listing) -> Result<(), Failure> {
    let hosts: Vec<Host> =
        client.get_all("/v1/hosts", |page: Hosts| (page.hosts, page.more), |last| &last.name)?;
    let hosts = listing.of(hosts)?;
    let columns = [
        ("NAME", Align::Left),
        ("VOLUMES", Align::Right),
        ("CHAP", Align::Left),
        ("IQNS", Align::Left),
    ];
    let row = |host: &Host| {
        vec![
            host.name.clone(),
            host.connections.to_string(),
            chap_text(host).to_owned(),
            host.iqns.join(" "),
        ]
    };
    show(form, &hosts, || {
        let rows: Vec<_> = hosts.iter().map(row).collect();
        table(&columns, &rows, "No hosts. Make one: holdfast host create NAME --iqn IQN")
    })
}

fn chap_text(host: &Host) -> &'static str {
    match (&host.chap_user, &host.chap_target_user) {
        (None, _) => "no",
        (Some(_), None) => "yes",
        (Some(_), Some(_)) => "mutual",
    }
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let host: Host = client.get(&path_of("hosts", name)?)?;
    let connected_to = connection::lines(client, &rest::named("host_names", name)?)?;
    let shown = Shown { host, connected_to };
    show(form, &shown, || {
        let host = &shown.host;
        let mut rows = vec![
            ("Name", host.name.clone()),
            ("IQNs", host.iqns.join(" ")),
            ("CHAP", chap_text(host).to_owned()),
        ];
        rows.extend(host.chap_user.clone().map(|user| ("CHAP user", user)));
        rows.extend(host.chap_target_user.clone().map(|user| ("Target's user", user)));
        rows.push(("Made", time(host.created_ms)));
        let connections = shown.connected_to.iter();
        let lines = connections.map(|c| vec![c.lun.to_string(), c.volume.clone()]);
        let columns = [("LUN", Align::Right), ("VOLUME", Align::Left)];
        let lines: Vec<_> = lines.collect();
        format!("{}\n{}", facts(&rows), table(&columns, &lines, "No volumes are connected."))
    })
}
