//! The devices of a pool, as each interface shows them, and changes to them.

use array::Kind;
use parking_lot::Mutex;

use super::*;

/// A pool on one device, which can't be changed.
pub(super) struct OneDevice;

impl DeviceChanges for OneDevice {
    fn change(&self, _: DeviceChange) -> Result<u16, DeviceRefusal> {
        let message = "The pool is on one device.".into();
        Err(DeviceRefusal { kind: Kind::Conflict, code: "one_device", message })
    }
}

/// A pool on three devices, each in a different state.
#[derive(Default)]
struct Several(Mutex<Vec<DeviceChange>>);

impl Telemetry for Several {
    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn devices(&self) -> Devices {
        let device = |number, state| Device {
            name: format!("/srv/{number}/pool.data"),
            number,
            id: format!("{number:032x}"),
            state,
            len_bytes: 1 << 40,
            ..Device::default()
        };
        let progress = CatchingUp { done_bytes: 100, all_bytes: 400, left_s: Some(75) };
        let latencies = vec![LatencyBucket { up_to_us: None, count: 5 }];
        let flushes = DeviceTransfers { ok: 5, failed: 1, latencies, ..DeviceTransfers::default() };
        let calls = DeviceCalls { flushes, reads_elsewhere: 6, ..DeviceCalls::default() };
        let health = Some(DeviceHealth {
            passed: Some(false),
            wear_percent: Some(91),
            temperature_c: Some(-4),
            power_on_hours: Some(2),
            ..DeviceHealth::default()
        });
        let sound = Some(DeviceHealth { passed: Some(true), ..DeviceHealth::default() });
        let devices = vec![
            Device { health, ..device(5, DeviceState::In) },
            Device { health: sound, ..device(6, DeviceState::In) },
            Device { read_errors: 2, mended: 3, retries: 4, calls, ..device(0, DeviceState::In) },
            Device { catching_up: Some(progress), ..device(1, DeviceState::CatchingUp) },
            Device {
                why_out: Some("a write failed".into()),
                parts: Some(DeviceParts { all: 9, used: 3, left_s: Some(65), ..<_>::default() }),
                ..device(2, DeviceState::Out)
            },
            Device { name: String::new(), len_bytes: 0, ..device(4, DeviceState::Missing) },
        ];
        let reads = DeviceTransfers { ok: 3, ..DeviceTransfers::default() };
        let together = Device { name: "pool".into(), reads, ..Device::default() };
        Devices { devices, together: Some(together) }
    }
}

impl DeviceChanges for Several {
    fn change(&self, change: DeviceChange) -> Result<u16, DeviceRefusal> {
        self.0.lock().push(change.clone());
        let refuse = |kind, code| {
            let message = format!("No: {code}.");
            Err(DeviceRefusal { kind, code, message })
        };
        match change {
            DeviceChange::Add(_) => Ok(1),
            DeviceChange::Remove(number @ ..=4)
            | DeviceChange::TakeBack(number @ ..=4)
            | DeviceChange::Identify(number @ ..=4) => Ok(number),
            DeviceChange::TakeOut(0) => refuse(Kind::Conflict, "last_device"),
            DeviceChange::TakeOut(number) => Ok(number),
            _ => refuse(Kind::NotFound, "no_such_device"),
        }
    }
}

fn several() -> (World, Arc<Several>) {
    let several = Arc::new(Several::default());
    (World::with(several.clone(), several.clone()), several)
}

#[tokio::test]
async fn devices_and_controllers_are_listed() {
    let world = World::new();
    let (status, reported) = world.ask("GET", "/v1/devices", None).await;
    let device = &reported["devices"][0];
    assert_eq!((status, &device["name"]), (200, &json!("pool.data")));
    assert!(device["capacity_bytes"].as_u64() > Some(0), "{reported}");
    assert_eq!(device["reads"]["ok"], 3);
    let (status, reported) = world.ask("GET", "/v1/controllers", None).await;
    let controller = &reported["controllers"][0];
    assert_eq!((status, &controller["name"]), (200, &json!("CT0")));
    assert_eq!(controller["mode"], "primary");
}

#[tokio::test]
async fn several_devices_are_listed_with_their_activity() {
    let (world, _) = several();
    let (_, reported) = world.ask("GET", "/v1/devices", None).await;
    let of = |field: &str| {
        let devices = reported["devices"].as_array().unwrap();
        devices.iter().map(|device| device[field].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("number"), [5, 6, 0, 1, 2, 4]);
    assert_eq!(of("state"), ["in", "in", "in", "catching_up", "out", "missing"]);
    assert_eq!(of("why_out")[4], "a write failed");
    assert_eq!(of("health")[0]["wear_percent"], 91);
    assert_eq!(of("health")[2], Value::Null);
    let progress = json!({"done_bytes": 100, "all_bytes": 400, "left_s": 75});
    assert_eq!(of("catching_up")[3], progress);
    assert_eq!(
        (&reported["together"]["name"], &reported["together"]["reads"]["ok"]),
        (&json!("pool"), &json!(3))
    );
    let (_, page) = world.ask("GET", "/api/2.26/drives?sort=name", None).await;
    let drives = page["items"].as_array().unwrap();
    let reported: Vec<_> = drives
        .iter()
        .map(|drive| (drive["name"].as_str().unwrap(), drive["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reported,
        [
            ("CH0.BAY0", "healthy"),
            ("CH0.BAY1", "recovering"),
            ("CH0.BAY2", "failed"),
            ("CH0.BAY4", "missing"),
            ("CH0.BAY5", "unhealthy"),
            ("CH0.BAY6", "healthy"),
        ]
    );
    assert_eq!(drives[1]["details"], "/srv/1/pool.data: 25% complete, 1 min 15 s left");
    assert_eq!(drives[2]["details"], "/srv/2/pool.data: a write failed");
    assert_eq!((&drives[3]["details"], &drives[3]["capacity"]), (&Value::Null, &json!(0)));
}

#[tokio::test]
async fn metrics_show_each_device_and_count_transfers_together() {
    let (world, _) = several();
    let (_, all) = metrics::text(&world, "/metrics").await;
    for line in [
        "holdfast_device_transfers_total{device=\"pool\",kind=\"read\",result=\"ok\"} 3",
        "holdfast_device_retries_total{device=\"/srv/0/pool.data\"} 4",
        "holdfast_device_state{device=\"/srv/2/pool.data\",state=\"out\"} 1",
        "holdfast_device_state{device=\"/srv/2/pool.data\",state=\"in\"} 0",
        "holdfast_device_state{device=\"device 4\",state=\"missing\"} 1",
        "holdfast_device_errors_total{device=\"/srv/0/pool.data\",kind=\"read\"} 2",
        "holdfast_device_mended_total{device=\"/srv/0/pool.data\"} 3",
        "holdfast_device_catching_up_bytes{device=\"/srv/1/pool.data\"} 300",
        "holdfast_device_health_passed{device=\"/srv/5/pool.data\"} 0",
        "holdfast_device_health_passed{device=\"/srv/6/pool.data\"} 1",
        "holdfast_device_wear_ratio{device=\"/srv/5/pool.data\"} 0.91",
        "holdfast_device_temperature_celsius{device=\"/srv/5/pool.data\"} -4",
        "holdfast_device_power_on_seconds{device=\"/srv/5/pool.data\"} 7200",
        "holdfast_device_catching_up_done_bytes{device=\"/srv/1/pool.data\"} 100",
        "holdfast_device_catching_up_all_bytes{device=\"/srv/1/pool.data\"} 400",
        "holdfast_device_catching_up_left_seconds{device=\"/srv/1/pool.data\"} 75",
        "holdfast_device_used_parts{device=\"/srv/2/pool.data\"} 3",
        "holdfast_device_leaving_left_seconds{device=\"/srv/2/pool.data\"} 65",
        "holdfast_device_calls_total{device=\"/srv/0/pool.data\",kind=\"flush\",result=\"ok\"} 5",
        "holdfast_device_calls_total\
         {device=\"/srv/0/pool.data\",kind=\"flush\",result=\"failed\"} 1",
        "holdfast_device_call_bytes_total{device=\"/srv/0/pool.data\",kind=\"write\"} 0",
        "holdfast_device_call_latency_seconds_count\
         {device=\"/srv/0/pool.data\",kind=\"flush\"} 5",
        "holdfast_device_reads_elsewhere_total{device=\"/srv/0/pool.data\"} 6",
    ] {
        assert!(all.lines().any(|found| found == line), "{line} in\n{all}");
    }
    assert_eq!(all.matches("holdfast_device_catching_up_bytes{").count(), 1);
    assert_eq!(all.matches("holdfast_device_media_errors{").count(), 0, "it is not reported");
}

#[tokio::test]
async fn changes_of_devices_are_requested_and_entered_into_the_audit_log() {
    let (world, several) = several();
    let place = json!({"place": "/srv/3", "replaces": 2});
    let (status, reported) = world.ask("POST", "/v1/devices", Some(place)).await;
    assert_eq!((status, &reported["state"]), (201, &json!("catching_up")));
    for (method, path, body, status) in [
        ("PATCH", "/v1/devices/2", Some(json!({"state": "out"})), 200),
        ("PATCH", "/v1/devices/2", Some(json!({"state": "in"})), 200),
        ("PATCH", "/v1/devices/2", Some(json!({"state": "missing"})), 400),
        ("PATCH", "/v1/devices/2", Some(json!({})), 400),
        ("PATCH", "/v1/devices/0", Some(json!({"state": "out"})), 409),
        ("PATCH", "/v1/devices/9", Some(json!({"state": "in"})), 404),
        ("PATCH", "/v1/devices/x", Some(json!({"state": "in"})), 400),
        ("POST", "/v1/devices/4/identify", None, 200),
        ("DELETE", "/v1/devices/4", None, 204),
        ("DELETE", "/v1/devices/9", None, 404),
        ("POST", "/v1/devices", Some(json!({})), 400),
    ] {
        assert_eq!(world.ask(method, path, body).await.0, status, "{method} {path}");
    }
    let add = DeviceAdd { place: "/srv/3".into(), replaces: Some(2), force: false };
    let made = several.0.lock().clone();
    assert_eq!(
        made[..3],
        [DeviceChange::Add(add), DeviceChange::TakeOut(2), DeviceChange::TakeBack(2)]
    );
    let (_, audit) = world.ask("GET", "/v1/audit", None).await;
    let text = audit.to_string();
    assert!(text.contains("place=/srv/3 replaces=2") && text.contains("state=out"), "{text}");
    assert!(text.contains("last_device"), "{text}");
}

#[tokio::test]
async fn the_device_of_a_pool_on_one_is_not_changed() {
    let world = World::new();
    let (status, refused) = world.ask("POST", "/v1/devices", Some(json!({"place": "/x"}))).await;
    assert_eq!((status, &refused["code"]), (409, &json!("one_device")));
    let (_, page) = world.ask("GET", "/api/2.26/drives", None).await;
    assert_eq!(page["items"][0]["status"], "healthy");
}
