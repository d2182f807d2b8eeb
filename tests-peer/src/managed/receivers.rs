//! Receivers of alerts by mail and syslog: as many as there may be. Nobody listens there.

use serde_json::json;

use super::World;
use super::http::Request;
use crate::report::Report;

/// The most watchers, and the most syslog servers.
const WATCHERS: usize = 20;
const SERVERS: usize = 8;
const TIMES: usize = 16;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

pub fn all(report: &mut Report, world: &World) {
    let address = |n| format!("{n:0>60}@{}.example.com", "x".repeat(63));
    let names = (0..WATCHERS).map(address).collect::<Vec<_>>().join(",");
    let make = rest("POST", &format!("alert-watchers?names={names}")).json(&json!({}));
    world.row(report, "POST alert-watchers", &[make.gives(WATCHERS)]);
    let change = |on: bool| {
        let change = rest("PATCH", &format!("alert-watchers?names={names}"));
        change.json(&json!({"enabled": on})).gives(WATCHERS)
    };
    let changes: Vec<_> = (0..TIMES).map(|n| change(n % 2 == 0)).collect();
    world.row(report, "PATCH alert-watchers", &changes);
    let end = rest("DELETE", &format!("alert-watchers?names={names}"));
    world.row(report, "DELETE alert-watchers", &[end]);

    let names = (0..SERVERS).map(|n| format!("server-{n}")).collect::<Vec<_>>().join(",");
    let uri = |port: usize| json!({"uri": format!("udp://127.0.0.1:{port}")});
    let make = rest("POST", &format!("syslog-servers?names={names}")).json(&uri(9));
    world.row(report, "POST syslog-servers", &[make.gives(SERVERS)]);
    let change = |n: usize| {
        let change = rest("PATCH", &format!("syslog-servers?names={names}"));
        change.json(&uri(9 + n % 2)).gives(SERVERS)
    };
    let changes: Vec<_> = (0..TIMES).map(change).collect();
    world.row(report, "PATCH syslog-servers", &changes);
    let end = rest("DELETE", &format!("syslog-servers?names={names}"));
    world.row(report, "DELETE syslog-servers", &[end]);
}
