//! `group …`.

use api::{Group, GroupChange, GroupCreate, Groups};
use serde_json::json;

use super::args::{Common, GroupVerb};
use super::client::{Client, path_of};
use super::failure::Failure;
use super::output::{Align, show, table};

/// Does a verb.
pub fn run(common: &Common, verb: &GroupVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let json = common.json;
    let change = |name: &str, change: &GroupChange| {
        let group: Group = client.patch(&path_of("groups", name)?, change)?;
        show(json, &group, || text(&group))
    };
    match verb {
        GroupVerb::Create { name, volumes } => {
            let asked = GroupCreate { name: name.clone(), volumes: volumes.clone() };
            let group: Group = client.post("/v1/groups", &asked)?;
            show(json, &group, || text(&group))
        }
        GroupVerb::Add { name, volumes } => {
            change(name, &GroupChange { add: volumes.clone(), remove: Vec::new() })
        }
        GroupVerb::Remove { name, volumes } => {
            change(name, &GroupChange { add: Vec::new(), remove: volumes.clone() })
        }
        GroupVerb::List => list(&client, json),
        GroupVerb::Show { name } => {
            let group: Group = client.get(&path_of("groups", name)?)?;
            show(json, &group, || text(&group))
        }
        GroupVerb::Destroy { name, eradicate } => {
            client.delete(&format!("{}?eradicate={eradicate}", path_of("groups", name)?))?;
            show(json, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Group {name} is gone, with its snapshots.\n"),
                false => format!(
                    "Group {name} is destroyed with its snapshots. To bring them back: holdfast \
                     group recover {name}\n"
                ),
            })
        }
        GroupVerb::Recover { name } => {
            client.act(&format!("{}/recover", path_of("groups", name)?))?;
            show(json, &json!({ "recovered": name }), || {
                format!("Group {name} is back, with its snapshots.\n")
            })
        }
        GroupVerb::Eradicate { name } => {
            client.act(&format!("{}/eradicate", path_of("groups", name)?))?;
            show(json, &json!({ "eradicated": name }), || {
                format!("Group {name} is gone, with its snapshots.\n")
            })
        }
    }
}

fn text(group: &Group) -> String {
    let volumes =
        if group.volumes.is_empty() { "no volumes".into() } else { group.volumes.join(", ") };
    let end = if group.eradicate_ms.is_some() { " It is destroyed." } else { "" };
    format!("Group {}: {volumes}.{end}\n", group.name)
}

fn list(client: &Client, json: bool) -> Result<(), Failure> {
    let groups: Vec<Group> =
        client.get_all("/v1/groups", |page: Groups| (page.groups, page.more), |last| &last.name)?;
    let columns = [("NAME", Align::Left), ("VOLUMES", Align::Left)];
    show(json, &groups, || {
        let row = |group: &Group| vec![group.name.clone(), group.volumes.join(" ")];
        let rows: Vec<_> = groups.iter().map(row).collect();
        table(&columns, &rows, "No groups. Make one: holdfast group create NAME VOLUME…")
    })
}
