//! Users, their tokens and sessions.

use serde_json::json;

use super::World;
use super::http::{Answer, Request};
use super::names::name;
use crate::report::Report;

/// Users that are changed by `/v1`, and as many by REST 2.x.
const USERS: usize = 64;
/// The most tokens of a user.
const TOKENS: usize = 32;
/// The number of users with passwords.
const PASSWORDS: usize = 8;
/// The number of sessions of one token.
const SESSIONS: usize = 128;

fn rest(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/api/2.26/{path}"))
}

fn each(count: usize, make: impl Fn(usize) -> Request) -> Vec<Request> {
    (0..count).map(make).collect()
}

pub fn all(report: &mut Report, world: &World) {
    let user = |n| name("user", n);
    let role = json!({"role": {"name": "readonly"}});
    let make = |n| rest("POST", &format!("admins?names={}", user(n))).json(&role).gives(1);
    world.row(report, "POST admins who are readonly", &each(USERS, make));
    let one = |n| format!("/v1/users/{}", user(n));
    world.row(report, "GET /v1/users/{name}", &each(USERS, |n| Request::new("GET", one(n))));
    passwords(report, world, &user);
    let new = |n| json!({"user": user(0), "name": name("token", n), "lifetime_s": 86_400 * 3650});
    let make = |n| Request::new("POST", "/v1/tokens").json(&new(n)).ends(201);
    let tokens = world.row(report, "POST /v1/tokens", &each(TOKENS, make));
    sessions(report, world, &tokens);
    let one = |n| Request::new("DELETE", format!("/v1/tokens/{}/{}", user(0), name("token", n)));
    let requests = each(TOKENS, |n| one(n).ends(204));
    world.row(report, "DELETE /v1/tokens/{user}/{name}", &requests[1..]);
    let one = |n| rest("DELETE", &format!("admins?names={}", user(n)));
    world.row(report, "DELETE admins who are readonly", &each(USERS, one)[1..]);
    admins(report, world);
}

/// Passwords of maximum length. Each takes some time and memory by design: one at a time.
fn passwords(report: &mut Report, world: &World, user: &impl Fn(usize) -> String) {
    let password = |n: usize| format!("{n:x>128}");
    let of = |n| format!("/v1/users/{}/password", user(n));
    let set = |n| rest("PATCH", &format!("admins?names={}", user(n)));
    let set = |n| set(n).json(&json!({"password": password(n)})).gives(1);
    world.row_of(report, "PATCH admins with a password", &each(PASSWORDS, set), 1);
    let login = |n| {
        let body = json!({"user": user(n), "password": password(n)});
        Request::new("POST", "/v1/session").json(&body).ends(201)
    };
    let sessions = world.row_of(report, "POST /v1/session", &each(PASSWORDS, login), 1);
    let change = |(n, answer): (usize, &Answer)| {
        let body = json!({"old_password": password(n), "password": password(n + 1)});
        let request = Request::new("POST", "/v1/session/password").json(&body).ends(204);
        request.header("x-auth-token", answer.session.clone().unwrap_or_default())
    };
    let changes: Vec<_> = sessions.iter().enumerate().map(change).collect();
    world.row_of(report, "POST /v1/session/password", &changes, 1);
    let end = |n| Request::new("DELETE", of(n));
    world.row(report, "DELETE /v1/users/{name}/password", &each(PASSWORDS, end));
}

fn admins(report: &mut Report, world: &World) {
    let admin = |n| format!("admins?names={}", name("admin", n));
    let role = |name: &str| json!({"role": {"name": name}});
    let make = |n| rest("POST", &admin(n)).json(&role("storage_admin")).gives(1);
    world.row(report, "POST admins", &each(USERS, make));
    let change = |n| rest("PATCH", &admin(n)).json(&role("readonly")).gives(1);
    world.row(report, "PATCH admins", &each(USERS, change));
    let tokens = |n| format!("admins/api-tokens?names={}", name("admin", n));
    let make = |n| rest("POST", &format!("{}&timeout=86400000", tokens(n))).gives(1);
    world.row(report, "POST admins/api-tokens", &each(USERS, make));
    let end = each(USERS, |n| rest("DELETE", &tokens(n)));
    world.row(report, "DELETE admins/api-tokens", &end[1..]);
    world.row(report, "DELETE admins", &each(USERS, |n| rest("DELETE", &admin(n)))[1..]);
}

/// Many sessions of one token.
fn sessions(report: &mut Report, world: &World, tokens: &[Answer]) {
    let token = tokens.first().and_then(|answer| answer.json().ok());
    let token = token.as_ref().and_then(|answer| answer["token"].as_str()).unwrap_or_default();
    let login = rest("POST", "login").header("api-token", token);
    let sessions = world.row(report, "POST login", &vec![login; SESSIONS]);
    let session = |answer: &Answer| answer.session.clone().unwrap_or_default();
    let with = |request: Request, answer: &Answer| request.header("x-auth-token", session(answer));
    let ask = |answer| with(Request::new("GET", "/v1/session"), answer);
    world.row(report, "GET /v1/session", &sessions.iter().map(ask).collect::<Vec<_>>());
    let end = |answer| with(rest("POST", "logout"), answer);
    let mut requests: Vec<Request> = sessions.iter().map(end).collect();
    requests.dedup_by_key(|request| request.headers.first().map(|(_, value)| value.clone()));
    world.row(report, "POST logout", &requests);
    let of = |user: &str| Request::new("GET", format!("/v1/tokens?user={user}"));
    world.row(report, "GET /v1/tokens", &vec![of(&name("user", 0)); 32]);
}
