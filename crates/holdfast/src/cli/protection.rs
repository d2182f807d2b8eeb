//! Groups as they are shown: members of all kinds, the schedule, and the retention.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::failure::Failure;
use super::host_group::Member;
use super::output::{Align, facts, table};
use super::rest::named;
use super::snapshot::doom;

/// The resource of REST 2.x.
pub const RESOURCE: &str = "protection-groups";

/// A snapshot schedule in the form of REST 2.x.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schedule {
    enabled: bool,
    /// In milliseconds.
    frequency: u64,
    /// In milliseconds from midnight (UTC).
    at: Option<u64>,
}

/// A retention in the form of REST 2.x.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Retention {
    all_for_sec: u64,
    per_day: u64,
    days: u64,
}

/// A group in the form of REST 2.x.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Group {
    name: String,
    destroyed: bool,
    /// In milliseconds.
    time_remaining: Option<u64>,
    snapshot_schedule: Schedule,
    source_retention: Retention,
}

/// A group with its members.
#[derive(Serialize)]
pub struct Shown {
    #[serde(flatten)]
    group: Group,
    volumes: Vec<String>,
    hosts: Vec<String>,
    host_groups: Vec<String>,
}

/// Returns a group, destroyed or not.
pub fn find(client: &Client, name: &str) -> Result<Shown, Failure> {
    let group: Group = client.item(RESOURCE, &named("names", name)?)?;
    let members = Members::of(client, &named("group_names", &group.name)?)?;
    Ok(members.shown(group))
}

/// Returns all groups, or all destroyed ones.
pub fn all(client: &Client, destroyed: bool) -> Result<Vec<Shown>, Failure> {
    let groups: Vec<Group> = client.items(RESOURCE, &format!("destroyed={destroyed}"))?;
    let members = Members::of(client, "")?;
    Ok(groups.into_iter().map(|group| members.shown(group)).collect())
}

/// The names of the members of each kind, by group.
struct Members {
    volumes: ByGroup,
    hosts: ByGroup,
    host_groups: ByGroup,
}

type ByGroup = HashMap<String, Vec<String>>;

impl Members {
    fn of(client: &Client, query: &str) -> Result<Self, Failure> {
        let of_kind = |kind: &str| -> Result<ByGroup, Failure> {
            let found: Vec<Member> = client.items(&format!("{RESOURCE}/{kind}"), query)?;
            let mut all = ByGroup::new();
            for Member { group, member } in found {
                let (Some(group), Some(member)) = (group.name, member.name) else { continue };
                all.entry(group).or_default().push(member);
            }
            Ok(all)
        };
        let (volumes, hosts) = (of_kind("volumes")?, of_kind("hosts")?);
        Ok(Self { volumes, hosts, host_groups: of_kind("host-groups")? })
    }

    fn shown(&self, group: Group) -> Shown {
        let of_it = |all: &ByGroup| all.get(&group.name).cloned().unwrap_or_default();
        let (volumes, hosts) = (of_it(&self.volumes), of_it(&self.hosts));
        let host_groups = of_it(&self.host_groups);
        Shown { group, volumes, hosts, host_groups }
    }
}

impl Shown {
    /// Returns the members, in one line.
    fn members(&self) -> String {
        let hosts = self.hosts.iter().map(|name| format!("host {name}"));
        let groups = self.host_groups.iter().map(|name| format!("host group {name}"));
        let all: Vec<String> = self.volumes.iter().cloned().chain(hosts).chain(groups).collect();
        if all.is_empty() { "no volumes".into() } else { all.join(", ") }
    }

    /// Returns the time of day of its schedule.
    pub fn time_of_day(&self) -> Option<String> {
        self.group.snapshot_schedule.at.map(time_of_day)
    }

    /// Returns the group in one sentence.
    pub fn sentence(&self) -> String {
        let Group { name, destroyed, snapshot_schedule, source_retention, .. } = &self.group;
        let (schedule, kept) = (snapshot_schedule.text(), source_retention.text());
        let made = match snapshot_schedule.enabled {
            true => format!("; a snapshot {schedule}, {kept}"),
            false => String::new(),
        };
        let end = if *destroyed { " It is destroyed." } else { "" };
        format!("Group {name}: {}{made}.{end}\n", self.members())
    }

    /// Returns the group, line by line.
    pub fn facts(&self) -> String {
        let or_none = |names: &[String]| match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        };
        facts(&[
            ("Name", self.group.name.clone()),
            ("Volumes", or_none(&self.volumes)),
            ("Hosts", or_none(&self.hosts)),
            ("Host groups", or_none(&self.host_groups)),
            ("Snapshots", self.group.snapshot_schedule.text()),
            ("Kept", self.group.source_retention.text()),
            ("Destroyed", doom(self.group.time_remaining)),
        ])
    }
}

/// Returns a table of groups.
pub fn listed(groups: &[Shown], destroyed: bool) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("SNAPSHOTS", Align::Left),
        ("KEPT", Align::Left),
        ("MEMBERS", Align::Left),
    ];
    let row = |shown: &Shown| {
        let name = shown.group.name.clone();
        let Group { snapshot_schedule, source_retention, .. } = &shown.group;
        vec![name, snapshot_schedule.text(), source_retention.text(), shown.members()]
    };
    let nothing = match destroyed {
        true => "No groups are destroyed.",
        false => "No groups. Create one: holdfast group create NAME VOLUME…",
    };
    table(&columns, &groups.iter().map(row).collect::<Vec<_>>(), nothing)
}

impl Schedule {
    fn text(&self) -> String {
        if !self.enabled {
            return "on demand".into();
        }
        let at = self.at.map(|ms| format!(" at {} UTC", time_of_day(ms)));
        format!("every {}{}", length(self.frequency / 1000), at.unwrap_or_default())
    }
}

impl Retention {
    fn text(&self) -> String {
        let all = format!("all for {}", length(self.all_for_sec));
        match (self.per_day, self.days) {
            (0, _) | (_, 0) => all,
            (count, days) => format!("{all}, then {count} a day for {days} d"),
        }
    }
}

/// Returns milliseconds from midnight as hours and minutes.
fn time_of_day(ms: u64) -> String {
    format!("{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60)
}

/// Returns a duration in the largest unit of which it is a multiple.
fn length(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60)];
    let whole =
        units.into_iter().find(|(_, unit)| seconds >= *unit && seconds.is_multiple_of(*unit));
    whole
        .map_or_else(|| format!("{seconds} s"), |(name, unit)| format!("{} {name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_shown_in_words() {
        let schedule = |enabled, frequency, at| Schedule { enabled, frequency, at }.text();
        assert_eq!(schedule(false, 1, None), "on demand");
        assert_eq!(schedule(true, 90 * 60_000, None), "every 90 min");
        assert_eq!(schedule(true, 86_400_000, Some(9_000_000)), "every 1 d at 02:30 UTC");
        let kept = |all_for_sec, per_day, days| Retention { all_for_sec, per_day, days }.text();
        assert_eq!(kept(86_400, 0, 7), "all for 1 d");
        assert_eq!(kept(3601, 4, 7), "all for 3601 s, then 4 a day for 7 d");
    }
}
