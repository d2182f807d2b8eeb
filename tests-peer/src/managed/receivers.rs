//! Receivers of alerts by mail and syslog, DNS servers, time servers and a directory service: as
//! many as possible. No process listens at their addresses.

use serde_json::json;

use super::World;
use super::http::Request;
use crate::report::Report;

/// The most watchers, syslog servers and SNMP managers.
const WATCHERS: usize = 20;
const SERVERS: usize = 8;
const MANAGERS: usize = 8;
/// The most DNS servers, and the most time servers.
const NAME_SERVERS: usize = 3;
const TIME_SERVERS: usize = 4;
/// The most servers of a directory service, and nearly the longest certificate.
const DIRECTORY_URIS: usize = 3;
const CERTIFICATE_BYTES: usize = 16_000;
const CERTIFICATES: usize = 8;
const ALTERNATIVE_NAMES: usize = 32;
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
    snmp_managers(report, world);
    servers(report, world);
}

fn snmp_managers(report: &mut Report, world: &World) {
    let names = (0..MANAGERS).map(|n| format!("manager-{n}")).collect::<Vec<_>>().join(",");
    let body = |port: usize| {
        json!({
            "host": format!("127.0.0.1:{port}"), "version": "v3", "notification": "inform",
            "v3": {
                "user": "array", "auth_protocol": "SHA", "auth_passphrase": "x".repeat(63),
                "privacy_protocol": "AES", "privacy_passphrase": "y".repeat(63),
            },
        })
    };
    let make = rest("POST", &format!("snmp-managers?names={names}")).json(&body(9));
    world.row(report, "POST snmp-managers", &[make.gives(MANAGERS)]);
    let change = |n: usize| {
        let change = rest("PATCH", &format!("snmp-managers?names={names}"));
        change.json(&body(9 + n % 2)).gives(MANAGERS)
    };
    let changes: Vec<_> = (0..TIMES).map(change).collect();
    world.row(report, "PATCH snmp-managers", &changes);
    let end = rest("DELETE", &format!("snmp-managers?names={names}"));
    world.row(report, "DELETE snmp-managers", &[end]);
}

/// Servers that the array queries.
fn servers(report: &mut Report, world: &World) {
    let of = |method, port: usize| {
        let servers = (0..NAME_SERVERS).map(|n| format!("127.0.0.1:{}", port + n));
        let body = json!({"nameservers": servers.collect::<Vec<_>>(), "domain": "example.com"});
        rest(method, "dns?names=management").json(&body).gives(1)
    };
    world.row(report, "POST dns", &[of("POST", 9)]);
    let changes: Vec<_> = (0..TIMES).map(|n| of("PATCH", 9 + n % 2)).collect();
    world.row(report, "PATCH dns", &changes);
    world.row(report, "DELETE dns", &[rest("DELETE", "dns?names=management")]);

    let named = |servers: &[String]| rest("PATCH", "arrays").json(&json!({"ntp_servers": servers}));
    let all: Vec<String> = (0..TIME_SERVERS).map(|n| format!("127.0.0.1:{}", 9 + n)).collect();
    world.row(report, "PATCH arrays with time servers", &[named(&all)]);
    let test = Request::new("POST", "/v1/time-servers/test");
    world.row(report, "POST /v1/time-servers/test", &vec![test; TIMES]);
    let list = Request::new("GET", "/v1/time-servers");
    world.row(report, "GET /v1/time-servers", &vec![list; TIMES]);
    world.row(report, "PATCH arrays without", &[named(&[])]);
    directory(report, world);
    certificates(report, world);
}

/// Certificates with the longest subjects, beside the one of the server.
fn certificates(report: &mut Report, world: &World) {
    let long = "x".repeat(64);
    let names: Vec<String> = (0..ALTERNATIVE_NAMES).map(|n| format!("{n}.example.com")).collect();
    let body = json!({
        "common_name": long, "organization": long, "organizational_unit": long, "country": "US",
        "subject_alternative_names": names,
    });
    let of = |method, n: usize| rest(method, &format!("certificates?names=c{n}"));
    let all = |method| (0..CERTIFICATES).map(move |n| of(method, n));
    let made: Vec<_> = all("POST").map(|one| one.json(&body).gives(1)).collect();
    world.row(report, "POST certificates", &made);
    let changed: Vec<_> = all("PATCH").map(|one| one.json(&json!({"days": 9})).gives(1)).collect();
    world.row(report, "PATCH certificates", &changed);
    let sign = |n: usize| {
        let body = json!({"certificate": {"name": format!("c{}", n % CERTIFICATES)}});
        rest("POST", "certificates/certificate-signing-requests").json(&body).gives(1)
    };
    let signed: Vec<_> = (0..TIMES).map(sign).collect();
    world.row(report, "POST certificates/certificate-signing-requests", &signed);
    // Those, and the one of the server in its files, if management is encrypted.
    world.row(report, "GET certificates", &vec![rest("GET", "certificates"); TIMES]);
    world.row(report, "DELETE certificates", &all("DELETE").collect::<Vec<_>>());
}

/// A directory service with the maximum of everything.
fn directory(report: &mut Report, world: &World) {
    let certificate = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        "A".repeat(CERTIFICATE_BYTES)
    );
    let uris =
        |port: usize| (0..DIRECTORY_URIS).map(move |n| format!("ldap://127.0.0.1:{}", port + n));
    let long = |what: &str| format!("{what}={}", "x".repeat(240));
    let set = |n: usize| {
        let uris: Vec<String> = uris(9 + n % 2).collect();
        let body = json!({
            "uris": uris, "base_dn": long("dc"), "bind_user": long("cn"), "bind_password": "x",
            "ca_certificate": certificate, "enabled": true,
        });
        rest("PATCH", "directory-services").json(&body).gives(1)
    };
    world.row(report, "PATCH directory-services", &(0..TIMES).map(set).collect::<Vec<_>>());
    let role = |n: usize| {
        let body = json!({"group": long("cn"), "group_base": format!("{}{n}", long("ou"))});
        let role = ["array_admin", "storage_admin", "readonly"][n % 3];
        rest("PATCH", &format!("directory-services/roles?names={role}")).json(&body).gives(1)
    };
    world.row(report, "PATCH roles of groups", &(0..TIMES).map(role).collect::<Vec<_>>());
    let test = rest("GET", "directory-services/test").gives(DIRECTORY_URIS);
    world.row(report, "GET directory-services/test", &vec![test; TIMES]);
    let test = Request::new("POST", "/v1/directory/test");
    world.row(report, "POST /v1/directory/test", &vec![test; TIMES]);
    let show = Request::new("GET", "/v1/directory");
    world.row(report, "GET /v1/directory", &vec![show; TIMES]);
    let role = |role: &str| json!({"role": role, "group": ""});
    let none = json!({
        "enabled": false, "uris": [], "base_dn": "", "bind_user": "", "ca_certificate": "",
        "roles": [role("array_admin"), role("storage_admin"), role("readonly")],
    });
    let none = Request::new("PATCH", "/v1/directory").json(&none);
    world.row(report, "PATCH /v1/directory", &vec![none; TIMES]);
}
