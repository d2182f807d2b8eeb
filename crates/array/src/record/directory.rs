//! The record of the directory service.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode};
use super::users::role;
use crate::error::Error;
use crate::objects::directory::{Directory, DirectoryGroup, DirectoryUri};
use crate::values::password::KeptPassword;

/// The form of the record. Empty fields are omitted.
#[derive(Serialize, Deserialize)]
pub(super) struct DirectoryRow {
    v: u8,
    revision: u64,
    enabled: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    uris: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    base_dn: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    bind_user: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    bind_password: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ca_certificate: String,
    #[serde(default)]
    check_peer: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    user_login: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    user_class: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<RoleRow>,
}

#[derive(Serialize, Deserialize)]
struct RoleRow {
    role: String,
    group: String,
    base: String,
}

pub(crate) fn directory_key() -> Vec<u8> {
    b"D".to_vec()
}

pub(crate) fn directory(all: &Directory) -> Result<Vec<u8>, Error> {
    let roles = all.roles().map(|(role, DirectoryGroup { group, base })| RoleRow {
        role: role.name().to_owned(),
        group: group.clone(),
        base: base.clone(),
    });
    encode(&DirectoryRow {
        v: VERSION,
        revision: all.revision,
        enabled: all.is_enabled,
        uris: all.uris.iter().map(ToString::to_string).collect(),
        base_dn: all.base_dn.clone(),
        bind_user: all.bind_user.clone(),
        bind_password: all.bind_password.expose().to_owned(),
        ca_certificate: all.ca_certificate.clone(),
        check_peer: all.check_peer,
        user_login: all.user_login.clone(),
        user_class: all.user_class.clone(),
        roles: roles.collect(),
    })
}

pub(super) fn decode_directory(key: &[u8], row: DirectoryRow) -> Result<Directory, Error> {
    let uris = row.uris.iter().map(|uri| DirectoryUri::new(uri));
    let mut found = Directory {
        is_enabled: row.enabled,
        uris: uris.collect::<Result<_, _>>()?,
        base_dn: row.base_dn,
        bind_user: row.bind_user,
        bind_password: KeptPassword::new(&row.bind_password),
        ca_certificate: row.ca_certificate,
        check_peer: row.check_peer,
        user_login: row.user_login,
        user_class: row.user_class,
        revision: row.revision,
        ..Directory::default()
    };
    for RoleRow { role: name, group, base } in row.roles {
        let role = role(key, &name)?;
        if !found.group(role).group.is_empty() {
            return Err(damaged(key, "a role appears twice"));
        }
        found.set_group(role, DirectoryGroup { group, base });
    }
    found.check()?;
    Ok(found)
}
