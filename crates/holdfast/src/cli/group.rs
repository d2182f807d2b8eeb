//! `group …`: volumes snapshotted together, on demand or on a schedule.

use std::time::Duration;

use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::{Map, json};

use super::args::{Common, GroupVerb, Members, ScheduleArgs};
use super::client::Client;
use super::failure::Failure;
use super::output::{complain, show};
use super::protection::{self, RESOURCE};
use super::rest::{NAMES_MAX, named, names};

/// A day, in seconds.
const DAY_S: u64 = 86_400;

/// Runs a verb.
pub fn run(common: &Common, verb: &GroupVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        GroupVerb::Create { name, volumes } => {
            client.order(Method::POST, RESOURCE, &named("names", name)?)?;
            with(&client, Method::POST, "volumes", name, volumes).inspect_err(|_| {
                if let Err(failure) = client.end(RESOURCE, &[name], true) {
                    complain(format_args!(
                        "holdfast: group {name} was created, and could not be removed: {failure}"
                    ));
                }
            })?;
            let shown = protection::find(&client, name)?;
            show(form, &shown, || shown.sentence())
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
            let shown = protection::find(&client, new_name)?;
            show(form, &shown, || format!("Group {name} was renamed to {new_name}.\n"))
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
            client.end(RESOURCE, &[name], *eradicate)?;
            show(form, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Group {name} was eradicated, with its snapshots.\n"),
                false => format!(
                    "Group {name} is destroyed with its snapshots. To recover them: holdfast \
                     group recover {name}\n"
                ),
            })
        }
        GroupVerb::Recover { name } => {
            client.destroy(RESOURCE, &[name], false)?;
            show(form, &json!({ "recovered": name }), || {
                format!("Group {name} was recovered, with its snapshots.\n")
            })
        }
        GroupVerb::Eradicate { name } => {
            client.eradicate(RESOURCE, &[name])?;
            show(form, &json!({ "eradicated": name }), || {
                format!("Group {name} was eradicated, with its snapshots.\n")
            })
        }
    }
}

/// Adds or removes members of a kind, in requests of the maximum number of names.
fn with(
    client: &Client,
    method: Method,
    kind: &str,
    name: &str,
    members: &[String],
) -> Result<(), Failure> {
    members.chunks(NAMES_MAX).try_for_each(|some| {
        let query = format!("{}&member_names={}", named("group_names", name)?, names(some)?);
        client.order(method.clone(), &format!("{RESOURCE}/{kind}"), &query)
    })
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
    let method = if adds { Method::POST } else { Method::DELETE };
    // The members of a group are of one kind only.
    for (kind, members) in [("volumes", volumes), ("hosts", hosts), ("host-groups", host_groups)] {
        with(client, method.clone(), kind, name, members)?;
    }
    let shown = protection::find(client, name)?;
    show(common.form, &shown, || shown.sentence())
}

/// Refuses to clear a time of day silently: the array clears it if the interval is not of whole
/// days.
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

/// Returns a change to schedule and retention, in the form of REST 2.x.
fn patch(asked: &ScheduleArgs) -> serde_json::Value {
    let ms = |time: Duration| json!(time.as_millis() as u64);
    // The time of day `none` becomes `null`, which clears it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_settings_are_changed() {
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
