//! `directory …`: the directory service whose users may log in.

use api::{
    DirectoryRole, DirectoryServer, DirectoryServers, DirectorySettings, DirectorySettingsChange,
};
use management::private::read_secret;

use super::args::{Common, DirectoryArgs, DirectoryVerb, Listed};
use super::array::{NONE, cleared, or_else};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, facts, show, table};

const PATH: &str = "/v1/directory";

/// Runs a verb.
pub fn run(common: &Common, verb: &DirectoryVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let settings: DirectorySettings = match verb {
        DirectoryVerb::Show => client.get(PATH)?,
        DirectoryVerb::Test => return test(common, client.post("/v1/directory/test", &())?),
        DirectoryVerb::Set(asked) => client.patch(PATH, &change(asked)?)?,
        DirectoryVerb::Role { role, group, base, .. } => {
            let role = DirectoryRole {
                role: role.clone(),
                group: group.clone().unwrap_or_default(),
                group_base: base.clone().unwrap_or_default(),
            };
            let change = DirectorySettingsChange { roles: vec![role], ..Default::default() };
            client.patch(PATH, &change)?
        }
    };
    show(common.form, &settings, || text(&settings))
}

fn change(asked: &DirectoryArgs) -> Result<DirectorySettingsChange, Failure> {
    let DirectoryArgs {
        enabled,
        uri,
        base_dn,
        bind_user,
        bind_password_file,
        ca_certificate,
        user_login,
        user_class,
    } = asked;
    let given = |text: &String| cleared(text).to_owned();
    let certificate =
        match ca_certificate {
            Some(path) if path.as_os_str() == NONE => Some(String::new()),
            Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
                Failure::Usage(format!("can't read {}: {error}", path.display()))
            })?),
            None => None,
        };
    Ok(DirectorySettingsChange {
        enabled: *enabled,
        uris: uri.clone().map(|Listed(uris)| uris),
        base_dn: base_dn.as_ref().map(given),
        bind_user: bind_user.as_ref().map(given),
        bind_password: bind_password_file.as_deref().map(read_secret).transpose()?,
        ca_certificate: certificate,
        user_login: user_login.as_ref().map(given),
        user_class: user_class.as_ref().map(given),
        roles: Vec::new(),
    })
}

fn text(settings: &DirectorySettings) -> String {
    let role = |role: &DirectoryRole| match role.group_base.is_empty() {
        true => format!("{}: {}", role.role, role.group),
        false => format!("{}: {} below {}", role.role, role.group, role.group_base),
    };
    let roles: Vec<String> = settings.roles.iter().map(role).collect();
    let bound = match settings.has_bind_password {
        true => format!("{}, with a password", settings.bind_user),
        false => NONE.to_owned(),
    };
    let certificate = match settings.ca_certificate.is_empty() {
        true => "the authorities of the array's machine",
        false => "those that were set",
    };
    facts(&[
        ("Users may log in", if settings.enabled { "yes" } else { "no" }.to_owned()),
        ("Servers", or_else(settings.uris.join(", "), NONE)),
        ("Base DN", or_else(settings.base_dn.clone(), NONE)),
        ("Binds as", bound),
        ("Certificates", certificate.to_owned()),
        ("Login attribute", or_else(settings.user_login.clone(), "uid or sAMAccountName")),
        ("User class", or_else(settings.user_class.clone(), "any")),
        ("Group roles", or_else(roles.join("; "), NONE)),
    ])
}

/// Shows the results of tests; fails if a server can't be used.
fn test(common: &Common, found: DirectoryServers) -> Result<(), Failure> {
    let row = |one: &DirectoryServer| {
        let outcome = one.error.clone().or_else(|| one.found.clone()).unwrap_or_default();
        vec![one.uri.clone(), outcome]
    };
    let columns = [("SERVER", Align::Left), ("OUTCOME", Align::Left)];
    let rows: Vec<_> = found.servers.iter().map(row).collect();
    let nothing = "No server is set. Set one: holdfast directory set --uri URI";
    show(common.form, &found, || table(&columns, &rows, nothing))?;
    match found.servers.iter().filter(|one| one.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} servers can't be used"))),
    }
}
