//! `smtp-servers`: the one relay for mail to `alert-watchers`. The pool stores it. The
//! configuration may name other relays, for its own recipients.

use array::{Encryption, Relay, RelayChange, RelayPassword};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::Shared;

/// The name of the one server.
const NAME: &str = "smtp";
/// The domain that one client sends to clear it.
const NO_DOMAIN: &str = "None";

/// The mail relay. Fields that are not set are empty: clients compare them with what they
/// want. The password is never shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSmtpServer {
    /// `smtp`.
    pub name: String,
    /// The prefix of each text.
    pub body_prefix: String,
    /// `starttls`, `tls`, or empty for none.
    pub encryption_mode: String,
    /// `HOST`, or `HOST:PORT`; without one no mail is sent.
    pub relay_host: String,
    /// The domain of the sender's address.
    pub sender_domain: String,
    /// The part before the `@` of that address; if empty, the name of the array.
    pub sender_username: String,
    /// The prefix of each subject.
    pub subject_prefix: String,
    /// The array's user at the server.
    pub user_name: String,
}

listed_by_name!(RestSmtpServer);

impl From<Relay> for RestSmtpServer {
    fn from(relay: Relay) -> Self {
        Self {
            name: NAME.into(),
            body_prefix: relay.body_prefix,
            encryption_mode: relay.encryption.name().into(),
            relay_host: relay.host,
            sender_domain: relay.sender_domain,
            sender_username: relay.sender_username,
            subject_prefix: relay.subject_prefix,
            user_name: relay.user,
        }
    }
}

/// Lists the mail relay: exactly one, even if nothing is set.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/smtp-servers",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSmtpServer>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let relay = interface.array.notifications().relay.clone();
        vec![RestSmtpServer::from(relay)]
    })
    .await
}

/// The settings of the server. Omitted fields do not change; empty ones are cleared.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SmtpPatch {
    /// The prefix of each text: up to 256 characters.
    pub body_prefix: Option<String>,
    /// `starttls`, `tls`, or empty for none; without encryption no password is sent.
    pub encryption_mode: Option<String>,
    /// The password of the user. It has to be given again with another user or server.
    pub password: Option<String>,
    /// `HOST`, or `HOST:PORT`; without a port, 25.
    pub relay_host: Option<String>,
    /// The domain of the sender's address: needed for mail. `None` is the same as empty.
    pub sender_domain: Option<String>,
    /// The part before the `@` of that address.
    pub sender_username: Option<String>,
    /// The prefix of each subject: up to 64 characters.
    pub subject_prefix: Option<String>,
    /// The array's user at the server.
    pub user_name: Option<String>,
}

impl SmtpPatch {
    fn is_empty(&self) -> bool {
        let Self { body_prefix, encryption_mode, password, relay_host, .. } = self;
        let Self { sender_domain, sender_username, subject_prefix, user_name, .. } = self;
        let all = [body_prefix, encryption_mode, password, relay_host];
        let others = [sender_domain, sender_username, subject_prefix, user_name];
        all.iter().chain(&others).all(|field| field.is_none())
    }

    fn change(self) -> Result<RelayChange, Refused> {
        let encryption = self.encryption_mode.map(|mode| Encryption::parse(&mode)).transpose()?;
        let domain = |domain: String| if domain == NO_DOMAIN { String::new() } else { domain };
        Ok(RelayChange {
            host: self.relay_host,
            sender_domain: self.sender_domain.map(domain),
            sender_username: self.sender_username,
            user: self.user_name,
            password: self.password.map(|password| RelayPassword::new(&password)),
            encryption,
            subject_prefix: self.subject_prefix,
            body_prefix: self.body_prefix,
        })
    }
}

/// Sets the mail relay. This takes effect at once.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/smtp-servers",
    tag = "notifications",
    request_body = SmtpPatch,
    responses((status = 200, body = ItemsOf<RestSmtpServer>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<SmtpPatch>,
) -> Answer {
    let names = query.list("names")?;
    query.end()?;
    if asked.is_empty() {
        return Err(Refused::bad("", "Give what to change."));
    }
    if let Some(other) = names.iter().find(|name| *name != NAME) {
        return Err(Refused::bad(other, format!("{other} does not exist.")));
    }
    answer(interface, move |interface| {
        let changed = interface.array.change_relay(asked.change()?)?;
        Items::of([RestSmtpServer::from(changed)])
    })
    .await
}
