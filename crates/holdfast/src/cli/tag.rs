//! `tag …`.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::args::{Common, TagVerb};
use super::client::Client;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, show, table};
use super::rest::{Named, named, names};

/// A tag in the form of REST 2.x.
#[derive(Deserialize)]
struct Item {
    namespace: String,
    key: String,
    value: String,
    copyable: bool,
    resource: Named,
}

/// A tag in the output.
#[derive(Serialize)]
struct Line {
    of: String,
    namespace: String,
    key: String,
    value: String,
    /// Whether clones and snapshots inherit it.
    copied: bool,
}

impl From<Item> for Line {
    fn from(item: Item) -> Self {
        let Item { namespace, key, value, copyable, resource } = item;
        Self { of: resource.name.unwrap_or_default(), namespace, key, value, copied: copyable }
    }
}

/// Returns the resource of an object's tags: only names of snapshots contain a dot.
fn resource(name: &str) -> &'static str {
    if name.contains('.') { "volume-snapshots/tags" } else { "volumes/tags" }
}

/// Runs a verb.
pub fn run(common: &Common, verb: &TagVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        TagVerb::Set { name, tags, namespace, not_copied } => {
            let tag = |(key, value): &(String, String)| {
                let mut tag = json!({ "key": key, "value": value, "copyable": !not_copied });
                if let Some(namespace) = namespace {
                    tag["namespace"] = json!(namespace);
                }
                tag
            };
            let body: Vec<_> = tags.iter().map(tag).collect();
            let path = format!("{}/batch", resource(name));
            let query = named("resource_names", name)?;
            let set: Vec<Item> = client.change(Method::PUT, &path, &query, &body)?;
            list(form, set, &Listing::default())
        }
        TagVerb::List { name, namespace, listing } => {
            let namespace = namespace.as_ref().map(|space| named("namespaces", space));
            let namespace = namespace.transpose()?;
            let of = name.as_ref().map(|name| named("resource_names", name)).transpose()?;
            let query = [of, namespace].into_iter().flatten().collect::<Vec<_>>().join("&");
            let mut found: Vec<Item> =
                client.items(resource(name.as_deref().unwrap_or_default()), &query)?;
            if name.is_none() {
                found.extend(client.items::<Item>(resource("."), &query)?);
            }
            list(form, found, listing)
        }
        TagVerb::Delete { name, keys, namespace } => {
            let mut query = format!("{}&keys={}", named("resource_names", name)?, names(keys)?);
            if let Some(namespace) = namespace {
                query.push_str(&format!("&{}", named("namespaces", namespace)?));
            }
            client.order(Method::DELETE, resource(name), &query)?;
            show(form, &json!({ "of": name, "deleted": keys }), || {
                format!("{name} no longer has {}.\n", keys.join(", "))
            })
        }
    }
}

fn list(form: Form, items: Vec<Item>, listing: &Listing) -> Result<(), Failure> {
    let lines: Vec<Line> = listing.of(items.into_iter().map(Line::from).collect())?;
    let columns = [
        ("OF", Align::Left),
        ("NAMESPACE", Align::Left),
        ("KEY", Align::Left),
        ("VALUE", Align::Left),
        ("COPIED", Align::Left),
    ];
    let row = |line: &Line| {
        let Line { of, namespace, key, value, copied } = line;
        let copied = if *copied { "yes" } else { "no" };
        vec![of.clone(), namespace.clone(), key.clone(), value.clone(), copied.to_owned()]
    };
    show(form, &lines, || {
        let rows: Vec<_> = lines.iter().map(row).collect();
        table(&columns, &rows, "No tags. Set one: holdfast tag set VOLUME KEY=VALUE")
    })
}
