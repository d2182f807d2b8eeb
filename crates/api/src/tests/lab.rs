//! Reports of the lab: kept, listed, shown, removed; by which role, and what the audit log says.

use super::*;

fn report() -> Value {
    json!({
        "measured_ms": 1_795_000_000_000_u64,
        "lab_version": "0.1.0",
        "array": "HOLDFAST Holdfast 0.1.",
        "array_name": "Holdfast",
        "durability": "on the device",
        "settings": {"scale": 128, "count_scale": 1, "load_ms": 3000, "hosts": 3, "portals": 2},
        "machine": {
            "processor": "Some Processor", "processors": 2, "memory_bytes": 1_u64 << 34,
            "system": "Debian, Linux 6.1",
        },
        "scenarios": [
            {
                "id": "P-13", "title": "Deploy VMs", "source": "000 Pure, fig. 13",
                "published": {"what": "16 VMs at once", "off": "4.5 min", "gain": "about 8×"},
                "state": "done", "quantity": "time", "unit": "s", "ratio_of": "off_by_on",
                "cases": [
                    {
                        "case": "16 VMs", "off": 8.5, "on": 0.08, "ratio": 106.25,
                        "too_fast": false, "in_software": false,
                    },
                    {"case": "1 VM", "on": 0.0002, "too_fast": true, "in_software": true},
                ],
                "aims": [
                    {"what": "bytes", "goal": "under 0.1%", "measured": "0.01%", "met": true},
                    {
                        "what": "time", "goal": "50x", "measured": "12x", "met": false,
                        "reason": "the hosts share one processor",
                    },
                ],
                "notes": ["Locks: ATS."],
            },
            {
                "id": "V-52", "title": "", "state": "skipped", "reason": "no replication",
                "quantity": "time", "unit": "s", "ratio_of": "on_by_off",
                "cases": [], "aims": [], "notes": [],
            },
        ],
    })
}

const PATH: &str = "/v1/lab/reports/weekly";

#[tokio::test]
async fn a_report_is_kept_and_shown_as_it_came() {
    let world = World::new();
    assert_eq!(world.ask("GET", "/v1/lab/reports", None).await, (200, json!({"reports": []})));
    let (status, line) = world.ask("PUT", PATH, Some(report())).await;
    assert_eq!((status, &line["aims"], &line["aims_met"]), (200, &json!(2), &json!(1)));
    assert_eq!((&line["scenarios"], &line["skipped"]), (&json!(2), &json!(1)));
    let expected = json!({"name": "weekly", "measured": report()});
    assert_eq!(world.ask("GET", "/v1/lab/reports/WEEKLY", None).await, (200, expected));
    let mut newer = report();
    newer["lab_version"] = json!("0.2.0");
    assert_eq!(world.ask("PUT", PATH, Some(newer)).await.0, 200);
    let (_, list) = world.ask("GET", "/v1/lab/reports", None).await;
    assert_eq!(list["reports"].as_array().unwrap().len(), 1);
    assert_eq!(list["reports"][0]["lab_version"], "0.2.0");
    assert_eq!(world.ask("DELETE", PATH, None).await.0, 204);
    let (status, refused) = world.ask("DELETE", PATH, None).await;
    assert_eq!((status, &refused["code"]), (404, &json!("no_such_lab_report")));
    let (_, audit) = world.ask("GET", "/v1/audit", None).await;
    let entries = audit["entries"].as_array().unwrap().iter();
    let told = entries.map(|entry| (entry["method"].as_str().unwrap(), entry["outcome"].clone()));
    let expected = [
        ("DELETE", json!("no_such_lab_report")),
        ("DELETE", json!("done")),
        ("PUT", json!("done")),
        ("PUT", json!("done")),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_is_no_report_is_refused() {
    let world = World::new();
    for (at, value, code) in [
        ("lab_version", json!("x".repeat(513)), "invalid_lab_report"),
        ("scenarios 0 id", json!("V-52"), "invalid_lab_report"),
        ("scenarios 0 notes 0", json!("two\nlines"), "invalid_lab_report"),
        ("scenarios 0 state", json!("well"), "bad_request"),
        ("scenarios 0 cases 0 off", json!("8.5"), "bad_request"),
        ("scenarios 0 cases", json!([{"colour": "red"}]), "bad_request"),
        ("settings scale", json!(0), "invalid_lab_report"),
        ("settings hosts", json!(-1), "bad_request"),
    ] {
        let mut report = report();
        *report.pointer_mut(&format!("/{}", at.replace(' ', "/"))).unwrap() = value;
        let (status, refused) = world.ask("PUT", PATH, Some(report)).await;
        assert_eq!((status, &refused["code"]), (400, &json!(code)), "{at}");
    }
    let mut unknown = report();
    unknown["colour"] = json!("red");
    let mut infinite = report().to_string();
    infinite = infinite.replacen("8.5", "1e999", 1);
    assert_eq!(world.ask("PUT", PATH, Some(unknown)).await.0, 400);
    let request = Request::builder()
        .method("PUT")
        .uri(PATH)
        .header("authorization", format!("Bearer {}", world.token))
        .header("content-type", "application/json");
    assert_eq!(world.send(request.body(Body::from(infinite)).unwrap()).await.0, 400);
    let (status, refused) = world.ask("PUT", "/v1/lab/reports/a.b", Some(report())).await;
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_name")));
    assert_eq!(world.ask("GET", PATH, None).await.0, 404);
    world.store.is_full.store(true, Ordering::Relaxed);
    assert_eq!(world.ask("PUT", PATH, Some(report())).await.0, 507);
}
