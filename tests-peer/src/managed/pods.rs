//! Pods: as many as there may be, and one with as many volumes as it may have.

use serde_json::{Value, json};

use super::World;
use super::http::Request;
use super::names::{BATCH, listed, name};
use crate::report::Report;

/// Batches of pods.
const BATCHES: usize = 2;
/// The most volumes of a pod, so many in each request: names of two parts are long.
const VOLUMES: usize = 500;
const VOLUMES_AT_ONCE: usize = 100;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..BATCHES).map(make).collect()
}

pub fn all(report: &mut Report, world: &World) {
    let pods = |n| format!("pods?names={}", listed("pod", n));
    let make = |n| rest("POST", &pods(n)).json(&json!({})).gives(BATCH);
    world.row(report, "POST pods", &each(make));
    let pod = name("pod", 0);
    let volumes = |n: usize| {
        let names = (0..VOLUMES_AT_ONCE).map(|at| name("in", n * VOLUMES_AT_ONCE + at));
        names.map(|volume| format!("{pod}::{volume}")).collect::<Vec<_>>().join(",")
    };
    let make = |n| {
        let make = rest("POST", &format!("volumes?names={}", volumes(n)));
        make.json(&json!({"provisioned": 1 << 20})).gives(VOLUMES_AT_ONCE)
    };
    let requests: Vec<_> = (0..VOLUMES / VOLUMES_AT_ONCE).map(make).collect();
    world.row(report, "POST volumes in a pod", &requests);
    let rename = |from: &str, to: &str| {
        let change = rest("PATCH", &format!("pods?names={from}"));
        change.json(&json!({"name": to})).gives(1)
    };
    let other = name("pod-renamed", 0);
    let renames = [rename(&pod, &other), rename(&other, &pod)];
    world.row_of(report, "PATCH pods, the name of one with 500 volumes", &renames, 1);
    let change = |body: Value| {
        each(|n| {
            rest("PATCH", &format!("{}&destroy_contents=true", pods(n))).json(&body).gives(BATCH)
        })
    };
    world.row(report, "PATCH pods, destroyed", &change(json!({"destroyed": true})));
    world.row(report, "PATCH pods, recovered", &change(json!({"destroyed": false})));
    world.row(report, "PATCH pods, again", &change(json!({"destroyed": true})));
    world.row(
        report,
        "DELETE pods",
        &each(|n| rest("DELETE", &format!("{}&eradicate_contents=true", pods(n)))),
    );
}
