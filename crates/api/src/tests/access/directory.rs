//! Logins of users of a directory service.

use array::Role;
use tokio::time::{Duration, Instant};

use super::*;
use crate::{DirectoryLogin, TellLogin};

/// A directory that knows a few users, and records the requested names.
#[derive(Default)]
struct Directory {
    asked: parking_lot::Mutex<Vec<(String, String)>>,
    /// The logins that wait for an answer.
    waiting: parking_lot::Mutex<Vec<TellLogin>>,
}

impl Watch for Directory {
    fn sessions(&self) -> Vec<HostSession> {
        Vec::new()
    }

    fn ended_sessions(&self) -> Vec<(u64, HostSession)> {
        Vec::new()
    }

    fn refused_logins(&self) -> Vec<(String, RefusedLogin)> {
        Vec::new()
    }

    fn test_notifications(&self, _: &dyn Fn(&str) -> bool) -> Vec<NotificationTest> {
        Vec::new()
    }

    fn log_in_by_directory(&self, user: String, password: String, tell: TellLogin) {
        let known = |name: &str, role| DirectoryLogin::Known { name: name.into(), role };
        let login = match (user.as_str(), password.as_str()) {
            ("ANNA" | "anna", "battery") => known("anna", Role::StorageAdmin),
            ("admin " | "otto ", "battery") => known(user.trim(), Role::ArrayAdmin),
            ("down", _) => DirectoryLogin::Unreachable,
            ("silent", _) => {
                self.waiting.lock().push(tell);
                return;
            }
            _ => DirectoryLogin::Refused,
        };
        self.asked.lock().push((user, password));
        tell(login);
    }
}

async fn with_directory() -> (World, Arc<Directory>) {
    let directory = Arc::new(Directory::default());
    let (telemetry, changes) = (Arc::new(Quiet), Arc::new(devices::OneDevice));
    let world = World::watched(telemetry, changes, directory.clone(), Facts::default());
    let set = json!({
        "enabled": true, "uris": ["ldaps://ds.example.com"], "base_dn": "dc=x",
        "bind_user": "cn=array", "bind_password": "horse",
    });
    assert_eq!(world.ask("PATCH", "/v1/directory", Some(set)).await.0, 200);
    (world, directory)
}

impl World {
    async fn login(&self, user: &str, password: &str) -> (u16, HeaderMap, Value) {
        let body = json!({"user": user, "password": password});
        self.raw(Sent::new("POST", "/v1/session").body(body)).await
    }

    async fn begun(&self, user: &str, password: &str) -> String {
        let (status, headers, reported) = self.login(user, password).await;
        assert_eq!(status, 201, "{reported}");
        headers["x-auth-token"].to_str().unwrap().to_owned()
    }

    async fn asked(
        &self,
        method: &str,
        path: &str,
        session: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let sent = Sent::new(method, path).with("x-auth-token", session);
        let sent = match body {
            Some(body) => sent.body(body),
            None => sent,
        };
        let (status, _, value) = self.raw(sent).await;
        (status, value)
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_of_the_directory_logs_in_with_its_role_and_is_in_the_audit_log() {
    let (world, directory) = with_directory().await;
    let session = world.begun("ANNA", "battery").await;
    let (status, who) = world.asked("GET", "/v1/session", &session, None).await;
    // The name as the directory writes it.
    assert_eq!((status, who), (200, json!({"user": "anna", "role": "storage_admin"})));
    let new = json!({"name": "v", "size_bytes": 1 << 30});
    assert_eq!(world.asked("POST", "/v1/volumes", &session, Some(new)).await.0, 201);
    assert_eq!(world.asked("GET", "/v1/audit", &session, None).await.0, 403);
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    let newest = &log["entries"][0];
    assert_eq!((&newest["user"], &newest["role"]), (&json!("anna"), &json!("storage_admin")));
    // It has nothing that the array keeps.
    let change = json!({"old_password": "battery", "password": "correct horse"});
    let (status, reported) =
        world.asked("POST", "/v1/session/password", &session, Some(change)).await;
    assert_eq!((status, &reported["code"]), (400, &json!("directory_user")));
    let (_, users) = world.ask("GET", "/v1/users", None).await;
    assert_eq!(users["users"].as_array().unwrap().len(), 1);
    let token = json!({"user": "anna", "name": "t"});
    assert_eq!(world.ask("POST", "/v1/tokens", Some(token)).await.0, 404);
    // A change of the directory's settings ends it, and so does a user of the array of that name.
    let other = json!({"roles": [{"role": "readonly", "group": "ops"}]});
    assert_eq!(world.ask("PATCH", "/v1/directory", Some(other)).await.0, 200);
    assert_eq!(world.asked("GET", "/v1/session", &session, None).await.0, 401);
    let session = world.begun("anna", "battery").await;
    world.user("anna", "readonly").await;
    assert_eq!(world.asked("GET", "/v1/session", &session, None).await.0, 401);
    assert_eq!(directory.asked.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_directory_is_never_asked_about_array_users_and_all_refusals_are_equal() {
    let (world, directory) = with_directory().await;
    let body = json!({"role": {"name": "readonly"}, "password": "correct horse"});
    assert_eq!(world.ask("POST", "/api/2.26/admins?names=otto", Some(body)).await.0, 200);
    let began = Instant::now();
    world.begun("otto", "correct horse").await;
    assert!(directory.asked.lock().is_empty(), "the array knows the password");
    assert!(began.elapsed() < Duration::from_secs(1), "who is let in does not wait");
    let mut answers = Vec::new();
    for (user, password) in [
        ("otto", "battery"),
        ("admin", "battery"),
        // The directory takes these names for users of the array.
        ("otto ", "battery"),
        ("admin ", "battery"),
        ("anna", "wrong"),
        ("nobody", "battery"),
        ("down", "battery"),
    ] {
        let began = Instant::now();
        let (status, headers, reported) = world.login(user, password).await;
        assert!(began.elapsed() >= Duration::from_secs(1), "{user}");
        answers.push((status, reported.to_string(), headers.contains_key("www-authenticate")));
    }
    assert!(answers.iter().all(|one| *one == answers[0] && one.0 == 401), "{answers:?}");
    // It was asked each time, but never about users of the array or their passwords.
    let asked = directory.asked.lock().clone();
    assert_eq!(asked.len(), answers.len());
    assert!(asked[..2].iter().all(|(user, password)| user.len() == 36 && password == user));
    let (_, sessions) = world.ask("GET", "/api/2.26/sessions?sort=name", None).await;
    let count = |row: &Value| row["event_count"].as_u64().unwrap_or_default();
    let failed = sessions["items"].as_array().unwrap().iter().map(count).max();
    assert_eq!(failed, Some(7), "{sessions}");
}

#[tokio::test(start_paused = true)]
async fn a_login_without_an_answer_in_time_is_refused_and_others_wait() {
    let (world, directory) = with_directory().await;
    let world = Arc::new(world);
    let began = Instant::now();
    let asked: Vec<_> = (0..4)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.login("silent", "battery").await.0 })
        })
        .collect();
    for asked in asked {
        assert_eq!(asked.await.unwrap(), 401);
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(9), "{took:?}");
    // Two logins were in progress until their answers came, and no other was started.
    assert_eq!(directory.waiting.lock().len(), 2);
    directory.waiting.lock().drain(..).for_each(|tell| tell(DirectoryLogin::Unreachable));
    world.begun("anna", "battery").await;
}

#[tokio::test(start_paused = true)]
async fn guesses_are_slowed_down_and_a_disabled_directory_is_not_asked() {
    let (world, directory) = with_directory().await;
    let world = Arc::new(world);
    let guesses: Vec<_> = (0..10)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.login("anna", "guess").await.0 })
        })
        .collect();
    for guess in guesses {
        assert_eq!(guess.await.unwrap(), 401);
    }
    assert_eq!(world.login("anna", "battery").await.0, 429);
    world.uptime_ms.fetch_add(5_000, Ordering::Relaxed);
    let session = world.begun("anna", "battery").await;
    let off = json!({"enabled": false});
    assert_eq!(world.ask("PATCH", "/v1/directory", Some(off)).await.0, 200);
    assert_eq!(world.asked("GET", "/v1/session", &session, None).await.0, 401);
    directory.asked.lock().clear();
    assert_eq!(world.login("anna", "battery").await.0, 401);
    assert!(directory.asked.lock().is_empty());
}
