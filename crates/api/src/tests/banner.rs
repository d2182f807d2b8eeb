//! The text that is shown before a login.

use super::*;

const ARRAYS: &str = "/api/2.42/arrays";

#[tokio::test]
async fn a_banner_is_set_over_both_paths_and_anybody_may_read_it() {
    let world = World::new();
    let before_login = || async {
        let request = Request::builder().uri("/v1/version").body(Body::empty()).unwrap();
        let (status, version) = world.send(request).await;
        assert_eq!(status, StatusCode::OK);
        version["banner"].clone()
    };
    assert_eq!(before_login().await, "");
    let text = json!("Banner over\ntwo lines");
    let (status, array) = world.ask("PATCH", ARRAYS, Some(json!({"banner": text}))).await;
    assert_eq!((status, &array["items"][0]["banner"]), (200, &text));
    assert_eq!(before_login().await, text);
    assert_eq!(world.ask("GET", "/v1/settings", None).await.1["banner"], text);
    for bad in ["a\u{1b}[2J", "a\rb", &"x".repeat(2001)] {
        assert_eq!(world.ask("PATCH", ARRAYS, Some(json!({"banner": bad}))).await.0, 400);
        let (status, refused) =
            world.ask("PATCH", "/v1/settings", Some(json!({"banner": bad}))).await;
        assert_eq!((status, &refused["code"]), (400, &json!("invalid_banner")));
    }
    assert_eq!(before_login().await, text);
    let longest = "ü".repeat(2000);
    world.ask("PATCH", "/v1/settings", Some(json!({"banner": longest}))).await;
    assert_eq!(before_login().await, longest);
    world.ask("PATCH", ARRAYS, Some(json!({"banner": ""}))).await;
    assert_eq!(before_login().await, "");
}
