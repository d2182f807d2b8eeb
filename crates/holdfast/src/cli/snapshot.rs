//! `snapshot …`.

use api::{Snapshot, SnapshotChange, SnapshotCreate, Snapshots};
use serde_json::json;

use super::args::{Common, SnapshotVerb};
use super::client::{Client, part, path_of};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};
use super::size::human;
use super::space;
use super::volume::{destroyed, doom};

/// Runs a verb.
pub fn run(common: &Common, verb: &SnapshotVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        SnapshotVerb::Create { volumes, group, suffix } => {
            let asked = SnapshotCreate {
                volumes: volumes.clone(),
                group: group.clone(),
                suffix: suffix.clone(),
            };
            let made: Snapshots = client.post("/v1/snapshots", &asked)?;
            show(form, &made.snapshots, || {
                let line = |snapshot: &Snapshot| format!("Snapshot {} is made.\n", snapshot.name);
                made.snapshots.iter().map(line).collect()
            })
        }
        SnapshotVerb::List { volume, group, destroyed, listing } => {
            let path = query(volume.as_deref(), group.as_deref(), *destroyed);
            list(&client, form, &path, listing)
        }
        SnapshotVerb::Show { name } => show_one(&client, form, name),
        SnapshotVerb::Rename { name, suffix } => {
            let change = SnapshotChange { suffix: suffix.clone() };
            let snapshot: Snapshot = client.patch(&path_of("snapshots", name)?, &change)?;
            show(form, &snapshot, || format!("Snapshot {name} is called {} now.\n", snapshot.name))
        }
        SnapshotVerb::Destroy { names, eradicate } => {
            let query = if *eradicate { "?eradicate=true" } else { "" };
            for name in names {
                client.delete(&format!("{}{query}", path_of("snapshots", name)?))?;
            }
            show(form, &json!({ "destroyed": names, "eradicated": eradicate }), || {
                let line = |name: &String| destroyed("Snapshot", "snapshot", name, *eradicate);
                names.iter().map(line).collect()
            })
        }
        SnapshotVerb::Recover { names } => {
            act(&client, names, "recover")?;
            show(form, &json!({ "recovered": names }), || lines(names, "is back"))
        }
        SnapshotVerb::Eradicate { names } => {
            act(&client, names, "eradicate")?;
            show(form, &json!({ "eradicated": names }), || lines(names, "is gone"))
        }
    }
}

fn act(client: &Client, names: &[String], what: &str) -> Result<(), Failure> {
    names.iter().try_for_each(|name| client.act(&format!("{}/{what}", path_of("snapshots", name)?)))
}

fn lines(names: &[String], what: &str) -> String {
    names.iter().map(|name| format!("Snapshot {name} {what}.\n")).collect()
}

fn query(volume: Option<&str>, group: Option<&str>, destroyed: bool) -> String {
    let volume = volume.map_or_else(String::new, |name| format!("&volume={}", part(name)));
    let group = group.map_or_else(String::new, |name| format!("&group={}", part(name)));
    format!("/v1/snapshots?destroyed={destroyed}{volume}{group}")
}

fn list(client: &Client, form: Form, path: &str, listing: &Listing) -> Result<(), Failure> {
    let snapshots: Vec<Snapshot> =
        client.get_all(path, |page: Snapshots| (page.snapshots, page.more), |last| &last.name)?;
    let snapshots = listing.of(snapshots)?;
    let columns = [
        ("NAME", Align::Left),
        ("VOLUME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("UNIQUE", Align::Right),
        ("MADE", Align::Left),
    ];
    let row = |snapshot: &Snapshot| {
        vec![
            snapshot.name.clone(),
            snapshot.volume.clone(),
            human(snapshot.size_bytes),
            human(snapshot.mapped_bytes),
            space::unique(snapshot.space.as_ref()),
            time(snapshot.created_ms),
        ]
    };
    show(form, &snapshots, || {
        let rows: Vec<_> = snapshots.iter().map(row).collect();
        table(&columns, &rows, "No snapshots. Make one: holdfast snapshot create VOLUME")
    })
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let snapshot: Snapshot = client.get(&path_of("snapshots", name)?)?;
    show(form, &snapshot, || {
        let [unique, share, data_reduction, total_reduction] =
            space::lines(snapshot.space.as_ref());
        facts(&[
            ("Name", snapshot.name.clone()),
            ("Volume", snapshot.volume.clone()),
            ("Group", snapshot.group.clone().unwrap_or_else(|| "none".into())),
            ("Size", format!("{} ({} bytes)", human(snapshot.size_bytes), snapshot.size_bytes)),
            ("Mapped", human(snapshot.mapped_bytes)),
            unique,
            share,
            data_reduction,
            total_reduction,
            ("Serial", snapshot.serial.clone()),
            ("Id", snapshot.id.to_string()),
            ("Made", time(snapshot.created_ms)),
            ("Destroyed", doom(snapshot.eradicate_ms)),
        ])
    })
}
