//! `volume …`.

use api::{Volume, VolumeChange, VolumeConnect, VolumeCreate, Volumes};
use hyper::Method;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::args::{Common, VolumeVerb};
use super::client::{Client, path_of};
use super::connection;
use super::failure::Failure;
use super::limits::{self, Limited, Limits};
use super::listing::Listing;
use super::offload;
use super::output::{Align, Form, facts, show, table, time};
use super::rest::named;
use super::size::human;
use super::{snapshot, space};

/// The resource of REST 2.x.
const RESOURCE: &str = "volumes";

/// A volume with its connections.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    volume: Volume,
    limits: Limits,
    connected_to: Vec<connection::Line>,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &VolumeVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        VolumeVerb::Create { name, size, block_size, reduction, hosts, host_groups } => {
            let connect = VolumeConnect { hosts: hosts.clone(), host_groups: host_groups.clone() };
            let is_connected = !hosts.is_empty() || !host_groups.is_empty();
            let new = VolumeCreate {
                name: name.clone(),
                size_bytes: *size,
                block_bytes: Some(*block_size),
                deduplication: reduction.deduplication,
                compression: reduction.compression,
                connect: is_connected.then_some(connect),
            };
            let made: Volume = client.post("/v1/volumes", &new)?;
            show(form, &made, || created(&made))
        }
        VolumeVerb::List { destroyed, listing } => list(&client, form, *destroyed, listing),
        VolumeVerb::Show { name } => show_one(&client, form, name),
        VolumeVerb::Resize { name, size, truncate } => {
            let change = VolumeChange {
                size_bytes: Some(*size),
                truncate: *truncate,
                ..VolumeChange::default()
            };
            let volume: Volume = client.patch(&path_of("volumes", name)?, &change)?;
            let text = || format!("Volume {} now has {}.\n", volume.name, human(volume.size_bytes));
            show(form, &volume, text)
        }
        VolumeVerb::Limit { name, iops, bandwidth } => {
            let volume = Limited { resource: "volumes", title: "Volume", name };
            limits::run(&client, form, &volume, *iops, *bandwidth)
        }
        VolumeVerb::Space { names, listing } => list_space(&client, form, names, listing),
        VolumeVerb::Rename { name, new_name } => {
            let change = VolumeChange { name: Some(new_name.clone()), ..VolumeChange::default() };
            let volume: Volume = client.patch(&path_of("volumes", name)?, &change)?;
            show(form, &volume, || format!("Volume {name} was renamed to {}.\n", volume.name))
        }
        VolumeVerb::Set { name, offload, reduction } => {
            let change = VolumeChange {
                offloads: offload::change(offload),
                deduplication: reduction.deduplication,
                compression: reduction.compression,
                ..VolumeChange::default()
            };
            let volume: Volume = client.patch(&path_of("volumes", name)?, &change)?;
            show(form, &volume, || {
                let (offloads, reduction) = (offloads_text(&volume), reduction_text(&volume));
                format!("Volume {}: offloads {offloads}; reduction {reduction}.\n", volume.name)
            })
        }
        _ => end_or_replace(&client, form, verb),
    }
}

/// Runs the verbs that copy, overwrite, destroy and recover volumes.
fn end_or_replace(client: &Client, form: Form, verb: &VolumeVerb) -> Result<(), Failure> {
    let find = |name: &str| client.get::<Volume>(&path_of("volumes", name)?);
    match verb {
        VolumeVerb::Clone { source, name } => {
            copy(client, source, &named("names", name)?)?;
            let made = find(name)?;
            show(form, &made, || created(&made))
        }
        VolumeVerb::Restore { name, snapshot } => {
            let (volume, of) = (find(name)?.name, snapshot::volume_of(client, snapshot)?);
            if of != volume {
                let text = format!("{snapshot} is a snapshot of volume {of}, not of {volume}");
                let reported = format!("holdfast volume overwrite {volume} --from {snapshot}");
                return Err(Failure::Refused(format!("{text}; to copy it there: {reported}")));
            }
            overwrite(client, form, name, snapshot)
        }
        VolumeVerb::Overwrite { name, from } => overwrite(client, form, name, from),
        VolumeVerb::Destroy { name, eradicate } => {
            client.end(RESOURCE, &[name], *eradicate)?;
            let reported = json!({ "destroyed": name, "eradicated": eradicate });
            show(form, &reported, || destroyed("Volume", "volume", name, *eradicate))
        }
        VolumeVerb::Recover { name } => {
            client.destroy(RESOURCE, &[name], false)?;
            show(form, &json!({ "recovered": name }), || format!("Volume {name} was recovered.\n"))
        }
        VolumeVerb::Eradicate { name } => {
            client.eradicate(RESOURCE, &[name])?;
            show(form, &json!({ "eradicated": name }), || {
                format!("Volume {name} was eradicated.\n")
            })
        }
        _ => Ok(()), // the caller handles the others
    }
}

fn copy(client: &Client, source: &str, query: &str) -> Result<(), Failure> {
    let body = json!({ "source": { "name": source } });
    client.change::<IgnoredAny>(Method::POST, RESOURCE, query, &body).map(drop)
}

fn overwrite(client: &Client, form: Form, name: &str, source: &str) -> Result<(), Failure> {
    let path = path_of("volumes", name)?;
    // A volume that does not exist would be created.
    client.get::<IgnoredAny>(&path)?;
    copy(client, source, &format!("{}&overwrite=true", named("names", name)?))?;
    let volume: Volume = client.get(&path)?;
    show(form, &volume, || {
        format!(
            "Volume {} now has the content of {source}: {}.\n",
            volume.name,
            human(volume.size_bytes)
        )
    })
}

/// Returns the message that something was destroyed, and how long it can be recovered.
pub fn destroyed(what: &str, verb: &str, name: &str, eradicated: bool) -> String {
    if eradicated {
        return format!("{what} {name} was eradicated.\n");
    }
    format!("{what} {name} is destroyed. To recover it: holdfast {verb} recover {name}\n")
}

/// Returns the volume's effective offloads, and its own setting if the array's is stricter.
fn offloads_text(volume: &Volume) -> String {
    let (own, in_effect) = (offload::text(&volume.offloads), &volume.offloads_in_effect);
    if volume.offloads == *in_effect {
        return own;
    }
    format!("{} (its own setting: {own})", offload::text(in_effect))
}

/// Returns how data written to the volume is reduced.
fn reduction_text(volume: &Volume) -> &'static str {
    match (volume.deduplication, volume.compression) {
        (true, true) => "all on",
        (true, false) => "no compression",
        (false, true) => "no deduplication",
        (false, false) => "no deduplication, compression",
    }
}

fn created(volume: &Volume) -> String {
    let Volume { name, naa, .. } = volume;
    let size = human(volume.size_bytes);
    let next = match volume.connections {
        0 => format!("Connect it: holdfast connect {name} HOST"),
        _ => format!("LUNs: holdfast connection list --volume {name}"),
    };
    format!("Volume {name} was created: {size}, {naa}. {next}\n")
}

fn all(client: &Client, path: &str) -> Result<Vec<Volume>, Failure> {
    client.get_all(path, |page: Volumes| (page.volumes, page.more), |last| &last.name)
}

fn list(client: &Client, form: Form, destroyed: bool, listing: &Listing) -> Result<(), Failure> {
    let path = if destroyed { "/v1/volumes?destroyed=true" } else { "/v1/volumes" };
    let volumes = listing.of(all(client, path)?)?;
    let columns = [
        ("NAME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("UNIQUE", Align::Right),
        ("BLOCK", Align::Right),
        ("HOSTS", Align::Right),
        ("OFFLOADS", Align::Left),
        ("SERIAL", Align::Left),
    ];
    let row = |volume: &Volume| {
        vec![
            volume.name.clone(),
            human(volume.size_bytes),
            human(volume.mapped_bytes),
            space::unique(volume.space.as_ref()),
            volume.block_bytes.to_string(),
            volume.connections.to_string(),
            offload::text(&volume.offloads_in_effect),
            volume.serial.clone(),
        ]
    };
    show(form, &volumes, || {
        let rows: Vec<_> = volumes.iter().map(row).collect();
        table(&columns, &rows, "No volumes. Create one: holdfast volume create NAME --size 10G")
    })
}

/// Returns the space of volumes.
fn list_space(
    client: &Client,
    form: Form,
    names: &[String],
    listing: &Listing,
) -> Result<(), Failure> {
    let volumes: Vec<Volume> = match names.is_empty() {
        true => all(client, "/v1/volumes")?,
        false => {
            let one = |name: &String| client.get(&path_of("volumes", name)?);
            names.iter().map(one).collect::<Result<_, _>>()?
        }
    };
    let volumes = listing.of(volumes)?;
    let columns = [
        ("NAME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("DATA", Align::Right),
        ("UNIQUE", Align::Right),
        ("SHARE", Align::Right),
        ("REDUCTION", Align::Right),
        ("WITH THIN", Align::Right),
        ("SNAPSHOTS", Align::Right),
    ];
    let row = |volume: &Volume| {
        let space = volume.space.as_ref();
        vec![
            volume.name.clone(),
            human(volume.size_bytes),
            human(volume.mapped_bytes),
            human(volume.data_bytes),
            space::unique(space),
            space.map_or_else(|| "-".into(), |space| human(space.share_bytes)),
            space::reduction(space.and_then(|space| space.data_reduction)),
            space::reduction(space.and_then(|space| space.total_reduction)),
            volume.snapshots.to_string(),
        ]
    };
    show(form, &volumes, || {
        let rows: Vec<_> = volumes.iter().map(row).collect();
        table(&columns, &rows, "No volumes. Create one: holdfast volume create NAME --size 10G")
    })
}

/// Returns whether something is destroyed, and until when it can be recovered.
pub fn doom(eradicate_ms: Option<u64>) -> String {
    eradicate_ms.map_or_else(|| "no".into(), |due| format!("yes; eradicated at {}", time(due)))
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let volume: Volume = client.get(&path_of("volumes", name)?)?;
    let connected_to = match volume.eradicate_ms {
        // A destroyed volume has none, and REST 2.x does not find it by its name.
        Some(_) => Vec::new(),
        None => connection::lines(client, &named("volume_names", name)?)?,
    };
    let limits = limits::of(client, name)?;
    let shown = Shown { volume, limits, connected_to };
    show(form, &shown, || {
        let volume = &shown.volume;
        let hosts = shown.connected_to.iter().map(connection::Line::side);
        let hosts = hosts.collect::<Vec<_>>().join(", ");
        let [unique, share, data_reduction, total_reduction] = space::lines(volume.space.as_ref());
        facts(&[
            ("Name", volume.name.clone()),
            ("Size", format!("{} ({} bytes)", human(volume.size_bytes), volume.size_bytes)),
            ("Logical block", format!("{} bytes", volume.block_bytes)),
            ("Mapped", human(volume.mapped_bytes)),
            ("Data", human(volume.data_bytes)),
            unique,
            share,
            data_reduction,
            total_reduction,
            ("Offloads", offloads_text(volume)),
            ("Reduction", reduction_text(volume).into()),
            ("Limits", shown.limits.text()),
            ("Serial", volume.serial.clone()),
            ("NAA", volume.naa.clone()),
            ("Id", volume.id.to_string()),
            ("Made", time(volume.created_ms)),
            ("Snapshots", volume.snapshots.to_string()),
            ("Destroyed", doom(volume.eradicate_ms)),
            ("Hosts", if hosts.is_empty() { "none".into() } else { hosts }),
        ])
    })
}
