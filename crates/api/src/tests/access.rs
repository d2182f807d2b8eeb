//! Tests users and their roles, API tokens, sessions, limits, and the audit log.

mod audit;
mod directory;
mod passwords;

use std::net::IpAddr;

use axum::http::{HeaderMap, Response};

use super::*;

/// A request by somebody other than the owner of the process.
struct Sent<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, String)>,
    body: Option<Value>,
    from: &'a str,
}

impl<'a> Sent<'a> {
    fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, headers: Vec::new(), body: None, from: "192.0.2.1" }
    }

    fn with(mut self, header: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    fn token(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self.with("content-type", "application/json")
    }

    fn from(mut self, address: &'a str) -> Self {
        self.from = address;
        self
    }
}

impl World {
    async fn raw(&self, sent: Sent<'_>) -> (u16, HeaderMap, Value) {
        let mut request = Request::builder().method(sent.method).uri(sent.path);
        for (name, value) in &sent.headers {
            request = request.header(*name, value);
        }
        let body = sent.body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request.body(body).unwrap();
        let from: IpAddr = sent.from.parse().unwrap();
        request.extensions_mut().insert(Origin(from));
        let response: Response<Body> = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let is_text =
            parts.headers.get("content-type").is_some_and(|kind| kind != "application/json");
        let value = match body.is_empty() || is_text {
            true => Value::Null,
            false => serde_json::from_slice(&body).unwrap(),
        };
        (parts.status.as_u16(), parts.headers, value)
    }

    async fn status(&self, sent: Sent<'_>) -> u16 {
        self.raw(sent).await.0
    }

    /// Creates a user with a token.
    async fn user(&self, name: &str, role: &str) -> String {
        self.admin(name, role).await;
        let token = json!({"user": name, "name": "t"});
        let (status, made) = self.ask("POST", "/v1/tokens", Some(token)).await;
        assert_eq!((status, &made["user"]), (201, &json!(name)));
        made["token"].as_str().unwrap().to_owned()
    }

    async fn session(&self, token: &str) -> String {
        let login = Sent::new("POST", "/api/2.4/login").with("api-token", token);
        let (status, headers, value) = self.raw(login).await;
        assert_eq!(status, 200, "{value}");
        headers["x-auth-token"].to_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_login_gives_a_session_that_ends() {
    let world = World::new();
    let token = world.user("anna", "storage_admin").await;
    let login = Sent::new("POST", "/api/2.26/login").with("api-token", &token);
    let (status, headers, value) = world.raw(login).await;
    assert_eq!((status, &value), (200, &json!({"items": [{"username": "anna"}]})));
    let session = headers["x-auth-token"].to_str().unwrap();
    assert!(session.len() == 64 && session != token);
    let ask = |session: &str| Sent::new("GET", "/v1/session").with("x-auth-token", session);
    let (status, _, value) = world.raw(ask(session)).await;
    assert_eq!((status, value), (200, json!({"user": "anna", "role": "storage_admin"})));
    assert_eq!(world.status(ask(&token)).await, 401, "a token is no session");
    let bearer = Sent::new("GET", "/v1/session").token(session);
    assert_eq!(world.status(bearer).await, 401, "a session is no token");
    // The session ends when it is idle for too long, not before.
    world.uptime_ms.fetch_add(29 * 60_000, Ordering::Relaxed);
    assert_eq!(world.status(ask(session)).await, 200);
    world.uptime_ms.fetch_add(29 * 60_000, Ordering::Relaxed);
    assert_eq!(world.status(ask(session)).await, 200);
    world.uptime_ms.fetch_add(30 * 60_000, Ordering::Relaxed);
    let (status, headers, value) = world.raw(ask(session)).await;
    assert_eq!((status, &value["code"]), (401, &json!("unauthorized")));
    assert!(headers.contains_key("www-authenticate"));
    // A logout ends it, too.
    let session = world.session(&token).await;
    let logout = Sent::new("POST", "/api/2.4/logout").with("x-auth-token", &session);
    assert_eq!(world.status(logout).await, 200);
    assert_eq!(world.status(ask(&session)).await, 401);
    let (status, _, value) =
        world.raw(Sent::new("GET", "/api/2.4/volumes").with("x-auth-token", &session)).await;
    assert_eq!(status, 401);
    let wanted = "The session has ended, or there was none: log in with an API token, or send one \
                  as `Authorization: Bearer TOKEN`.";
    assert_eq!(value["errors"][0]["message"], wanted);
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_follows_its_users_role() {
    let world = World::new();
    let token = world.user("anna", "storage_admin").await;
    let session = world.session(&token).await;
    let make = |name: &str| {
        let new = json!({"name": name, "size_bytes": 4096});
        Sent::new("POST", "/v1/volumes").with("x-auth-token", &session).body(new)
    };
    assert_eq!(world.status(make("a")).await, 201);
    let anna = "/api/2.26/admins?names=anna";
    let reader = json!({"role": {"name": "readonly"}});
    assert_eq!(world.ask("PATCH", anna, Some(reader)).await.0, 200);
    let (status, _, value) = world.raw(make("b")).await;
    assert_eq!((status, &value["code"]), (403, &json!("forbidden")));
    let rest = Sent::new("DELETE", "/api/2.4/volumes?names=a").with("x-auth-token", &session);
    let (status, _, value) = world.raw(rest).await;
    assert_eq!(status, 403);
    let wanted = "The role readonly does not allow this. An array admin can assign another role.";
    assert_eq!(value["errors"][0]["message"], wanted);
    let writer = json!({"role": {"name": "storage_admin"}});
    assert_eq!(world.ask("PATCH", anna, Some(writer)).await.0, 200);
    assert_eq!(world.status(make("b")).await, 201);
    assert_eq!(world.ask("DELETE", "/v1/tokens/anna/t", None).await.0, 204);
    assert_eq!(world.status(make("c")).await, 401);
    let token = world.user("otto", "storage_admin").await;
    let session = world.session(&token).await;
    assert_eq!(world.ask("DELETE", "/api/2.26/admins?names=otto", None).await.0, 200);
    let ask = Sent::new("GET", "/v1/volumes").with("x-auth-token", &session);
    assert_eq!(world.status(ask).await, 401);
}

#[tokio::test]
async fn every_described_request_is_refused_without_permission() {
    let world = World::new();
    let reader = world.user("reader", "readonly").await;
    let admin = world.user("storage", "storage_admin").await;
    let description = serde_json::to_value(openapi()).unwrap();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|m| *m != "parameters") {
            world.uptime_ms.fetch_add(1000, Ordering::Relaxed);
            let (method, uri) = (method.to_uppercase(), path.replace("{minor}", "4"));
            let uri = uri.replace(['{', '}'], "");
            let status = world.status(Sent::new(&method, &uri).token(&reader)).await;
            let is_login = ["/login", "/logout", "/session"]
                .iter()
                .any(|it| uri.trim_end_matches("/password").ends_with(it));
            let is_audit = ["/audit", "/audits", "/sessions"].iter().any(|it| uri.ends_with(it));
            let looks = method == "GET" && !is_audit && !uri.ends_with("test");
            assert_eq!(status == 403, !looks && !is_login, "{method} {uri}: {status}");
            if ["users", "tokens", "settings", "pool", "admins"].iter().any(|it| uri.contains(it)) {
                let status = world.status(Sent::new(&method, &uri).token(&admin)).await;
                assert_eq!(status == 403, method != "GET", "{method} {uri}: {status}");
            }
        }
    }
}

#[tokio::test]
async fn failed_logins_slow_down_only_their_address() {
    let world = World::new();
    let token = world.user("anna", "readonly").await;
    let guess = || Sent::new("POST", "/api/2.4/login").with("api-token", "guess");
    for _ in 0..5 {
        assert_eq!(world.status(guess()).await, 401);
        let bearer = Sent::new("GET", "/v1/status").token("guess");
        assert_eq!(world.status(bearer).await, 401);
    }
    let (status, headers, value) = world.raw(guess()).await;
    assert_eq!((status, &headers["retry-after"]), (429, &"5".parse().unwrap()));
    let wanted = "Too many logins from this address failed. Try again in 5 s.";
    assert_eq!(value["errors"][0]["message"], wanted);
    // The other method is refused as well; open paths stay open.
    let (status, _, value) = world.raw(Sent::new("GET", "/v1/status").token("guess")).await;
    assert_eq!((status, &value["code"]), (429, &json!("too_many_requests")));
    assert_eq!(world.status(Sent::new("GET", "/v1/version")).await, 200);
    // A program with an old token does not lock out others at its address.
    let right = || Sent::new("GET", "/v1/status").token(&token);
    assert_eq!(world.status(right()).await, 200);
    world.session(&token).await;
    assert_eq!(world.status(right().from("192.0.2.2")).await, 200);
    // The owner of the process is never locked out.
    assert_eq!(world.status(Sent::new("GET", "/v1/status").token(&world.token)).await, 200);
    world.uptime_ms.fetch_add(5_000, Ordering::Relaxed);
    assert_eq!(world.status(right()).await, 200);
    assert_eq!(world.status(right()).await, 200, "what succeeds costs nothing");
    assert_eq!(world.status(guess()).await, 401);
    assert_eq!(world.status(guess()).await, 429);
    // A dead session does not count as a guess: clients present one after each restart.
    world.uptime_ms.fetch_add(60_000, Ordering::Relaxed);
    for _ in 0..20 {
        let dead = Sent::new("GET", "/v1/status").with("x-auth-token", "dead");
        assert_eq!(world.status(dead).await, 401);
    }
    assert_eq!(world.status(right()).await, 200);
}

#[tokio::test]
async fn a_token_with_too_many_requests_is_slowed_down_in_all_its_sessions() {
    let world = World::new();
    let token = world.user("anna", "readonly").await;
    let other = world.user("otto", "readonly").await;
    let session = world.session(&token).await;
    let asked = || Sent::new("GET", "/v1/session").with("x-auth-token", &session);
    for _ in 1..1_000 {
        assert_eq!(world.status(asked()).await, 200);
    }
    let (status, headers, _) = world.raw(asked()).await;
    assert_eq!((status, &headers["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(world.status(Sent::new("GET", "/v1/session").token(&token)).await, 429);
    assert_eq!(world.status(Sent::new("GET", "/v1/session").token(&other)).await, 200);
    world.uptime_ms.fetch_add(2, Ordering::Relaxed);
    assert_eq!(world.status(asked()).await, 200);
    assert_eq!(world.status(asked()).await, 429);
    for _ in 0..1_500 {
        let local = Sent::new("GET", "/v1/session").token(&world.token);
        assert_eq!(world.status(local).await, 200);
    }
}

#[tokio::test]
async fn tokens_are_shown_once_and_expire() {
    let world = World::new();
    let asked = json!({"name": "ci", "lifetime_s": 60});
    let (status, made) = world.ask("POST", "/v1/tokens", Some(asked)).await;
    assert_eq!(
        (status, &made["user"], &made["expires_ms"]),
        (201, &json!("admin"), &json!(61_234))
    );
    let token = made["token"].as_str().unwrap();
    assert_eq!(token.len(), 36);
    assert_eq!(world.status(Sent::new("GET", "/v1/status").token(token)).await, 200);
    let (_, list) = world.ask("GET", "/v1/tokens?user=ADMIN", None).await;
    assert_eq!(list["tokens"][0]["last_used_ms"], 1234);
    for path in ["/v1/tokens", "/v1/users", "/v1/users/admin", "/v1/audit"] {
        let (status, value) = world.ask("GET", path, None).await;
        assert!(status == 200 && !value.to_string().contains(token), "{value}");
    }
    let (_, users) = world.ask("GET", "/v1/users", None).await;
    assert_eq!(
        users["users"][0],
        json!({"name": "admin", "role": "array_admin", "built_in": true, "created_ms": null,
               "tokens": 1, "password": false})
    );
    for (method, path, body, expected) in [
        ("POST", "/v1/tokens", Some(json!({"name": "CI"})), (409, "token_exists")),
        ("POST", "/v1/tokens", Some(json!({"name": "a b"})), (400, "invalid_name")),
        (
            "POST",
            "/v1/tokens",
            Some(json!({"name": "x", "lifetime_s": 0})),
            (400, "invalid_expiry"),
        ),
        ("POST", "/v1/tokens", Some(json!({"name": "x", "user": "no"})), (404, "no_such_user")),
        ("DELETE", "/v1/tokens/admin/none", None, (404, "no_such_token")),
        ("GET", "/v1/tokens?user=none", None, (404, "no_such_user")),
        ("GET", "/v1/users/none", None, (404, "no_such_user")),
    ] {
        let (status, refused) = world.ask(method, path, body).await;
        assert_eq!((status, refused["code"].as_str().unwrap()), expected, "{method} {path}");
    }
    assert_eq!(world.ask("DELETE", "/v1/tokens/admin/ci", None).await.0, 204);
    assert_eq!(world.status(Sent::new("GET", "/v1/status").token(token)).await, 401);
}

#[tokio::test]
async fn changes_are_logged_with_user_origin_and_result() {
    let world = World::new();
    let token = world.user("anna", "storage_admin").await;
    let new = json!({"name": "a", "size_bytes": 4096});
    let make = || Sent::new("POST", "/v1/volumes").token(&token).body(new.clone());
    assert_eq!(world.status(make().from("2001:db8::7")).await, 201);
    assert_eq!(world.status(make().from("::ffff:192.0.2.9")).await, 409);
    let list = Sent::new("GET", "/v1/volumes").token(&token);
    assert_eq!(world.status(list).await, 200);
    // Refused callers and unreadable bodies changed nothing.
    let forbidden = Sent::new("PATCH", "/v1/settings").token(&token).body(json!({}));
    assert_eq!(world.status(forbidden).await, 403);
    let broken = Sent::new("POST", "/v1/volumes").token(&token).body(json!({"name": 7}));
    assert_eq!(world.status(broken).await, 400);
    // A name that looks like a path of the interface is only a name.
    let logout = Sent::new("PATCH", "/v1/volumes/logout").token(&token).body(json!({}));
    assert_eq!(world.status(logout).await, 404);
    let chap = json!({"host_user": "u", "host_password": "correct horse"});
    let host = json!({"iqns": ["iqn.2026-11.com.example:1"], "chap": chap});
    let path = "/api/2.26/hosts?names=h";
    assert_eq!(world.status(Sent::new("POST", path).token(&token).body(host)).await, 200);
    let (_, log) = world.ask("GET", "/v1/audit?limit=4", None).await;
    assert_eq!(log["more"], true);
    let row = |number, origin: &str, path: &str, names: &str, outcome: &str| {
        let method = if path.ends_with("/logout") { "PATCH" } else { "POST" };
        json!({"number": number, "time_ms": 1234, "user": "anna", "role": "storage_admin",
               "origin": origin, "method": method, "path": path, "names": names,
               "outcome": outcome})
    };
    let expected = json!([
        row(6, "192.0.2.1", "/api/2.26/hosts", "h iqns=iqn.2026-11.com.example:1", "done"),
        row(5, "192.0.2.1", "/v1/volumes/logout", "", "no_such_volume"),
        row(4, "192.0.2.9", "/v1/volumes", "name=a", "volume_exists"),
        row(3, "2001:db8::7", "/v1/volumes", "name=a", "done"),
    ]);
    assert_eq!(log["entries"], expected);
    let (_, older) = world.ask("GET", "/v1/audit?before=3", None).await;
    assert_eq!((older["entries"].as_array().unwrap().len(), &older["more"]), (2, &json!(false)));
    assert_eq!(older["entries"][1]["path"], "/api/2.26/admins");
    assert_eq!(older["entries"][1]["user"], "admin");
    assert!(!log.to_string().contains("horse") && !older.to_string().contains(&token));
    assert_eq!(world.array.audit_log(None, 100).len(), 6);
    assert_eq!(world.ask("GET", "/v1/audit?before=x", None).await.0, 400);
}

#[tokio::test]
async fn rest_knows_admins_their_tokens_and_audits() {
    let world = World::new();
    let post = json!({"role": {"name": "storage_admin"}});
    let (status, made) = world.ask("POST", "/api/2.4/admins?names=anna", Some(post.clone())).await;
    assert_eq!((status, &made["items"][0]["role"]["name"]), (200, &json!("storage_admin")));
    assert_eq!(made["items"][0]["api_token"], json!({}));
    let tokens = "/api/2.4/admins/api-tokens?names=anna";
    let (status, made) = world.ask("POST", &format!("{tokens}&timeout=60000"), None).await;
    let kept = &made["items"][0]["api_token"];
    assert_eq!((status, &kept["expires_at"]), (200, &json!(61_234)), "{made}");
    let token = kept["token"].as_str().unwrap();
    let session = world.session(token).await;
    for (method, path, body, text) in [
        ("POST", "/api/2.4/admins?names=anna", Some(post.clone()), "already exists"),
        ("POST", "/api/2.4/admins?names=otto", Some(json!({})), "role"),
        ("POST", "/api/2.4/admins?names=otto", Some(json!({"role": {"name": "root"}})), "role"),
        ("POST", "/api/2.4/admins?names=otto", Some(json!({"password": "x"})), "8 to 128"),
        ("POST", "/api/2.4/admins?names=a,b", Some(post.clone()), "one user"),
        ("POST", tokens, None, "already exists"),
        ("GET", "/api/2.4/admins?names=none", None, "does not exist"),
        ("GET", "/api/2.4/admins?expose_api_token=true", None, "shown once"),
        ("DELETE", "/api/2.4/admins?names=admin", None, "built in"),
        (
            "PATCH",
            "/api/2.4/admins?names=admin",
            Some(json!({"role": {"name": "readonly"}})),
            "is built in",
        ),
        ("DELETE", "/api/2.4/admins/api-tokens?names=admin", None, "does not exist"),
        ("GET", "/api/2.4/audits?names=7", None, "does not exist"),
    ] {
        let (status, refused) = world.ask(method, path, body).await;
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(text), "{method} {path}: {message}");
    }
    let (_, list) = world.ask("GET", "/api/2.4/admins?sort=name-", None).await;
    let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["anna", "admin"]);
    let (_, list) = world.ask("GET", "/api/2.4/admins/api-tokens", None).await;
    assert_eq!(list["items"][0]["api_token"]["token"], "****");
    assert_eq!(list["items"][0]["token_name"], "rest");
    let reader = json!({"role": {"name": "readonly"}});
    assert_eq!(world.ask("PATCH", "/api/2.4/admins?names=anna", Some(reader)).await.0, 200);
    let ask = || Sent::new("GET", "/api/2.4/volumes").with("x-auth-token", &session);
    assert_eq!(world.status(ask()).await, 200);
    let new = json!({"provisioned": 4096});
    let make = Sent::new("POST", "/api/2.4/volumes?names=a").with("x-auth-token", &session);
    assert_eq!(world.status(make.body(new)).await, 403);
    assert_eq!(world.ask("DELETE", tokens, None).await.0, 200);
    assert_eq!(world.status(ask()).await, 401);
    assert_eq!(world.ask("DELETE", "/api/2.4/admins?names=anna", None).await.0, 200);
    let (_, log) = world.ask("GET", "/api/2.4/audits?sort=time,name&limit=2", None).await;
    let first = &log["items"][0];
    assert_eq!((&first["name"], &first["time"]), (&json!("000000000001"), &json!(1234)));
    assert_eq!((&first["command"], &first["subcommand"]), (&json!("admins"), &json!("POST")));
    assert_eq!((&first["arguments"], &first["user"]), (&json!("anna"), &json!("admin")));
    assert_eq!(log["items"][1]["command"], "admins");
    assert_eq!(log["more_items_remaining"], true);
    let query = "/api/2.4/audits?filter=arguments='*user_exists*'";
    let (_, log) = world.ask("GET", query, None).await;
    assert_eq!(log["items"].as_array().unwrap().len(), 1, "{log}");
}
