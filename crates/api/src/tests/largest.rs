//! Each management request at its largest: if it is legal, its work and its response are bounded;
//! if not, it is refused with the limit. Steps and bytes are counted, not time.

use super::*;
use crate::rest::filter::FILTER_BYTES_MAX;

/// No page of a list is longer, whatever was requested.
const PAGE_BYTES_MAX: usize = 4 << 20;

impl World {
    async fn rest(&self, path: &str) -> (u16, Value) {
        self.ask("GET", &format!("/api/2.26/{path}"), None).await
    }

    /// Sends a request that must be refused, and returns the message.
    async fn too_much(&self, method: &str, path: &str, body: Option<Value>) -> String {
        let (status, refused) = self.ask(method, &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 400, "{method} {}: {refused}", &path[..path.len().min(80)]);
        refused["errors"][0]["message"].as_str().unwrap().to_owned()
    }

    async fn make(&self, path: &str, body: Option<Value>) {
        let (status, made) = self.ask("POST", &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 200, "{}: {made}", &path[..path.len().min(80)]);
    }
}

fn numbered(prefix: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| format!("{prefix}{n}")).collect::<Vec<_>>().join(",")
}

/// As many alternatives as fit a filter.
fn many_names() -> String {
    let mut filter = String::from("name='none'");
    let mut n = 0;
    while filter.len() + 50 < FILTER_BYTES_MAX {
        filter.push_str(&format!(" or name='v{n}'"));
        n += 1;
    }
    filter
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The lists of REST 2.x.
fn lists() -> Vec<String> {
    let description = serde_json::to_value(openapi()).unwrap();
    let paths = description["paths"].as_object().unwrap().iter();
    // What is refused even if it is only read is no list.
    let is_list = |item: &Value| item["get"]["responses"].get("200").is_some();
    let lists = paths.filter(|(path, item)| path.starts_with("/api/2.") && is_list(item));
    lists.map(|(path, _)| path.replace("/api/2.{minor}/", "")).collect()
}

#[tokio::test]
async fn every_list_accepts_the_largest_legal_request_and_no_larger_one() {
    let world = World::new();
    let size = Some(json!({"provisioned": 4096}));
    for first in [0, 500] {
        let names = numbered("v", first..first + 500);
        world.make(&format!("volumes?names={names}"), size.clone()).await;
        world.make(&format!("volume-snapshots?source_names={names}"), None).await;
    }
    let deep = ["x"; 8].join(".");
    let terms: Vec<String> = (0..32).map(|n| format!("contains(name,'{n}')")).collect();
    let largest = [
        format!("filter={}&limit=1000", encoded(&many_names())),
        format!("filter={}&limit=1000&total_item_count=true", encoded(&terms.join(" or "))),
        format!("filter={deep}&total_only=true"),
        "sort=name-,id,created,destroyed,serial,provisioned,space.unique,connection_count\
         &limit=1000&offset=100000&total_item_count=true"
            .to_owned(),
    ];
    let wide = format!("{} or {}", terms.join(" or "), "contains(name,'x')");
    let longer = [
        (
            format!("filter={}", encoded(&wide)),
            "Invalid filter, at character 1: it has more than \
          32 conditions; values of one field, without `*`, count once.",
        ),
        (
            format!("filter={deep}.x"),
            "Invalid filter, at character 1: this field has more than 8 \
          parts.",
        ),
        // So deep that recursion would overflow the stack.
        (
            format!("filter={}", ["x"; 8000].join(".")),
            "Invalid filter, at character 1: this \
          field has more than 8 parts.",
        ),
        (
            format!("filter={}", "x".repeat(FILTER_BYTES_MAX + 1)),
            "Invalid filter, at character 1: \
          it is longer than 16384 bytes.",
        ),
        (format!("sort={}", ["x"; 9].join(".")), "A field to sort by is misspelt."),
        ("offset=100001".to_owned(), "At most 100000 items can be skipped."),
    ];
    for list in lists() {
        for question in &largest {
            let (status, page) = world.rest(&format!("{list}?{question}")).await;
            assert_eq!(status, 200, "{list}: {page}");
            assert!(page["items"].as_array().unwrap().len() <= 1000, "{list}");
            assert!(page.to_string().len() <= PAGE_BYTES_MAX, "{list}");
        }
        for (question, wanted) in &longer {
            let reported = world.too_much("GET", &format!("{list}?{question}"), None).await;
            assert_eq!(reported, *wanted, "{list}");
        }
    }
    // The names are looked up, in their order and page by page, with the rest of the filter.
    let names = encoded(&format!("provisioned>1 and ({})", many_names()));
    let first = world.rest(&format!("volumes?filter={names}&limit=600")).await.1;
    let token = first["continuation_token"].as_str().unwrap();
    let second = world.rest(&format!("volumes?filter={names}&continuation_token={token}")).await.1;
    let both = first["items"].as_array().unwrap().iter().chain(second["items"].as_array().unwrap());
    let both: Vec<&str> = both.map(|item| item["name"].as_str().unwrap()).collect();
    let mut wanted: Vec<String> = (0..1000).map(|n| format!("v{n}")).collect();
    wanted.retain(|name| many_names().contains(&format!("'{name}'")));
    wanted.sort_unstable();
    assert_eq!(both, wanted);
    assert!(wanted.len() > 600);
}

#[tokio::test]
async fn lists_of_names_are_bounded() {
    let world = World::new();
    let many = numbered("n", 0..501);
    for (method, path, parameter) in [
        ("GET", "volumes", "names"),
        ("GET", "volumes", "ids"),
        ("GET", "volume-snapshots", "source_names"),
        ("GET", "hosts", "names"),
        ("GET", "volumes/tags", "keys"),
        ("GET", "volumes/performance", "names"),
        ("PATCH", "volumes", "names"),
        ("POST", "volumes", "names"),
        ("DELETE", "connections", "host_names"),
    ] {
        let reported = world.too_much(method, &format!("{path}?{parameter}={many}"), None).await;
        assert_eq!(reported, "At most 500 names can be given at once.", "{method} {path}");
    }
    // Also pairs of names, of which there would be 250,000.
    let half = numbered("n", 0..500);
    let pairs = format!("host_names={half}&volume_names={half}");
    let reported = world.too_much("GET", &format!("connections?{pairs}"), None).await;
    assert_eq!(reported, "At most 10000 pairs can be listed at once.");
    let reported = world.too_much("POST", &format!("connections?{pairs}"), None).await;
    assert_eq!(reported, "At most 500 connections can be changed at once.");
    let members = format!("group_names={half}&member_names={half}");
    for path in ["host-groups/hosts", "protection-groups/volumes", "hosts/protection-groups"] {
        let reported = world.too_much("POST", &format!("{path}?{members}"), None).await;
        assert_eq!(reported, "At most 500 members can be changed at once.", "{path}");
    }
    let many: Vec<String> = (0..65).map(|n| format!("p{n}=1")).collect();
    let reported = world.too_much("GET", &format!("volumes?{}", many.join("&")), None).await;
    assert_eq!(reported, "There are too many query parameters.");
}

#[tokio::test]
async fn bodies_are_bounded() {
    let world = World::new();
    world.make("volumes?names=v", Some(json!({"provisioned": 4096}))).await;
    let tags = |count: usize| {
        let tag = |n| json!({"key": format!("k{n}"), "value": "v"});
        Some(Value::Array((0..count).map(tag).collect()))
    };
    let batch = "volumes/tags/batch?resource_names=v";
    let (status, _) = world.ask("PUT", &format!("/api/2.26/{batch}"), tags(32)).await;
    assert_eq!(status, 200);
    let reported = world.too_much("PUT", batch, tags(33)).await;
    assert_eq!(reported, "An object has 32 tags at most: set fewer.");
    let long = Some(json!({"name": "x".repeat(64 << 10)}));
    for (method, path) in [
        ("PUT", batch),
        ("POST", "volumes?names=w"),
        ("PATCH", "volumes?names=v"),
        ("POST", "hosts?names=h"),
        ("PATCH", "arrays"),
    ] {
        let (status, reported) =
            world.ask(method, &format!("/api/2.26/{path}"), long.clone()).await;
        assert_eq!(status, 413, "{method} {path}: {reported}");
    }
    let nested = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let request = Request::post("/api/2.26/hosts?names=h")
        .header("authorization", format!("Bearer {}", world.token))
        .body(Body::from(nested));
    assert_eq!(world.send(request.unwrap()).await.0, StatusCode::BAD_REQUEST);
}

/// A group of 51 hosts with 1,000 volumes: 51,000 rows from two requests.
#[tokio::test]
async fn connections_of_large_groups_are_read_page_by_page() {
    let world = World::new();
    for first in [0, 500] {
        let names = numbered("v", first..first + 500);
        world.make(&format!("volumes?names={names}"), Some(json!({"provisioned": 4096}))).await;
    }
    let hosts = numbered("h", 0..51);
    world.make(&format!("hosts?names={hosts}"), None).await;
    world.make("host-groups?names=g,alone", None).await;
    world.make(&format!("host-groups/hosts?group_names=g&member_names={hosts}"), None).await;
    for first in [0, 500] {
        for group in ["g", "alone"] {
            let names = numbered("v", first..first + 500);
            let path = format!("connections?host_group_names={group}&volume_names={names}");
            world.make(&path, None).await;
        }
    }
    let (mut rows, mut token, mut last) = (0, String::new(), String::new());
    loop {
        let (status, page) = world.rest(&format!("connections?continuation_token={token}")).await;
        assert_eq!(status, 200, "{page}");
        for row in page["items"].as_array().unwrap() {
            // Hosts in their order, then the group that has none; within each by LUN.
            let host = row["host"]["name"].as_str().unwrap_or("~");
            let key = format!("{host}/{:05}", row["lun"].as_u64().unwrap());
            assert!(key > last, "{key} behind {last}");
            (last, rows) = (key, rows + 1);
        }
        match page["continuation_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(rows, 52_000);
    let (_, one) = world.rest("connections?host_group_names=g&host_names=h7&volume_names=v1").await;
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    let reported = world.too_much("GET", "connections?host_group_names=g", None).await;
    assert_eq!(
        reported,
        "There are more than 50000 connections. Name fewer hosts or volumes, or read all of them \
         page by page."
    );
    let of_one = "/api/2.26/connections?host_names=h7";
    let (status, of_one) = world.ask("GET", of_one, None).await;
    assert_eq!((status, of_one["items"].as_array().unwrap().len()), (200, 1000));
}

/// Read-only requests wait for each other; requests that change something wait for none of them.
#[tokio::test]
async fn read_only_requests_leave_space_for_changes() {
    let world = World::new();
    let reads = world.reads.clone();
    let all = reads.acquire_many_owned(crate::access::READS_MAX as u32).await.unwrap();
    let mut waiting = Box::pin(world.rest("volumes"));
    assert!(futures_lite(&mut waiting).await.is_none(), "it has no turn yet");
    world.make("volumes?names=v", Some(json!({"provisioned": 4096}))).await;
    drop(all);
    assert_eq!(waiting.await.1["items"].as_array().unwrap().len(), 1);
}

/// The result of a future, if it is ready at once.
async fn futures_lite<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(value) => std::task::Poll::Ready(Some(value)),
            std::task::Poll::Pending if polls > 3 => std::task::Poll::Ready(None),
            std::task::Poll::Pending => {
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            }
        }
    })
    .await
}
