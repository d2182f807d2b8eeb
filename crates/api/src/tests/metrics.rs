//! Metrics: who may read them, what they contain, and that their number is bounded.

use super::*;

pub(super) async fn text(world: &World, path: &str) -> (u16, String) {
    let request = Request::builder()
        .uri(path)
        .header("authorization", format!("Bearer {}", world.token))
        .body(Body::empty());
    let response = world.router.clone().oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    if status == 200 {
        assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4");
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn volumes_and_hosts_have_series_up_to_a_bound() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        let new = json!({"name": name, "size_bytes": 1 << 30});
        assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    }
    let limits = json!({"qos": {"iops_limit": 500, "bandwidth_limit": 1 << 20}});
    let path = "/api/2.26/volumes?names=b";
    assert_eq!(world.ask("PATCH", path, Some(limits)).await.0, 200);
    let (status, all) = text(&world, "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "holdfast_volumes 3",
        "holdfast_volume_size_bytes{volume=\"c\"} 1073741824",
        // The first volume is the one for which the front end of these tests has counters.
        "holdfast_volume_commands_total{volume=\"a\",class=\"write\",result=\"ok\"} 4",
        "holdfast_volume_command_latency_seconds_sum\
         {volume=\"a\",class=\"write\",result=\"ok\"} 0.5",
        "holdfast_volume_command_bytes_total{volume=\"a\",class=\"write\"} 4096",
        "holdfast_command_duration_seconds_bucket{class=\"write\",le=\"0.00001\"} 0",
        "holdfast_command_duration_seconds_bucket{class=\"write\",le=\"0.2\"} 4",
        "holdfast_command_duration_seconds_bucket{class=\"write\",le=\"+Inf\"} 4",
        "holdfast_command_duration_seconds_sum{class=\"write\"} 0.5",
        "holdfast_volume_limit_commands_per_second{volume=\"b\"} 500",
        "holdfast_volume_limit_bytes_per_second{volume=\"b\"} 1048576",
        "holdfast_objects_without_metrics{kind=\"volume\"} 0",
        "holdfast_device_transfers_total{device=\"pool.data\",kind=\"read\",result=\"ok\"} 3",
        "holdfast_device_transfer_latency_seconds_sum{device=\"pool.data\",kind=\"read\"} 0.00024",
        "holdfast_device_transfer_latency_seconds_bucket\
         {device=\"pool.data\",kind=\"read\",le=\"0.0001\"} 3",
        "holdfast_device_transfer_latency_seconds_count{device=\"pool.data\",kind=\"read\"} 3",
        "holdfast_device_retries_total{device=\"pool.data\"} 5",
        "holdfast_device_moved_writes_total{device=\"pool.data\"} 6",
        "holdfast_device_failed_flushes_total{device=\"pool.data\"} 7",
        "holdfast_device_unflushed_bytes{device=\"pool.data\"} 8",
    ] {
        assert!(all.lines().any(|found| found == line), "{line} in\n{all}");
    }
    let (_, one) = text(&world, "/metrics?volumes=1&hosts=0").await;
    assert_eq!(one.matches("holdfast_volume_size_bytes{").count(), 1, "{one}");
    assert!(one.contains("holdfast_objects_without_metrics{kind=\"volume\"} 2"), "{one}");
    assert_eq!(text(&world, "/metrics?volume=1").await.0, 400);
    assert_eq!(text(&world, "/metrics?volumes=-1").await.0, 400);
}

#[tokio::test]
async fn every_role_may_ask() {
    let world = World::new();
    world.admin("reader", "readonly").await;
    let new = json!({"name": "prometheus", "user": "reader"});
    let (_, made) = world.ask("POST", "/v1/tokens", Some(new)).await;
    let reader = World { token: made["token"].as_str().unwrap().to_owned(), ..world };
    assert_eq!(text(&reader, "/metrics").await.0, 200);
}
