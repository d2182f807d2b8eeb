//! A pool that grows, or can't.

use super::*;

#[tokio::test]
async fn the_pool_grows_and_a_refusal_says_what_is_wrong() {
    let world = World::new();
    let change = json!({"capacity_bytes": 1_u64 << 41});
    assert_eq!(world.ask("PATCH", "/v1/pool", Some(change)).await.0, 200);
    for (capacity_bytes, expected) in [
        (1_u64 << 30, (400, "invalid_size")),
        (2 << 44, (507, "device_full")),
        (3 << 44, (400, "invalid_size")),
        (4 << 44, (507, "pool_full")),
        (5 << 44, (500, "store_failed")),
    ] {
        let change = json!({ "capacity_bytes": capacity_bytes });
        let (status, refused) = world.ask("PATCH", "/v1/pool", Some(change)).await;
        assert_eq!((status, &refused["code"]), (expected.0, &json!(expected.1)));
    }
}
