//! Volume groups and pods: as many as there may be, and one with as many volumes as it may have.

use serde_json::{Value, json};

use super::World;
use super::http::Request;
use super::names::{BATCH, listed, name};
use crate::report::Report;

/// Batches of them.
const BATCHES: usize = 2;
/// The most volumes of one, so many in each request: names of two parts are long.
const VOLUMES: usize = 500;
const VOLUMES_AT_ONCE: usize = 100;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..BATCHES).map(make).collect()
}

/// What there is of one kind.
struct Kind {
    /// The resource of REST 2.x.
    resource: &'static str,
    /// What it is called in the name of a row.
    title: &'static str,
    /// How its names begin, and that of one that was renamed.
    names: &'static str,
    renamed: &'static str,
    /// What stands between its name and that of a volume.
    separator: &'static str,
    /// What a request says that is to end one with its volumes.
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

/// Those of volume groups.
pub fn volume_groups(report: &mut Report, world: &World) {
    all(report, world, &VOLUME_GROUPS);
}

/// Those of pods.
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
