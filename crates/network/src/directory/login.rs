//! Requests to a server for a login, and for a test.

use std::io;
use std::time::Instant;

use array::{Directory, DirectoryGroup, DirectoryUri, Role};

use super::DirectoryLogin;
use super::connection::{Connection, failed};
use super::message::{Entry, Filter, Scope, Search};
use crate::Names;

/// The longest user name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The results of operations (RFC 4511, appendix A.1) that are distinguished.
const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const NO_SUCH_OBJECT: u32 = 32;
const INVALID_CREDENTIALS: u32 = 49;
const BUSY: u32 = 51;
const UNAVAILABLE: u32 = 52;

/// Tries one server after the other, each for its part of the time, until one can be used.
pub(super) fn with_a_server<T>(
    settings: &Directory,
    end: Instant,
    mut ask: impl FnMut(&DirectoryUri, Instant) -> io::Result<T>,
) -> Result<T, String> {
    let mut why = Vec::new();
    for (at, uri) in settings.uris.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let part = left / u32::try_from(settings.uris.len() - at).unwrap_or(u32::MAX);
        match ask(uri, Instant::now() + part) {
            Ok(found) => return Ok(found),
            Err(error) => why.push(format!("{uri}: {error}")),
        }
    }
    Err(why.join("; "))
}

/// Returns a connection on which the array has bound as its own user.
pub(super) fn bound(
    uri: &DirectoryUri,
    settings: &Directory,
    names: &Names,
    end: Instant,
) -> io::Result<Connection> {
    let mut connection = Connection::open(uri, settings, names, end)?;
    let outcome = connection.bind(&settings.bind_user, settings.bind_password.expose())?;
    match outcome.code {
        SUCCESS => Ok(connection),
        _ => Err(failed("the user to bind as", &outcome)),
    }
}

/// Checks whether a user with this password may log in.
pub(super) fn log_in(
    settings: &Directory,
    names: &Names,
    user: &str,
    password: &str,
    end: Instant,
) -> DirectoryLogin {
    // An empty password would be an anonymous bind, which servers accept (RFC 4513, 5.1.2).
    let is_name = (1..=NAME_CHARS_MAX).contains(&user.chars().count());
    if !settings.is_enabled || password.is_empty() || !is_name || user.contains(char::is_control) {
        return DirectoryLogin::Refused("there is no such name, or no password");
    }
    let asked = with_a_server(settings, end, |uri, end| {
        let mut connection = bound(uri, settings, names, end)?;
        let Some(entry) = entry_of(&mut connection, settings, user)? else {
            return Ok(DirectoryLogin::Refused("no user, or several, have this name"));
        };
        let name = name_of(&entry, settings, user);
        let role = role_of(&mut connection, settings, &entry.dn, &name)?;
        let outcome = connection.bind(&entry.dn, password)?;
        connection.end();
        match (outcome.code, role) {
            (SUCCESS, Some(role)) => Ok(DirectoryLogin::Known { name, role }),
            (SUCCESS, None) => Ok(DirectoryLogin::Refused("no group of the user has a role")),
            (INVALID_CREDENTIALS, _) => Ok(DirectoryLogin::Refused("the password is wrong")),
            (BUSY | UNAVAILABLE, _) => Err(failed("a login", &outcome)),
            _ => Ok(DirectoryLogin::Refused("the directory does not let the user in")),
        }
    });
    asked.unwrap_or_else(DirectoryLogin::Unreachable)
}

/// Returns the attributes that may contain the name of a user.
fn login_attributes(settings: &Directory) -> Vec<&str> {
    match &*settings.user_login {
        "" => vec!["uid", "sAMAccountName"],
        one => vec![one],
    }
}

/// Returns the entry of a user, if there is exactly one.
fn entry_of(
    connection: &mut Connection,
    settings: &Directory,
    user: &str,
) -> io::Result<Option<Entry>> {
    let attributes = login_attributes(settings);
    let named = attributes.iter().map(|one| Filter::equal(one, user)).collect();
    let mut all = vec![Filter::Any(named)];
    if !settings.user_class.is_empty() {
        all.push(Filter::equal("objectClass", &settings.user_class));
    }
    let (mut found, outcome) = connection.search(Search {
        base: &settings.base_dn,
        scope: Scope::Subtree,
        filter: Filter::All(all),
        attributes: &attributes,
        entries_max: 2,
        seconds: 0,
    })?;
    match outcome.code {
        SUCCESS if found.len() == 1 => Ok(found.pop().filter(|entry| !entry.dn.is_empty())),
        SUCCESS | SIZE_LIMIT_EXCEEDED => Ok(None),
        _ => Err(failed("a search for a user", &outcome)),
    }
}

/// Returns the name of a user, as the directory writes it.
fn name_of(entry: &Entry, settings: &Directory, asked: &str) -> String {
    let wanted = login_attributes(settings);
    let is_login = |name: &str| wanted.iter().any(|one| one.eq_ignore_ascii_case(name));
    let logins = entry.attributes.iter().filter(|(name, _)| is_login(name));
    let mut values: Vec<&String> = logins.flat_map(|(_, values)| values).collect();
    values.retain(|value| value.to_lowercase() == asked.to_lowercase());
    values.first().map_or(asked, |value| value.as_str()).to_owned()
}

/// Returns the DN of an object that may be given relative to a base.
fn below(part: &str, base: &str) -> String {
    let (lower, end) = (part.to_lowercase(), format!(",{}", base.to_lowercase()));
    match part {
        "" => base.to_owned(),
        part if lower == base.to_lowercase() || lower.ends_with(&end) => part.to_owned(),
        part => format!("{part},{base}"),
    }
}

/// Returns where to search for a group, and the additional filter.
fn place_of(group: &DirectoryGroup, settings: &Directory) -> (String, Scope, Filter) {
    match group.group.contains('=') {
        true => {
            let dn = below(&group.group, &below(&group.base, &settings.base_dn));
            (dn, Scope::Base, Filter::Present("objectClass".into()))
        }
        false => {
            let base = below(&group.base, &settings.base_dn);
            (base, Scope::Subtree, Filter::equal("cn", &group.group))
        }
    }
}

/// Returns whether such a group exists that also matches a filter.
fn has_group(
    connection: &mut Connection,
    settings: &Directory,
    group: &DirectoryGroup,
    members: Option<Filter>,
) -> io::Result<bool> {
    let (base, scope, filter) = place_of(group, settings);
    let filter = Filter::All(std::iter::once(filter).chain(members).collect());
    let (attributes, entries_max, seconds): (&[&str], _, _) = (&[], 1, 0);
    let search = Search { base: &base, scope, filter, attributes, entries_max, seconds };
    let (found, outcome) = connection.search(search)?;
    match outcome.code {
        SUCCESS | SIZE_LIMIT_EXCEEDED => Ok(!found.is_empty()),
        NO_SUCH_OBJECT => Ok(false),
        _ => Err(failed("a search for a group", &outcome)),
    }
}

/// Returns the most powerful role of a user's groups.
fn role_of(
    connection: &mut Connection,
    settings: &Directory,
    dn: &str,
    name: &str,
) -> io::Result<Option<Role>> {
    for (role, group) in settings.roles() {
        let members = Filter::Any(vec![
            Filter::equal("member", dn),
            Filter::equal("uniqueMember", dn),
            Filter::equal("memberUid", name),
        ]);
        if has_group(connection, settings, group, Some(members))? {
            return Ok(Some(role));
        }
    }
    Ok(None)
}

/// Tests whether a server can be used: the array may bind and search there, and all groups with
/// roles exist.
pub(super) fn test(
    uri: &DirectoryUri,
    settings: &Directory,
    names: &Names,
    end: Instant,
) -> io::Result<String> {
    let mut connection = bound(uri, settings, names, end)?;
    let (found, outcome) = connection.search(Search {
        base: &settings.base_dn,
        scope: Scope::Base,
        filter: Filter::Present("objectClass".into()),
        attributes: &[],
        entries_max: 1,
        seconds: 0,
    })?;
    if outcome.code != SUCCESS || found.is_empty() {
        return Err(failed("a search at the base DN", &outcome));
    }
    let mut roles = Vec::new();
    for (role, group) in settings.roles() {
        if !has_group(&mut connection, settings, group, None)? {
            return Err(io::Error::other(format!("the group of {role} is not there")));
        }
        roles.push(role.name());
    }
    connection.end();
    match roles.is_empty() {
        true => Err(io::Error::other("it answers, but no role has a group: nobody can log in")),
        false => Ok(format!("It answers, and has the groups of {}.", roles.join(", "))),
    }
}
