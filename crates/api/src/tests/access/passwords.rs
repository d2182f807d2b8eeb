//! Passwords: who can log in with one, what guessing costs, and which sessions a change ends.

use super::*;

const PASSWORD: &str = "correct horse";

impl World {
    /// Creates a user with a password.
    async fn with_password(&self, name: &str, role: &str) {
        let body = json!({"role": {"name": role}, "password": PASSWORD});
        let path = format!("/api/2.26/admins?names={name}");
        let (status, made) = self.ask("POST", &path, Some(body)).await;
        assert_eq!(status, 200, "{made}");
        assert!(!made.to_string().contains(PASSWORD) && !made.to_string().contains("argon2"));
    }

    async fn password_login(&self, user: &str, password: &str) -> (u16, HeaderMap, Value) {
        let body = json!({"user": user, "password": password});
        self.raw(Sent::new("POST", "/v1/session").body(body)).await
    }

    /// Returns the session of a login that must succeed.
    async fn let_in(&self, user: &str, password: &str) -> String {
        let (status, headers, reported) = self.password_login(user, password).await;
        assert_eq!((status, &reported["user"]), (201, &json!(user)));
        headers["x-auth-token"].to_str().unwrap().to_owned()
    }

    async fn is_open(&self, session: &str) -> bool {
        let asked = Sent::new("GET", "/v1/session").with("x-auth-token", session);
        match self.status(asked).await {
            200 => true,
            401 => false,
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn only_users_with_a_password_log_in_with_one() {
    let world = World::new();
    world.with_password("anna", "storage_admin").await;
    let token = world.user("otto", "array_admin").await;
    let session = world.let_in("anna", PASSWORD).await;
    let ask = |path: &'static str| Sent::new("GET", path).with("x-auth-token", &session);
    let (_, _, who) = world.raw(ask("/v1/session")).await;
    assert_eq!(who, json!({"user": "anna", "role": "storage_admin"}));
    assert_eq!(world.status(ask("/v1/audit")).await, 403, "the role counts");
    // The same response for a wrong password, a user without one, and a user that does not exist.
    let mut answers = Vec::new();
    for (user, password) in
        [("anna", "wrong horse"), ("otto", PASSWORD), ("otto", &token), ("nobody", PASSWORD)]
    {
        let (status, headers, value) = world.password_login(user, password).await;
        assert_eq!(status, 401);
        assert!(!headers.contains_key("x-auth-token"));
        answers.push(value);
    }
    let wrong = json!({"code": "unauthorized", "message": "The user or the password is wrong."});
    assert!(answers.iter().all(|answer| *answer == wrong), "{answers:?}");
    // A password is no token.
    assert_eq!(world.status(Sent::new("GET", "/v1/status").token(PASSWORD)).await, 401);
    let (_, list) = world.ask("GET", "/api/2.26/sessions?sort=name", None).await;
    let methods: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|it| (&it["method"], &it["user"])).collect();
    assert_eq!(methods[0], (&json!("password"), &json!("anna")));
    assert_eq!(list["items"][1]["event_count"], 5);
    let (_, users) = world.ask("GET", "/v1/users", None).await;
    let has = |at: usize| (&users["users"][at]["name"], &users["users"][at]["password"]);
    assert_eq!((has(1), has(2)), ((&json!("anna"), &json!(true)), (&json!("otto"), &json!(false))));
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    assert!(!log.to_string().contains(PASSWORD));
}

#[tokio::test]
async fn a_body_that_can_t_be_read_is_not_repeated() {
    let world = World::new();
    for body in [
        json!({"user": "anna", "password": 31_415_926}),
        json!({"user": "anna", "password": ["31415926"]}),
        json!({"user": {"31415926": 1}, "password": "x"}),
        json!("31415926"),
    ] {
        let (status, _, value) = world.raw(Sent::new("POST", "/v1/session").body(body)).await;
        assert_eq!(status, 400, "{value}");
        assert!(value["message"].as_str().unwrap().contains("expected"), "{value}");
        assert!(!value.to_string().contains("31415926"), "{value}");
    }
}

#[tokio::test]
async fn guessing_a_password_is_slowed_down() {
    let world = World::new();
    world.with_password("anna", "readonly").await;
    for _ in 0..3 {
        world.let_in("anna", PASSWORD).await;
    }
    for _ in 0..10 {
        assert_eq!(world.password_login("anna", "guess").await.0, 401);
    }
    let (status, headers, _) = world.password_login("anna", PASSWORD).await;
    assert_eq!((status, &headers["retry-after"]), (429, &"5".parse().unwrap()));
    world.uptime_ms.fetch_add(5_000, Ordering::Relaxed);
    world.let_in("anna", PASSWORD).await;
}

#[tokio::test]
async fn concurrent_guesses_are_each_delayed_and_few_may_wait() {
    let world = Arc::new(World::new());
    world.with_password("anna", "readonly").await;
    let guess = || {
        let world = world.clone();
        tokio::spawn(async move { world.password_login("anna", "guess").await })
    };
    let guesses: Vec<_> = (0..30).map(|_| guess()).collect();
    let mut statuses = Vec::new();
    for guess in guesses {
        let (status, headers, value) = guess.await.unwrap();
        statuses.push((status, value["message"].as_str().unwrap().to_owned()));
        assert_eq!(status == 429, headers.contains_key("retry-after"));
    }
    let wrong = statuses.iter().filter(|(status, _)| *status == 401).count();
    assert!((1..=10).contains(&wrong), "{statuses:?}");
    assert!(statuses.iter().any(|(_, text)| text.starts_with("Too many logins are in progress")));
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions() {
    let world = World::new();
    world.with_password("anna", "readonly").await;
    world.with_password("bert", "readonly").await;
    let token = json!({"user": "anna", "name": "t"});
    let (_, made) = world.ask("POST", "/v1/tokens", Some(token)).await;
    let by_token = world.session(made["token"].as_str().unwrap()).await;
    let (one, other) = (world.let_in("anna", PASSWORD).await, world.let_in("anna", PASSWORD).await);
    let of_bert = world.let_in("bert", PASSWORD).await;
    let change = |old: &str, new: &str| {
        let body = json!({"old_password": old, "password": new});
        Sent::new("POST", "/v1/session/password").with("x-auth-token", &one).body(body)
    };
    for (old, new, code) in [
        ("wrong horse", "another horse", "wrong_password"),
        (PASSWORD, "short", "invalid_password"),
        (PASSWORD, &"x".repeat(129), "invalid_password"),
    ] {
        let (status, _, refused) = world.raw(change(old, new)).await;
        assert_eq!((status, &refused["code"]), (400, &json!(code)));
    }
    assert!(world.is_open(&other).await && world.is_open(&by_token).await);
    assert_eq!(world.status(change(PASSWORD, "another horse")).await, 204);
    assert!(world.is_open(&one).await, "the session that changed it stays open");
    assert!(!world.is_open(&other).await && !world.is_open(&by_token).await);
    assert!(world.is_open(&of_bert).await);
    assert_eq!(world.password_login("anna", PASSWORD).await.0, 401);
    let anew = world.let_in("anna", "another horse").await;
    // An array admin needs no old password, and ends all.
    let body = json!({"password": "third horse"});
    let (anna, path) = ("/api/2.26/admins?names=anna", "/v1/users/anna/password");
    assert_eq!(world.ask("PATCH", anna, Some(body.clone())).await.0, 200);
    assert!(!world.is_open(&one).await && !world.is_open(&anew).await);
    let last = world.let_in("anna", "third horse").await;
    let forbidden = Sent::new("PATCH", anna).with("x-auth-token", &last).body(body);
    assert_eq!(world.status(forbidden).await, 403);
    let forbidden = Sent::new("DELETE", path).with("x-auth-token", &last);
    assert_eq!(world.status(forbidden).await, 403);
    let (status, shown) = world.ask("DELETE", path, None).await;
    assert_eq!((status, &shown["password"]), (200, &json!(false)));
    assert!(!world.is_open(&last).await);
    assert_eq!(world.password_login("anna", "third horse").await.0, 401);
    assert_eq!(world.ask("DELETE", "/v1/users/none/password", None).await.0, 404);
    // A user without a password can't set one with a token.
    let token = made["token"].as_str().unwrap();
    let body = json!({"old_password": "", "password": "third horse"});
    let asked = Sent::new("POST", "/v1/session/password").token(token).body(body);
    assert_eq!(world.status(asked).await, 400);
    // The removal of a user ends its sessions.
    assert_eq!(world.ask("DELETE", "/api/2.26/admins?names=bert", None).await.0, 200);
    assert!(!world.is_open(&of_bert).await);
}

#[tokio::test]
async fn rest_changes_passwords_of_admins() {
    let world = World::new();
    world.with_password("anna", "readonly").await;
    let path = "/api/2.26/admins?names=anna";
    for (body, text) in [
        (json!({"old_password": "wrong horse", "password": "another horse"}), "old password"),
        (json!({"old_password": PASSWORD, "password": "x"}), "8 to 128 characters"),
        (json!({"old_password": PASSWORD}), "role or a password"),
        (json!({"public_key": "ssh-ed25519 x"}), "not supported"),
    ] {
        let (status, refused) = world.ask("PATCH", path, Some(body)).await;
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(text), "{message}");
    }
    let session = world.let_in("anna", PASSWORD).await;
    let body = json!({"old_password": PASSWORD, "password": "another horse",
        "role": {"name": "storage_admin"}});
    let (status, changed) = world.ask("PATCH", path, Some(body)).await;
    assert_eq!((status, &changed["items"][0]["role"]["name"]), (200, &json!("storage_admin")));
    assert!(!world.is_open(&session).await);
    world.let_in("anna", "another horse").await;
    let (_, settings) = world.ask("GET", "/api/2.26/admins/settings", None).await;
    assert_eq!(settings["items"][0]["min_password_length"], 8);
    let missing = "/api/2.26/admins?names=none";
    let body = json!({"password": "another horse"});
    assert_eq!(world.ask("PATCH", missing, Some(body)).await.0, 400);
}
