//! Requests that change nothing: every list with the largest query, and reports about everything.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::World;
use super::http::Request;
use super::names::{BATCH, batch, listed, name, snapshots};
use crate::report::Report;

/// The longest filter, in bytes.
const FILTER_BYTES: usize = 16 << 10;
/// The most samples in one response, for one object, and for many.
const SAMPLES: u64 = 3000;
const SAMPLES_OF_ALL: u64 = 20_000;
const HOUR_MS: u64 = 3_600_000;
/// How long an accounting pass may take beside a busy host, until it is in the history.
const ACCOUNTED: Duration = Duration::from_secs(120);
/// How often each expensive request is sent at once.
const TIMES: usize = 4;
/// The number of connections of one address: 128 are the limit, and the other rows need none
/// meanwhile.
const CONNECTIONS: usize = 120;

fn get(path: impl Into<String>) -> Request {
    Request::new("GET", path)
}

/// Encodes a text for a query.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns as many names as fit a filter.
fn names() -> String {
    let mut filter = String::from("name='none'");
    for one in batch("v", 1) {
        if filter.len() + one.len() + 12 > FILTER_BYTES {
            break;
        }
        filter.push_str(&format!(" or name='{one}'"));
    }
    encoded(&filter)
}

/// Returns as many conditions as possible.
fn terms() -> String {
    let terms: Vec<String> = (0..32).map(|n| format!("contains(name,'{n}-')")).collect();
    encoded(&terms.join(" or "))
}

pub fn all(report: &mut Report, world: &World) {
    let sort = "sort=name-,id,created,destroyed,serial,provisioned,space.unique,connection_count";
    let questions = [
        ("the longest filter", format!("filter={}&limit=1000", names())),
        ("32 conditions", format!("filter={}&limit=1000&total_item_count=true", terms())),
        ("sums of a deep field", format!("filter={}&total_only=true", ["x"; 8].join("."))),
        ("8 fields to sort by", format!("{sort}&limit=1000&offset=1000&total_item_count=true")),
    ];
    let lists = || world.operations.iter().filter(|operation| operation.is_list());
    for (title, question) in &questions {
        let ask = |path: String| get(format!("{path}?{question}"));
        let requests: Vec<_> = lists().map(|operation| ask(operation.concrete())).collect();
        world.row(report, &format!("GET of every list, with {title}"), &requests);
    }
    let [_, (_, terms), _, (_, sorted)] = &questions;
    let ask = |question| get(format!("/api/2.26/volume-snapshots?{question}"));
    world.row(report, "GET volume-snapshots, twice at once", &[ask(terms), ask(sorted)]);
    selected(report, world);
    histories(report, world);
    whole(report, world);
    refused(report, world);
}

/// As many names as a request may have.
fn selected(report: &mut Report, world: &World) {
    let longest = snapshots("v", 0, &name("s", 1));
    let hosts = listed("host", 0);
    let some: Vec<String> = batch("v", 0).into_iter().take(20).collect();
    let pairs = format!("host_names={hosts}&volume_names={}", some.join(","));
    for (title, path) in [
        ("volumes", format!("volumes?names={}", listed("v", 0))),
        ("volumes/space", format!("volumes/space?names={}", listed("d", 0))),
        ("hosts/space", format!("hosts/space?names={hosts}")),
        ("host-groups/space", format!("host-groups/space?names={}", listed("hg", 0))),
        ("protection-groups/space", format!("protection-groups/space?names={}", listed("g", 0))),
        ("volume-snapshots", format!("volume-snapshots?names={longest}")),
        ("volume-snapshots/tags", format!("volume-snapshots/tags?resource_names={longest}")),
        ("hosts", format!("hosts?names={hosts}")),
        ("protection-groups", format!("protection-groups?names={}", listed("g", 0))),
        ("host-groups", format!("host-groups?names={}", listed("hg", 0))),
        ("connections of 10,000 pairs", format!("connections?{pairs}")),
    ] {
        let requests = vec![get(format!("/api/2.26/{path}")); TIMES];
        world.row(report, &format!("GET {title} by name"), &requests);
    }
}

/// Requests an accounting pass, and waits until its figures are in the history.
fn accounted(world: &World) -> Result<String> {
    world.ask(&Request::new("POST", "/v1/pool/space"))?;
    let begin = Instant::now();
    loop {
        let samples = |list: &str, name: &str| {
            world.ask(&get(format!("/api/2.26/{list}/space?names={name}&start_time=0")))
        };
        let (volume, host) = (samples("volumes", &name("v", 0))?, samples("hosts", "peer")?);
        let size = |found: &Value| found["items"][0]["space"]["total_provisioned"].as_u64();
        if let (Some(one), Some(all)) = (size(&volume), size(&host)) {
            ensure!(one > 0 && all > one, "a volume has {one} bytes, all of the host's {all}");
            return Ok(String::new());
        }
        ensure!(begin.elapsed() < ACCOUNTED, "no sample of space:\n{volume}\n{host}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The longest ranges.
fn histories(report: &mut Report, world: &World) {
    report.check("the space of volumes and hosts is in the history", || accounted(world));
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let now_ms = now_ms as u64 / HOUR_MS * HOUR_MS;
    let range = |start: &str, end: &str, points: u64| {
        let first = now_ms - (points - 1) * HOUR_MS;
        format!("{start}={first}&{end}={now_ms}&resolution")
    };
    let own = range("start_ms", "end_ms", SAMPLES);
    for of in [String::new(), format!("&volume={}", name("v", 0)), "&host=peer".into()] {
        let path = format!("/v1/history?{own}_ms={HOUR_MS}{of}");
        world.row(report, &format!("GET /v1/history{of}"), &vec![get(path); TIMES]);
    }
    let points = SAMPLES_OF_ALL / BATCH as u64;
    let of_all = range("start_time", "end_time", points);
    for (list, names) in [
        ("volumes/performance", listed("v", 0)),
        ("volumes/performance/by-array", listed("v", 0)),
        ("hosts/performance", listed("host", 0)),
        ("hosts/performance/by-array", listed("host", 0)),
    ] {
        let names = format!("names={names}");
        let path = format!("/api/2.26/{list}?{of_all}={HOUR_MS}&{names}");
        let path = format!("{path}&sort=time-,name&limit=1000&total_item_count=true");
        world.row(report, &format!("GET {list} of 500"), &vec![get(path); TIMES]);
    }
    let path = format!("/api/2.26/volumes/space?{of_all}={HOUR_MS}&names={}", listed("v", 0));
    let path = format!("{path}&sort=time-,name&limit=1000&total_item_count=true");
    world.row(report, "GET volumes/space of 500 over time", &vec![get(path); TIMES]);
    for list in ["hosts", "host-groups", "volume-groups", "pods"] {
        let path = format!("/api/2.26/{list}/space?resolution=300000&limit=1000");
        world.row(report, &format!("GET {list}/space, a sample"), &vec![get(path); TIMES]);
    }
    let of_one = range("start_time", "end_time", SAMPLES);
    for (list, name) in [("arrays/space", ""), ("hosts/space", "&names=peer")] {
        let path = format!("/api/2.26/{list}?{of_one}={HOUR_MS}{name}&limit=1000");
        world.row(report, &format!("GET {list} over time"), &vec![get(path); TIMES]);
    }
    let path = format!("/api/2.26/arrays/performance?{of_one}={HOUR_MS}");
    world.row(report, "GET arrays/performance", &vec![get(path); TIMES]);
}

/// Lists of everything.
fn whole(report: &mut Report, world: &World) {
    for path in [
        "/metrics?volumes=50000&hosts=10000",
        "/v1/volumes?limit=10000",
        "/v1/volumes?limit=10000&destroyed=true",
        "/api/2.26/connections?host_names=peer",
        "/v1/users?limit=10000",
        "/v1/tokens",
        "/v1/audit?limit=10000",
        "/v1/counters",
        "/v1/host-sessions",
        "/v1/initiators",
        "/v1/status",
        "/v1/pool",
        "/v1/pool/damage",
        "/v1/pool/space",
        "/v1/devices",
        "/v1/controllers",
        "/v1/version",
        "/v1/settings",
        "/api/api_version",
    ] {
        world.row(report, &format!("GET {path}"), &vec![get(path); TIMES]);
    }
    let page = get("/v1/audit?limit=1000");
    let title = format!("GET /v1/audit over {CONNECTIONS} connections");
    world.row_of(report, &title, &vec![page; CONNECTIONS], CONNECTIONS);
}

/// Requests that the array does not support, with the longest body.
fn refused(report: &mut Report, world: &World) {
    let body = format!("{{\"name\":\"{}\"}}", "x".repeat((64 << 10) - 11));
    let never = world.operations.iter().filter(|operation| !operation.is_served);
    let ask = |operation: &super::Operation| {
        let method = match operation.method.as_str() {
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "GET",
        };
        Request::new(method, operation.concrete()).text(body.clone()).ends(400)
    };
    world.row(report, "what is not supported, with 64 KiB", &never.map(ask).collect::<Vec<_>>());
}
