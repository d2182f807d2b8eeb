//! Hosts with as many names as possible, and host groups.

use serde_json::json;

use super::World;
use super::http::Request;
use super::names::{BATCH, initiators, listed, name};
use crate::report::Report;

/// The number of batches of hosts.
pub const BATCHES: usize = 4;
/// The number of hosts that are changed one by one, each with as many initiators as possible.
pub const SINGLE: usize = 32;
/// The most initiators of a host.
const INITIATORS: usize = 64;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..SINGLE).map(make).collect()
}

/// Returns the members of the `n`th host group, as parameters.
fn members(n: usize) -> String {
    format!("group_names={}&member_names={}", name("hg", n), listed("host", n))
}

/// Returns the hosts of a batch in a group of volumes without other members.
fn protected(n: usize) -> String {
    format!("group_names={}&member_names={}", super::groups::group(100 + n), listed("host", n))
}

/// Returns the same for as many host groups as a request may have.
fn protected_groups(n: usize) -> String {
    format!("group_names={}&member_names={}", super::groups::group(200 + n), listed("hg", 0))
}

pub fn made(report: &mut Report, world: &World) {
    let of = |n| format!("hosts?names={}", listed("host", n));
    let make = |n| rest("POST", &of(n)).json(&json!({"personality": "esxi"})).gives(BATCH);
    world.row(report, "POST hosts", &(0..BATCHES).map(make).collect::<Vec<_>>());
    let change = |n: usize| rest("PATCH", &of(n % BATCHES)).json(&json!({"personality": ""}));
    let requests: Vec<_> = (0..2 * BATCHES).map(|n| change(n).gives(BATCH)).collect();
    world.row(report, "PATCH hosts", &requests);
    single(report, world);
    let make = rest("POST", &format!("host-groups?names={}", listed("hg", 0))).gives(BATCH);
    world.row(report, "POST host-groups", &[make]);
    let add = |n| rest("POST", &format!("host-groups/hosts?{}", members(n))).gives(BATCH);
    world.row(report, "POST host-groups/hosts", &(0..BATCHES - 1).map(add).collect::<Vec<_>>());
    let add = rest("POST", &format!("hosts/host-groups?{}", members(BATCHES - 1))).gives(BATCH);
    world.row(report, "POST hosts/host-groups", &[add]);
    let rename = |from: &str, to: &str, n| {
        let path = format!("host-groups?names={}", name(from, n));
        rest("PATCH", &path).json(&json!({"name": name(to, n)}))
    };
    for (from, to) in [("hg", "ig"), ("ig", "hg")] {
        let requests = each(|n| rename(from, to, n));
        world.row(report, &format!("PATCH host-groups with the name {to}"), &requests);
    }
    for (path, of) in [
        ("protection-groups/hosts", protected as fn(usize) -> String),
        ("protection-groups/host-groups", protected_groups),
    ] {
        let add = |n| rest("POST", &format!("{path}?{}", of(n))).gives(BATCH);
        world.row(report, &format!("POST {path}"), &[add(0), add(1)]);
    }
    for (path, of) in [
        ("hosts/protection-groups", protected as fn(usize) -> String),
        ("host-groups/protection-groups", protected_groups),
    ] {
        let add = |n| rest("POST", &format!("{path}?{}", of(n))).gives(BATCH);
        world.row(report, &format!("POST {path}"), &[add(2), add(3)]);
    }
}

/// One host at a time.
fn single(report: &mut Report, world: &World) {
    let text = |letter: &str| letter.repeat(255);
    let chap = json!({
        "host_user": text("u"), "host_password": text("s"),
        "target_user": text("t"), "target_password": text("z"),
    });
    let new = |n| json!({"iqns": initiators(n, INITIATORS), "chap": chap});
    let one = |n| format!("hosts?names={}", name("one", n));
    let make = |n| rest("POST", &one(n)).json(&new(n)).gives(1);
    world.row(report, "POST hosts with 64 initiators", &each(make));
    let none = json!({"host_user": "", "host_password": ""});
    let all = |n: usize| json!({"iqns": initiators(100 + n, INITIATORS), "chap": none});
    let patch = |n| rest("PATCH", &one(n)).json(&all(n)).gives(1);
    world.row(report, "PATCH hosts with 64 initiators", &each(patch));
    let swap = |n: usize| {
        let (add, remove) = (initiators(n, INITIATORS), initiators(100 + n, INITIATORS));
        json!({"add_iqns": add, "remove_iqns": remove})
    };
    let patch = |n| rest("PATCH", &one(n)).json(&swap(n)).gives(1);
    world.row(report, "PATCH hosts with 128 initiators", &each(patch));
    world.row(report, "GET hosts of one", &each(|n| rest("GET", &one(n)).gives(1)));
    let check = |n| Request::new("GET", format!("/v1/hosts/{}/check", name("one", n)));
    world.row(report, "GET /v1/hosts/{name}/check", &each(check));
}

/// All but the first batch, the first host group and the first groups.
pub fn ended(report: &mut Report, world: &World) {
    for (path, of, n) in [
        ("protection-groups/hosts", protected as fn(usize) -> String, 1),
        ("hosts/protection-groups", protected, 2),
        ("protection-groups/host-groups", protected_groups, 1),
        ("host-groups/protection-groups", protected_groups, 2),
    ] {
        let remove = rest("DELETE", &format!("{path}?{}", of(n))).gives(BATCH);
        world.row(report, &format!("DELETE {path}"), &[remove]);
    }
    for (path, n) in [("host-groups/hosts", 1), ("hosts/host-groups", 2)] {
        let remove = rest("DELETE", &format!("{path}?{}", members(n)));
        world.row(report, &format!("DELETE {path}"), &[remove]);
    }
    let others: Vec<String> = (300..BATCH).map(|n| name("hg", n)).collect();
    // They are still members of groups of volumes.
    let leave = |n: usize| {
        let group = super::groups::group(200 + n);
        let path = format!("group_names={group}&member_names={}", others.join(","));
        rest("DELETE", &format!("protection-groups/host-groups?{path}")).gives(others.len())
    };
    world.row(report, "DELETE protection-groups/host-groups of some", &[leave(0), leave(3)]);
    let remove = rest("DELETE", &format!("host-groups?names={}", others.join(",")));
    world.row(report, "DELETE host-groups", &[remove]);
    let remove = |n| rest("DELETE", &format!("hosts?names={}", listed("host", n))).gives(BATCH);
    world.row(report, "DELETE hosts", &(1..3).map(remove).collect::<Vec<_>>());
    let remove = each(|n| rest("DELETE", &format!("hosts?names={}", name("one", n))).gives(1));
    world.row(report, "DELETE hosts one by one", &remove[1..]);
}
