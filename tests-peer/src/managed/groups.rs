//! Groups of volumes, with as many members as possible, their schedules and their snapshots.

use serde_json::{Value, json};

use super::World;
use super::http::Request;
use super::names::{BATCH, listed, name};
use super::volumes::BATCHES;
use crate::report::Report;

/// The number of groups that are changed one by one.
const SINGLE: usize = 32;
/// Moments that are changed at once: 1,000 snapshots.
const MOMENTS_CHANGED: usize = 2;
/// The number of snapshots of each group with members.
const MOMENTS: usize = 2;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..SINGLE).map(make).collect()
}

/// Returns the name of the `n`th group.
pub fn group(n: usize) -> String {
    name("g", n)
}

/// Returns the members of the `n`th group, as parameters.
fn members(n: usize) -> String {
    format!("group_names={}&member_names={}", group(n), listed("v", n % BATCHES))
}

fn moment(group_number: usize, n: usize) -> String {
    format!("{}.{}", group(group_number), name("o", n))
}

/// Returns some moments with one number: those of groups from `first` on.
fn moments(first: usize, n: usize) -> String {
    let all = (first..first + MOMENTS_CHANGED).map(|it| moment(it, n));
    all.collect::<Vec<_>>().join(",")
}

pub fn made(report: &mut Report, world: &World) {
    single(report, world);
    let names = listed("g", 0);
    let make = rest("POST", &format!("protection-groups?names={names}")).gives(BATCH);
    world.row(report, "POST protection-groups", &[make]);
    let add = |n| rest("POST", &format!("protection-groups/volumes?{}", members(n)));
    let requests: Vec<_> = (0..BATCHES).map(|n| add(n).gives(BATCH)).collect();
    world.row(report, "POST protection-groups/volumes", &requests);
    // The same volumes in other groups.
    let add = |n| rest("POST", &format!("volumes/protection-groups?{}", members(n)));
    let requests: Vec<_> = (BATCHES..2 * BATCHES).map(|n| add(n).gives(BATCH)).collect();
    world.row(report, "POST volumes/protection-groups", &requests);
    scheduled(report, world);
    let of = |n: usize| {
        let of = group(n % BATCHES);
        let path = format!("protection-group-snapshots?apply_retention=false&source_names={of}");
        rest("POST", &path).json(&json!({"suffix": name("o", n / BATCHES)}))
    };
    let requests: Vec<_> = (0..MOMENTS * BATCHES).map(|n| of(n).gives(1)).collect();
    world.row(report, "POST protection-group-snapshots", &requests);
}

/// One group at a time, each with a batch of volumes.
fn single(report: &mut Report, world: &World) {
    let one = |n| format!("protection-groups?names={}", name("h", n));
    world.row(report, "POST protection-groups of one", &each(|n| rest("POST", &one(n)).gives(1)));
    let members = |n: usize| {
        let volumes = listed("v", n % BATCHES);
        format!("protection-groups/volumes?group_names={}&member_names={volumes}", name("h", n))
    };
    let add = |n| rest("POST", &members(n)).gives(BATCH);
    world.row(report, "POST protection-groups/volumes of one group", &each(add));
    world.row(report, "GET protection-groups of one", &each(|n| rest("GET", &one(n)).gives(1)));
    for destroyed in [true, false, true] {
        let body = json!({"destroyed": destroyed});
        let title = format!("PATCH protection-groups of one with destroyed={destroyed}");
        world.row(report, &title, &each(|n| rest("PATCH", &one(n)).json(&body).gives(1)));
    }
    let eradicate = |n| rest("DELETE", &one(n)).gives(1);
    world.row(report, "DELETE protection-groups of one", &each(eradicate));
}

/// Schedules and retentions at their ends. Those with members are due at once.
fn scheduled(report: &mut Report, world: &World) {
    let patch = |names: &str, body: &Value, items| {
        rest("PATCH", &format!("protection-groups?names={names}")).json(body).gives(items)
    };
    let days = 400_u64;
    let longest = json!({
        "snapshot_schedule": {"enabled": true, "frequency": days * 86_400_000, "at": 86_399_999},
        "source_retention": {"all_for_sec": days * 86_400, "per_day": 1440, "days": 4000},
    });
    let all = patch(&listed("g", 0), &longest, BATCH);
    world.row(report, "PATCH protection-groups with a schedule", &vec![all; 8]);
    let often = json!({"snapshot_schedule": {"enabled": true, "frequency": 300_000}});
    let filled: Vec<String> = (0..BATCHES).map(group).collect();
    let due = patch(&filled.join(","), &often, BATCHES);
    let off = json!({"snapshot_schedule": {"enabled": false}});
    world.row(report, "PATCH protection-groups that are due", &[due]);
    let off = patch(&listed("g", 0), &off, BATCH);
    world.row(report, "PATCH protection-groups without a schedule", &[off]);
}

/// All groups but those of the first batch of volumes.
pub fn ended(report: &mut Report, world: &World) {
    let each = |make: &dyn Fn(String) -> Request| {
        let first = (0..BATCHES).step_by(MOMENTS_CHANGED);
        let of = first.flat_map(|first| (1..MOMENTS).map(move |n| moments(first, n)));
        let paths = of.map(|names| format!("protection-group-snapshots?names={names}"));
        paths.map(|path| make(path).gives(MOMENTS_CHANGED)).collect::<Vec<_>>()
    };
    for destroyed in [true, false, true] {
        let title = format!("PATCH protection-group-snapshots with destroyed={destroyed}");
        let body = json!({"destroyed": destroyed});
        world.row(report, &title, &each(&|path| rest("PATCH", &path).json(&body)));
    }
    let requests = each(&|path| rest("DELETE", &path));
    world.row(report, "DELETE protection-group-snapshots", &requests);
    for (path, of) in [
        ("protection-groups/volumes", 1..BATCHES),
        ("volumes/protection-groups", BATCHES + 1..2 * BATCHES),
    ] {
        let remove = |n| rest("DELETE", &format!("{path}?{}", members(n))).gives(BATCH);
        world.row(report, &format!("DELETE {path}"), &of.map(remove).collect::<Vec<_>>());
    }
    let names: Vec<String> = (1..BATCH).map(group).collect();
    let names = format!("protection-groups?names={}", names.join(","));
    for destroyed in [true, false, true] {
        let title = format!("PATCH protection-groups with destroyed={destroyed}");
        let body = json!({"destroyed": destroyed});
        world.row(report, &title, &[rest("PATCH", &names).json(&body).gives(BATCH - 1)]);
    }
    world.row(report, "DELETE protection-groups", &[rest("DELETE", &names).gives(BATCH - 1)]);
}
