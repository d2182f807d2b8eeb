//! Volume groups and pods: as many as possible, and one with as many volumes as possible.

use serde_json::{Value, json};

use super::World;
use super::http::Request;
use super::names::{BATCH, listed, name};
use crate::report::Report;

/// The number of batches of them.
const BATCHES: usize = 2;
/// The most volumes of one, and how many are in each request: names of two parts are long.
const VOLUMES: usize = 500;
const VOLUMES_AT_ONCE: usize = 100;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..BATCHES).map(make).collect()
}

/// The properties of a kind.
struct Kind {
    /// The resource of REST 2.x.
    resource: &'static str,
    /// Its name in rows.
    title: &'static str,
    /// The beginning of names, and of a renamed one.
    names: &'static str,
    renamed: &'static str,
    /// The separator between its name and that of a volume.
    separator: &'static str,
    /// The parameter that ends one together with its volumes.
    destroys: &'static str,
    eradicates: &'static str,
}

const VOLUME_GROUPS: Kind = Kind {
    resource: "volume-groups",
    title: "volume group",
    names: "vg",
    renamed: "renamed",
    separator: "/",
    destroys: "",
    eradicates: "",
};
const PODS: Kind = Kind {
    resource: "pods",
    title: "pod",
    names: "pod",
    renamed: "pod-renamed",
    separator: "::",
    destroys: "&destroy_contents=true",
    eradicates: "&eradicate_contents=true",
};

/// Rows of volume groups.
pub fn volume_groups(report: &mut Report, world: &World) {
    all(report, world, &VOLUME_GROUPS);
}

/// Rows of pods.
pub fn pods(report: &mut Report, world: &World) {
    all(report, world, &PODS);
}

fn all(report: &mut Report, world: &World, kind: &Kind) {
    let Kind { resource, title, names, renamed, separator, destroys, eradicates } = kind;
    let some = |n| format!("{resource}?names={}", listed(names, n));
    let make = |n| rest("POST", &some(n)).json(&json!({})).gives(BATCH);
    world.row(report, &format!("POST {resource}"), &each(make));
    let one = name(names, 0);
    let volumes = |n: usize| {
        let names = (0..VOLUMES_AT_ONCE).map(|at| name("in", n * VOLUMES_AT_ONCE + at));
        names.map(|volume| format!("{one}{separator}{volume}")).collect::<Vec<_>>().join(",")
    };
    let make = |n| {
        let make = rest("POST", &format!("volumes?names={}", volumes(n)));
        make.json(&json!({"provisioned": 1 << 20})).gives(VOLUMES_AT_ONCE)
    };
    let requests: Vec<_> = (0..VOLUMES / VOLUMES_AT_ONCE).map(make).collect();
    world.row(report, &format!("POST volumes in a {title}"), &requests);
    let rename = |from: &str, to: &str| {
        let change = rest("PATCH", &format!("{resource}?names={from}"));
        change.json(&json!({"name": to})).gives(1)
    };
    let other = name(renamed, 0);
    let renames = [rename(&one, &other), rename(&other, &one)];
    let row = format!("PATCH {resource}, the name of one with 500 volumes");
    world.row_of(report, &row, &renames, 1);
    let change = |body: Value| {
        each(|n| rest("PATCH", &format!("{}{destroys}", some(n))).json(&body).gives(BATCH))
    };
    for (what, destroyed) in [("destroyed", true), ("recovered", false), ("again", true)] {
        let row = format!("PATCH {resource}, {what}");
        world.row(report, &row, &change(json!({ "destroyed": destroyed })));
    }
    let delete = |n| rest("DELETE", &format!("{}{eradicates}", some(n)));
    world.row(report, &format!("DELETE {resource}"), &each(delete));
}
