//! `directory-services`: the directory service whose users may log in, as `management`, and its
//! servers' tests.

use array::{Directory, DirectoryChange, KeptPassword};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::receivers::RestTestResult;
use super::{
    Answer, Body, HIDDEN, Items, ItemsOf, ListParams, Listed, Listing, NameParams, Named, Query,
    Refusals, Refused, answer,
};
use crate::directory::uris;
use crate::{DirectoryServer, Shared};

/// The name of the only directory service, and its purpose.
const NAME: &str = "management";
/// A directory service.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestDirectoryService {
    /// `management`.
    pub name: String,
    /// The DN below which users and groups are.
    pub base_dn: String,
    /// `****` if there is one; never the password itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_password: Option<String>,
    /// The user as which the array binds.
    pub bind_user: String,
    /// Certificates (PEM) of servers, or of authorities that signed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    /// As it was set. Servers are checked in any case.
    pub check_peer: bool,
    /// Whether its users may log in.
    pub enabled: bool,
    /// How users are found.
    pub management: RestDirectoryUsers,
    /// `management`.
    pub services: Vec<String>,
    /// Its servers.
    pub uris: Vec<String>,
}

/// How users are found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestDirectoryUsers {
    /// The attribute that has the name of a user; empty: `uid` or `sAMAccountName`.
    pub user_login_attribute: Option<String>,
    /// The object class of users; empty: any.
    pub user_object_class: Option<String>,
}

listed_by_name!(RestDirectoryService);

impl From<&Directory> for RestDirectoryService {
    fn from(directory: &Directory) -> Self {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            name: NAME.into(),
            base_dn: directory.base_dn.clone(),
            bind_password: (!directory.bind_password.is_empty()).then(|| HIDDEN.into()),
            bind_user: directory.bind_user.clone(),
            ca_certificate: given(&directory.ca_certificate),
            check_peer: directory.check_peer,
            enabled: directory.is_enabled,
            management: RestDirectoryUsers {
                user_login_attribute: Some(directory.user_login.clone()),
                user_object_class: Some(directory.user_class.clone()),
            },
            services: vec![NAME.into()],
            uris: directory.uris.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Lists the directory service: exactly one, even if nothing is set.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/directory-services",
    tag = "directory services",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestDirectoryService>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        vec![RestDirectoryService::from(&*interface.array.directory())]
    })
    .await
}

/// What the directory service is set to. Omitted fields do not change; empty ones are cleared.
/// `Debug` is left out on purpose.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryServicePatch {
    /// `management`.
    pub name: Option<String>,
    /// The DN below which users and groups are.
    pub base_dn: Option<String>,
    /// The password of the user to bind as. It has to be given again with another user or server.
    pub bind_password: Option<String>,
    /// The user as which the array binds: a DN, or a name that the directory accepts instead.
    pub bind_user: Option<String>,
    /// Certificates (PEM): up to 16 KiB.
    pub ca_certificate: Option<String>,
    /// Kept as it is given. Servers are checked in any case.
    pub check_peer: Option<bool>,
    /// Whether its users may log in.
    pub enabled: Option<bool>,
    /// How users are found.
    pub management: Option<RestDirectoryUsers>,
    /// Only `management`.
    pub services: Option<Vec<String>>,
    /// Up to 3: `ldaps://HOST[:PORT]`, or `ldap://HOST[:PORT]`, where TLS is begun by StartTLS.
    pub uris: Option<Vec<String>>,
}

impl DirectoryServicePatch {
    fn is_empty(&self) -> bool {
        let Self { base_dn, bind_password, bind_user, ca_certificate, .. } = self;
        let texts = [base_dn, bind_password, bind_user, ca_certificate];
        let flags = [self.check_peer, self.enabled];
        texts.iter().all(|text| text.is_none())
            && flags.iter().all(Option::is_none)
            && self.management.is_none()
            && self.uris.is_none()
    }

    fn change(self) -> Result<DirectoryChange, Refused> {
        if self.is_empty() {
            return Err(Refused::bad("", "Give what to change."));
        }
        if self.services.is_some_and(|all| all.iter().any(|service| service != NAME)) {
            return Err(Refused::unsupported("services", "A directory service for files"));
        }
        if self.name.is_some_and(|name| name != NAME) {
            return Err(Refused::unsupported("name", "Another name for a directory service"));
        }
        let users = self.management.unwrap_or_default();
        Ok(DirectoryChange {
            is_enabled: self.enabled,
            uris: self.uris.as_deref().map(uris).transpose()?,
            base_dn: self.base_dn,
            bind_user: self.bind_user,
            bind_password: self.bind_password.as_deref().map(KeptPassword::new),
            ca_certificate: self.ca_certificate,
            check_peer: self.check_peer,
            user_login: users.user_login_attribute,
            user_class: users.user_object_class,
            groups: Vec::new(),
        })
    }
}

/// Changes the directory service. This takes effect at once: the sessions of its users end.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/directory-services",
    tag = "directory services",
    params(NameParams),
    request_body = DirectoryServicePatch,
    responses((status = 200, body = ItemsOf<RestDirectoryService>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<DirectoryServicePatch>,
) -> Answer {
    let names = query.list("names")?;
    query.end()?;
    Refused::unless_only(NAME, &names)?;
    let change = asked.change()?;
    answer(interface, move |interface| {
        let changed = interface.array.change_directory(change)?;
        Items::of([RestDirectoryService::from(&*changed)])
    })
    .await
}

/// Tests the servers of the directory service, and returns the results. Only for array admins,
/// because the servers are contacted.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/directory-services/test",
    tag = "directory services",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestTestResult>), Refusals)
)]
pub(super) async fn try_out(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    Refused::unless_only(NAME, &names)?;
    answer(interface, move |interface| {
        let (sender, enabled) =
            (interface.facts.controller(), interface.array.directory().is_enabled);
        let tested = interface.watch.test_directory().into_iter();
        let results = tested.map(|server| result(sender, enabled, server));
        let mut results: Vec<_> = results.collect();
        results.sort_by_key(Listed::key);
        listing.all(&results)
    })
    .await
}

fn result(sender: &str, enabled: bool, tested: DirectoryServer) -> RestTestResult {
    RestTestResult {
        component_address: String::new(),
        component_name: sender.into(),
        description: "Binds to a server, and looks for the groups that have roles.".into(),
        destination: tested.uri,
        enabled,
        resource: Named { name: NAME.into() },
        success: tested.error.is_none(),
        result_details: tested.error.or(tested.found).unwrap_or_default(),
        test_type: "directory".into(),
    }
}
