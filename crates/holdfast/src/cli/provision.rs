//! `provision`: a volume, and a host that sees it, in one step.
//!
//! It sends up to three requests. If one is refused, the results of the earlier ones are undone.

use std::fs;
use std::net::SocketAddr;

use api::{Status, Volume, VolumeCreate};
use serde::Serialize;
use serde_json::json;

use super::args::{Common, ProvisionArgs};
use super::client::Client;
use super::connection;
use super::failure::Failure;
use super::host::{self, Host};
use super::mounting;
use super::output::{complain, show};
use super::size::human;

/// The file in which open-iscsi stores the initiator name of this machine.
const INITIATOR_FILE: &str = "/etc/iscsi/initiatorname.iscsi";
/// The maximum number of letters of the name of a host.
const HOST_NAME_MAX: usize = 63;

/// What was created, and what is left to do.
#[derive(Serialize)]
struct Provisioned {
    volume: Volume,
    host: Host,
    /// The LUN of the volume.
    lun: u16,
    /// The Linux device of the volume.
    device: String,
    /// The commands that make a filesystem on it and mount it on a Linux host.
    commands: Vec<String>,
}

/// The host for which the volume is.
struct Wanted {
    /// As given; by default, this machine.
    name: Option<String>,
    iqns: Vec<String>,
}

/// Creates a volume, a host if there is none, and the connection.
pub fn run(common: &Common, options: &ProvisionArgs) -> Result<(), Failure> {
    let wanted = Wanted { name: options.host.clone(), iqns: options.iqn.clone() };
    let client = Client::find(common)?;
    let status: Status = client.get("/v1/status")?;
    let (host, is_new) = host(&client, wanted)?;
    let volume = volume(&client, options).inspect_err(|_| {
        if is_new {
            taken_back(&host.name, host::delete(&client, &host.name));
        }
    })?;
    let connected = connection::with_host(&client, &volume.name, &host.name, options.lun);
    let connected = connected.inspect_err(|_| {
        let names = [&volume.name];
        taken_back(&volume.name, client.end("volumes", &names, true));
        if is_new {
            taken_back(&host.name, host::delete(&client, &host.name));
        }
    })?;
    let portals: Vec<SocketAddr> = status.portals.iter().filter_map(|p| p.parse().ok()).collect();
    let device = mounting::device(&volume.naa);
    let commands = match portals.first() {
        Some(portal) => mounting::commands(*portal, &device, &volume.name),
        None => Vec::new(),
    };
    let reported = Provisioned { volume, host, lun: connected.lun, device, commands };
    show(common.form, &reported, || text(&reported))
}

fn text(reported: &Provisioned) -> String {
    let Provisioned { volume, host, lun, device, commands } = reported;
    let size = human(volume.size_bytes);
    let mut text =
        format!("Host {} sees volume {} ({size}) as LUN {lun}.\n", host.name, volume.name);
    text.push_str(&format!("On a Linux host it is {device}, after:\n"));
    commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    text
}

fn volume(client: &Client, options: &ProvisionArgs) -> Result<Volume, Failure> {
    let new = VolumeCreate {
        name: options.volume.clone(),
        size_bytes: options.size,
        block_bytes: None,
        deduplication: None,
        compression: None,
        connect: None,
    };
    client.post("/v1/volumes", &new)
}

/// Reports an object of an earlier request that could not be removed. The caller reports the
/// failure of the later request.
fn taken_back(name: &str, gone: Result<(), Failure>) {
    if let Err(failure) = gone {
        complain(format_args!("holdfast: {name} was created, and could not be removed: {failure}"));
    }
}

/// Returns the host, and whether it was created just now.
fn host(client: &Client, wanted: Wanted) -> Result<(Host, bool), Failure> {
    let all = host::all(client)?;
    let is_named = |host: &&Host| {
        wanted.name.as_ref().is_some_and(|name| host.name.eq_ignore_ascii_case(name))
    };
    if let Some(found) = all.iter().find(is_named) {
        if let Some(other) = wanted.iqns.iter().find(|iqn| !has(found, iqn)) {
            return Err(Failure::Refused(format!(
                "host {0} exists without the name {other}; add it first: holdfast host set {0} \
                 --add-iqn {other}",
                found.name
            )));
        }
        return Ok((found.clone(), false));
    }
    let iqns = match (&wanted.name, wanted.iqns.is_empty()) {
        (_, false) => wanted.iqns.clone(),
        (None, true) => vec![own_initiator()?],
        (Some(name), true) => {
            let text = format!("there is no host {name}: to create it, give its --iqn");
            return Err(Failure::Refused(text));
        }
    };
    if let Some(known) = all.into_iter().find(|host| iqns.iter().all(|iqn| has(host, iqn)))
        && wanted.name.is_none()
    {
        return Ok((known, false));
    }
    let name = wanted.name.unwrap_or_else(own_name);
    host::create(client, &name, &json!({ "iqns": iqns })).map(|made| (made, true))
}

fn has(host: &Host, iqn: &str) -> bool {
    host.iqns.iter().any(|own| own.eq_ignore_ascii_case(iqn))
}

/// Returns the name of this machine's initiator.
fn own_initiator() -> Result<String, Failure> {
    let text = fs::read_to_string(INITIATOR_FILE).map_err(|error| {
        Failure::Machine(format!(
            "can't read this machine's initiator name in {INITIATOR_FILE} ({error}): install \
             open-iscsi and run this as root, or give --iqn"
        ))
    })?;
    initiator_in(&text)
        .ok_or_else(|| Failure::Machine(format!("{INITIATOR_FILE} names no initiator: give --iqn")))
}

fn initiator_in(text: &str) -> Option<String> {
    let name = |line: &str| line.trim().strip_prefix("InitiatorName=").map(str::to_owned);
    text.lines().find_map(name).filter(|name| !name.is_empty())
}

/// Returns the host name for this machine.
fn own_name() -> String {
    let name = rustix::system::uname();
    host_name(&name.nodename().to_string_lossy())
}

/// Returns a valid host name: the letters, digits and `-` of the first part.
fn host_name(node: &str) -> String {
    let first = node.split('.').next().unwrap_or_default();
    let kept = first.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-');
    let name: String = kept.take(HOST_NAME_MAX).collect();
    let name = name.trim_matches('-');
    if name.chars().any(|c| c.is_ascii_alphabetic()) { name.into() } else { "this-machine".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_initiator_and_host_names_are_found() {
        let text = "## comment\n InitiatorName=iqn.1993-08.org.debian:01:abc \n";
        assert_eq!(initiator_in(text).as_deref(), Some("iqn.1993-08.org.debian:01:abc"));
        for nothing in ["", "InitiatorName=", "GenerateName=yes"] {
            assert_eq!(initiator_in(nothing), None, "{nothing}");
        }
        for (node, name) in [
            ("web_1.example.com", "web1"),
            ("-a-", "a"),
            ("", "this-machine"),
            ("10", "this-machine"),
        ] {
            assert_eq!(host_name(node), name);
        }
        assert_eq!(host_name(&"x".repeat(99)).len(), HOST_NAME_MAX);
    }
}
