//! Volumes: created, changed, copied, overwritten, resized, destroyed and eradicated.

use serde_json::json;

use super::World;
use super::http::Request;
use super::names::{BATCH, SIZE, TRUNCATED, listed, name, truncated};
use crate::bounded::On;
use crate::report::Report;

/// The number of batches of empty volumes.
pub const BATCHES: usize = 4;
/// The number of batches of copies, and how many of these are overwritten at the end.
const COPIES: usize = 4;
/// The number of volumes that are changed one by one.
pub const SINGLE: usize = 64;

fn rest(method: &'static str, parameters: &str) -> Request {
    Request::new(method, format!("/api/2.26/volumes?{parameters}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..SINGLE).map(make).collect()
}

/// Creates objects for the other rows: some thousands of volumes.
pub fn made(report: &mut Report, world: &World) {
    let of = |n| format!("names={}&with_default_protection=true", listed("v", n));
    let limits = json!({"bandwidth_limit": 1_u64 << 39, "iops_limit": 100_000_000});
    let new = json!({"provisioned": SIZE, "subtype": "regular", "qos": limits});
    let make = |n| rest("POST", &of(n)).json(&new).gives(BATCH);
    world.row(report, "POST volumes of 64 TiB", &(0..BATCHES).map(make).collect::<Vec<_>>());
    let limit = |n| rest("PATCH", &format!("names={}", listed("v", n % BATCHES)));
    let limits = json!({"qos": {"bandwidth_limit": 1 << 20, "iops_limit": 100}});
    let limit = |n| limit(n).json(&limits).gives(BATCH);
    world.row(
        report,
        "PATCH volumes with limits",
        &(0..2 * BATCHES).map(limit).collect::<Vec<_>>(),
    );
    copied(report, world);
    single(report, world);
}

/// Copies of volumes of 64 TiB.
fn copied(report: &mut Report, world: &World) {
    for (kind, on, what) in
        [("c", On::Same, "full of one block"), ("d", On::Cloned, "full of references")]
    {
        let new = json!({"source": {"name": on.volume()}});
        let copy = |n| rest("POST", &format!("names={}", listed(kind, n))).json(&new).gives(BATCH);
        let title = format!("POST volumes, copies of one {what}");
        world.row(report, &title, &(0..COPIES).map(copy).collect::<Vec<_>>());
    }
    for (kind, on, what) in
        [("c", On::Cloned, "full of references"), ("d", On::Same, "full of one block")]
    {
        let new = json!({"source": {"name": on.volume()}});
        let of = |n| format!("names={}&overwrite=true", listed(kind, n));
        let copy = |n| rest("POST", &of(n)).json(&new).gives(BATCH);
        let title = format!("POST volumes, overwritten with one {what}");
        world.row(report, &title, &(0..COPIES).map(copy).collect::<Vec<_>>());
    }
    for (size, title) in [(4096, "shrunk to 4 KiB"), (SIZE, "grown to 64 TiB")] {
        let resize = |n| rest("PATCH", &format!("names={}&truncate=true", truncated("c", n)));
        let resize = |n| resize(n).json(&json!({"provisioned": size})).gives(TRUNCATED);
        let title = format!("PATCH volumes, {title}");
        let all = 0..COPIES * BATCH / TRUNCATED;
        world.row(report, &title, &all.map(resize).collect::<Vec<_>>());
    }
}

/// One volume at a time, and by `/v1`.
fn single(report: &mut Report, world: &World) {
    let one = |n| format!("/v1/volumes/{}", name("w", n));
    let (same, dense) = (On::Same.volume(), On::Cloned.volume());
    let new = |n| json!({"name": name("w", n), "size_bytes": SIZE, "block_bytes": 512});
    let make = |n| Request::new("POST", "/v1/volumes").json(&new(n)).ends(201);
    world.row(report, "POST /v1/volumes of 64 TiB", &each(make));
    for source in [same, dense] {
        let title = format!("POST volumes of one, overwritten with `{source}`");
        world.row(report, &title, &each(|n| copy("w", n, true, source)));
    }
    let of = |n| format!("/api/2.26/volume-snapshots?source_names={}", name("w", n));
    let snapshot = |n| Request::new("POST", of(n)).json(&json!({"suffix": "before"})).gives(1);
    world.row(report, "POST volume-snapshots, each of one volume", &each(snapshot));
    let restore = |n| copy("w", n, true, &format!("{}.before", name("w", n)));
    world.row(report, "POST volumes of one, restored", &each(restore));
    for (size, title) in [(4096, "shrunk to 4 KiB"), (SIZE, "grown to 64 TiB")] {
        let resize = json!({"size_bytes": size, "truncate": true, "compression": false,
            "deduplication": false, "offloads": {"unmap": false, "write_same": false}});
        let resize = |n| Request::new("PATCH", one(n)).json(&resize);
        world.row(report, &format!("PATCH /v1/volumes, {title}"), &each(resize));
    }
    world.row(report, "POST volumes of one, a copy", &each(|n| copy("x", n, false, same)));
    let show = |n| Request::new("GET", one(n));
    world.row(report, "GET /v1/volumes/{name}", &each(show));
}

/// A copy of a volume or a snapshot: a new volume, or one that is overwritten.
fn copy(kind: &str, n: usize, overwrite: bool, source: &str) -> Request {
    let request = rest("POST", &format!("names={}&overwrite={overwrite}", name(kind, n)));
    request.json(&json!({"source": {"name": source}})).gives(1)
}

/// All but the first batch of each kind.
pub fn ended(report: &mut Report, world: &World) {
    for destroyed in [true, false, true] {
        let title = format!("PATCH volumes with destroyed={destroyed}");
        let body = json!({"destroyed": destroyed});
        let of = |(kind, n): (&str, usize)| rest("PATCH", &format!("names={}", listed(kind, n)));
        let requests = batches().map(|it| of(it).json(&body).gives(BATCH));
        world.row(report, &title, &requests.collect::<Vec<_>>());
    }
    let of = |(kind, n): (&str, usize)| rest("DELETE", &format!("names={}", listed(kind, n)));
    let requests = batches().map(|it| of(it).gives(BATCH));
    world.row(report, "DELETE volumes", &requests.collect::<Vec<_>>());
    let one = |n| format!("names={}", name("w", n));
    for destroyed in [true, false, true] {
        let body = json!({"destroyed": destroyed});
        let title = format!("PATCH volumes of one with destroyed={destroyed}");
        world.row(report, &title, &each(|n| rest("PATCH", &one(n)).json(&body).gives(1)));
    }
    world.row(report, "DELETE volumes of one", &each(|n| rest("DELETE", &one(n)).gives(1)));
}

fn batches() -> impl Iterator<Item = (&'static str, usize)> {
    let of = |kind, count| (1..count).map(move |n| (kind, n));
    of("v", BATCHES).chain(of("c", COPIES)).chain(of("d", COPIES))
}
