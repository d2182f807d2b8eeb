//! Tests the interface over an array in memory: statuses, tokens, and what is never shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use array::Array;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

mod access;
mod alerts;
mod banner;
mod certificates;
mod connections;
mod controllers;
mod devices;
mod directory;
mod dns;
mod growing;
mod history;
mod initiators;
mod kept;
mod largest;
mod memory;
mod metrics;
mod notifications;
mod pods;
mod quiet;
mod rest;
mod rest_groups;
mod rest_space;
mod switches;
mod time_servers;
mod turns;
mod volume_groups;

use super::*;
use memory::MemoryStore;
use quiet::Quiet;

/// Returns a clock that stands still unless a test advances it, and bytes that look random.
fn sources() -> (Arc<AtomicU64>, Sources) {
    let (uptime, drawn) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let time = uptime.clone();
    let entropy = move || {
        let mut bytes = [0xcd; 32];
        bytes[..8].copy_from_slice(&drawn.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        Some(bytes)
    };
    let uptime_ms = Box::new(move || time.load(Ordering::Relaxed));
    (uptime, Sources { uptime_ms, entropy: Box::new(entropy) })
}

struct World {
    store: Arc<MemoryStore>,
    array: Arc<Array>,
    router: Router,
    token: String,
    uptime_ms: Arc<AtomicU64>,
    reads: Arc<tokio::sync::Semaphore>,
    history: Arc<::history::History>,
}

impl World {
    fn new() -> Self {
        Self::with(Arc::new(Quiet), Arc::new(devices::OneDevice))
    }

    fn with(telemetry: Arc<dyn Telemetry>, changes: Arc<dyn DeviceChanges>) -> Self {
        Self::of(telemetry, changes, Facts::default())
    }

    fn of(telemetry: Arc<dyn Telemetry>, changes: Arc<dyn DeviceChanges>, facts: Facts) -> Self {
        Self::watched(telemetry, changes, Arc::new(Quiet), facts)
    }

    fn watched(
        telemetry: Arc<dyn Telemetry>,
        changes: Arc<dyn DeviceChanges>,
        watch: Arc<dyn Watch>,
        facts: Facts,
    ) -> Self {
        let store = Arc::new(MemoryStore::default());
        let token = Token::from_entropy(&[0xab; 32]);
        let exposed = token.expose().to_owned();
        let array = Arc::new(Array::open(store.clone(), false).unwrap());
        let (uptime_ms, sources) = sources();
        let medium = Box::new(::history::Memory::default());
        let history = Arc::new(::history::History::open(medium, [0; 16]).unwrap());
        let interface = Interface {
            array: array.clone(),
            access: Access::new(token, sources),
            facts,
            telemetry,
            changes,
            watch,
            history: history.clone(),
            now_ms: || 1234,
        };
        let reads = interface.access.reads.clone();
        let router = router(Arc::new(interface));
        Self { store, array, router, token: exposed, uptime_ms, reads, history }
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let value =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        if status.is_client_error() || status.is_server_error() {
            let fault = if value["errors"].is_array() { &value["errors"][0] } else { &value };
            let message = fault["message"].as_str().unwrap();
            assert!(!message.is_empty() && !message.contains('\n'), "{message}");
        }
        (status, value)
    }

    /// Creates a user.
    async fn admin(&self, name: &str, role: &str) {
        let path = format!("/api/2.26/admins?names={name}");
        let role = json!({"role": {"name": role}});
        assert_eq!(self.ask("POST", &path, Some(role)).await.0, 200);
    }

    /// Creates a host with this iSCSI name.
    async fn host(&self, name: &str, iqn: &str) {
        let path = format!("/api/2.26/hosts?names={name}");
        assert_eq!(self.ask("POST", &path, Some(json!({"iqns": [iqn]}))).await.0, 200);
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token));
        let request = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let (status, value) = self.send(request.unwrap()).await;
        (status.as_u16(), value)
    }
}

#[tokio::test]
async fn everything_but_the_version_needs_the_token() {
    let world = World::new();
    let description = serde_json::to_value(openapi()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() >= 11);
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            for header in [None, Some("Bearer "), Some("Bearer abab"), Some("Basic x"), Some("é")]
            {
                let mut request = Request::builder().method(method.to_uppercase().as_str());
                request = request.uri(path.replace("{minor}", "26").replace(['{', '}'], ""));
                if let Some(header) = header {
                    request = request.header("authorization", header.as_bytes());
                }
                let (status, value) = world.send(request.body(Body::empty()).unwrap()).await;
                if path == "/v1/version" {
                    assert_eq!((status, &value["product"]), (StatusCode::OK, &json!("holdfast")));
                } else if path == "/v1/session" && method == "post" {
                    // This request creates a session.
                    assert!(status.is_client_error(), "{value}");
                } else if path == "/api/api_version" {
                    assert_eq!((status, &value["version"][0]), (StatusCode::OK, &json!("2.0")));
                } else {
                    assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
                    let is_rest = path.starts_with("/api/");
                    assert!(is_rest || value["code"] == "unauthorized", "{value}");
                }
                // Otherwise the next ones are refused because there were too many.
                world.uptime_ms.fetch_add(5_000, Ordering::Relaxed);
            }
        }
    }
    let lost = Request::builder().uri("/nowhere").body(Body::empty()).unwrap();
    assert_eq!(world.send(lost).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_volume_lives_and_dies() {
    let world = World::new();
    let new = json!({"name": "db1", "size_bytes": 1 << 30});
    let (status, made) = world.ask("POST", "/v1/volumes", Some(new.clone())).await;
    assert_eq!((status, &made["created_ms"]), (201, &json!(1234)));
    assert_eq!(made["block_bytes"], 512);
    let (status, refused) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("volume_exists")));
    assert_eq!(world.ask("GET", "/v1/volumes/DB1", None).await, (200, made.clone()));
    world.host("esx1", "iqn.2026-11.com.example:1").await;
    let pair = "/api/2.26/connections?volume_names=db1&host_names=esx1";
    let (status, made_one) = world.ask("POST", pair, Some(json!({}))).await;
    assert_eq!((status, &made_one["items"][0]["lun"]), (200, &json!(1)));
    let (gone, volume) = (json!({"destroyed": true}), "/api/2.26/volumes?names=db1");
    let (status, refused) = world.ask("PATCH", volume, Some(gone.clone())).await;
    let message = refused["errors"][0]["message"].as_str().unwrap();
    assert!(status == 400 && message.contains("existing connections"), "{message}");
    let (status, totals) = world.ask("GET", "/v1/counters?paths=false", None).await;
    assert_eq!((status, &totals["paths"]), (200, &json!([])));
    assert_eq!(world.ask("GET", "/v1/counters?paths=some", None).await.0, 400);
    let (_, counters) = world.ask("GET", "/v1/counters", None).await;
    assert_eq!(totals["totals"], counters["totals"]);
    assert_eq!(counters["paths"][0]["volume"], "db1");
    let change = json!({"size_bytes": 4096, "name": "db2"});
    let (status, refused) = world.ask("PATCH", "/v1/volumes/db1", Some(change)).await;
    assert_eq!((status, &refused["code"]), (400, &json!("would_truncate")));
    let change = json!({"size_bytes": 4096, "name": "db2", "truncate": true});
    let (status, changed) = world.ask("PATCH", "/v1/volumes/db1", Some(change)).await;
    assert_eq!((status, &changed["serial"]), (200, &made["serial"]));
    assert_eq!(world.ask("DELETE", &pair.replace("db1", "db2"), None).await.0, 200);
    let volume = volume.replace("db1", "db2");
    assert_eq!(world.ask("PATCH", &volume, Some(gone)).await.0, 200);
    assert_eq!(world.ask("DELETE", &volume, None).await.0, 200);
    assert_eq!(world.ask("GET", "/v1/volumes/db2", None).await.0, 404);
    let (_, status) = world.ask("GET", "/v1/status", None).await;
    assert_eq!((&status["volumes"], &status["hosts"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn unaccounted_space_is_not_reported() {
    let world = World::new();
    let new = json!({"name": "db1", "size_bytes": 1 << 30});
    let (_, made) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!(made["space"], Value::Null);
    let nothing = json!({"figures": null, "current": false, "pending": false});
    for method in ["GET", "POST"] {
        assert_eq!(world.ask(method, "/v1/pool/space", None).await, (200, nothing.clone()));
    }
    assert_eq!(world.ask("GET", "/v1/counters", None).await.1["space"], nothing);
}

#[tokio::test]
async fn a_full_pool_is_507() {
    let world = World::new();
    world.store.is_full.store(true, Ordering::Relaxed);
    let new = json!({"name": "db1", "size_bytes": 4096});
    let (status, refused) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!((status, &refused["code"]), (507, &json!("pool_full")));
}

/// Found by an audit: each change waited as long as the device did, and all others behind it.
#[tokio::test]
async fn changes_are_503_while_the_device_refuses_writes() {
    let world = World::new();
    world.store.is_refusing.store(true, Ordering::Relaxed);
    let new = json!({"name": "db1", "size_bytes": 4096});
    let (status, refused) = world.ask("POST", "/v1/volumes", Some(new.clone())).await;
    assert_eq!((status, &refused["code"]), (503, &json!("device_refuses")));
    let provisioned = json!({"provisioned": 4096});
    let (status, refused) =
        world.ask("POST", "/api/2.26/volumes?names=db1", Some(provisioned)).await;
    assert_eq!((status, refused["errors"].as_array().map(Vec::len)), (503, Some(1)), "{refused}");
    assert_eq!(world.ask("GET", "/v1/volumes", None).await.0, 200);
    world.store.is_refusing.store(false, Ordering::Relaxed);
    assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
}

#[tokio::test]
async fn secrets_are_accepted_and_never_returned() {
    let world = World::new();
    let chap = json!({
        "host_user": "u", "host_password": "correct horse",
        "target_user": "t", "target_password": "battery staple",
    });
    let host = json!({"iqns": ["iqn.2026-11.com.example:1"], "chap": chap});
    let path = "/api/2.26/hosts?names=esx1";
    let (status, made) = world.ask("POST", path, Some(host)).await;
    assert_eq!((status, &made["items"][0]["chap"]["host_user"]), (200, &json!("u")));
    let (_, list) = world.ask("GET", "/api/2.26/hosts", None).await;
    for value in [made, list] {
        let text = value.to_string();
        assert!(!text.contains("horse") && !text.contains("staple"), "{text}");
    }
    let remove = json!({"chap": {"host_user": "", "host_password": ""}});
    let (_, changed) = world.ask("PATCH", path, Some(remove)).await;
    let chap = &changed["items"][0]["chap"];
    assert_eq!((&chap["host_user"], &chap["target_user"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn lists_come_in_pages() {
    let world = World::new();
    for n in 0..5 {
        let new = json!({"name": format!("v{n}"), "size_bytes": 4096});
        assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    }
    let mut after = String::new();
    let mut names = Vec::new();
    loop {
        let path = format!("/v1/volumes?limit=2{after}");
        let (_, page) = world.ask("GET", &path, None).await;
        let found = page["volumes"].as_array().unwrap();
        names.extend(found.iter().map(|volume| volume["name"].as_str().unwrap().to_owned()));
        if page["more"] == json!(false) {
            break;
        }
        after = format!("&after={}", names.last().unwrap());
    }
    assert_eq!(names, ["v0", "v1", "v2", "v3", "v4"]);
}

#[tokio::test]
async fn bad_requests_get_clear_answers() {
    let world = World::new();
    let long = json!({"name": "x".repeat(BODY_BYTES_MAX), "size_bytes": 4096});
    for (method, path, body, status) in [
        ("POST", "/v1/volumes", Some(json!({})), 400),
        ("POST", "/v1/volumes", Some(json!({"name": "a", "size_bytes": -1})), 400),
        ("POST", "/v1/volumes", Some(json!({"name": "a", "size_bytes": 4097})), 400),
        ("POST", "/v1/volumes", Some(json!({"name": "a b", "size_bytes": 4096})), 400),
        ("POST", "/v1/volumes", Some(json!({"name": "a", "size_bytes": 4096, "x": 1})), 400),
        (
            "POST",
            "/v1/volumes",
            Some(json!({"name": "a", "size_bytes": 4096, "block_bytes": 520})),
            400,
        ),
        ("POST", "/v1/volumes", Some(json!([])), 400),
        ("POST", "/v1/volumes", Some(long), 413),
        ("POST", "/v1/volumes", None, 415),
        ("GET", "/v1/volumes?limit=many", None, 400),
        ("GET", "/v1/volumes?color=red", None, 400),
        ("GET", "/v1/volumes/%ff", None, 400),
        ("GET", "/v1/volumes/none", None, 404),
        ("PATCH", "/v1/settings", Some(json!({"company_id": "xyz"})), 400),
        ("PATCH", "/v1/settings", Some(json!({"offloads": {"teleport": false}})), 400),
        ("PATCH", "/v1/settings", Some(json!({"offloads": {"unmap": "off"}})), 400),
        ("PATCH", "/v1/settings", Some(json!({"space_thresholds": [100]})), 400),
        ("PATCH", "/v1/settings", Some(json!({"space_thresholds": [1, 2, 3, 4, 5]})), 400),
        ("PATCH", "/v1/settings", Some(json!({"eradication_delay_s": 0})), 400),
        ("GET", "/v1/snapshots/none/space", None, 404),
        ("GET", "/v1/snapshots/%ff/space", None, 400),
        ("DELETE", "/v1/volumes/none", None, 405),
        ("PATCH", "/v1/pool", Some(json!({})), 400),
        ("PATCH", "/v1/pool", Some(json!({"capacity_bytes": 4096})), 400),
        ("PUT", "/v1/volumes", None, 405),
        ("GET", "/v2/volumes", None, 404),
    ] {
        let (found, _) = world.ask(method, path, body).await;
        assert_eq!(found, status, "{method} {path}");
    }
    let broken = Request::builder()
        .method("POST")
        .uri("/v1/volumes")
        .header("authorization", format!("bearer {}", world.token))
        .header("content-type", "application/json")
        .body(Body::from("{\"name\": "));
    assert_eq!(world.send(broken.unwrap()).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_complete_description_is_served() {
    let world = World::new();
    let (status, served) = world.ask("GET", "/v1/openapi.json", None).await;
    assert_eq!((status, &served), (200, &serde_json::to_value(openapi()).unwrap()));
    let text = served.to_string();
    let schemas = served["components"]["schemas"].as_object().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name} is named but not described");
    }
}

#[tokio::test]
async fn thresholds_are_set() {
    let world = World::new();
    let (_, settings) = world.ask("GET", "/v1/settings", None).await;
    assert_eq!(settings["space_thresholds"], json!([80]));
    let change = json!({"space_thresholds": [90, 70]});
    let (status, settings) = world.ask("PATCH", "/v1/settings", Some(change)).await;
    assert_eq!((status, &settings["space_thresholds"]), (200, &json!([70, 90])));
}
