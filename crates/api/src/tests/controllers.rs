//! Tests how the controller with the pool shows both controllers.

use std::sync::atomic::AtomicBool;

use super::*;

/// A front end that may know the other controller, and is asked to switch the pool to it.
#[derive(Default)]
struct Two {
    is_there: AtomicBool,
    has_switched: AtomicBool,
    is_stopped: AtomicBool,
}

impl Watch for Two {
    fn sessions(&self) -> Vec<HostSession> {
        Vec::new()
    }

    fn ended_sessions(&self) -> Vec<(u64, HostSession)> {
        Vec::new()
    }

    fn other_controller(&self) -> Option<OtherController> {
        let other = OtherController { pid: 4711, version: "0.0.9".into(), since_ms: 5000 };
        self.is_there.load(Ordering::Relaxed).then_some(other)
    }

    fn is_other_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn keep_other_down(&self, down: bool) -> Result<(), String> {
        self.is_stopped.store(down, Ordering::Relaxed);
        self.is_there.store(!down, Ordering::Relaxed);
        Ok(())
    }

    fn switch(&self) {
        self.has_switched.store(true, Ordering::Relaxed);
    }

    fn refused_logins(&self) -> Vec<(String, RefusedLogin)> {
        Vec::new()
    }

    fn test_notifications(&self, _: &dyn Fn(&str) -> bool) -> Vec<NotificationTest> {
        Vec::new()
    }
}

/// ct1 has the pool, and two of three portals.
fn world() -> (World, Arc<Two>) {
    let two = Arc::new(Two::default());
    let facts = Facts {
        version: "0.1.0".into(),
        portals: ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.9:1"].map(String::from).to_vec(),
        port_ids: vec![3, 4, 1],
        started_ms: 7000,
        is_second: true,
        elsewhere: 1,
        ..Facts::default()
    };
    let (quiet, changes) = (Arc::new(Quiet), Arc::new(devices::OneDevice));
    (World::watched(quiet, changes, two.clone(), facts), two)
}

async fn items(world: &World, path: &str) -> Vec<Value> {
    let (status, page) = world.ask("GET", &format!("/api/2.26/{path}"), None).await;
    assert_eq!(status, 200, "{page}");
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn both_controllers_are_listed_whether_the_other_runs_or_not() {
    let (world, two) = world();
    let rows = |reported: &[Value]| -> Vec<String> {
        let text =
            |reported: &Value, field: &str| reported[field].as_str().unwrap_or("-").to_owned();
        let row =
            |reported| ["name", "mode", "status"].map(|field| text(reported, field)).join(" ");
        reported.iter().map(row).collect()
    };
    let missing = ["CT0 secondary not ready", "CT1 primary ready"];
    assert_eq!(rows(&items(&world, "controllers").await), missing);
    let parts = items(&world, "hardware").await;
    assert_eq!((&parts[0]["status"], &parts[1]["status"]), (&json!("critical"), &json!("ok")));
    two.is_there.store(true, Ordering::Relaxed);
    let (_, reported) = world.ask("GET", "/v1/controllers", None).await;
    let reported = reported["controllers"].as_array().unwrap();
    assert_eq!(rows(reported), ["CT0 secondary ready", "CT1 primary ready"]);
    let other = &reported[0];
    assert_eq!((&other["pid"], &other["started_ms"]), (&json!(4711), &json!(5000)));
    assert_eq!((&other["version"], &other["portals"]), (&json!("0.0.9"), &json!(["192.0.2.9:1"])));
    assert_eq!(reported[1]["portals"], json!(["192.0.2.1:1", "192.0.2.1:2"]));
    assert_eq!(items(&world, "hardware").await[0]["status"], "ok");
}

#[tokio::test]
async fn ports_are_counted_for_each_controller() {
    let (world, _) = world();
    let names = |items: Vec<Value>| -> Vec<String> {
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(items(&world, "ports").await), ["CT0.ETH0", "CT1.ETH0", "CT1.ETH1"]);
    let interfaces = items(&world, "network-interfaces?sort=name-").await;
    assert_eq!(interfaces[2]["eth"]["address"], "192.0.2.9");
    assert_eq!(names(interfaces), ["ct1.eth1", "ct1.eth0", "ct0.eth0"]);
}

#[tokio::test]
async fn a_switch_needs_another_controller() {
    let alone = World::new();
    let (status, reported) = alone.ask("POST", "/v1/controllers/switch", None).await;
    assert_eq!((status, &reported["code"]), (409, &json!("not_ready")), "{reported}");
    let (world, two) = world();
    let (status, reported) = world.ask("POST", "/v1/controllers/switch", None).await;
    assert_eq!(status, 409);
    assert!(reported["message"].as_str().unwrap().starts_with("CT0 is not ready"), "{reported}");
    assert!(!two.has_switched.load(Ordering::Relaxed));
    two.is_there.store(true, Ordering::Relaxed);
    let (status, reported) = world.ask("POST", "/v1/controllers/switch", None).await;
    assert_eq!((status, reported["controllers"].as_array().unwrap().len()), (200, 2));
    assert!(two.has_switched.load(Ordering::Relaxed));
    // The user's name is in the pool, which the other controller then has.
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    let outcomes: Vec<_> = log["entries"].as_array().unwrap().iter().map(entry).collect();
    assert_eq!(outcomes, ["/v1/controllers/switch done", "/v1/controllers/switch not_ready"]);
}

/// The other controller could not take the pool over.
#[tokio::test]
async fn a_pool_is_not_upgraded_while_a_controller_has_another_version() {
    let (world, two) = world();
    two.is_there.store(true, Ordering::Relaxed);
    let (status, reported) = world.ask("POST", "/v1/pool/upgrade", None).await;
    assert_eq!((status, &reported["code"]), (409, &json!("not_ready")), "{reported}");
    assert!(
        reported["message"].as_str().unwrap().starts_with("CT0 runs version 0.0.9"),
        "{reported}"
    );
    // A controller that does not run has no version.
    two.is_there.store(false, Ordering::Relaxed);
    let (status, reported) = world.ask("POST", "/v1/pool/upgrade", None).await;
    assert_eq!(status, 200, "{reported}");
}

fn entry(entry: &Value) -> String {
    ["path", "outcome"].map(|field| entry[field].as_str().unwrap_or("-")).join(" ")
}

#[tokio::test]
async fn metrics_show_the_controllers_and_the_owner() {
    let (world, _) = world();
    let (_, page) = metrics::text(&world, "/metrics").await;
    for line in [
        "holdfast_controller_ready{controller=\"CT0\"} 0",
        "holdfast_controller_ready{controller=\"CT1\"} 1",
        "holdfast_controller_primary{controller=\"CT0\"} 0",
        "holdfast_controller_primary{controller=\"CT1\"} 1",
    ] {
        assert!(page.lines().any(|it| it == line), "{line}: {page}");
    }
}

#[tokio::test]
async fn a_host_check_knows_the_ports_of_each_controller() {
    let (world, _) = world();
    world.host("h", "iqn.2026-01.com.example:h").await;
    let (_, check) = world.ask("GET", "/v1/hosts/h/check", None).await;
    let rows = check["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|row| row["check"] == name).unwrap();
    assert_eq!(of("both_controllers")["seen"], "No session.");
    assert_eq!(of("no_path_timeout")["unreported"], true);
    let facts = Facts {
        portals: ["a", "b", "c"].map(String::from).to_vec(),
        port_ids: vec![3, 4, 1],
        is_second: true,
        elsewhere: 1,
        ..Facts::default()
    };
    let both = [("CT0", [1].into()), ("CT1", [3, 4].into())];
    assert_eq!(facts.ports_of_both(), both.into());
    assert!(Facts { elsewhere: 0, ..facts }.ports_of_both().is_empty());
}

#[tokio::test]
async fn a_controller_is_stopped_and_started_but_not_the_last_one() {
    let alone = World::new();
    let (status, reported) = alone.ask("POST", "/v1/controllers/ct0/stop", None).await;
    assert_eq!((status, &reported["code"]), (409, &json!("not_ready")), "{reported}");
    let (world, two) = world();
    two.is_there.store(true, Ordering::Relaxed);
    let ask = async |action: &str| {
        let (status, reported) =
            world.ask("POST", &format!("/v1/controllers/{action}"), None).await;
        let message = reported["message"].as_str().unwrap_or_default().to_owned();
        (status, message, reported["controllers"][0]["status"].as_str().unwrap_or("-").to_owned())
    };
    assert_eq!(ask("ct2/stop").await.0, 404);
    let (status, why, _) = ask("ct1/stop").await;
    assert!(status == 409 && why.starts_with("CT1 has the pool: switch first"), "{why}");
    let (status, _, other) = ask("ct0/stop").await;
    assert_eq!((status, other.as_str()), (200, "stopped"));
    assert_eq!(items(&world, "controllers").await[0]["status"], "not ready");
    let (status, why, _) = ask("CT1/stop").await;
    assert!(status == 409 && why.starts_with("CT1 is the only one that is running"), "{why}");
    let (status, why, _) = ask("switch").await;
    assert!(status == 409 && why.starts_with("CT0 was stopped"), "{why}");
    assert_eq!(ask("ct1/start").await.0, 200);
    assert_eq!(ask("CT0/start").await.2, "ready");
    let (_, log) = world.ask("GET", "/v1/audit?limit=1", None).await;
    assert_eq!(entry(&log["entries"][0]), "/v1/controllers/CT0/start done");
}
