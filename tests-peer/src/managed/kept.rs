//! Compares acknowledged changes with the state after the process was killed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::World;
use super::http::Request;

/// Lists, and the fields of their items that were set by requests.
const LISTS: &[(&str, &[&str])] = &[
    ("volumes", &["name", "id", "provisioned", "destroyed", "source", "qos", "created"]),
    ("volume-snapshots", &["name", "id", "provisioned", "destroyed", "source", "created"]),
    ("volumes/tags", &["resource", "namespace", "key", "value", "copyable"]),
    ("volume-snapshots/tags", &["resource", "namespace", "key", "value", "copyable"]),
    ("protection-groups", &["name", "id", "destroyed", "snapshot_schedule", "source_retention"]),
    ("protection-group-snapshots", &["name", "destroyed", "created"]),
    ("protection-groups/volumes", &["group", "member"]),
    ("protection-groups/hosts", &["group", "member"]),
    ("protection-groups/host-groups", &["group", "member"]),
    ("hosts", &["name", "iqns", "chap", "personality", "host_group"]),
    ("host-groups", &["name"]),
    ("host-groups/hosts", &["group", "member"]),
    ("connections", &["host", "host_group", "volume", "lun"]),
    ("admins", &["name", "role"]),
    ("admins/api-tokens", &["admin", "api_token"]),
    ("arrays", &["name", "id", "eradication_config"]),
    ("alerts", &["name", "code", "created"]),
];

/// The items of each list.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept(BTreeMap<&'static str, Vec<String>>);

impl Kept {
    /// Reads all lists, page by page.
    pub fn read(world: &World) -> Result<Self> {
        let one =
            |(list, fields): &(&'static str, &[&str])| Ok((*list, read(world, list, fields)?));
        Ok(Self(LISTS.iter().map(one).collect::<Result<_>>()?))
    }

    /// Describes how much it is.
    pub fn says(&self) -> String {
        let all = self.0.iter().filter(|(_, items)| items.len() > 1);
        all.map(|(list, items)| format!("{} {list}", items.len())).collect::<Vec<_>>().join(", ")
    }

    /// Returns an error unless all of it is present, and nothing else.
    pub fn check(&self, world: &World) -> Result<String> {
        let found = Self::read(world)?;
        for (list, items) in &self.0 {
            let after = found.0.get(list).context("a list is missing")?;
            for (before, after) in items.iter().zip(after) {
                ensure!(before == after, "{list}: {before} became {after}");
            }
            ensure!(items.len() == after.len(), "{list}: {} of {}", after.len(), items.len());
        }
        let all: usize = found.0.values().map(Vec::len).sum();
        Ok(format!("{all} objects"))
    }
}

fn read(world: &World, list: &str, fields: &[&str]) -> Result<Vec<String>> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/2.26/{list}?limit=1000&continuation_token={token}");
        let page = world.ask(&Request::new("GET", path))?;
        let items = page["items"].as_array().context("no items")?;
        let own = |item: &Value| {
            let parts = fields.iter().map(|field| format!("{field}: {}", item[*field]));
            parts.collect::<Vec<_>>().join(", ")
        };
        all.extend(items.iter().map(own));
        match page["continuation_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return Ok(all),
        }
    }
}
