//! Snapshots of many volumes, many snapshots of one volume, and tags of both.

use serde_json::{Value, json};

use super::World;
use super::http::Request;
use super::names::{BATCH, listed, name, snapshots, tags};
use super::volumes::BATCHES;
use crate::bounded::On;
use crate::report::Report;

/// The number of snapshots of one volume.
const MANY: usize = 1000;
/// Snapshots that are changed one by one.
const SINGLE: usize = 64;
/// Volumes whose tags are as many and as long as they can be.
const TAGGED: usize = 32;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

/// The longest suffix.
fn suffix() -> String {
    name("s", 1)
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..SINGLE).map(make).collect()
}

/// The `n`th of the many snapshots.
fn one_of_many(n: usize) -> String {
    format!("{}.{}", On::Snapshots.volume(), name("m", n))
}

pub fn made(report: &mut Report, world: &World) {
    let body = json!({"suffix": suffix()});
    let of = |n| rest("POST", &format!("volume-snapshots?source_names={}", listed("v", n)));
    let make = |n| of(n).json(&body).gives(BATCH);
    world.row(report, "POST volume-snapshots", &(0..BATCHES).map(make).collect::<Vec<_>>());
    // Those of a volume that is copied, so that each has maps of its own to share.
    let of = |n| rest("POST", &format!("volume-snapshots?source_names={}", listed("c", n)));
    let make = |n| of(n).json(&json!({"suffix": "copied"})).gives(BATCH);
    let requests: Vec<_> = (0..BATCHES).map(make).collect();
    world.row(report, "POST volume-snapshots of copies", &requests);
    let many = On::Snapshots.volume();
    let full = rest("POST", &format!("volumes?names={many}&overwrite=true"));
    let full = full.json(&json!({"source": {"name": On::Cloned.volume()}})).gives(1);
    world.row(report, "POST volumes, overwritten while it is in use", &[full]);
    let of = rest("POST", &format!("volume-snapshots?source_names={many}"));
    let make = |n| of.clone().json(&json!({"suffix": name("m", n)})).gives(1);
    world.row(report, "POST volume-snapshots of one", &(0..MANY).map(make).collect::<Vec<_>>());
    let show = |n| rest("GET", &format!("volume-snapshots?names={}", one_of_many(n))).gives(1);
    world.row(report, "GET volume-snapshots of one", &each(show));
    let space = |n| Request::new("GET", format!("/v1/snapshots/{}/space", one_of_many(n)));
    world.row(report, "GET /v1/snapshots/{name}/space", &each(space));
    let rename = |n| rest("PATCH", &format!("volume-snapshots?names={}", one_of_many(n)));
    let rename = |n| rename(n).json(&json!({"name": name("r", n)})).gives(1);
    world.row(report, "PATCH volume-snapshots with a suffix", &each(rename));
    let back = |n| format!("{}.{}", On::Snapshots.volume(), name("r", n));
    let back = |n| rest("PATCH", &format!("volume-snapshots?names={}", back(n)));
    let back = |n| back(n).json(&json!({"name": one_of_many(n)}));
    world.row(report, "PATCH volume-snapshots with a name", &each(back));
    tagged(report, world);
}

/// One tag on each of as many objects as a request may have, and all tags of an object.
fn tagged(report: &mut Report, world: &World) {
    let one = json!([{"key": "k".repeat(64), "value": "v".repeat(200), "copyable": false}]);
    let put = |path: &str, names: &str, body: &Value| {
        rest("PUT", &format!("{path}/tags/batch?resource_names={names}")).json(body)
    };
    let volumes = |n| put("volumes", &listed("v", n), &one).gives(BATCH);
    let requests: Vec<_> = (0..BATCHES).map(volumes).collect();
    world.row(report, "PUT volumes/tags/batch of 500", &requests);
    let of = |n| put("volume-snapshots", &snapshots("v", n, &suffix()), &one).gives(BATCH);
    let requests: Vec<_> = (0..BATCHES).map(of).collect();
    world.row(report, "PUT volume-snapshots/tags/batch of 500", &requests);
    // Of four bytes each.
    let all = tags(32, "\u{1d54f}");
    let of = |n| put("volumes", &name("w", n), &all).gives(32);
    let requests: Vec<_> = (0..TAGGED).map(of).collect();
    world.row(report, "PUT volumes/tags/batch of 32 tags", &requests);
}

/// All but those of the first batch.
pub fn ended(report: &mut Report, world: &World) {
    let of = |path: &str, names: String| {
        let key = "k".repeat(64);
        rest("DELETE", &format!("{path}/tags?resource_names={names}&keys={key}"))
    };
    let volumes = |n| of("volumes", listed("v", n));
    let snapped = |n| of("volume-snapshots", snapshots("v", n, &suffix()));
    world.row(report, "DELETE volumes/tags", &(1..BATCHES).map(volumes).collect::<Vec<_>>());
    let requests: Vec<_> = (1..BATCHES).map(snapped).collect();
    world.row(report, "DELETE volume-snapshots/tags", &requests);
    let names = |n| format!("volume-snapshots?names={}", snapshots("v", n, &suffix()));
    for destroyed in [true, false, true] {
        let title = format!("PATCH volume-snapshots with destroyed={destroyed}");
        let body = json!({"destroyed": destroyed});
        let change = |n| rest("PATCH", &names(n)).json(&body).gives(BATCH);
        world.row(report, &title, &(1..BATCHES).map(change).collect::<Vec<_>>());
    }
    let eradicate = |n| rest("DELETE", &names(n)).gives(BATCH);
    world.row(report, "DELETE volume-snapshots", &(1..BATCHES).map(eradicate).collect::<Vec<_>>());
    let one = |n| format!("volume-snapshots?names={}", one_of_many(n));
    for destroyed in [true, false, true] {
        let body = json!({"destroyed": destroyed});
        let title = format!("PATCH volume-snapshots of one with destroyed={destroyed}");
        world.row(report, &title, &each(|n| rest("PATCH", &one(n)).json(&body).gives(1)));
    }
    let eradicate = |n| rest("DELETE", &one(n)).gives(1);
    world.row(report, "DELETE volume-snapshots of one", &each(eradicate));
    // With all of its other snapshots. A host has it: it must be disconnected first.
    let volume = On::Snapshots.volume();
    let pair = format!("host_names=bounded&volume_names={volume}");
    let leave = Request::new("DELETE", format!("/api/2.26/connections?{pair}"));
    world.row(report, "DELETE connections of two, again", &[leave]);
    let volume = format!("volumes?names={volume}");
    let destroy = rest("PATCH", &volume).json(&json!({"destroyed": true})).gives(1);
    world.row(report, "PATCH volumes, destroyed with its snapshots", &[destroy]);
    let eradicate = rest("DELETE", &volume).gives(1);
    world.row(report, "DELETE volumes with its snapshots", &[eradicate]);
}
