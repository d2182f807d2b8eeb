//! Time servers: set, asked, and shown.

use super::notifications::items;
use super::*;

const ARRAYS: &str = "/api/2.42/arrays";

#[tokio::test]
async fn time_servers_are_set_over_both_paths_and_are_in_the_audit_log() {
    let world = World::new();
    let servers = json!(["0.pool.example.com", "192.0.2.1:1123"]);
    let (status, array) = world.ask("PATCH", ARRAYS, Some(json!({"ntp_servers": servers}))).await;
    assert_eq!((status, &array["items"][0]["ntp_servers"]), (200, &servers));
    let (_, settings) = world.ask("GET", "/v1/settings", None).await;
    assert_eq!(settings["ntp_servers"], servers);
    for bad in [json!(["a b"]), json!(["a", "a"]), json!(["a", "b", "c", "d", "e"])] {
        assert_eq!(world.ask("PATCH", ARRAYS, Some(json!({"ntp_servers": bad}))).await.0, 400);
        let (status, refused) =
            world.ask("PATCH", "/v1/settings", Some(json!({"ntp_servers": bad}))).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_time_server")));
    }
    let (status, settings) =
        world.ask("PATCH", "/v1/settings", Some(json!({"ntp_servers": []}))).await;
    assert_eq!((status, &settings["ntp_servers"]), (200, &json!([])));
    assert_eq!(world.ask("GET", ARRAYS, None).await.1["items"][0]["ntp_servers"], json!([]));
    let (_, log) = world.ask("GET", "/v1/audit?text=ntp_servers=0.pool.example.com", None).await;
    assert_eq!(log["entries"][0]["path"], ARRAYS, "{log}");
}

#[tokio::test]
async fn responses_of_time_servers_are_shown_and_in_the_metrics() {
    let world = World::new();
    let (_, tested) = world.ask("GET", &format!("{ARRAYS}/ntp-test"), None).await;
    let rows = items(&tested);
    assert_eq!((&rows[0]["success"], &rows[1]["success"]), (&json!(true), &json!(false)));
    assert_eq!(rows[0]["result_details"], "The clock is 0.250 s ahead.");
    assert_eq!(rows[1]["result_details"], "it is silent");
    assert_eq!(rows[1]["resource"]["name"], "b:1123");
    let (_, shown) = world.ask("GET", "/v1/time-servers", None).await;
    assert_eq!(shown["time_servers"][0], json!({"server": "a", "offset_s": -0.25, "error": null}));
    assert_eq!(world.ask("POST", "/v1/time-servers/test", None).await, (200, shown));
    let (_, page) = super::metrics::text(&world, "/metrics").await;
    for line in [
        "holdfast_time_server_up{server=\"a\"} 1",
        "holdfast_time_server_up{server=\"b:1123\"} 0",
        "holdfast_clock_offset_seconds{server=\"a\"} -0.25",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}
