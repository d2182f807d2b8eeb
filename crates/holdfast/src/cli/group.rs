//! `group …`: volumes snapshotted together, on demand or on a schedule.

use std::time::Duration;

use api::{Group, GroupChange, GroupCreate, Groups};
use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::{Map, json};

use super::args::{Common, GroupVerb, Members, ScheduleArgs};
use super::client::{Client, path_of};
use super::failure::Failure;
use super::output::show;
use super::protection::{self, RESOURCE, Shown};
use super::rest::{named, names};

/// A day, in seconds.
const DAY_S: u64 = 86_400;

/// Runs a verb.
pub fn run(common: &Common, verb: &GroupVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        GroupVerb::Create { name, volumes } => {
            let asked = GroupCreate { name: name.clone(), volumes: volumes.clone() };
            let group: Group = client.post("/v1/groups", &asked)?;
            show(form, &group, || text(&group))
        }
        GroupVerb::Add { name, members } => change(common, &client, name, members, true),
        GroupVerb::Remove { name, members } => change(common, &client, name, members, false),
        GroupVerb::Set { name, schedule } => {
            keeps_time_of_day(&client, name, schedule)?;
            client.change::<IgnoredAny>(
                Method::PATCH,
                RESOURCE,
                &named("names", name)?,
                &patch(schedule),
            )?;
            let shown = protection::find(&client, name)?;
            show(form, &shown, || shown.sentence())
        }
        GroupVerb::Rename { name, new_name } => {
            let query = named("names", name)?;
            let body = json!({ "name": new_name });
            client.change::<IgnoredAny>(Method::PATCH, RESOURCE, &query, &body)?;
            let group: Group = client.get(&path_of("groups", new_name)?)?;
            show(form, &group, || format!("Group {name} is called {} now.\n", group.name))
        }
        GroupVerb::List { destroyed, listing } => {
            let groups = listing.of(protection::all(&client, *destroyed)?)?;
            show(form, &groups, || protection::listed(&groups, *destroyed))
        }
        GroupVerb::Show { name } => {
            let shown = protection::find(&client, name)?;
            show(form, &shown, || shown.facts())
        }
        GroupVerb::Destroy { name, eradicate } => {
            client.delete(&format!("{}?eradicate={eradicate}", path_of("groups", name)?))?;
            show(form, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Group {name} is gone, with its snapshots.\n"),
                false => format!(
                    "Group {name} is destroyed with its snapshots. To bring them back: holdfast \
                     group recover {name}\n"
                ),
            })
        }
        GroupVerb::Recover { name } => {
            client.act(&format!("{}/recover", path_of("groups", name)?))?;
            show(form, &json!({ "recovered": name }), || {
                format!("Group {name} is back, with its snapshots.\n")
            })
        }
        GroupVerb::Eradicate { name } => {
            client.act(&format!("{}/eradicate", path_of("groups", name)?))?;
            show(form, &json!({ "eradicated": name }), || {
                format!("Group {name} is gone, with its snapshots.\n")
            })
        }
    }
}

/// All groups that are not destroyed.
pub fn not_destroyed(client: &Client) -> Result<Vec<Group>, Failure> {
    client.get_all("/v1/groups", |page: Groups| (page.groups, page.more), |last| &last.name)
}

/// Adds or removes members.
fn change(
    common: &Common,
    client: &Client,
    name: &str,
    members: &Members,
    adds: bool,
) -> Result<(), Failure> {
    let Members { volumes, hosts, host_groups } = members;
    let kinds = [("hosts", hosts), ("host-groups", host_groups)];
    if let Some((kind, members)) = kinds.into_iter().find(|(_, members)| !members.is_empty()) {
        let method = if adds { Method::POST } else { Method::DELETE };
        let query = format!("{}&member_names={}", named("group_names", name)?, names(members)?);
        client.order(method, &format!("{RESOURCE}/{kind}"), &query)?;
        let shown: Shown = protection::find(client, name)?;
        return show(common.form, &shown, || shown.sentence());
    }
    let (add, remove) = match adds {
        true => (volumes.clone(), Vec::new()),
        false => (Vec::new(), volumes.clone()),
    };
    let group: Group = client.patch(&path_of("groups", name)?, &GroupChange { add, remove })?;
    show(common.form, &group, || text(&group))
}

/// Refuses to lose a time of day without a word: the array clears it with an interval that is not
/// of whole days.
fn keeps_time_of_day(client: &Client, name: &str, asked: &ScheduleArgs) -> Result<(), Failure> {
    let is_of_days = |every: Duration| every.as_secs().is_multiple_of(DAY_S);
    if asked.at.is_some() || asked.every.is_none_or(is_of_days) {
        return Ok(());
    }
    match protection::find(client, name)?.time_of_day() {
        Some(at) => Err(Failure::Usage(format!(
            "group {name} is snapshotted at {at} UTC, and only an interval of whole days can have \
             a time of day: add --at none"
        ))),
        None => Ok(()),
    }
}

/// A change to schedule and retention, in the form of REST 2.x.
fn patch(asked: &ScheduleArgs) -> serde_json::Value {
    let ms = |time: Duration| json!(time.as_millis() as u64);
    // A time of day of none is `null`, which clears it.
    let fields = |fields: [(&str, Option<serde_json::Value>); 3]| {
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect::<Map<_, _>>()
    };
    let schedule = fields([
        ("enabled", asked.schedule.map(|on| json!(on))),
        ("frequency", asked.every.map(ms)),
        ("at", asked.at.map(|time| json!(time.ms))),
    ]);
    let retention = fields([
        ("all_for_sec", asked.keep.map(|time| json!(time.as_secs()))),
        ("per_day", asked.keep_per_day.map(|count| json!(count))),
        ("days", asked.keep_days.map(|days| json!(days))),
    ]);
    let mut body = Map::new();
    for (name, part) in [("snapshot_schedule", schedule), ("source_retention", retention)] {
        if !part.is_empty() {
            body.insert(name.into(), part.into());
        }
    }
    body.into()
}

fn text(group: &Group) -> String {
    let volumes =
        if group.volumes.is_empty() { "no volumes".into() } else { group.volumes.join(", ") };
    let end = if group.eradicate_ms.is_some() { " It is destroyed." } else { "" };
    format!("Group {}: {volumes}.{end}\n", group.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_changed() {
        let nothing = ScheduleArgs {
            schedule: None,
            every: None,
            at: None,
            keep: None,
            keep_per_day: None,
            keep_days: None,
        };
        let minute = Duration::from_secs(60);
        let some = ScheduleArgs { every: Some(minute), schedule: Some(true), ..nothing };
        let expected = json!({ "snapshot_schedule": { "enabled": true, "frequency": 60_000 } });
        assert_eq!(patch(&some), expected);
        let cleared = ScheduleArgs { at: Some("none".parse().unwrap()), ..some };
        assert_eq!(patch(&cleared)["snapshot_schedule"].get("at"), Some(&json!(null)));
        let kept = ScheduleArgs {
            at: None,
            every: None,
            schedule: None,
            keep: Some(minute),
            keep_days: Some(7),
            ..cleared
        };
        let expected = json!({ "source_retention": { "all_for_sec": 60, "days": 7 } });
        assert_eq!(patch(&kept), expected);
    }
}
