//! The array itself: settings, alerts, the pool and its background work.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::Session;
use serde_json::json;

use super::World;
use super::http::Request;
use super::names::name;
use crate::report::Report;
use crate::target::STRANGER;

/// The number of notification destinations: the maximum.
const DESTINATIONS: usize = 16;
/// The capacity to which the pool grows.
const CAPACITY_BYTES: u64 = 7 << 30;
/// The number of initiators reported in alerts, and how often each must be refused for that.
const STRANGERS: usize = 20;
const REFUSALS: usize = 5;
/// How long alerts may take: a watchdog.
const ALERTS: Duration = Duration::from_secs(60);

/// Little memory, so that growth is visible; and as many destinations as possible.
pub fn settings() -> String {
    let mut text = crate::bounded::SETTINGS.to_owned();
    for n in 0..DESTINATIONS {
        text.push_str("\n[[notify]]\nkind = \"syslog\"\naudit = true\nseverity = \"info\"\n");
        text.push_str(&format!("name = \"log-{n}\"\naddress = \"127.0.0.1:9\"\n"));
    }
    text
}

fn get(path: &str) -> Request {
    Request::new("GET", path)
}

/// Settings at their limits, and alerts that stay open for the rest.
pub fn settled(report: &mut Report, world: &World) {
    let name = name("array", 1);
    let body = json!({
        "space_thresholds": [1, 2, 3, 4], "eradication_delay_s": 30 * 86_400, "name": name,
        "chap_required": false,
        "offloads": {"compare_and_write": true, "extended_copy": true, "token_copy": true,
            "unmap": true, "write_same": true},
    });
    let change = Request::new("PATCH", "/v1/settings").json(&body);
    world.row(report, "PATCH /v1/settings", &vec![change; 32]);
    let body =
        json!({"name": name, "eradication_config": {"eradication_delay": 2_592_000_000_u64}});
    let change = Request::new("PATCH", "/api/2.26/arrays").json(&body);
    world.row(report, "PATCH arrays", &vec![change; 32]);
    let cleared = json!({"sender_domain": "None", "password": "", "relay_host": ""});
    let clear = Request::new("PATCH", "/api/2.26/smtp-servers").json(&cleared);
    world.row(report, "PATCH smtp-servers", &vec![clear; 32]);
    report.check("alerts are open: of space, and of 20 initiators", || alerts(world));
}

/// Causes alerts, and waits for them.
fn alerts(world: &World) -> Result<String> {
    for n in 0..STRANGERS {
        let stranger = world.array.target(1)?.as_initiator(&format!("{STRANGER}-{n}"));
        for _ in 0..REFUSALS {
            ensure!(Session::connect(&stranger.config()).is_err(), "a stranger can log in");
        }
    }
    let begin = Instant::now();
    loop {
        let open = numbers(world)?.len();
        if open > STRANGERS {
            return Ok(format!("{open} are open"));
        }
        ensure!(begin.elapsed() < ALERTS, "{open} are open");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The numbers of the open alerts, which are their names.
fn numbers(world: &World) -> Result<Vec<String>> {
    let open = world.ask(&get("/api/2.26/alerts?filter=state='open'"))?;
    let all = open["items"].as_array().context("no alerts")?.iter();
    all.map(|alert| alert["name"].as_str().map(str::to_owned).context("no number")).collect()
}

/// Runs all rows of this module.
pub fn all(report: &mut Report, world: &World) {
    let numbers = numbers(world).unwrap_or_default();
    let of = |names: &str| format!("/api/2.26/alerts?names={names}");
    let show = numbers.iter().map(|number| get(&of(number)).gives(1));
    world.row(report, "GET alerts of one", &show.collect::<Vec<_>>());
    let flag = Request::new("PATCH", of(&numbers.join(",")));
    let flag = flag.json(&json!({"flagged": false})).gives(numbers.len());
    world.row(report, "PATCH alerts", &vec![flag; 8]);
    let close = |number: &String| Request::new("POST", format!("/v1/alerts/{number}/close"));
    let close = numbers.iter().map(close);
    world.row(report, "POST /v1/alerts/{number}/close", &close.collect::<Vec<_>>());
    let test = Request::new("POST", "/v1/notifications/test");
    world.row(report, "POST /v1/notifications/test to 16", &vec![test; 8]);
    // Of all volumes.
    for on in [false, true] {
        let body = json!({"offloads": {"unmap": on, "extended_copy": on, "write_same": on}});
        let change = Request::new("PATCH", "/v1/settings").json(&body);
        world.row(report, &format!("PATCH /v1/settings, offloads {on}"), &vec![change; 4]);
    }
    pool(report, world);
    devices(report, world);
    controllers(report, world);
}

/// The only controller: it can be neither switched nor stopped.
fn controllers(report: &mut Report, world: &World) {
    let switch = Request::new("POST", "/v1/controllers/switch").ends(409);
    world.row(report, "POST /v1/controllers/switch", &vec![switch; 8]);
    let stop = Request::new("POST", "/v1/controllers/ct0/stop").ends(409);
    world.row(report, "POST /v1/controllers/{name}/stop", &vec![stop; 8]);
    let start = Request::new("POST", "/v1/controllers/ct0/start");
    world.row(report, "POST /v1/controllers/{name}/start", &vec![start; 8]);
}

/// The only device of the pool: it can be identified, but not changed.
fn devices(report: &mut Report, world: &World) {
    let add = Request::new("POST", "/v1/devices").json(&json!({"place": "/nowhere"})).ends(409);
    world.row(report, "POST /v1/devices", &vec![add; 8]);
    let change = Request::new("PATCH", "/v1/devices/0").json(&json!({"state": "out"})).ends(409);
    world.row(report, "PATCH /v1/devices/{number}", &vec![change; 8]);
    let remove = Request::new("DELETE", "/v1/devices/0").ends(409);
    world.row(report, "DELETE /v1/devices/{number}", &vec![remove; 8]);
    let identify = Request::new("POST", "/v1/devices/0/identify");
    world.row(report, "POST /v1/devices/{number}/identify", &[identify]);
}

/// The pool grows, is upgraded (it is up to date), scrubbed, accounted for and optimized in the
/// background.
fn pool(report: &mut Report, world: &World) {
    let grow = Request::new("PATCH", "/v1/pool").json(&json!({"capacity_bytes": CAPACITY_BYTES}));
    world.row(report, "PATCH /v1/pool", &[grow]);
    let post = |path: &str| Request::new("POST", path.to_owned());
    world.row(report, "POST /v1/pool/upgrade", &vec![post("/v1/pool/upgrade"); 8]);
    world.row(report, "POST /v1/pool/space", &vec![post("/v1/pool/space"); 8]);
    for path in ["/v1/pool/optimize", "/v1/pool/scrub"] {
        world.row(report, &format!("POST {path}"), &[post(path)]);
        world.row(report, &format!("GET {path}"), &vec![get(path); 32]);
        let stop = Request::new("DELETE", path);
        world.row(report, &format!("DELETE {path}"), &vec![stop; 8]);
    }
}
