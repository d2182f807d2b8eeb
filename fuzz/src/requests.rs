//! Sequences of requests to the management interface: any method, path, query, headers and body.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api::{
    Access, Counters, Device, DeviceChange, DeviceChanges, DeviceRefusal, Devices, Facts,
    HostSession, Interface, NotificationTest, PathCounters, RefusedLogin, Sources, Telemetry,
    Token, Watch, router,
};
use array::{Array, DnsChange, Settings, SettingsChange};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::backing::MemoryStore;
use crate::input::{Input, Script};

/// The maximum number of requests of an input.
const REQUESTS_MAX: usize = 16;

const METHODS: [&str; 8] = ["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW"];

/// Existing paths, and similar ones: 32, selected by five bits.
const PATHS: [&str; 32] = [
    "/v1/version",
    "/v1/status",
    "/v1/pool",
    "/v1/devices",
    "/v1/devices/0",
    "/v1/devices/0/identify",
    "/v1/counters",
    "/v1/settings",
    "/v1/volumes",
    "/v1/volumes/vm-1",
    "/v1/snapshots/vm-1.a/space",
    "/api/2.26/connections",
    "/v1/hosts/esx/check",
    "/v1/openapi.json",
    "/v1/volumes?limit=1&after=",
    "/api/2.26/connections?volume_names=vm-1&host_names=",
    "/api/api_version",
    "/api/2.26/volumes?names=vm-1,vm-2",
    "/api/2.0/volumes?filter=",
    "/api/2.26/volumes?names=vm-2&overwrite=true",
    "/api/2.26/volumes?limit=1&sort=name-&continuation_token=",
    "/api/2.26/volume-snapshots?source_names=vm-1",
    "/api/2.26/volume-snapshots?names=vm-1.a",
    "/api/2.26/hosts?names=esx",
    "/api/2.26/connections?host_names=esx&volume_names=vm-1",
    "/api/2.26/protection-groups?names=pg",
    "/api/2.26/protection-groups/volumes?group_names=pg&member_names=vm-1",
    "/api/2.26/protection-group-snapshots?source_names=pg",
    "/api/2.26/protection-group-snapshots?names=pg.a",
    "/api/2.26/arrays",
    "/api/2.26/ports?",
    "/api/2.26/pods?",
];

struct Quiet;

impl Telemetry for Quiet {
    fn counters(&self) -> Counters {
        let path = PathCounters { volume_id: Some(1), ..PathCounters::default() };
        Counters { paths: vec![path], ..Counters::default() }
    }

    fn devices(&self) -> Devices {
        Devices { devices: vec![Device::default()], together: None }
    }
}

impl DeviceChanges for Quiet {
    fn change(&self, _: DeviceChange) -> Result<u16, DeviceRefusal> {
        let message = "This pool is on one device.".to_owned();
        Err(DeviceRefusal { kind: array::Kind::Conflict, code: "one_device", message })
    }
}

impl Watch for Quiet {
    fn sessions(&self) -> Vec<HostSession> {
        vec![HostSession { portal: 1, ..HostSession::default() }]
    }

    fn ended_sessions(&self) -> Vec<(u64, HostSession)> {
        Vec::new()
    }

    fn refused_logins(&self) -> Vec<(String, RefusedLogin)> {
        Vec::new()
    }

    fn test_notifications(&self, _: &dyn Fn(&str) -> bool) -> Vec<NotificationTest> {
        Vec::new()
    }
}

/// The interface of an array without objects. It is created once, because that takes long, and
/// cleared after each input.
struct World {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    array: Arc<Array>,
    settings: Settings,
    router: Router,
    token: String,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let store = Arc::new(MemoryStore::new(BTreeMap::new(), HashMap::new(), u64::MAX));
        let array = Array::open(store.clone(), false).expect("an empty store is an array");
        let array = Arc::new(array);
        let token = Token::from_entropy(&[0xab; 32]);
        let exposed = token.expose().to_owned();
        // The clock is stopped, so that the delay for wrong tokens never ends.
        let sources = Sources { uptime_ms: Box::new(|| 0), entropy: Box::new(|| Some([0xcd; 32])) };
        let history = history::History::open(Box::new(history::Memory::default()), [0; 16]);
        let history = history.expect("memory can be written");
        let interface = Interface {
            array: array.clone(),
            access: Access::new(token, sources),
            facts: Facts::default(),
            telemetry: Arc::new(Quiet),
            watch: Arc::new(Quiet),
            changes: Arc::new(Quiet),
            history: Arc::new(history),
            now_ms: || 1234,
        };
        Self {
            runtime: runtime.expect("a runtime without sockets can be made"),
            store,
            settings: array.settings(),
            array,
            router: router(Arc::new(interface)),
            token: exposed,
        }
    }

    /// Deletes all objects.
    fn clear(&self) -> Result<(), array::Error> {
        self.store.set_room(u64::MAX);
        for connection in self.array.shared_connections(None, None)? {
            self.array.disconnect_host_groups(&[(connection.volume, connection.host_group)])?;
        }
        for connection in self.array.connections(None, None)? {
            self.array.disconnect(&connection.volume, &connection.host)?;
        }
        for group in self.array.groups(None, None, 1000) {
            let name = [group.name];
            if group.eradicate_ms.is_none() {
                self.array.destroy_groups(&name, 0)?;
            }
            self.array.eradicate_groups(&name)?;
        }
        for group in self.array.host_groups(None, 1000) {
            for host in group.hosts {
                self.array.remove_from_host_groups(&[(group.name.clone(), host)])?;
            }
            self.array.delete_host_groups(&[group.name])?;
        }
        for volume in self.array.volumes(None, None, 1000) {
            if volume.eradicate_ms.is_none() {
                self.array.destroy_volume(&volume.name, 0)?;
            }
            self.array.eradicate_volume(&volume.name)?;
        }
        for host in self.array.hosts(None, 1000) {
            self.array.delete_host(&host.name)?;
        }
        let Settings {
            name,
            target_name,
            company_id,
            space_thresholds,
            eradication_delay_s,
            chap_required,
            dns,
            time_servers,
            banner,
            ..
        } = self.settings.clone();
        let offloads = block::Offload::ALL.map(|offload| (offload, true)).to_vec();
        self.array.change_settings(SettingsChange {
            name: Some(name),
            target_name: Some(target_name),
            company_id: Some(company_id),
            offloads,
            space_thresholds: Some(space_thresholds),
            eradication_delay_s: Some(eradication_delay_s),
            chap_required: Some(chap_required),
            dns: DnsChange {
                servers: Some(dns.servers().to_vec()),
                domain: Some(dns.domain().to_owned()),
            },
            time_servers: Some(time_servers),
            banner: Some(banner),
        })?;
        Ok(())
    }
}

thread_local! {
    static WORLD: World = World::new();
}

/// Returns the input's request, or `None` if it is not valid HTTP.
fn request(input: &mut Input<'_>, token: &str) -> Option<Request<Body>> {
    let method = METHODS[input.below(METHODS.len())];
    let path = match input.u8() {
        0xff => format!("/{}", String::from_utf8_lossy(&input.content())),
        at if at & 0x40 == 0 => PATHS[usize::from(at & 0x1f)].to_owned(),
        at => {
            let tail = input.content();
            format!("{}{}", PATHS[usize::from(at & 0x1f)], String::from_utf8_lossy(&tail))
        }
    };
    let builder = Request::builder().method(method).uri(path);
    let builder = match input.u8() {
        0xff => builder,
        0xfe => builder.header("authorization", input.content()),
        _ => builder.header("authorization", format!("Bearer {token}")),
    };
    let builder = match input.u8() {
        0xff => builder,
        0xfe => builder.header("content-type", input.content()),
        _ => builder.header("content-type", "application/json"),
    };
    builder.body(Body::from(input.content())).ok()
}

const JSON: &str = "application/json";

async fn send(router: &Router, request: Request<Body>) {
    let head = request.method() == "HEAD";
    let response = router.clone().oneshot(request).await.expect("the router never fails");
    let status = response.status();
    let is_text = response.headers().get("content-type").is_some_and(|kind| kind != JSON);
    let body = response.into_body().collect().await.expect("the body is in memory").to_bytes();
    assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{}", body.escape_ascii());
    // Only metrics are not JSON.
    if head || body.is_empty() || is_text && status == StatusCode::OK {
        return;
    }
    let value: serde_json::Value = serde_json::from_slice(&body).expect("all answers are JSON");
    if (status.is_client_error() || status.is_server_error()) && value["errors"].is_null() {
        let message = value["message"].as_str().expect("a refusal has a message");
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
        assert!(value["code"].is_string(), "a refusal has a code");
    }
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    WORLD.with(|world| {
        let mut input = Input::new(bytes);
        world.store.set_room(if input.u8() & 1 == 0 { u64::MAX } else { 2 });
        world.runtime.block_on(async {
            for _ in 0..REQUESTS_MAX {
                if input.is_empty() {
                    break;
                }
                if let Some(request) = request(&mut input, &world.token) {
                    send(&world.router, request).await;
                }
            }
        });
        world.clear().expect("all objects can be deleted");
    });
}

/// Appends a request by its method's index in [`METHODS`] and its path.
fn ask(script: Script, method: u8, path: &str, body: &str) -> Script {
    let at = PATHS.iter().position(|known| *known == path).expect("a path of the list");
    script.u8(method).u8(at as u8).u8(0).u8(0).content(body.as_bytes())
}

/// Returns each path with each method, and the life of a volume.
pub fn seeds() -> Vec<Vec<u8>> {
    const GET: u8 = 0;
    const POST: u8 = 1;
    const PATCH: u8 = 2;
    const DELETE: u8 = 3;
    let start = || Script::new().u8(0);
    let mut seeds = Vec::new();
    for path in PATHS {
        seeds.push((0..4).fold(start(), |script, method| ask(script, method, path, "{}")).done());
    }
    let host = "/api/2.26/hosts?names=esx";
    let pair = "/api/2.26/connections?host_names=esx&volume_names=vm-1";
    let iqns = r#"{"iqns":["iqn.2026-01.example:a"]}"#;
    let new = r#"{"name":"vm-1","size_bytes":1073741824,"block_bytes":4096}"#;
    let script = ask(ask(start(), POST, "/v1/volumes", new), POST, host, iqns);
    let chap = r#"{"chap":{"host_user":"anna","host_password":"twelve bytes or more"}}"#;
    let script = ask(ask(script, PATCH, host, chap), POST, pair, r#"{"lun":3}"#);
    seeds.push(script.clone().done());
    let change = r#"{"size_bytes":4096,"name":"vm-2","truncate":true}"#;
    let script = ask(ask(script, GET, "/api/2.26/connections", ""), DELETE, pair, "");
    seeds.push(ask(script, PATCH, "/v1/volumes/vm-1", change).done());
    let settings = r#"{"name":"lab","company_id":"02-48-46"}"#;
    seeds.push(ask(start(), PATCH, "/v1/settings", settings).done());
    let volumes = "/api/2.26/volumes?names=vm-1,vm-2";
    let script = ask(start(), POST, volumes, r#"{"provisioned":1073741824}"#);
    let suffix = r#"{"suffix":"a"}"#;
    let script = ask(script, POST, "/api/2.26/volume-snapshots?source_names=vm-1", suffix);
    let overwrite = "/api/2.26/volumes?names=vm-2&overwrite=true";
    let script = ask(script, GET, "/v1/snapshots/vm-1.a/space", "");
    let script = ask(script, POST, overwrite, r#"{"source":{"name":"vm-1.a"}}"#);
    let script = ask(ask(script, POST, host, iqns), POST, pair, "");
    let member = "/api/2.26/protection-groups/volumes?group_names=pg&member_names=vm-1";
    let script = ask(script, POST, "/api/2.26/protection-groups?names=pg", "");
    let script = ask(script, POST, member, "");
    let of_group = "/api/2.26/protection-group-snapshots?source_names=pg";
    let script = ask(script, POST, of_group, suffix);
    seeds.push(ask(ask(script.clone(), GET, volumes, ""), DELETE, pair, "").done());
    let ends = r#"{"destroyed":true}"#;
    let snapshot = "/api/2.26/protection-group-snapshots?names=pg.a";
    let script = ask(ask(script, PATCH, snapshot, ends), DELETE, snapshot, "");
    let script = ask(ask(script, DELETE, pair, ""), PATCH, volumes, ends);
    seeds.push(ask(script, DELETE, volumes, "").done());
    seeds
}
