//! `snapshot …`.

use api::{PoolSpace, SnapshotSpace, Space};
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::args::{Common, SnapshotVerb};
use super::client::{Client, part, path_of};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};
use super::rest::{Named, first, named, names};
use super::size::human;
use super::space;
use super::volume::destroyed;

/// The resource of REST 2.x.
const RESOURCE: &str = "volume-snapshots";
const OF_GROUPS: &str = "protection-group-snapshots";

/// A snapshot in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    id: String,
    name: String,
    source: Named,
    /// `GROUP.SUFFIX` if it was made with a group.
    suffix: String,
    provisioned: u64,
    serial: String,
    created: u64,
    destroyed: bool,
    /// In milliseconds.
    time_remaining: Option<u64>,
    space: Stored,
}

/// Its stored data.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "virtual")]
    written: u64,
    unique: u64,
    data_reduction: f64,
    total_reduction: f64,
}

/// A snapshot with the fields that only `/v1` has.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    snapshot: Snapshot,
    /// `None` until a pass of accounting has covered it.
    accounted: Option<Space>,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &SnapshotVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        SnapshotVerb::Create { volumes, group, suffix } => {
            let suffix = suffix.as_ref().map_or_else(|| json!({}), |it| json!({ "suffix": it }));
            let made = match group {
                Some(group) => of_group(&client, group, &suffix)?,
                None => {
                    let query = format!("source_names={}", names(volumes)?);
                    client.change(Method::POST, RESOURCE, &query, &suffix)?
                }
            };
            show(form, &made, || {
                let line =
                    |snapshot: &Snapshot| format!("Snapshot {} was created.\n", snapshot.name);
                made.iter().map(line).collect()
            })
        }
        SnapshotVerb::List { volume, group, destroyed, listing } => {
            let query = query(&client, volume.as_deref(), group.as_deref(), *destroyed)?;
            list(&client, form, &query, listing)
        }
        SnapshotVerb::Show { name } => show_one(&client, form, name),
        SnapshotVerb::Rename { name, suffix } => {
            let (query, body) = (named("names", name)?, json!({ "name": suffix }));
            let snapshot: Snapshot =
                first(client.change(Method::PATCH, RESOURCE, &query, &body)?)?;
            show(form, &snapshot, || format!("Snapshot {name} was renamed to {}.\n", snapshot.name))
        }
        SnapshotVerb::Destroy { names, eradicate } => {
            client.end(RESOURCE, names, *eradicate)?;
            show(form, &json!({ "destroyed": names, "eradicated": eradicate }), || {
                let line = |name: &String| destroyed("Snapshot", "snapshot", name, *eradicate);
                names.iter().map(line).collect()
            })
        }
        SnapshotVerb::Recover { names } => {
            client.destroy(RESOURCE, names, false)?;
            show(form, &json!({ "recovered": names }), || lines(names, "was recovered"))
        }
        SnapshotVerb::Eradicate { names } => {
            client.eradicate(RESOURCE, names)?;
            show(form, &json!({ "eradicated": names }), || lines(names, "was eradicated"))
        }
    }
}

/// Returns the volume of a snapshot.
pub fn volume_of(client: &Client, snapshot: &str) -> Result<String, Failure> {
    let found: Snapshot = client.item(RESOURCE, &named("names", snapshot)?)?;
    Ok(found.source.name.unwrap_or_default())
}

/// Makes snapshots of all volumes of a group.
fn of_group(client: &Client, group: &str, suffix: &Value) -> Result<Vec<Snapshot>, Failure> {
    let query = named("source_names", group)?;
    let made: Named = first(client.change(Method::POST, OF_GROUPS, &query, suffix)?)?;
    client.items(RESOURCE, &of_moment(&made.name.unwrap_or_default(), ""))
}

/// Returns a filter for the snapshots whose names begin with that of a group or, with its suffix,
/// of one of its moments. Only their names have two dots.
fn of_moment(beginning: &str, rest: &str) -> String {
    format!("filter={}", part(&format!("name='{beginning}.{rest}*'")))
}

fn lines(names: &[String], what: &str) -> String {
    names.iter().map(|name| format!("Snapshot {name} {what}.\n")).collect()
}

fn query(
    client: &Client,
    volume: Option<&str>,
    group: Option<&str>,
    destroyed: bool,
) -> Result<String, Failure> {
    let mut query = format!("destroyed={destroyed}");
    if let Some(name) = volume {
        query.push_str(&format!("&{}", named("source_names", name)?));
    }
    if let Some(name) = group {
        // A filter would not report a nonexistent group.
        let group: Named = client.item("protection-groups", &named("names", name)?)?;
        query.push_str(&format!("&{}", of_moment(&group.name.unwrap_or_default(), "*.")));
    }
    Ok(query)
}

fn list(client: &Client, form: Form, query: &str, listing: &Listing) -> Result<(), Failure> {
    let snapshots: Vec<Snapshot> = listing.of(client.items(RESOURCE, query)?)?;
    let accounted: PoolSpace = client.get("/v1/pool/space")?;
    let columns = [
        ("NAME", Align::Left),
        ("VOLUME", Align::Left),
        ("SIZE", Align::Right),
        ("MAPPED", Align::Right),
        ("UNIQUE", Align::Right),
        ("MADE", Align::Left),
    ];
    let row = |snapshot: &Snapshot| {
        let unique = match space::covers(&accounted, snapshot.created) {
            true => human(snapshot.space.unique),
            false => "-".into(),
        };
        vec![
            snapshot.name.clone(),
            snapshot.source.name.clone().unwrap_or_default(),
            human(snapshot.provisioned),
            human(snapshot.space.written),
            unique,
            time(snapshot.created),
        ]
    };
    show(form, &snapshots, || {
        let rows: Vec<_> = snapshots.iter().map(row).collect();
        table(&columns, &rows, "No snapshots. Create one: holdfast snapshot create VOLUME")
    })
}

fn show_one(client: &Client, form: Form, name: &str) -> Result<(), Failure> {
    let snapshot: Snapshot = client.item(RESOURCE, &named("names", name)?)?;
    let path = format!("{}/space", path_of("snapshots", &snapshot.name)?);
    let SnapshotSpace { space: accounted } = client.get(&path)?;
    let shown = Shown { snapshot, accounted };
    show(form, &shown, || {
        let Shown { snapshot, accounted } = &shown;
        let [unique, share, data_reduction, total_reduction] = space::lines(accounted.as_ref());
        let group = snapshot.suffix.split_once('.').map(|(group, _)| group.to_owned());
        let size = snapshot.provisioned;
        facts(&[
            ("Name", snapshot.name.clone()),
            ("Volume", snapshot.source.name.clone().unwrap_or_default()),
            ("Group", group.unwrap_or_else(|| "none".into())),
            ("Size", format!("{} ({size} bytes)", human(size))),
            ("Mapped", human(snapshot.space.written)),
            unique,
            share,
            data_reduction,
            total_reduction,
            ("Serial", snapshot.serial.clone()),
            ("Id", snapshot.id.clone()),
            ("Made", time(snapshot.created)),
            ("Destroyed", doom(snapshot.time_remaining)),
        ])
    })
}

/// Returns whether something is destroyed, and for how long it can still be recovered.
pub fn doom(left_ms: Option<u64>) -> String {
    let reported = |left_ms: u64| match left_ms / 60_000 {
        0 => "yes; eradicated within a minute".to_owned(),
        minutes @ 1..60 => format!("yes; eradicated in {minutes} min"),
        minutes => format!("yes; eradicated in {} h {} min", minutes / 60, minutes % 60),
    };
    left_ms.map_or_else(|| "no".into(), reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destroyed_objects_are_shown_with_the_remaining_time() {
        for (left_ms, text) in [
            (None, "no"),
            (Some(0), "yes; eradicated within a minute"),
            (Some(59_999), "yes; eradicated within a minute"),
            (Some(60_000), "yes; eradicated in 1 min"),
            (Some(3_600_000), "yes; eradicated in 1 h 0 min"),
            (Some(86_399_999), "yes; eradicated in 23 h 59 min"),
        ] {
            assert_eq!(doom(left_ms), text);
        }
    }

    #[test]
    fn the_snapshots_of_a_group_are_found_by_their_names() {
        assert_eq!(of_moment("app", "*."), "filter=name%3D%27app%2E%2A%2E%2A%27");
        assert_eq!(of_moment("app.1", ""), "filter=name%3D%27app%2E1%2E%2A%27");
    }
}
