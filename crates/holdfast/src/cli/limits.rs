//! `volume limit`, `volume-group limit`: limits on I/O of hosts to a volume, or to the volumes of a
//! group.

use array::limits::{BANDWIDTH_LIMIT, IOPS_LIMIT};
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::client::Client;
use super::failure::Failure;
use super::output::{Form, show};
use super::rest::{first, named};
use super::size::human;

/// A volume or a volume group of REST 2.x, with only its limits.
#[derive(Deserialize)]
struct Item {
    qos: Qos,
}

/// Limits in the form of REST 2.x: the highest value means no limit.
#[derive(Deserialize)]
struct Qos {
    bandwidth_limit: u64,
    iops_limit: u64,
}

/// Limits; `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    iops: Option<u64>,
    bandwidth_bytes_per_s: Option<u64>,
}

impl From<Item> for Limits {
    fn from(Item { qos }: Item) -> Self {
        let limit = |value: u64, most: u64| (value < most).then_some(value);
        Self {
            iops: limit(qos.iops_limit, *IOPS_LIMIT.end()),
            bandwidth_bytes_per_s: limit(qos.bandwidth_limit, *BANDWIDTH_LIMIT.end()),
        }
    }
}

impl Limits {
    /// Returns the limits in a few words.
    pub fn text(&self) -> String {
        let iops = self.iops.map(|iops| format!("{iops} commands/s"));
        let bandwidth = self.bandwidth_bytes_per_s.map(|bytes| format!("{}/s", human(bytes)));
        let all: Vec<String> = iops.into_iter().chain(bandwidth).collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    }
}

/// An object with limits.
pub struct Limited<'a> {
    /// The resource of REST 2.x.
    pub resource: &'static str,
    /// The kind of object, at the beginning of a sentence.
    pub title: &'static str,
    /// Its name.
    pub name: &'a str,
}

/// Returns the limits of a volume, destroyed or not.
pub fn of(client: &Client, name: &str) -> Result<Limits, Failure> {
    client.item::<Item>("volumes", &named("names", name)?).map(Limits::from)
}

/// Shows the limits of an object, or sets the given ones.
pub fn run(
    client: &Client,
    form: Form,
    Limited { resource, title, name }: &Limited<'_>,
    iops: Option<u64>,
    bandwidth: Option<u64>,
) -> Result<(), Failure> {
    let given = [("iops_limit", iops), ("bandwidth_limit", bandwidth)];
    let given = given.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?)));
    let qos: Map<_, _> = given.map(|(name, limit)| (name, json!(limit))).collect();
    let limits: Limits = if qos.is_empty() {
        client.item::<Item>(resource, &named("names", name)?)?.into()
    } else {
        let query = named("names", name)?;
        let body = json!({ "qos": qos });
        first(client.change::<Item>(Method::PATCH, resource, &query, &body)?)?.into()
    };
    show(form, &limits, || format!("{title} {name}: limits {}.\n", limits.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_means_no_limit() {
        let most = Qos { bandwidth_limit: 512 << 30, iops_limit: 100_000_000 };
        assert_eq!(Limits::from(Item { qos: most }).text(), "none");
        let some = Qos { bandwidth_limit: 1 << 20, iops_limit: 500 };
        assert_eq!(Limits::from(Item { qos: some }).text(), "500 commands/s, 1 MiB/s");
    }
}
