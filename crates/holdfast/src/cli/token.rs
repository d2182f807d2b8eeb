//! `token …`.

use api::{ApiToken, ApiTokenCreate, ApiTokenMade, ApiTokens};
use serde_json::json;

use super::args::{Common, TokenVerb};
use super::client::{Client, part, path_of};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, show, table, time};

/// Runs a verb.
pub fn run(common: &Common, verb: &TokenVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        TokenVerb::Create { name, user, expires } => {
            let asked = ApiTokenCreate {
                name: name.clone(),
                user: Some(user.clone()),
                lifetime_s: expires.map(|expires| expires.as_secs()),
            };
            let made: ApiTokenMade = client.post("/v1/tokens", &asked)?;
            show(form, &made, || {
                let until = made.kept.expires_ms.map_or_else(
                    || "valid until it is withdrawn".to_owned(),
                    |expires_ms| format!("valid until {}", time(expires_ms)),
                );
                let (name, user) = (&made.kept.name, &made.kept.user);
                format!("Token {name} of user {user}, shown this once; {until}:\n{}\n", made.token)
            })
        }
        TokenVerb::List { user, listing } => list(&client, form, user.as_deref(), listing),
        TokenVerb::Delete { name, user } => {
            if name.is_empty() {
                return Err(Failure::Usage("a name must not be empty".into()));
            }
            client.delete(&format!("{}/{}", path_of("tokens", user)?, part(name)))?;
            show(form, &json!({ "deleted": name, "user": user }), || {
                format!("Token {name} of user {user} is withdrawn; its sessions have ended.\n")
            })
        }
    }
}

fn list(client: &Client, form: Form, user: Option<&str>, listing: &Listing) -> Result<(), Failure> {
    let path =
        user.map_or("/v1/tokens".to_owned(), |user| format!("/v1/tokens?user={}", part(user)));
    let ApiTokens { tokens } = client.get(&path)?;
    let tokens = listing.of(tokens)?;
    let columns = [
        ("USER", Align::Left),
        ("TOKEN", Align::Left),
        ("MADE", Align::Left),
        ("EXPIRES", Align::Left),
        ("LAST USED", Align::Left),
    ];
    show(form, &tokens, || {
        let at = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), time);
        let row = |token: &ApiToken| {
            let (user, name) = (token.user.clone(), token.name.clone());
            vec![user, name, time(token.created_ms), at(token.expires_ms), at(token.last_used_ms)]
        };
        let rows: Vec<_> = tokens.iter().map(row).collect();
        table(&columns, &rows, "No API tokens. Create one: holdfast token create NAME")
    })
}
