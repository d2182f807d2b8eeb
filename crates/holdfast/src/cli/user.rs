//! `user …`.

use api::{User, Users};
use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::args::{Common, UserVerb};
use super::client::{Client, decode, path_of};
use super::failure::Failure;
use super::hidden;
use super::listing::Listing;
use super::output::{Align, Form, show, table, time};
use super::rest::named;

/// The resource of REST 2.x.
const RESOURCE: &str = "admins";

/// Runs a verb.
pub fn run(common: &Common, verb: &UserVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        UserVerb::Create { name, role } => {
            let user = send(&client, Method::POST, name, &with_role(role))?;
            show(form, &user, || {
                format!(
                    "User {0} was created. Create a token: holdfast token create NAME --user {0}\n",
                    user.name
                )
            })
        }
        UserVerb::List(listing) => list(&client, form, listing),
        UserVerb::Set { name, role } => {
            let user = send(&client, Method::PATCH, name, &with_role(role))?;
            show(form, &user, || format!("User {} now has the role {}.\n", user.name, user.role))
        }
        UserVerb::Password { name, remove } => {
            let (user, what) = match remove {
                true => {
                    let path = format!("{}/password", path_of("users", name)?);
                    (decode(&client.send(Method::DELETE, &path, &[])?)?, "no password")
                }
                false => {
                    let body = json!({ "password": hidden::new_password()? });
                    (send(&client, Method::PATCH, name, &body)?, "a new password")
                }
            };
            let text = || format!("User {} now has {what}; its sessions have ended.\n", user.name);
            show(form, &user, text)
        }
        UserVerb::Delete { name } => {
            client.order(Method::DELETE, RESOURCE, &named("names", name)?)?;
            show(form, &json!({ "deleted": name }), || {
                format!("User {name} was deleted, with its tokens and sessions.\n")
            })
        }
    }
}

fn with_role(role: &str) -> Value {
    json!({ "role": { "name": role } })
}

/// Creates or changes a user, and shows it in the form of `/v1`, which has more fields.
fn send(client: &Client, method: Method, name: &str, body: &Value) -> Result<User, Failure> {
    client.change::<IgnoredAny>(method, RESOURCE, &named("names", name)?, body)?;
    client.get(&path_of("users", name)?)
}

fn list(client: &Client, form: Form, listing: &Listing) -> Result<(), Failure> {
    let users: Vec<User> =
        client.get_all("/v1/users", |page: Users| (page.users, page.more), |last| &last.name)?;
    let users = listing.of(users)?;
    let columns = [
        ("NAME", Align::Left),
        ("ROLE", Align::Left),
        ("TOKENS", Align::Right),
        ("PASSWORD", Align::Left),
        ("MADE", Align::Left),
    ];
    show(form, &users, || {
        let row = |user: &User| {
            let made = user.created_ms.map_or_else(|| "built in".to_owned(), time);
            let password = if user.password { "yes" } else { "no" }.to_owned();
            let tokens = user.tokens.to_string();
            vec![user.name.clone(), user.role.clone(), tokens, password, made]
        };
        let rows: Vec<_> = users.iter().map(row).collect();
        table(&columns, &rows, "No users.")
    })
}
