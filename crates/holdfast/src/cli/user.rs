//! `user …`.

use api::{User, UserChange, UserCreate, UserPassword, Users};
use hyper::Method;
use serde_json::json;

use super::args::{Common, UserVerb};
use super::client::{Client, decode, path_of};
use super::failure::Failure;
use super::hidden;
use super::listing::Listing;
use super::output::{Align, Form, show, table, time};

/// Runs a verb.
pub fn run(common: &Common, verb: &UserVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let form = common.form;
    match verb {
        UserVerb::Create { name, role } => {
            let asked = UserCreate { name: name.clone(), role: role.clone() };
            let user: User = client.post("/v1/users", &asked)?;
            show(form, &user, || {
                format!(
                    "User {0} is made. Give it a token: holdfast token create NAME --user {0}\n",
                    user.name
                )
            })
        }
        UserVerb::List(listing) => list(&client, form, listing),
        UserVerb::Set { name, role } => {
            let change = UserChange { role: role.clone() };
            let user: User = client.patch(&path_of("users", name)?, &change)?;
            show(form, &user, || format!("User {} is {} now.\n", user.name, user.role))
        }
        UserVerb::Password { name, remove } => {
            let path = format!("{}/password", path_of("users", name)?);
            let (user, what): (User, _) = match remove {
                true => (decode(&client.send(Method::DELETE, &path, &[])?)?, "no password"),
                false => {
                    let password = hidden::new_password()?;
                    (client.put(&path, &UserPassword { password })?, "another password")
                }
            };
            let text = || format!("User {} has {what} now; its sessions have ended.\n", user.name);
            show(form, &user, text)
        }
        UserVerb::Delete { name } => {
            client.delete(&path_of("users", name)?)?;
            show(form, &json!({ "deleted": name }), || {
                format!("User {name} is gone, with its tokens and sessions.\n")
            })
        }
    }
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
