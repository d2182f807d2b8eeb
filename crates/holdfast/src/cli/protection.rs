//! Groups as they are shown: members of all kinds, the schedule, and the retention.

use api::Group;

use serde::{Deserialize, Serialize};

use super::client::{Client, path_of};
use super::failure::Failure;
use super::group;
use super::host_group::Member;
use super::output::{Align, facts, table, time};
use super::rest::named;
use super::volume::doom;

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

/// The fields of a group that only REST 2.x has.
#[derive(Clone, Debug, Deserialize)]
struct Protection {
    name: String,
    snapshot_schedule: Schedule,
    source_retention: Retention,
}

/// A group with all of its fields.
#[derive(Serialize)]
pub struct Shown {
    #[serde(flatten)]
    group: Group,
    hosts: Vec<String>,
    host_groups: Vec<String>,
    snapshot_schedule: Schedule,
    source_retention: Retention,
}

/// A group, destroyed or not.
pub fn find(client: &Client, name: &str) -> Result<Shown, Failure> {
    let group: Group = client.get(&path_of("groups", name)?)?;
    let query = named("names", &group.name)?;
    let protection: Protection = client.item(RESOURCE, &query)?;
    let query = named("group_names", &group.name)?;
    let hosts = members(client, "hosts", &query)?;
    let host_groups = members(client, "host-groups", &query)?;
    Ok(shown(group, protection, &hosts, &host_groups))
}

/// All groups, or all destroyed ones.
pub fn all(client: &Client, destroyed: bool) -> Result<Vec<Shown>, Failure> {
    let protections: Vec<Protection> = client.items(RESOURCE, &format!("destroyed={destroyed}"))?;
    let groups = match destroyed {
        false => group::not_destroyed(client)?,
        true => {
            let one = |one: &Protection| client.get(&path_of("groups", &one.name)?);
            protections.iter().map(one).collect::<Result<_, _>>()?
        }
    };
    let hosts = members(client, "hosts", "")?;
    let host_groups = members(client, "host-groups", "")?;
    let find = |group: Group| {
        let protection = protections.iter().find(|one| one.name == group.name)?;
        Some(shown(group, protection.clone(), &hosts, &host_groups))
    };
    // A group that was made or deleted between two requests is left out.
    Ok(groups.into_iter().filter_map(find).collect())
}

/// The members of one kind, as pairs of a group and a name.
fn members(client: &Client, kind: &str, query: &str) -> Result<Vec<(String, String)>, Failure> {
    let found: Vec<Member> = client.items(&format!("{RESOURCE}/{kind}"), query)?;
    Ok(found.into_iter().filter_map(|m| Some((m.group.name?, m.member.name?))).collect())
}

fn shown(
    group: Group,
    protection: Protection,
    hosts: &[(String, String)],
    host_groups: &[(String, String)],
) -> Shown {
    let of_it = |members: &[(String, String)]| {
        let of_it = members.iter().filter(|(of, _)| *of == group.name);
        of_it.map(|(_, name)| name.clone()).collect()
    };
    let (hosts, host_groups) = (of_it(hosts), of_it(host_groups));
    let Protection { snapshot_schedule, source_retention, .. } = protection;
    Shown { group, hosts, host_groups, snapshot_schedule, source_retention }
}

impl Shown {
    /// The members, in one line.
    fn members(&self) -> String {
        let hosts = self.hosts.iter().map(|name| format!("host {name}"));
        let groups = self.host_groups.iter().map(|name| format!("host group {name}"));
        let all: Vec<String> =
            self.group.volumes.iter().cloned().chain(hosts).chain(groups).collect();
        if all.is_empty() { "no volumes".into() } else { all.join(", ") }
    }

    /// The time of day of its schedule.
    pub fn time_of_day(&self) -> Option<String> {
        self.snapshot_schedule.at.map(time_of_day)
    }

    /// The group in one sentence.
    pub fn sentence(&self) -> String {
        let (schedule, kept) = (self.snapshot_schedule.text(), self.source_retention.text());
        let made = match self.snapshot_schedule.enabled {
            true => format!("; a snapshot {schedule}, {kept}"),
            false => String::new(),
        };
        format!("Group {}: {}{made}.\n", self.group.name, self.members())
    }

    /// The group, line by line.
    pub fn facts(&self) -> String {
        let or_none = |names: &[String]| match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        };
        facts(&[
            ("Name", self.group.name.clone()),
            ("Volumes", or_none(&self.group.volumes)),
            ("Hosts", or_none(&self.hosts)),
            ("Host groups", or_none(&self.host_groups)),
            ("Snapshots", self.snapshot_schedule.text()),
            ("Kept", self.source_retention.text()),
            ("Made", time(self.group.created_ms)),
            ("Destroyed", doom(self.group.eradicate_ms)),
        ])
    }
}

/// A table of groups.
pub fn listed(groups: &[Shown], destroyed: bool) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("SNAPSHOTS", Align::Left),
        ("KEPT", Align::Left),
        ("MEMBERS", Align::Left),
    ];
    let row = |shown: &Shown| {
        let name = shown.group.name.clone();
        let (schedule, kept) = (shown.snapshot_schedule.text(), shown.source_retention.text());
        vec![name, schedule, kept, shown.members()]
    };
    let nothing = match destroyed {
        true => "No groups are destroyed.",
        false => "No groups. Make one: holdfast group create NAME VOLUME…",
    };
    table(&columns, &groups.iter().map(row).collect::<Vec<_>>(), nothing)
}

impl Schedule {
    fn text(&self) -> String {
        if !self.enabled {
            return "when asked".into();
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

/// So many milliseconds from midnight, as hours and minutes.
fn time_of_day(ms: u64) -> String {
    format!("{:02}:{:02}", ms / 3_600_000, ms / 60_000 % 60)
}

/// A length of time in the largest unit of which it is a multiple.
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
    fn schedules_are_told_in_words() {
        let schedule = |enabled, frequency, at| Schedule { enabled, frequency, at }.text();
        assert_eq!(schedule(false, 1, None), "when asked");
        assert_eq!(schedule(true, 90 * 60_000, None), "every 90 min");
        assert_eq!(schedule(true, 86_400_000, Some(9_000_000)), "every 1 d at 02:30 UTC");
        let kept = |all_for_sec, per_day, days| Retention { all_for_sec, per_day, days }.text();
        assert_eq!(kept(86_400, 0, 7), "all for 1 d");
        assert_eq!(kept(3601, 4, 7), "all for 3601 s, then 4 a day for 7 d");
    }
}
