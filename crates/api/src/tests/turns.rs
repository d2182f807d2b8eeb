//! Requests that change nothing take turns.

use super::*;

/// A request with the token.
async fn get(world: &World, path: &str) -> axum::response::Response {
    let request = Request::builder().uri(path);
    let request = request.header("authorization", format!("Bearer {}", world.token));
    world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// All of them, the description too: by what is done, not by how long it takes.
#[tokio::test]
async fn each_read_only_request_waits_for_a_permit() {
    let world = Arc::new(World::new());
    let description = serde_json::to_value(openapi()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    let paths = paths.iter().filter(|(_, methods)| methods.get("get").is_some());
    let mut paths: Vec<String> = paths
        .map(|(path, _)| path.replace("{minor}", "26").replace(['{', '}'], ""))
        .filter(|path| !matches!(path.as_str(), "/v1/version" | "/api/api_version"))
        // These have something sent, and wait for that.
        .filter(|path| !path.ends_with("/test") && !path.ends_with("/ntp-test"))
        .collect();
    paths.extend(["/v1/openapi.json".into(), "/nowhere".into()]);
    assert!(paths.len() > 40, "{}", paths.len());
    let most = crate::access::READS_MAX as u32;
    let taken = world.reads.clone().acquire_many_owned(most).await.unwrap();
    let asked: Vec<_> = paths
        .iter()
        .map(|path| {
            let (world, path) = (world.clone(), path.clone());
            tokio::spawn(async move { get(&world, &path).await.status() })
        })
        .collect();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let hasty = asked.iter().zip(&paths).filter(|(asked, _)| asked.is_finished());
    let hasty: Vec<&String> = hasty.map(|(_, path)| path).collect();
    assert!(hasty.is_empty(), "without a turn: {hasty:?}");
    // Meanwhile changes are made.
    let new = json!({"name": "v", "size_bytes": 1 << 30});
    assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    drop(taken);
    for (asked, path) in asked.into_iter().zip(&paths) {
        assert!(!asked.await.unwrap().is_server_error(), "{path}");
    }
    assert_eq!(world.reads.available_permits(), most as usize, "a turn was not given back");
}

/// The same bytes, not equal ones.
#[tokio::test]
async fn the_description_is_written_once() {
    let world = World::new();
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let response = get(&world, "/v1/openapi.json").await;
        assert_eq!(response.headers()["content-type"], "application/json");
        bodies.push(response.into_body().collect().await.unwrap().to_bytes());
    }
    assert_eq!(bodies[0].as_ptr(), bodies[1].as_ptr());
    let reported: Value = serde_json::from_slice(&bodies[0]).unwrap();
    assert_eq!(reported, serde_json::to_value(openapi()).unwrap());
}
